"""The whole client over the local lab, which shares no request or answer model with it."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from pydantic import SecretStr

from assay_lab.testing import LocalLab
from assay_lab.tokens.permissions import ACTIONS as LAB_ACTIONS
from prefect_assay import errors
from prefect_assay.service.client import filters as f
from prefect_assay.service.client import parameters as p
from prefect_assay.service.client.resources.tokens import ACTIONS
from prefect_assay.service.models.experiment import Created, CreateRequest
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.service.models.tokens import Attenuation
from prefect_assay.service.models.vocabulary import (
    ExperimentStatus,
    ExperimentType,
    InvoiceStatus,
    Method,
    QuoteStatus,
    ResultsStatus,
)
from support.client import Caller

SECRET = "webhook-canary-" + "s" * 32
HEADER_SECRET = "canary-header"
BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


@pytest.fixture(scope="module")
def lab():
    with LocalLab(options=("--provider-word", "acme", "--service-word", "Foo")) as running:
        yield running


@pytest.fixture
def call(lab):
    words = WireWords(provider="acme", service="Foo")
    return Caller(lab.base_url, {"words": words}, token=lab.token)


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


def results_are_there(call, lab, key):
    experiment = call("experiments.get", key)
    assert (experiment.status, experiment.results_status) == (ExperimentStatus.DONE, ResultsStatus.ALL)
    results = call("experiments.iterate_results", key)
    assert {e.name for r in results for e in r.summary} == {"egf", "acme_2"}
    assert call("results.get", results[0].id) == results[0]
    assert results[0].id in {r.id for r in call("results.iterate")}
    updates = call("experiments.iterate_updates", key)
    assert [u.timestamp for u in updates] == sorted(u.timestamp for u in updates)
    assert {u.id for u in call("updates.iterate", experiment_id=key, page_size=2)} == {u.id for u in updates}

    documents = {d.name: d for d in call("documents.iterate", key)}
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

    package = b"".join(call("documents.download", results[0].data_package_url))
    assert package[:2] == b"PK"


def test_a_quoted_order_from_draft_to_results(call, lab, catalog):
    name = "quoted pa-lab"
    created = call("experiments.create", request(catalog["unpriced"], name))
    assert isinstance(created, Created)
    key = created.experiment_id
    assert call("experiments.get", key).status is ExperimentStatus.DRAFT
    with pytest.raises(errors.NotReady):
        call("experiments.get_quote", key)
    with pytest.raises(errors.NotReady, match="submit"):
        call("experiments.get_invoice", key)

    assert call("experiments.modify", key, n_replicates=2).id == key
    added = call(
        "sequences.add", created.experiment_code, [ProteinSequence(name="acme_2", aa_string="MKTAYIAK")]
    )
    assert added.added_count == 1
    rows = call("experiments.iterate_sequences", key)
    assert [row.name for row in rows] == ["egf", "acme_2"]
    assert call("sequences.get", rows[1].id).aa_string == "MKTAYIAK"
    assert call("sequences.list", experiment_id=key, limit=1).total == 2
    assert set(call("experiments.get", key).experiment_spec["sequences"]) == {"egf", "acme_2"}

    assert call("experiments.submit", key).status is ExperimentStatus.WAITING_FOR_CONFIRMATION
    with pytest.raises(errors.Conflict):
        call("experiments.submit", key)
    lab.advance(hours=1)
    quote = call("experiments.get_quote", key)
    assert quote.amount_total > 0
    assert quote.expires_at is not None
    assert quote.provider_quote_url
    row = next(
        q for q in call("quotes.list", limit=100).items if q.provider_quote_url == quote.provider_quote_url
    )
    assert call("quotes.get", row.id).amount_total == quote.amount_total
    with pytest.raises(errors.NotReady, match="confirm"):
        call("experiments.get_invoice", key)
    assert call("invoices.find_for_experiment", key) is None

    accepted = call("experiments.confirm_quote", key, purchase_order_number="PO-1", notes="n")
    assert accepted.invoice_id
    assert call("experiments.get_quote", key).status is QuoteStatus.ACCEPTED
    with pytest.raises(errors.Conflict):
        call("experiments.confirm_quote", key)
    assert call("experiments.get_invoice", key).provider_invoice_url
    invoice = call("invoices.find_for_experiment", key)
    assert invoice.experiment_id == key
    assert invoice.provider_hosted_invoice_url
    assert call("invoices.get", invoice.provider_invoice_id) == call("invoices.get", invoice.id) == invoice
    assert invoice.id in {
        i.id
        for i in call("invoices.iterate", filter=f.eq("provider_invoice_id", invoice.provider_invoice_id))
    }
    assert call("experiments.iterate_results", key) == []

    lab.advance(days=16)
    results_are_there(call, lab, key)


def with_token(call, token):
    value = token.get_secret_value() if isinstance(token, SecretStr) else token
    return Caller(call.base_url, call.options, token=value)


@pytest.fixture(scope="module")
def quoted(lab, catalog):
    """Experiments whose quotes are sent, and whose designs have names of their own."""
    words = WireWords(provider="acme", service="Foo")
    once = Caller(lab.base_url, {"words": words}, token=lab.token)
    made = []
    for number in range(2):
        experiment_spec = spec(catalog["priced"], **{f"more-{number}": "MKTAYIAKQR" + "ACDE"[number]})
        order = CreateRequest(experiment_spec=experiment_spec, name=f"more {number}", skip_draft=True)
        made.append(once("experiments.create", order).experiment_id)
    lab.advance(days=1)
    return made


def test_a_token_is_narrowed_listed_and_revoked(call, lab, caplog):
    parent = call("tokens.attenuate", lab.token, Attenuation(non_destructive=False), "root")
    root = with_token(call, parent.token)
    until = datetime.now(UTC) + timedelta(days=3000)
    restrictions = Attenuation(allowed_actions=("read", "list"), read_only=True, expires_at=until)
    narrow = root(
        "tokens.attenuate",
        SecretStr(root.token),
        restrictions,
        "for reading",
        attenuated_parent_token_id=parent.id,
    )
    value = narrow.token.get_secret_value()
    for shown in (repr(narrow), str(narrow), narrow.model_dump_json(), caplog.text):
        assert value not in shown

    reader = with_token(call, narrow.token)
    assert reader("experiments.list", limit=1).count <= 1
    with pytest.raises(errors.Forbidden):
        reader("custom_targets.request", "n", f"p-{uuid4()}", "MKT")

    record = next(row for row in call("tokens.iterate", page_size=2) if row.id == narrow.id)
    assert record.name == "for reading"
    assert record.attenuation_spec["read_only"] is True
    assert set(ACTIONS) == set(LAB_ACTIONS)


def test_webhooks_are_made_changed_and_taken_away(call):
    made = call("webhooks.create", "https://hooks.example/a", secret=SECRET, headers={"X-Key": HEADER_SECRET})
    assert (made.url, made.secret_set) == ("https://hooks.example/a", True)
    assert SECRET not in repr(made)
    assert HEADER_SECRET not in repr(made)
    assert made.id in {row.id for row in call("webhooks.list")}
    changed = call("webhooks.modify", made.id, enabled=False, url="https://hooks.example/b")
    assert (changed.url, changed.enabled, changed.secret_set) == ("https://hooks.example/b", False, True)
    assert changed.headers == {"X-Key": HEADER_SECRET}
    assert call("webhooks.modify", made.id, headers=None).headers == {}
    assert call("webhooks.modify", made.id, secret=None).secret_set is False
    assert call("webhooks.delete", made.id) is None
    with pytest.raises(errors.NotFound):
        call("webhooks.delete", made.id)


def test_quotes_and_invoices_are_lists_and_files(call, lab, quoted):
    mine = quoted.pop()
    assert call("experiments.download_quote_pdf", mine).startswith(b"%PDF")
    shown = call("experiments.get_quote", mine)
    (row,) = [
        q for q in call("quotes.iterate", page_size=2) if q.provider_quote_url == shown.provider_quote_url
    ]
    assert row.amount_total == shown.amount_total > 0
    whole = call("quotes.get", row.id)
    assert sum(item.total_cents for item in whole.line_items) == whole.amount_subtotal
    assert row.id in {q.id for q in call("quotes.list", where=[p.geq("created_at", row.created_at)]).items}
    assert row.id not in {
        q.id for q in call("quotes.list", where=[p.gtr("created_at", row.created_at)]).items
    }

    accepted = call("quotes.confirm", row.id, notes="by its own id")
    assert accepted.status == QuoteStatus.ACCEPTED
    invoice = call("invoices.find_for_experiment", mine)
    assert call("invoices.download_pdf", invoice.id).startswith(b"%PDF")
    assert call("invoices.download_pdf", invoice.provider_invoice_id).startswith(b"%PDF")
    invoices = call("invoices.iterate", where=[p.equ("provider_invoice_id", invoice.provider_invoice_id)])
    assert [i.id for i in invoices] == [invoice.id]
    assert invoice.id in {
        i.id for i in call("invoices.iterate", status=InvoiceStatus.OPEN, sort="-created_at")
    }
    with pytest.raises(errors.Conflict):
        call("quotes.confirm", row.id)
