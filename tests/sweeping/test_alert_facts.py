"""Invoices and quotes become problems from the fields that the service promises, without a date or a link in its lists."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun

from prefect_assay.alerts import kinds
from prefect_assay.errors import NotFound, NotReady
from prefect_assay.models.billing import Invoice, Quote
from prefect_assay.models.experiment import ExperimentSummary
from prefect_assay.models.problem import AlertLimits
from prefect_assay.runs.tags import EXPERIMENT_TAG
from prefect_assay.sweeping import alert_facts
from prefect_assay.sweeping.alert_facts import AlertFacts

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
BLOCK = '{"block_document_id": "b"}'


class Service:
    """What is published of quotes and invoices, and no more; credentials of its own."""

    name = _block_document_name = "main"

    def __init__(self):
        self.invoices, self.quotes, self.asked = [], {}, []

    @contextmanager
    def get_client(self):
        yield self

    def whoami(self):
        return SimpleNamespace(token_expires_at=None)

    def iter_invoices(self, *, status):
        if self.invoices is None:
            raise NotFound("no such path")
        return iter(row for row in self.invoices if row.status == status)

    def iter_experiments(self, *, status):
        made = NOW - timedelta(days=30)
        return iter(ExperimentSummary(id=i, code=i, status=status, created_at=made) for i in self.quotes)

    def quote(self, experiment_id):
        self.asked.append(experiment_id)
        found = self.quotes[experiment_id]
        if found is None:
            raise NotReady("not yet")
        return Quote.model_validate(found)


@pytest.fixture
def service():
    return Service()


@pytest.fixture
def run(monkeypatch):
    """A run that waits for experiment e1; labels are kept."""
    made = FlowRun(id=uuid4(), flow_id=uuid4(), name="run-1", tags=[f"{EXPERIMENT_TAG}e1"], labels={})
    monkeypatch.setattr(
        alert_facts, "block_reference", lambda _run, name: BLOCK if name == "credentials" else None
    )

    def set_labels(run_id, labels):
        assert run_id == made.id
        made.labels.update(labels)

    monkeypatch.setattr(alert_facts, "set_labels", set_labels)
    return made


def looked(service, run, *, now=NOW):
    """The kinds of problems that a full check finds, and whether each kind was looked at everywhere."""
    facts = AlertFacts(now, AlertLimits())
    facts.note_suspended(run)
    facts.read_service(lambda _: service)
    found, kinds_looked = facts.problems([], [], checked=True, failed=set())
    return [(p.kind, p.subject, p.runs) for p in found], kinds_looked


def test_an_invoice_without_a_date_is_unpaid_since_it_was_first_seen(service, run):
    service.invoices = [
        Invoice(id="i1", status="open", currency="usd", amount=100, experiment_id="e1", quote_id="q1"),
        Invoice(id="i2", status="open", currency="usd", amount=100, experiment_id="e2", quote_id="q2"),
    ]
    for days in (0, 6):
        found, everywhere = looked(service, run, now=NOW + timedelta(days=days))
        assert (found, kinds.INVOICE_UNPAID in everywhere) == ([], True)
    found, _ = looked(service, run, now=NOW + timedelta(days=7))
    assert found == [(kinds.INVOICE_UNPAID, "e1", ("run-1",))]


def test_an_invoice_with_a_date_is_unpaid_since_then(service, run):
    row = {"id": "i1", "status": "open", "experiment_id": "e1", "created_at": NOW - timedelta(days=7)}
    service.invoices = [Invoice.model_validate(row)]
    assert looked(service, run)[0] == [(kinds.INVOICE_UNPAID, "e1", ("run-1",))]
    assert run.labels == {}


@pytest.mark.parametrize("rows", [None, [Invoice(id="i1", status="open")]], ids=["no list", "no experiment"])
def test_invoices_that_cannot_be_matched_solve_no_problem(service, run, rows):
    service.invoices = rows
    found, everywhere = looked(service, run)
    assert (found, kinds.INVOICE_UNPAID in everywhere) == ([], False)


def test_the_quote_of_an_experiment_that_waits_for_a_decision_expires(service, run):
    quote = {"status": "open", "amount_total": 100, "currency": "usd", "expires_at": NOW + timedelta(days=3)}
    service.quotes = {"e1": quote, "e2": quote}
    found, everywhere = looked(service, run)
    assert (found, kinds.QUOTE_EXPIRING in everywhere) == ([(kinds.QUOTE_EXPIRING, "e1", ("run-1",))], True)
    assert service.asked == ["e1"]  # one request per run that waits for a decision
    service.quotes = {"e1": quote | {"expires_at": NOW + timedelta(days=4)}}
    assert looked(service, run)[0] == []
    service.quotes = {"e1": quote | {"status": "accepted"}}
    assert looked(service, run)[0] == []
    service.quotes = {"e1": None}
    found, everywhere = looked(service, run)
    assert (found, kinds.QUOTE_EXPIRING in everywhere) == ([], False)
