"""The whole client over the local lab, which shares no request or answer model with it."""

import json
import threading

import pytest

from prefect_assay import errors
from prefect_assay.client import filters as f
from prefect_assay.lab.testing import LocalLab
from prefect_assay.models.experiment import Created, CreateRequest, QuoteAcceptance
from prefect_assay.models.sequences import ProteinSequence
from prefect_assay.models.service import WireWords
from prefect_assay.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.models.vocabulary import (
    ExperimentStatus,
    ExperimentType,
    InvoiceStatus,
    Method,
    PaymentMethod,
    QuoteStatus,
    ResultsStatus,
)
from support.interface.faces import Face

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
