"""The whole client over the local lab, which shares no request or answer model with it."""

import json
import pickle
import threading
import traceback
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from pydantic import SecretStr

from assay_lab.testing import LocalLab
from assay_lab.tokens.permissions import ACTIONS as LAB_ACTIONS
from prefect_assay import errors
from prefect_assay.service.client import filters as f
from prefect_assay.service.client import parameters as p
from prefect_assay.service.client.operations.tokens import ACTIONS
from prefect_assay.service.models.experiment import Created, CreateRequest, QuoteAcceptance
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.models.spec import CustomTargetStatus, ExperimentSpec, SequenceValue
from prefect_assay.service.models.tokens import Attenuation
from prefect_assay.service.models.vocabulary import (
    ExperimentStatus,
    ExperimentType,
    InvoiceStatus,
    Method,
    PaymentMethod,
    QuoteStatus,
    ResultsStatus,
)
from support.interface.faces import Face

SECRET = "webhook-canary-" + "s" * 32
HEADER_SECRET = "canary-header"
BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


@pytest.fixture(scope="module")
def lab():
    with LocalLab(options=("--provider-word", "acme", "--service-word", "Foo")) as running:
        yield running


@pytest.fixture(params=["sync", "async"])
def face(request, lab):
    words = WireWords(provider="acme", service="Foo")
    return Face(request.param, lab.base_url, {"words": words}, token=lab.token)


@pytest.fixture(scope="module")
def catalog(lab):
    with lab.http() as http:
        items = http.get("/targets").json()["items"]
    priced = next(t["id"] for t in items if t.get("pricing"))
    unpriced = next(t["id"] for t in items if not t.get("pricing"))
    return {"priced": priced, "unpriced": unpriced}


def spec(target, **designs):
    return ExperimentSpec(
        experiment_type=ExperimentType.AFFINITY,
        method=Method.BLI,
        target_id=target,
        sequences={n: SequenceValue(aa_string=s) for n, s in (designs or {"egf": BINDER}).items()},
    )


def request(target, name, **fields):
    return CreateRequest(experiment_spec=spec(target), name=name, **fields)


def test_identity_health_and_catalog(face, catalog):
    identity = face("whoami")
    assert any(p.endswith("create") for p in identity.permissions)
    everything = face("iter_targets", page_size=3)
    assert len({t.id for t in everything}) == len(everything) == face("targets").total
    assert face("target", catalog["priced"]).pricing
    assert {t.id for t in face("iter_targets", selfservice_only=True)} < {t.id for t in everything}
    with pytest.raises(errors.NotFound):
        face("target", "00000000-0000-4000-8000-000000000000")


def results_are_there(face, lab, key):
    experiment = face("experiment", key)
    assert (experiment.status, experiment.results_status) == (ExperimentStatus.DONE, ResultsStatus.ALL)
    results = face("results", key)
    assert {e.name for r in results for e in r.summary} == {"egf", "acme_2"}
    assert face("result", results[0].id) == results[0]
    assert results[0].id in {r.id for r in face("iter_result_summaries")}
    own = face("experiment_updates", key)
    assert [u.timestamp for u in own] == sorted(u.timestamp for u in own)
    assert {u.id for u in face("iter_updates", experiment_id=key, page_size=2)} == {u.id for u in own}

    documents = {d.name: d for d in face("documents", key)}
    assert set(documents) == {
        "experiment.json",
        "sequences-0001.json",
        "quote.json",
        "invoice.json",
        "updates-0001.json",
        "results-0001.json",
    }
    with lab.http() as http:
        assert (
            documents["results-0001.json"].body == http.get(f"/experiments/{key}/results?limit=100").content
        )
    assert "acme_quote_url" in json.loads(documents["quote.json"].body)

    package = b"".join(face("download", results[0].data_package_url))
    assert package[:2] == b"PK"


