"""Invoices and quotes become problems from the fields that the service promises, without a date or a link in its lists."""

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun

from prefect_assay.alerts import find, kinds, saved
from prefect_assay.blocks import LocalArchive, X402Wallet
from prefect_assay.errors import NotFound, NotReady, ServiceUnavailable
from prefect_assay.models.billing import ExperimentInvoice, Invoice, Quote
from prefect_assay.models.experiment import ExperimentSummary
from prefect_assay.models.open_money import OpenItem, OpenKind, OpenMoney
from prefect_assay.models.problem import AlertLimits
from prefect_assay.runs.tags import EXPERIMENT_CODE_LABEL, EXPERIMENT_TAG
from prefect_assay.sweeping import alert_facts
from prefect_assay.sweeping.alert_facts import AlertFacts

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
BLOCK = '{"block_document_id": "b"}'


class Service:
    """What is published of quotes and invoices, and no more; credentials of its own."""

    def __init__(self, name="main"):
        self.name = self._block_document_name = name
        self.invoices, self.quotes, self.asked = [], {}, []
        self.shown = None  # the status of an experiment's own invoice

    @contextmanager
    def get_client(self):
        yield self

    def whoami(self):
        return SimpleNamespace(token_expires_at=None)

    def iter_invoices(self):
        if self.invoices is None:
            raise NotFound("no such path")
        return iter(self.invoices)

    def invoice(self, _experiment_id):
        if self.shown is None:
            raise NotReady("not yet")
        return ExperimentInvoice(status=self.shown)

    def iter_experiments(self, *, status):
        made = NOW - timedelta(days=30)
        return iter(ExperimentSummary(id=i, code=i, status=status, created_at=made) for i in self.quotes)

    def quote(self, experiment_id):
        self.asked.append(experiment_id)
        found = self.quotes[experiment_id]
        if found is None:
            raise NotReady("not yet")
        return Quote.model_validate(found)


class NoRuns:
    """A Prefect server that has none."""

    def read_flow_runs(self, **_):
        return []


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
    """The problems that a full check finds, and the kinds of which those that it does not find of e1 are over."""
    facts = AlertFacts(now, AlertLimits())
    facts.note_suspended(run)
    facts.read_service(lambda _: service)
    found, kinds_looked = facts.problems([], [], checked=True, failed=set())
    unclear = {kind for kind, subject in facts.unclear if subject == "e1"}
    return [(p.kind, p.subject, p.runs) for p in found], kinds_looked - unclear


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


@pytest.mark.parametrize(
    ("status", "alerts"), [("open", True), ("draft", True), ("awaiting", True), ("paid", False)]
)
@pytest.mark.parametrize("listed", [True, False])
def test_an_invoice_that_waits_alerts_whatever_its_unpaid_status_is_called(
    service, run, status, alerts, listed
):
    """Without the list, which the contract does not have, the experiment shows its invoice."""
    service.shown = status
    service.invoices = [Invoice(id="i1", status=status, experiment_id="e1")] if listed else None
    looked(service, run)
    found, _ = looked(service, run, now=NOW + timedelta(days=7))
    assert found == [(kinds.INVOICE_UNPAID, "e1", ("run-1",))] * alerts


def test_invoices_that_cannot_be_read_solve_no_problem(service, run):
    service.invoices = None
    found, everywhere = looked(service, run)
    assert (found, kinds.INVOICE_UNPAID in everywhere) == ([], False)


def test_an_invoice_without_an_experiment_keeps_the_problems_of_runs_that_wait_and_no_others(service, run):
    service.invoices = [Invoice(id="i1", status="open")]
    facts = AlertFacts(NOW, AlertLimits())
    facts.note_suspended(run)
    facts.read_service(lambda _: service)
    _, everywhere = facts.problems([], [], checked=True, failed=set())
    assert kinds.INVOICE_UNPAID in everywhere
    assert facts.unclear == {(kinds.INVOICE_UNPAID, "e1")}


@pytest.mark.parametrize("error", [ServiceUnavailable("503"), RuntimeError("not valid")])
def test_a_service_that_could_not_be_read_solves_no_problem_of_its_token(service, run, error):
    facts = AlertFacts(NOW, AlertLimits())
    facts.note_suspended(run)
    facts.note_failure(next(iter(facts.experiments)), "main", error, [])
    facts.read_service(lambda _: service)
    found, everywhere = facts.problems([], [], checked=True, failed=set())
    assert {kinds.TOKEN_EXPIRING, kinds.SERVICE_AWAY} <= everywhere
    assert (kinds.TOKEN_EXPIRING, "main") in facts.unclear
    assert ((kinds.SERVICE_AWAY, "main") in facts.unclear) == (not found)
    assert kinds.DEADLINE_NEAR not in everywhere  # by a code, which this run does not have


