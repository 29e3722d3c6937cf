"""A rehearsal against the lab and four forms of a contract-only service: what it finds, sends and tells others."""

import io
import json
import zipfile

import pytest

from assay_lab.testing import LocalLab
from prefect_assay.blocks import (
    AssayAccount,
    AssayCredentials,
    LocalArchive,
    SharedPaymentTokens,
    SpendingPolicy,
    WebhookEndpoint,
)
from prefect_assay.campaigns.rehearsal import _describe_limit, make_bundle, rehearse_account
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.read import read_sequences
from prefect_assay.service.client import AssayClient
from prefect_assay.service.drift.fields import FieldState
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from prefect_assay.service.models.tokens import Attenuation
from support.contract.service import TARGET, TOKEN, ContractService, running
from support.contract.table import PUBLISHED
from support.services.fault_server import fault_server, reply
from support.webhooks import receiver_place
from support.webhooks.deliveries import SIGNING_KEY

ESTIMATE = ("POST", "/experiments/cost-estimate")
NAME, RESIDUES = "lovelace_binder", "MKTAYIAKQRQISFVKSHFSRQ"
OTHER_NAME, OTHER_RESIDUES = "egfr_wildtype", "GSHMKLVFFAEDVGSNKGAII"
PERSON = "Ada Lovelace <ada@lab.example>"
ISSUER_KEY = "issuer-key-of-the-tests-0123456789"
VARIANTS = {
    "what the contract shows alone": {"form": {"results": "summaries alone"}},
    "the published shapes": {"form": PUBLISHED},
    "the published shapes, in a deployment's words": {
        "form": {**PUBLISHED, "outside": "a web page"},
        "provider": "paymaster",
    },
    "odd values": {
        "form": {
            "detail": "odd values where nothing decides",
            "quote": "two totals that disagree",
            "targets": "odd values",
            "statuses": "unknown ones in between",
            "updates": "odd values",
            "results": "an object by design",
            "outside": "a web page",
        }
    },
}
# The steps that have a problem besides the description, which such a service does not give.
PROBLEMS = {
    "what the contract shows alone": {"results": "unread"},
    "the published shapes": {},
    "the published shapes, in a deployment's words": {},
    "odd values": {"quotes": "amount", "results": "unread"},
}


def account_of(base_url, token, folder, *, provider="provider", webhook=None):
    return AssayAccount(
        credentials=AssayCredentials(base_url=base_url, token=token, provider_word=provider),
        policy=SpendingPolicy(per_experiment_usd=5_000, per_campaign_usd=20_000),
        archive=LocalArchive(root=str(folder)),
        wallet=SharedPaymentTokens(
            issuer_url="http://127.0.0.1:9/issue", issuer_key=ISSUER_KEY, network_ids=["profile_1"]
        ),
        webhook=webhook,
    )


def designs_of(text=f">{NAME}\n{RESIDUES}\n"):
    return read_sequences(text, reading=ReadingOptions())


def played(account, designs=None, **assay):
    return rehearse_account(account, designs or designs_of(), Assay(**assay), ReadingOptions())


def problems(rehearsal):
    return {step.name: step.problem for step in rehearsal.steps if not step.ok}


def states(rehearsal, operation):
    return {one.place: one.state for one in rehearsal.fields if one.operation == operation}


def texts(bundle):
    with zipfile.ZipFile(io.BytesIO(bundle)) as files:
        return {name: files.read(name).decode() for name in files.namelist()}


@pytest.fixture(scope="module")
def lab():
    with LocalLab() as made:
        made.fill(2, stage="ordered", sequences=4)
        made.fill(1, stage="submitted")
        made.fill(1, stage="draft")
        made.advance(days=20)
        yield made


@pytest.fixture
def sent(lab):
    """What the lab's journal has of this test, but for reads."""
    start = lab.journal()[-1]["number"] if lab.journal() else 0
    return lambda: [(one["method"], one["path"]) for one in lab.journal(start) if one["method"] != "GET"]


def with_past_orders(service):
    """Two orders of one person: one is measured, of the other the laboratory has only just begun."""
    spec = {
        "experiment_type": "affinity",
        "method": "bli",
        "target_id": TARGET["id"],
        "sequences": {OTHER_NAME: {"aa_string": OTHER_RESIDUES}, "c": {"aa_string": RESIDUES}},
    }
    request = CreateRequest(
        experiment_spec=ExperimentSpec.model_validate(spec),
        name=PERSON,
        auto_accept_quote=True,
        skip_draft=True,
    )
    with AssayClient(service.base_url, TOKEN) as client:
        for _ in range(2):
            client.experiments.create(request)
    done, begun = service.made.values()
    for _ in range(9):
        service.go_on(done)
    service.go_on(begun)
    service.journal.clear()