def test_a_quoted_order_from_draft_to_results(face, lab, catalog):
    name = f"quoted pa-{face.kind}"
    created = face("create", request(catalog["unpriced"], name))
    assert isinstance(created, Created)
    key = created.experiment_id
    assert face("experiment", key).status is ExperimentStatus.DRAFT
    with pytest.raises(errors.NotReady):
        face("quote", key)
    with pytest.raises(errors.NotReady, match="submit"):
        face("invoice", key)

    assert face("modify", key, n_replicates=2).id == key
    added = face(
        "add_sequences", created.experiment_code, [ProteinSequence(name="acme_2", aa_string="MKTAYIAK")]
    )
    assert added.added_count == 1
    rows = face("iter_experiment_sequences", key)
    assert [row.name for row in rows] == ["egf", "acme_2"]
    assert face("sequence", rows[1].id).aa_string == "MKTAYIAK"
    assert face("experiment_sequences", key, limit=1).total == 2
    assert set(face("experiment", key).experiment_spec["sequences"]) == {"egf", "acme_2"}

    assert face("submit", key).status is ExperimentStatus.WAITING_FOR_CONFIRMATION
    with pytest.raises(errors.Conflict):
        face("submit", key)
    lab.advance(hours=1)
    quote = face("quote", key)
    assert quote.amount_total > 0
    assert quote.expires_at is not None
    assert quote.provider_quote_url
    row = next(q for q in face("quotes", limit=100).items if q.provider_quote_url == quote.provider_quote_url)
    assert face("quote_by_id", row.id).amount_total == quote.amount_total
    with pytest.raises(errors.NotReady, match="confirm"):
        face("invoice", key)
    assert face("find_invoice", key) is None

    accepted = face("confirm_quote", key, purchase_order_number="PO-1", notes="n")
    assert accepted.invoice_id
    assert face("quote", key).status is QuoteStatus.ACCEPTED
    with pytest.raises(errors.Conflict):
        face("confirm_quote", key)
    assert face("invoice", key).provider_invoice_url
    invoice = face("find_invoice", key)
    assert invoice.experiment_id == key
    assert invoice.provider_hosted_invoice_url
    assert face("invoice_by_id", invoice.provider_invoice_id) == face("invoice_by_id", invoice.id) == invoice
    assert invoice.id in {
        i.id for i in face("iter_invoices", filter=f.eq("provider_invoice_id", invoice.provider_invoice_id))
    }
    assert face("results", key) == ()

    lab.advance(days=16)
    results_are_there(face, lab, key)


def test_self_service_on_a_machine_rail_up_to_the_challenge(face, catalog):
    order = request(
        catalog["priced"],
        f"machine {face.kind}",
        auto_accept_quote=True,
        payment_method=PaymentMethod.X402_EXACT,
    )
    accepted = face("create", order)
    assert isinstance(accepted, QuoteAcceptance)
    assert accepted.payment.methods == ("x402-exact",)
    assert face("invoice_by_id", accepted.invoice_id).status is InvoiceStatus.OPEN
    probe = face("pay", accepted.invoice_id)
    assert probe.status_code == 402
    assert probe.headers["payment-required"]
    refused = face("pay", accepted.invoice_id, {"PAYMENT-SIGNATURE": "bm9uc2Vuc2U="})
    assert 400 <= refused.status_code < 500
    assert face("invoice_by_id", accepted.invoice_id).status is InvoiceStatus.OPEN


def test_a_lost_answer_leaves_an_order_that_search_finds(face, lab, catalog):
    lab.fault("lose_answer", path="/api/v1/experiments", method="POST")
    name = f"lost pa-{face.kind}0123456789"
    with pytest.raises(errors.OrderOutcomeUnknown):
        face("create", request(catalog["priced"], name))
    found = face("experiments", search=f"pa-{face.kind}0123456789")
    assert [e.name for e in found.items] == [name]


def test_a_broken_connection_before_handling_is_the_same_to_the_caller(face, lab, catalog):
    lab.fault("reset", path="/api/v1/experiments", method="POST")
    with pytest.raises(errors.OrderOutcomeUnknown):
        face("create", request(catalog["priced"], f"reset {face.kind}"))
    assert face("experiments", search=f"reset {face.kind}").total == 0


def test_readings_outlast_a_bad_minute(face, lab):
    lab.fault("status", path="/api/v1/whoami", status=429, retry_after=2, count=2)
    lab.fault("reset", path="/api/v1/whoami")
    assert face("whoami").permissions
    assert len(face.waits) == 3
    assert min(face.waits[:2]) >= 2


ODD_NAMES = [
    "plain-name_1",
    "two words",
    'say "hi"',
    "back\\slash",
    "comma, and (brackets)",
    "eq(status,done)",
    "1e5",
    "true",
    "null",
    "größe µ",
    "a:b.c+d",
    "50%&x=1#y",
]


@pytest.fixture(scope="module")
def odd_experiments(lab, catalog):
    with lab.http() as http:
        body = {"experiment_spec": spec(catalog["priced"]).wire()}
        return {
            name: http.post("/experiments", json=body | {"name": name}).json()["experiment_id"]
            for name in ODD_NAMES
        }


@pytest.mark.parametrize("name", ODD_NAMES)
def test_quoting_agrees_with_a_parser_that_is_not_ours(face, odd_experiments, name):
    assert [e.id for e in face("iter_experiments", filter=f.eq("name", name))] == [odd_experiments[name]]
    among = f.in_("name", [name, "no such name"]) & ~f.eq("name", "no such name")
    assert [e.id for e in face("iter_experiments", filter=among)] == [odd_experiments[name]]


