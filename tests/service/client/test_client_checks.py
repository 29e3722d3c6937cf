"""What is refused before anything is sent: every finding at once, and nothing secret among them."""

from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay import errors
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.sequences import ProteinSequence, SequenceEntry
from prefect_assay.service.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.service.models.tokens import (
    Attenuation,
    ExistingOrg,
    MintRequest,
    NewOrg,
)
from prefect_assay.service.models.vocabulary import ExperimentType, PaymentMethod
from support.client import Caller, operations
from support.services.fault_server import reply

GOOD = ExperimentSpec(
    experiment_type=ExperimentType.EXPRESSION, sequences={"a": SequenceValue(aa_string="MKT")}
)
BAD = ExperimentSpec(
    experiment_type=ExperimentType.EPITOPE_BINNING,
    n_replicates=9,
    sequences={"a": SequenceValue(aa_string="MKT"), "b": SequenceValue(aa_string="mkt")},
)
UUID = "00000000-0000-4000-8000-000000000000"
SECRET = "canary-of-31-characters-exactly"
PAST = datetime.now(UTC) - timedelta(days=1)


def order(spec=GOOD, name="n", **fields):
    return CreateRequest(experiment_spec=spec, name=name, **fields)


def findings(make, kind=errors.InvalidRequest):
    with pytest.raises(kind) as caught:
        make()
    assert type(caught.value) is kind
    assert SECRET not in str(caught.value)
    return caught.value.findings


def starts(found, *places):
    assert [finding.partition(":")[0] for finding in found] == list(places)


def test_an_order_is_refused_with_everything_that_is_wrong():
    found = findings(
        lambda: operations.experiments.create(
            order(
                BAD,
                name="",
                auto_accept_quote=True,
                payment_method=PaymentMethod.ASYNC_INVOICE,
                webhook_url="ftp://h.example",
                webhook_secret=SECRET,
            ),
            payment_header="mpp-spt",
        ),
        errors.InvalidSpec,
    )
    starts(
        found,
        "target_id",
        "n_replicates",
        "sequences",
        "sequences['b']",
        "name",
        "payment.method",
        "payment.method",
        "webhook_url",
        "webhook_secret",
        "auto_accept_quote",
    )


@pytest.mark.parametrize(
    ("body", "header", "count"),
    [
        (None, None, 0),
        ("x402-exact", None, 0),
        (None, "mpp-spt", 0),
        ("x402-exact", "x402-exact", 0),
        ("x402-exact", "mpp-spt", 1),
        ("async_invoice", None, 1),
        (None, "cash", 1),
        ("mpp-spt", "cash", 2),
    ],
)
def test_the_two_ways_to_select_a_rail_must_agree(body, header, count):
    def make():
        return operations.experiments.create(order(payment_method=body), payment_header=header)

    if not count:
        assert make().request.headers == ({"X-Service-Payment-Method": header} if header else {})
    else:
        assert len(findings(make)) == count


def test_an_unknown_option_of_a_list_is_a_type_error():
    for make, option in (
        (operations.tokens.list, "page_size"),
        (operations.tokens.iterate, "limit"),
        (operations.experiments.list, "colour"),
        (operations.experiments.iterate, "offset"),
    ):
        with pytest.raises(TypeError, match=option):
            make(**{option: 5})


@pytest.mark.parametrize(
    "url",
    [
        "http://h.example/x",
        "https://",
        "https://h.example /x",
        "ftp://h.example",
        "h.example",
        "https://h.example:99999",
    ],
)
def test_webhook_addresses_are_https(url):
    for make in (
        lambda: operations.experiments.create(order(webhook_url=url)),
        lambda: operations.experiments.modify("e", webhook_url=url),
        lambda: operations.webhooks.create(url),
    ):
        assert len(findings(make)) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:8100/a", "http://localhost/a", "http://[::1]:1/a"])
def test_plain_http_to_this_machine_is_for_a_lab_on_it(server, url):
    server.will(reply(201, {"experiment_id": "e"}))
    assert Caller(server.base_url)("experiments.create", order(webhook_url=url)).experiment_id == "e"
    with AssayClient("https://lab.example.org", "t") as client:
        for call in (
            lambda: client.experiments.create(order(webhook_url=url)),
            lambda: client.experiments.modify("e", webhook_url=url),
            lambda: client.webhooks.create(url),
        ):
            assert "lab" in findings(call)[0]


def test_a_modification_is_checked_field_by_field():
    found = findings(
        lambda: operations.experiments.modify(
            "e",
            name="",
            target_id="EGFR",
            n_replicates=6,
            antigen_concentrations=[-1.0],
            sequences=[ProteinSequence(name="a", aa_string="MKX"), ProteinSequence(name="a", aa_string="MK")],
            webhook_url="x",
        )
    )
    assert {finding.partition(":")[0].partition("[")[0] for finding in found} == {
        "name",
        "target_id",
        "n_replicates",
        "antigen_concentrations",
        "sequences",
        "webhook_url",
    }
    assert operations.experiments.modify("e", target_id=None, webhook_url=None).request.json == {
        "target_id": None,
        "webhook_url": None,
    }
    with pytest.raises(TypeError):
        operations.experiments.modify("e", colour="red")


