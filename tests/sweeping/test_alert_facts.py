"""What becomes a problem, and which problems are over, where a part could not be read."""

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun

from prefect_assay.alerts import find, kinds, saved
from prefect_assay.blocks import LocalArchive, X402Wallet
from prefect_assay.errors import NotFound, ServiceUnavailable
from prefect_assay.models.open_money import OpenItem, OpenKind, OpenMoney
from prefect_assay.models.problem import AlertLimits
from prefect_assay.runs.tags import EXPERIMENT_CODE_LABEL, EXPERIMENT_TAG
from prefect_assay.sweeping import alert_facts
from prefect_assay.sweeping.alert_facts import AlertFacts

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
BLOCK = '{"block_document_id": "b"}'


class Service:
    """Credentials, and the service behind them."""

    def __init__(self, name="main"):
        self.name = self._block_document_name = name

    @contextmanager
    def get_client(self):
        yield self

    def whoami(self):
        return SimpleNamespace(token_expires_at=None)


class NoRuns:
    """A Prefect server that has none."""

    def read_flow_runs(self, **_):
        return []


@pytest.fixture
def run(monkeypatch):
    """A run that waits for experiment e1."""
    monkeypatch.setattr(
        alert_facts, "block_reference", lambda _run, name: BLOCK if name == "credentials" else None
    )
    return FlowRun(id=uuid4(), flow_id=uuid4(), name="run-1", tags=[f"{EXPERIMENT_TAG}e1"], labels={})


def item(kind, experiment, days=0, **changes):
    since = NOW - timedelta(days=days)
    return OpenItem(
        kind=kind, campaign_id="c", order_key="k", experiment_id=experiment, since=since, **changes
    )


def of_money(run, *items):
    """The problems of these open sums, and the kinds of which those that are not found are over."""
    facts = AlertFacts(NOW, AlertLimits())
    facts.note_suspended(run)
    facts.note_money(NoRuns(), OpenMoney(items=items))
    found, looked = facts.problems([], [], checked=True, failed=set())
    return found, looked - {kind for kind, subject in facts.unclear if subject == "e1"}


@pytest.mark.parametrize(
    ("open_item", "kind"),
    [
        (item(OpenKind.TO_PAY, "e1", 7), kinds.INVOICE_UNPAID),
        (item(OpenKind.TO_PAY, "e1", 6), None),
        (item(OpenKind.QUOTE, "e1", until=NOW + timedelta(days=3)), kinds.QUOTE_EXPIRING),
        (item(OpenKind.QUOTE, "e1", 30, until=NOW + timedelta(days=4)), None),
        (item(OpenKind.UNSURE, "e1", 7), kinds.MONEY_OPEN),  # an invoice whose status is an unknown word
        (item(OpenKind.UNSURE, "e1", 6), None),
        (item(OpenKind.TO_DELIVER, "e1", 30), None),  # the run waits for it
    ],
)
def test_an_invoice_and_a_quote_of_a_run_that_waits_are_problems_at_their_limits(run, open_item, kind):
    found, looked = of_money(run, open_item)
    assert [(p.kind, p.subject, p.runs) for p in found] == ([(kind, "e1", ("run-1",))] if kind else [])
    assert all("no run waits" not in problem.text for problem in found)
    assert kinds.QUOTE_EXPIRING in looked


def test_a_quote_that_cannot_be_read_solves_no_problem(run):
    found, looked = of_money(run, item(OpenKind.QUOTE, "e1", 30))
    assert (found, kinds.QUOTE_EXPIRING in looked) == ([], False)


@pytest.mark.parametrize("error", [ServiceUnavailable("503"), RuntimeError("not valid")])
def test_a_service_that_could_not_be_read_solves_no_problem_of_its_token(run, error):
    facts = AlertFacts(NOW, AlertLimits())
    facts.note_suspended(run)
    facts.note_failure(next(iter(facts.experiments)), "main", error, [])
    facts.read_tokens(lambda _: Service())
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
    facts.read_tokens(services.__getitem__)
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


def test_open_money_that_no_waiting_run_takes_care_of_is_a_problem_with_its_link(run):
    found, _ = of_money(
        run,
        item(OpenKind.TO_PAY, "e2", 30, amount_cents=131_400, url="https://pay.example/e2"),
        item(OpenKind.TO_PAY, "e3", 1),
        item(OpenKind.TO_DELIVER, "e4", 2, remark="its results are at the laboratory"),
        item(OpenKind.QUOTE, "e5", 2, until=NOW + timedelta(days=1)),
    )
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