def test_nothing_is_missed_while_orders_come_in(face, lab, catalog):
    body = {"experiment_spec": spec(catalog["priced"]).wire()}
    with lab.http() as http:
        prefix = f"flood-{face.kind}"
        first = [
            http.post("/experiments", json=body | {"name": f"{prefix} {n}"}).json()["experiment_id"]
            for n in range(20)
        ]
        stop = threading.Event()

        def flood():
            while not stop.is_set():
                http.post("/experiments", json=body | {"name": f"{prefix} more"})

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            seen = [e.id for e in face("iter_experiments", search=prefix, page_size=3)]
        finally:
            stop.set()
            thread.join()
    assert len(seen) == len(set(seen))
    assert set(first) <= set(seen)


def with_token(face, token):
    value = token.get_secret_value() if isinstance(token, SecretStr) else token
    return Face(face.kind, face.base_url, face.options, token=value)


@pytest.fixture(scope="module")
def quoted(lab):
    """Experiments whose quotes are sent, and whose designs have names of their own."""
    words = WireWords(provider="acme", service="Foo")
    once = Face("sync", lab.base_url, {"words": words}, token=lab.token)
    target = once("targets", selfservice_only=True, limit=1).items[0].id
    made = []
    for number in range(4):
        spec = ExperimentSpec(
            experiment_type=ExperimentType.AFFINITY,
            method=Method.BLI,
            target_id=target,
            sequences={f"more-{number}": SequenceValue(aa_string="MKTAYIAKQR" + "ACDE"[number])},
        )
        request = CreateRequest(experiment_spec=spec, name=f"more {number}", skip_draft=True)
        made.append(once("create", request).experiment_id)
    lab.advance(days=1)
    return made


def test_a_token_is_narrowed_listed_and_revoked(face, lab, caplog):
    parent = face("attenuate_token", lab.token, Attenuation(non_destructive=False), "root")
    root = with_token(face, parent.token)
    until = datetime.now(UTC) + timedelta(days=3000)
    restrictions = Attenuation(allowed_actions=("read", "list"), read_only=True, expires_at=until)
    narrow = root(
        "attenuate_token",
        SecretStr(root.token),
        restrictions,
        "for reading",
        attenuated_parent_token_id=parent.id,
    )
    value = narrow.token.get_secret_value()
    for shown in (repr(narrow), str(narrow), narrow.model_dump_json(), caplog.text):
        assert value not in shown

    reader = with_token(face, narrow.token)
    assert reader("experiments", limit=1).count <= 1
    with pytest.raises(errors.Forbidden):
        reader("request_custom_target", "n", f"p-{uuid4()}", "MKT")

    record = next(row for row in face("iter_tokens", page_size=2) if row.id == narrow.id)
    assert record.name == "for reading"
    assert record.attenuation_spec["read_only"] is True
    assert set(ACTIONS) == set(LAB_ACTIONS)


def test_webhooks_are_made_changed_and_taken_away(face):
    made = face("create_webhook", "https://hooks.example/a", secret=SECRET, headers={"X-Key": HEADER_SECRET})
    assert (made.url, made.secret_set) == ("https://hooks.example/a", True)
    assert SECRET not in repr(made)
    assert HEADER_SECRET not in repr(made)
    assert made.id in {row.id for row in face("webhooks")}
    changed = face("update_webhook", made.id, enabled=False, url="https://hooks.example/b")
    assert (changed.url, changed.enabled, changed.secret_set) == ("https://hooks.example/b", False, True)
    assert changed.headers == {"X-Key": HEADER_SECRET}
    assert face("update_webhook", made.id, headers=None).headers == {}
    assert face("update_webhook", made.id, secret=None).secret_set is False
    assert face("delete_webhook", made.id) is None
    with pytest.raises(errors.NotFound):
        face("delete_webhook", made.id)


def test_a_webhooks_secrets_are_in_no_error(face, lab):
    lab.fault("status", path="/api/v1/webhooks", method="POST", status=503)
    with pytest.raises(errors.OutcomeUnknown, match="List the webhooks") as caught:
        face("create_webhook", "https://hooks.example/a", secret=SECRET, headers={"X-Key": HEADER_SECRET})
    shown = "".join(traceback.format_exception(caught.value)) + str(pickle.dumps(caught.value))
    assert SECRET not in shown
    assert HEADER_SECRET not in shown


def test_a_custom_target_is_requested(face):
    product = f"own-{uuid4()}"
    told = {
        "vendor": "Antigens Ltd",
        "note": "the glycosylated form",
        "product_url": "https://antigens.example/1",
        "molecular_weight": 47.5,
    }
    asked = face("request_custom_target", "My antigen", product, "MKTAYIAKQR", **told)
    assert {name: getattr(asked, name) for name in told} == told
    assert asked.status is CustomTargetStatus.PENDING_REVIEW
    assert face("custom_target", asked.id) == asked
    assert [row.id for row in face("iter_custom_targets", where=[p.plain("product_id", product)])] == [
        asked.id
    ]
    with pytest.raises(errors.Conflict):
        face("request_custom_target", "Again", product, pdb_id="1ABC")