def test_the_lab_is_ready_and_every_field_of_it_is_known(lab, sent, tmp_path):
    rehearsal = played(account_of(lab.base_url, lab.token, tmp_path))
    assert (problems(rehearsal), rehearsal.is_ready, rehearsal.account.simulated) == ({}, True, True)
    assert sent() == [("POST", "/api/v1/experiments/cost-estimate")]
    assert rehearsal.changes == ()
    odd = [
        one
        for one in rehearsal.fields
        if one.state in {FieldState.MISSING, FieldState.ODD, FieldState.NEW_WORD}
    ]
    assert odd == []
    results = states(rehearsal, "GET /experiments/{}/results")
    assert results["items[].summary[].kd_mean"] is FieldState.READ
    assert results["items[].summary[].kd_units"] is FieldState.READ, "the unit of a number that is read"
    assert results["items[].summary[].binding_model"] is FieldState.UNREAD, "it has no column"
    words = {one.place: one.words for one in rehearsal.fields if one.operation == "GET /experiments"}
    assert set(words["items[].status"]) == {"done", "draft", "quote_sent"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_only_reads_and_estimates_are_sent_to_any_service_of_the_contract(variant, tmp_path):
    with running(ContractService(**VARIANTS[variant])) as service:
        with_past_orders(service)
        rehearsal = played(account_of(service.base_url, TOKEN, tmp_path, provider=service.provider))
        assert problems(rehearsal) == {"description": "no_description"} | PROBLEMS[variant]
        assert not rehearsal.account.simulated
        assert [call for call in service.journal if call[0] != "GET"] == [ESTIMATE]
        assert len(service.made) == 2
        assert {"/targets", "/experiments", "/quotes", "/updates", "/results"} <= {
            path for _, path in service.journal
        }


def test_odd_values_and_new_words_are_named(tmp_path):
    with running(ContractService(**VARIANTS["odd values"])) as service:
        with_past_orders(service)
        rehearsal = played(account_of(service.base_url, TOKEN, tmp_path))
    targets = states(rehearsal, "GET /targets")
    assert targets["items[].pricing"] is targets["items[].details"] is FieldState.ODD
    assert targets["items[].vendor_name"] is FieldState.MISSING
    assert states(rehearsal, "GET /updates")["items[].timestamp"] is FieldState.ODD
    assert states(rehearsal, "GET /experiments/{}")["eta"] is FieldState.UNREAD
    status = next(
        one
        for one in rehearsal.fields
        if (one.operation, one.place) == ("GET /experiments", "items[].status")
    )
    assert (status.state, status.words) == (FieldState.NEW_WORD, ("awaiting_slot", "done"))
    assert states(rehearsal, "GET /experiments/{}/results")["*"] is FieldState.UNREAD, "keys that are designs"


def test_a_token_that_may_only_read_is_enough_to_rehearse_and_not_to_order(lab, sent, tmp_path):
    with AssayClient(lab.base_url, lab.token) as client:
        token = client.tokens.attenuate(lab.token, Attenuation(read_only=True), name="rehearsal").token
    before = len(sent())
    rehearsal = played(account_of(lab.base_url, token.get_secret_value(), tmp_path))
    assert problems(rehearsal) == {"token": "read_only"}
    assert sent()[before:] == [("POST", "/api/v1/experiments/cost-estimate")]


def test_a_refused_token_is_one_problem_and_the_rest_is_not_tried(lab, tmp_path):
    rehearsal = played(account_of(lab.base_url, "token_nobody", tmp_path))
    kinds = problems(rehearsal)
    assert kinds.pop("targets") == "Unauthorized"
    assert set(kinds.values()) == {"not_tried"}
    assert all(step.next_step for step in rehearsal.steps if not step.ok)


def test_an_unknown_target_is_a_problem_that_names_it(lab, tmp_path):
    rehearsal = played(account_of(lab.base_url, lab.token, tmp_path), target="no such protein")
    (step,) = [step for step in rehearsal.steps if step.name == "targets"]
    assert "no such protein" in step.text
    assert problems(rehearsal)["price"] == "not_tried"


def test_a_search_that_finds_nothing_is_a_problem(tmp_path):
    service = ContractService(form=PUBLISHED)
    with running(service):
        with_past_orders(service)
        whole = service.experiments_list
        service.experiments_list = lambda query, **more: whole(
            query={"search": ["-"]} if "search" in query else query, **more
        )
        rehearsal = played(account_of(service.base_url, TOKEN, tmp_path))
    assert problems(rehearsal)["experiments"] == "search"


@pytest.fixture
def receiver():
    with receiver_place.running() as place:
        yield place


def hook(place, key=SIGNING_KEY):
    return WebhookEndpoint(url=f"{place.url}/assay", signing_key=key)


def test_the_receiver_refuses_an_unsigned_delivery_and_takes_a_signed_one(lab, receiver, tmp_path):
    receiver.wake.resumes = 0
    rehearsal = played(account_of(lab.base_url, lab.token, tmp_path, webhook=hook(receiver)))
    assert problems(rehearsal) == {}
    assert receiver.wake.orders == ["f" * 20], "the signed one alone, for an order that no run has"


def test_a_receiver_with_another_key_is_a_problem(lab, receiver, tmp_path):
    other = hook(receiver, "another-signing-key-of-the-tests-0123")
    rehearsal = played(account_of(lab.base_url, lab.token, tmp_path, webhook=other))
    assert problems(rehearsal) == {"webhook": "receiver"}
    assert receiver.wake.orders == []


def test_a_receiver_that_believes_everybody_is_a_problem(lab, tmp_path):
    with fault_server() as gullible:
        gullible.will(reply(200), reply(200))
        webhook = WebhookEndpoint(url=gullible.base_url, signing_key=SIGNING_KEY)
        rehearsal = played(account_of(lab.base_url, lab.token, tmp_path, webhook=webhook))
    (step,) = [step for step in rehearsal.steps if step.name == "webhook"]
    assert "answers 200 to an unsigned delivery" in step.text


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_bundle_has_nothing_of_the_user(variant, tmp_path):
    with running(ContractService(**VARIANTS[variant])) as service:
        with_past_orders(service)
        account = account_of(
            service.base_url,
            TOKEN,
            tmp_path,
            provider=service.provider,
            webhook=WebhookEndpoint(url="http://127.0.0.1:9/assay", signing_key=SIGNING_KEY),
        )
        designs = designs_of()
        rehearsal = played(account, designs)
        bundle = texts(make_bundle(rehearsal, account, designs))
        ids = [*service.made, *(one.invoice for one in service.made.values())]
    assert set(bundle) == {"README.txt", "report.json", "interface.json"}
    private_texts = [
        TOKEN,
        SIGNING_KEY,
        ISSUER_KEY,
        NAME,
        RESIDUES,
        OTHER_NAME,
        OTHER_RESIDUES,
        PERSON,
        "Lovelace",
        "ada@",
    ]
    private_texts += [service.base_url, str(tmp_path), "127.0.0.1", "21900", "ORG-001", TARGET["id"], *ids]
    for name, text in bundle.items():
        assert [one for one in private_texts if one.casefold() in text.casefold()] == [], name
    report = json.loads(bundle["report.json"])
    assert {one["name"] for one in report["steps"]} == {step.name for step in rehearsal.steps}
    assert all(set(one) == {"name", "ok", "problem"} for one in report["steps"])


@pytest.mark.parametrize(
    ("changes", "prices", "words"),
    [
        ({}, [262_800], "within the caps of 5,000.00 USD per experiment and 20,000.00 USD per campaign"),
        (
            {"per_experiment_usd": 1_500},
            [100_000, 262_800],
            "and you will be asked about experiment 2 (2,628.00 USD): over the cap per experiment of 1,500.00 USD",
        ),
        ({"per_campaign_usd": 2627.99}, [262_800], "it is over the cap per campaign of 2,627.99 USD"),
        ({"second_person_above_usd": 2627.99}, [262_800], "another person will be asked"),
        ({"answer_ceiling_usd": 2627.99}, [262_800], "no answer may approve more than 2,627.99 USD"),
    ],
)
def test_the_price_is_compared_with_every_cap(changes, prices, words):
    policy = SpendingPolicy(per_experiment_usd=5_000, per_campaign_usd=20_000)
    assert words in _describe_limit(policy.model_copy(update=changes), prices)