@pytest.mark.parametrize("error", [NotFound("404"), ServiceUnavailable("503"), RuntimeError("not valid")])
@pytest.mark.parametrize("where", ["full check", "token", "block"])
def test_a_block_that_fails_keeps_its_own_problems_open_and_no_other_block_s(monkeypatch, error, where):
    failing, mended = Service("failing"), Service("mended")
    services = {'{"block_document_id": "f"}': failing, '{"block_document_id": "m"}': mended}
    facts = AlertFacts(NOW, AlertLimits())
    for reference, service in services.items():
        monkeypatch.setattr(
            alert_facts,
            "block_reference",
            lambda _run, name, reference=reference: json.loads(reference) if name == "credentials" else None,
        )
        labels = {EXPERIMENT_CODE_LABEL: f"{service.name}-1"}
        tags = [f"{EXPERIMENT_TAG}{service.name}"]
        facts.note_suspended(FlowRun(id=uuid4(), flow_id=uuid4(), name="r", tags=tags, labels=labels))

    def fail():
        raise error

    subjects = {
        kinds.SERVICE_AWAY: "",
        kinds.TOKEN_EXPIRING: "",
        kinds.INVOICE_UNPAID: "",
        kinds.QUOTE_EXPIRING: "",
        kinds.DEADLINE_NEAR: "-1",
    }
    before = [
        find._problem(kind, service.name + end, NOW, "before")
        for kind, end in subjects.items()
        for service in services.values()
    ]
    if where == "full check":
        facts.note_failure(next(iter(services)), "failing", error, [])
    elif where == "token":
        failing.whoami = fail
    else:
        failing.get_client = fail
    facts.read_service(services.__getitem__)
    found, looked = facts.problems([], [], checked=True, failed=set())
    monkeypatch.setattr(saved, "_read", lambda _: {problem.identity: problem for problem in before})
    for name in ("send", "write_variable", "delete_variable"):
        monkeypatch.setattr(saved, name, lambda *_, **__: None)
    left = saved.save_problems(None, found, looked, NOW, unclear=facts.unclear)
    assert {problem.subject.removesuffix("-1") for problem in left} == {"failing"}
    kept = {problem.kind for problem in left}
    assert kinds.TOKEN_EXPIRING in kept
    if where == "full check":
        assert kept == subjects.keys()


def test_an_archive_that_cannot_be_loaded_solves_no_problem_and_leaves_the_others_looked_at(
    monkeypatch, tmp_path
):
    def load(reference):
        if reference == "a":
            raise RuntimeError("not valid")
        return LocalArchive(root=str(tmp_path / "file"))

    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(alert_facts, "_archive", load)
    facts = AlertFacts(NOW, AlertLimits(), archives={"a": ["run-1"], "b": ["run-2"]})
    with pytest.raises(RuntimeError):
        facts.probe_archives()
    found, everywhere = facts.problems([], [], checked=True, failed={"archives"})
    assert [problem.runs for problem in found] == [("run-2",)]
    assert kinds.ARCHIVE_REFUSING not in everywhere
    assert kinds.WALLET_LOW in everywhere


def test_a_wallet_that_cannot_be_loaded_leaves_the_others_looked_at(monkeypatch):
    def load(document):
        if document.name == "a":
            raise RuntimeError("not valid")
        return SimpleNamespace(node_url="http://node", balance_cents=lambda: 0)

    monkeypatch.setattr(X402Wallet, "_load_from_block_document", load)
    saved = [SimpleNamespace(name=name) for name in "ab"]
    facts = AlertFacts(NOW, AlertLimits())
    with pytest.raises(RuntimeError):
        facts.read_wallets(SimpleNamespace(read_block_documents_by_type=lambda *_, **__: saved))
    found, everywhere = facts.problems([], [], checked=True, failed={"wallets"})
    assert [problem.subject for problem in found] == ["b"]
    assert kinds.WALLET_LOW not in everywhere


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


def test_open_money_that_no_waiting_run_takes_care_of_is_a_problem_with_its_link(run):
    def item(kind, experiment, days, **changes):
        since = NOW - timedelta(days=days)
        return OpenItem(
            kind=kind, campaign_id="c", order_key="k", experiment_id=experiment, since=since, **changes
        )

    facts = AlertFacts(NOW, AlertLimits())
    facts.note_suspended(run)  # it waits for e1
    items = (
        item(OpenKind.TO_PAY, "e1", 30),
        item(OpenKind.TO_PAY, "e2", 30, amount_cents=131_400, url="https://pay.example/e2"),
        item(OpenKind.TO_PAY, "e3", 1),
        item(OpenKind.TO_DELIVER, "e4", 2, remark="its results are at the laboratory"),
        item(OpenKind.QUOTE, "e5", 2, until=NOW + timedelta(days=1)),
    )
    facts.note_money(NoRuns(), OpenMoney(items=items))
    found, _ = facts.problems([], [], checked=True, failed=set())
    assert {(p.kind, p.subject) for p in found} == {
        (kinds.INVOICE_UNPAID, "e2"),
        (kinds.MONEY_OPEN, "e4"),
        (kinds.QUOTE_EXPIRING, "e5"),
    }
    (invoice,) = [p for p in found if p.subject == "e2"]
    assert "1,314.00 USD is unpaid" in invoice.text
    assert invoice.next_step.endswith("https://pay.example/e2")


def test_an_archive_that_cannot_be_read_ends_no_problem_of_money():
    facts = AlertFacts(NOW, AlertLimits())
    facts.note_money(NoRuns(), OpenMoney(complete=False))
    _, everywhere = facts.problems([], [], checked=True, failed=set())
    assert not everywhere & {kinds.MONEY_OPEN, kinds.INVOICE_UNPAID, kinds.QUOTE_EXPIRING}