def test_targets_are_narrowed_in_every_way(face):
    one = face("targets", limit=1).items[0]
    assert [t.id for t in face("iter_targets", name=one.name)] == [one.id]
    assert one.id in {t.id for t in face("iter_targets", vendor_name=one.vendor_name, show_conjugated=True)}
    assert face("targets", where=[p.equ("name", one.name)], detailed=True).items[0].details is not None


def test_quotes_and_invoices_are_lists_and_files(face, lab, quoted):
    mine = quoted.pop()
    assert face("quote_pdf", mine).startswith(b"%PDF")
    shown = face("quote", mine)
    (row,) = [q for q in face("iter_quotes", page_size=2) if q.provider_quote_url == shown.provider_quote_url]
    assert row.amount_total == shown.amount_total > 0
    whole = face("quote_by_id", row.id)
    assert sum(item.total_cents for item in whole.line_items) == whole.amount_subtotal
    assert row.id in {q.id for q in face("quotes", where=[p.geq("created_at", row.created_at)]).items}
    assert row.id not in {q.id for q in face("quotes", where=[p.gtr("created_at", row.created_at)]).items}

    accepted = face("confirm_quote_by_id", row.id, notes="by its own id")
    assert accepted.status == QuoteStatus.ACCEPTED
    invoice = face("find_invoice", mine)
    assert face("invoice_pdf", invoice.id).startswith(b"%PDF")
    assert face("invoice_pdf", invoice.provider_invoice_id).startswith(b"%PDF")
    found = face("iter_invoices", where=[p.equ("provider_invoice_id", invoice.provider_invoice_id)])
    assert [i.id for i in found] == [invoice.id]
    assert invoice.id in {i.id for i in face("iter_invoices", status=InvoiceStatus.OPEN, sort="-created_at")}
    with pytest.raises(errors.Conflict):
        face("confirm_quote_by_id", row.id)


def test_a_file_that_is_not_there_yet(face, lab, quoted):
    spec = ExperimentSpec(
        experiment_type=ExperimentType.EXPRESSION, sequences={"a": SequenceValue(aa_string="MKT")}
    )
    draft = face("create", CreateRequest(experiment_spec=spec, name="draft")).experiment_id
    with pytest.raises(errors.NotReady):
        face("quote_pdf", draft)
    with pytest.raises(errors.NotFound):
        face("invoice_pdf", "in_nothing")


def test_sequences_of_the_whole_organization(face, quoted):
    names = {s.name for s in face("iter_sequences", search="more-", page_size=2)}
    assert names == {"more-0", "more-1", "more-2", "more-3"}
    (own,) = face("iter_sequences", experiment_id=quoted[0])
    assert (own.name, own.experiment_id) == ("more-0", quoted[0])
    assert face("sequences", where=[p.equ("name", "more-1")], sort=f.desc("name")).total == 1


def test_experiments_are_narrowed_by_parameters(face, quoted):
    wanted = face("experiment", quoted[0])
    span = [
        p.geq("created_at", wanted.created_at),
        p.leq("created_at", wanted.created_at),
        p.equ("id", wanted.id),
    ]
    assert [e.id for e in face("iter_experiments", where=span, experiment_type="affinity")] == [wanted.id]
    assert face("experiments", where=span, experiment_type="screening").total == 0
    this = f.eq("id", wanted.id)
    for options in ({"where": span}, {"filter": this}, {"filter": str(this)}):
        assert face("experiments", results_status="none", **options).items[0].id == wanted.id
        assert face("experiments", results_status="all", **options).total == 0
        assert [e.id for e in face("iter_experiments", results_status="none", **options)] == [wanted.id]
    with pytest.raises(errors.RequestRefused):
        face("experiments", experiment_type="tasting")


def test_the_service_itself(face, lab):
    assert face("health").ok
    assert face("health_db").ok
    assert face("health_db").db == "ok"
    lab.fault("status", path="/api/v1/info/health-db", status=503)
    assert face("health_db").ok is False
    receipt = face("feedback", "bug_report", str(uuid4()), title="t", json_body={"acme_x": 1})
    assert receipt.reference
    assert "/api/v1/experiments" in face("openapi")["paths"]
    assert "/api/v1/partners/mint-token" in with_token(face, lab.partner_token)("openapi")["paths"]
    without = Face(face.kind, face.base_url, face.options, token=None)
    assert without("health").ok
    with pytest.raises(errors.Unauthorized):
        without("whoami")