def test_added_sequences_are_checked_like_ordered_ones():
    wrong = [
        ProteinSequence(name="a", aa_string="MKT"),
        ProteinSequence(name="a", aa_string="MKX"),
        ProteinSequence(name="", aa_string=""),
        ProteinSequence(name="b", aa_string="mkt"),
    ]
    found = findings(lambda: operations.sequences.add("", wrong))
    assert [
        part
        for part in ("experiment_code", "X", "2 sequences", "residues", "same residues")
        if part not in str(found)
    ] == []
    assert len(found) >= 6
    starts(findings(lambda: operations.sequences.add("c", [])), "sequences")


@pytest.mark.parametrize(
    "metadata", [{"type": "VHH"}, {"type": "FAB"}, {"type": "ScFv"}, {"tag_location": ["C"]}]
)
def test_metadata_of_ordered_added_and_replaced_sequences_is_free(metadata):
    free = [ProteinSequence(name="a", aa_string="MKT", metadata=metadata)]
    for made in (operations.sequences.add("c", free), operations.experiments.modify("e", sequences=free)):
        assert made.request.json["sequences"][0]["metadata"] == metadata
    ordered = GOOD.model_copy(update={"sequences": {"a": SequenceValue(aa_string="MKT", metadata=metadata)}})
    sent = operations.experiments.create(order(ordered)).request.json["experiment_spec"]["sequences"]
    assert sent["a"]["metadata"] == metadata
    odd = [ProteinSequence(name="a", aa_string="MKT", metadata={"score": float("nan")})]
    assert "not JSON" in findings(lambda: operations.sequences.add("c", odd))[0]


@pytest.mark.parametrize("metadata", ["round 2", 7, 0, False, [1, "a"], [], {"a": {"b": None}}])
def test_metadata_of_an_entry_is_any_json_value(metadata):
    # contract 2.4
    entries = [SequenceEntry("a", "MKT", metadata=metadata), SequenceEntry("b", "MKV")]
    for made in (
        operations.sequences.add("c", entries),
        operations.experiments.modify("e", sequences=entries),
    ):
        assert [entry.get("metadata") for entry in made.request.json["sequences"]] == [metadata, None]
        assert "metadata" not in made.request.json["sequences"][1]


def test_small_bodies_are_checked():
    starts(findings(lambda: operations.quotes.reject("q", "because")), "reason")
    starts(
        findings(lambda: operations.service.submit_feedback("praise", "1")), "feedback_type", "request_uuid"
    )
    starts(
        findings(lambda: operations.custom_targets.request("", "", None, "")),
        "name",
        "product_id",
        "pdb_id",
    )
    starts(findings(lambda: operations.custom_targets.request("n", "p")), "sequence")
    product = {"vendor": "", "product_url": "ftp://x/y", "molecular_weight": float("nan")}
    starts(
        findings(lambda: operations.custom_targets.request("n", "p", "MKT", **product)),
        "vendor",
        "product_url",
        "molecular_weight",
    )
    for weight in (0, -1.5, ""):
        starts(
            findings(lambda w=weight: operations.custom_targets.request("n", "p", "M", molecular_weight=w)),
            "molecular_weight",
        )
    assert "not an amino acid" in findings(lambda: operations.custom_targets.request("n", "p", "MK1"))[0]
    starts(
        findings(
            lambda: operations.webhooks.create("https://h.example", secret=SECRET, headers={"a b": "x\n"})
        ),
        "secret",
        "headers",
        "headers",
    )


def test_tokens_are_narrowed_to_something_that_exists():
    wrong = Attenuation(
        allowed_actions=("read", "fly"), allowed_org_ids=("x",), allowed_resources=("",), expires_at=PAST
    )
    starts(
        findings(lambda: operations.tokens.attenuate("", wrong, "", attenuated_parent_token_id="x")),
        "token",
        "name",
        "attenuation.allowed_actions",
        "attenuation.allowed_org_ids",
        "attenuation.allowed_resources",
        "attenuation.expires_at",
        "attenuated_parent_token_id",
    )
    starts(
        findings(
            lambda: operations.tokens.mint(
                MintRequest(org=ExistingOrg(id="x"), email="nobody", expires_at=PAST)
            )
        ),
        "org.id",
        "email",
        "expires_at",
    )
    starts(
        findings(lambda: operations.tokens.mint(MintRequest(org=NewOrg(name=""), email="a@b.c"))), "org.name"
    )


def test_a_dictionary_in_place_of_a_specification_is_refused_with_the_way_to_make_one():
    with pytest.raises(
        errors.InvalidSpec, match=r"an ExperimentSpec is needed, not dict: ExperimentSpec\.model_validate"
    ):
        operations.experiments.estimate_cost({"experiment_type": "affinity"})
