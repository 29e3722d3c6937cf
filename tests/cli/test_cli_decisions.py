"""`run --request-quote`, `approve`, `reject` and `cancel`: what is decided before anything is sent."""

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.blocks.core import Block
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import SetStateStatus
from prefect.states import Cancelled, Completed, Crashed, Suspended
from typer.testing import CliRunner

from prefect_assay.approvals.answering import OpenQuestion
from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.books import Books
from prefect_assay.cli.app import app
from prefect_assay.cli.campaigns import answer, cancel
from prefect_assay.cli.campaigns import run as running
from prefect_assay.cli.campaigns.answer import GivenAnswer
from prefect_assay.errors import ArchiveUnavailable, InputError
from prefect_assay.models.billing import Invoice, Quote
from prefect_assay.models.job import Order
from prefect_assay.models.open_money import OpenItem, OpenKind, OpenMoney
from prefect_assay.payments.reconciliation import PaymentStatus
from prefect_assay.runs.tags import CHILDREN_TAG, GROUP_TAG
from prefect_assay.sweeping import cancellations
from prefect_assay.sweeping.cancellations import SettledCancellation
from prefect_assay.sweeping.settle_cancellation import CanceledOrderState, CancellationReport

PARAMETERS = {"credentials": {}, "policy": {}, "archive": {"$ref": str(uuid4())}, "campaign_id": "c"}


def a_run(name="c 1/1", state=None, tags=(), **parameters):
    return FlowRun(
        id=uuid4(),
        flow_id=uuid4(),
        name=name,
        state=state or Cancelled(),
        tags=list(tags),
        parameters=PARAMETERS | parameters,
    )


def asking(name="c 1/1"):
    state = Suspended(timeout_seconds=60, pause_key="approve-k")
    state.state_details.run_input_keyset = {"schema": "s", "description": "d", "response": "r"}
    return a_run(name, state, spec={})


def question(*decisions):
    return OpenQuestion(
        run_id=uuid4(),
        run_name="c 1/1",
        key="approve-k",
        answer_key="r",
        description="**5.00 USD**",
        decisions=decisions,
        until=datetime.now(UTC),
    )


def given(decision=None, **values):
    return GivenAnswer(
        **{"decision": decision, "by": "Ada", "note": None, "question": None, "yes": False} | values
    )


def test_a_quote_is_requested_of_the_campaign(monkeypatch, tmp_path):
    started = []

    def start_run(_deployment, parameters, **_named):
        started.append(parameters)
        return SimpleNamespace(id=uuid4(), name="quiet-otter")

    blocks = {
        "credentials": AssayCredentials(base_url="https://lab.example", token="t"),
        "policy": SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1),
        "archive": LocalArchive(root=str(tmp_path)),
    }
    monkeypatch.setattr(running, "require_api", lambda: None)
    monkeypatch.setattr(running, "load_blocks", lambda _: blocks)
    monkeypatch.setattr(running, "_offer", lambda *_, **__: None)
    monkeypatch.setattr("prefect_assay.runs.children.start_run", start_run)
    designs = tmp_path / "d.fasta"
    designs.write_text(">d1\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGG\n")
    options = ["--credentials", "c", "--policy", "p", "--archive", "a", "--target", "t"]
    for more in ([], ["--request-quote"]):
        done = CliRunner().invoke(app, ["run", str(designs), *options, *more])
        assert done.exit_code == 0, done.output
    assert [parameters["request_quote"] for parameters in started] == [False, True]


@pytest.mark.parametrize(
    ("decisions", "wanted", "chosen"),
    [
        (("approve", "reject", "change_cap"), None, "reject"),
        (("paid", "stop"), None, "stop"),
        (("paid", "pay_again", "stop"), "pay_again", "pay_again"),
        (("approve", "reject"), "approve", "approve"),
    ],
)
def test_the_decision_is_one_of_the_form(decisions, wanted, chosen):
    assert answer._decision(question(*decisions), given(wanted)) == chosen


@pytest.mark.parametrize(
    ("decisions", "wanted"), [(("paid", "stop"), "approve"), (("approve", "reject"), "paid")]
)
def test_a_decision_that_the_form_lacks_is_refused_with_those_it_has(decisions, wanted):
    with pytest.raises(InputError, match=", ".join(decisions)):
        answer._decision(question(*decisions), given(wanted))


@pytest.fixture
def payment_question(monkeypatch):
    """A run that asks about a payment, and takes no answer."""
    asked = question("paid", "stop")
    monkeypatch.setattr(answer, "require_api", lambda: None)
    monkeypatch.setattr(answer, "get_client", lambda **_: nullcontext())
    monkeypatch.setattr(answer, "_asking", lambda *_: None)
    monkeypatch.setattr(answer, "read_question", lambda *_: asked)
    monkeypatch.setattr(answer, "submit_answer", lambda *_: pytest.fail("answered"))
    return asked


def test_a_question_is_shown_before_its_decision_is_refused(payment_question):
    shown = CliRunner().invoke(app, ["approve", "c", "--json"])
    assert json.loads(shown.stdout)["question"]["decisions"] == ["paid", "stop"]
    refused = CliRunner().invoke(app, ["approve", "c"])
    assert (refused.exit_code, "5.00 USD" in refused.stdout) == (2, True)
    assert "Choose one with --decision" in refused.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--decision", "approve", "--cap-cents", "5"],
        ["--decision", "paid", "--cap-cents", "5"],
        ["--decision", "change_cap"],
    ],
)
def test_a_cap_that_the_form_would_not_read_is_refused(payment_question, options):
    done = CliRunner().invoke(app, ["approve", "c", "--yes", *options])
    assert (done.exit_code, "a cap belongs to the decision change_cap" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("cap", "key", "code"),
    [
        (5_000, "approve-0123456789abcdef0123-500000-until-1-0f", 2),
        (500_000, "approve-0123456789abcdef0123-500000-until-1-0f", 0),
        (5_000, "approve-of-another-form", 0),
    ],
)
def test_a_cap_below_the_price_is_no_answer(payment_question, monkeypatch, cap, key, code):
    submitted = []
    asked = replace(payment_question, key=key, decisions=("approve", "reject", "change_cap"))
    monkeypatch.setattr(answer, "read_question", lambda *_: asked)
    monkeypatch.setattr(answer, "submit_answer", lambda _question, values: submitted.append(values))
    done = CliRunner().invoke(app, ["approve", "c", "--yes", "--by", "Ada", "--cap-cents", str(cap)])
    assert (done.exit_code, len(submitted)) == (code, 0 if code else 1)
    assert ("50.00 USD, is less than the price, 5,000.00 USD" in done.stderr) is bool(code)


def test_of_several_questions_one_must_be_named(monkeypatch):
    first, second, other = asking("c 1/3"), asking("c 2/3"), a_run("c 3/3", Completed())
    monkeypatch.setattr(answer, "with_children", lambda _client, _which: [other, first])
    assert answer._asking(None, "c") is first
    monkeypatch.setattr(answer, "with_children", lambda _client, _which: [first, second, other])
    with pytest.raises(InputError, match=f"2 runs of c ask a person(?s:.*){second.id}  c 2/3"):
        answer._asking(None, "c")


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_person_confirms_what_is_answered(monkeypatch, capsys, confirmed):
    asked = []
    monkeypatch.setattr(answer.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(answer.typer, "confirm", lambda text: asked.append(text) or confirmed)
    values = given("change_cap", cap_cents=500).values("change_cap")
    if confirmed:
        answer._confirm(question("approve"), values)
    else:
        with pytest.raises(SystemExit):
            answer._confirm(question("approve"), values)
        assert "Nothing was answered." in capsys.readouterr().err
    assert asked == ["Answer change_cap with a cap of 5.00 USD, as Ada?"]


def test_a_user_without_a_name_says_who_decides(monkeypatch):
    def nameless():
        raise KeyError("uid not found")

    monkeypatch.setattr(answer.getpass, "getuser", nameless)
    with pytest.raises(InputError, match="--by"):
        given("approve", by=None).values("approve")


@pytest.mark.parametrize("state", CanceledOrderState)
def test_what_remains_has_words_for_every_state(state):
    report = CancellationReport(state=state, quote=Quote(status="pending", amount_total=4200))
    assert ("42.00 USD" in cancel._text(report)) is (state is CanceledOrderState.QUOTE_OPEN)
    assert ("ordered and billed" in cancel._text(report)) is (state is CanceledOrderState.INVOICED)


def test_what_is_billed_is_said_with_its_invoice():
    payment = PaymentStatus(invoice=Invoice(id="i", status="open", amount=21_900))
    report = CancellationReport(state=CanceledOrderState.INVOICED, payment=payment)
    line = cancel._of(a_run(spec={}), SettledCancellation(report, ("d 1/1",)))
    assert line.text == "ordered and billed: 219.00 USD, invoice open; d 1/1 goes on with the order"
    assert (line.billed_cents, line.paid) == (21_900, False)
    order = Order(order_key="k", experiment_id="e", status="canceled", adopted=True)
    line = cancel._of(a_run(spec={}), SettledCancellation(report.model_copy(update={"order": order}), ()))
    assert line.text == "canceled by the laboratory; its invoice over 219.00 USD must not be paid"
    assert line.billed_cents is None
    paid = PaymentStatus(invoice=Invoice(id="i", status="paid", amount=21_900))
    line = cancel._of(
        a_run(spec={}), SettledCancellation(report.model_copy(update={"order": order, "payment": paid}), ())
    )
    assert line.text == "canceled by the laboratory, and 219.00 USD is paid: ask it for a refund"
    assert (line.billed_cents, line.paid) == (21_900, True)


@pytest.fixture
def archive(monkeypatch, tmp_path):
    """The block that every run's reference leads to."""
    block = LocalArchive(root=str(tmp_path))
    monkeypatch.setattr(cancel, "archive_of", lambda _run: block)
    return block


@pytest.mark.parametrize("tags", [[], ["assay-archive:of-another-machine"]])
def test_in_another_machines_archive_nothing_is_settled_or_written(archive, tmp_path, monkeypatch, tags):
    monkeypatch.setattr(
        cancel, "settle_canceled_run", lambda *_, **__: pytest.fail("settled with the wrong books")
    )
    line = cancel._remains(None, a_run(tags=tags, spec={}))
    assert "does not reach its archive; the sweep reports" in line.text
    assert list(tmp_path.iterdir()) == []


def test_in_its_archive_a_run_is_settled_and_a_failure_is_left_to_the_sweep(archive, monkeypatch):
    own = Books(archive.get_store(), archive.prefix, "organisation").archive_id
    run = a_run(tags=[f"assay-archive:{own}"], spec={})
    settled = SettledCancellation(CancellationReport(state=CanceledOrderState.NOTHING), ())
    monkeypatch.setattr(cancel, "settle_canceled_run", lambda *_, **__: settled)
    assert cancel._remains(None, run).text == "not ordered: nothing is billed"

    def away(*_, **__):
        raise ArchiveUnavailable("the bucket is busy")

    monkeypatch.setattr(cancel, "settle_canceled_run", away)
    assert cancel._remains(None, run).text.startswith("the bucket is busy; the sweep reports")


def test_an_order_that_another_home_works_on_is_named_with_the_next_step(archive, monkeypatch):
    own = Books(archive.get_store(), archive.prefix, "organisation").archive_id
    run = a_run(tags=[f"assay-archive:{own}"], spec={})
    remains = CancellationReport(state=CanceledOrderState.QUOTE_PENDING)
    asked = []

    def settle(*_, alone):
        asked.append(alone)
        return SettledCancellation(
            remains, () if alone else ("c-0 of another Prefect home (m:1)",), not alone
        )

    monkeypatch.setattr(cancel, "settle_canceled_run", settle)
    text = cancel._remains(None, run).text
    assert "c-0 of another Prefect home (m:1) goes on with the order" in text
    assert "gone for good, cancel again with --even-if-shared" in text
    assert "--even-if-shared" not in cancel._remains(None, run, alone=True).text
    assert asked == [False, True]


def test_a_canceled_run_without_its_archive_block_is_one_line_and_stops_no_other(monkeypatch):
    def gone(_ref):
        raise ValueError("Unable to find block document")

    monkeypatch.setattr(Block, "load_from_ref", gone)
    run = a_run(spec={}, archive={"$ref": {"block_document_id": str(uuid4())}})
    line = cancel._remains(None, run)
    assert line.outcome == "canceled"
    assert line.text.startswith("parameter archive of run c 1/1: its block was deleted; save it again")


def test_an_experiment_that_another_campaign_waits_for_goes_on(monkeypatch):
    mine = a_run("c", Suspended(timeout_seconds=60, pause_key="children-c:1"))
    shared = a_run("c 1/2", Suspended(timeout_seconds=60, pause_key="results-k:1"), spec={})
    ended = a_run("c 2/2", Completed(), spec={})
    canceled = []

    class Server:
        def set_flow_run_state(self, run_id, state, **_):
            assert state.type == StateType.CANCELLING
            canceled.append(run_id)
            mine.state = Cancelled()
            return SimpleNamespace(status=SetStateStatus.ACCEPT)

        def read_flow_run(self, run_id):
            return {mine.id: mine, ended.id: ended}[run_id]

    monkeypatch.setattr(cancel, "settle_canceled_run", lambda *_, **__: None)
    monkeypatch.setattr(cancel, "children_of", lambda _client, run: [shared, ended] if run is mine else [])
    lines = cancel._cancel(Server(), [mine])
    assert canceled == [mine.id]
    assert [(line.run, line.outcome) for line in lines] == [("c 1/2", "goes on"), ("c 2/2", "ended")]


def test_an_experiment_of_several_runs_is_settled_once_and_its_bill_counts_once(monkeypatch, capsys):
    first, again, child = a_run("c"), a_run("c"), a_run("c 1/1", spec={})
    runs = {run.id: run for run in (first, again, child)}
    settled = []
    monkeypatch.setattr(
        cancel, "settle_canceled_run", lambda _client, run, _now, **_: settled.append(run.name)
    )
    monkeypatch.setattr(cancel, "children_of", lambda _client, run: [] if run is child else [child])
    monkeypatch.setattr(cancel, "_archive_is_here", lambda _: True)
    (line,) = cancel._cancel(SimpleNamespace(read_flow_run=runs.get), [first, again])
    assert (line.run, settled) == ("c 1/1", ["c", "c", "c 1/1"])

    shown = [
        cancel._line(run, "invoiced", "", experiment=code, billed_cents=cents)
        for run, code, cents in (
            (child, "A", 21_900),
            (child, "A", 21_900),
            (child, "A", None),
            (child, "B", 100),
        )
    ]
    cancel._show("c", shown, OpenMoney())
    assert "Billed together: 220.00 USD, of which 0.00 USD is paid." in capsys.readouterr().out


def test_the_sums_after_a_cancellation_have_the_runs_that_had_ended_and_each_open_sum_its_link(
    capsys, monkeypatch
):
    """A loop whose first round was paid, canceled in its second."""
    monkeypatch.setenv("COLUMNS", "80")
    item = OpenItem(
        kind=OpenKind.TO_PAY,
        campaign_id="egfr-2",
        order_key="k",
        experiment_id="e",
        experiment_code="LAB-001-002",
        amount_cents=43_800,
        since=datetime(2026, 1, 1, tzinfo=UTC),
        url="https://pay.example.org/" + "i" * 90,
    )
    run = a_run(spec={})
    line = cancel._line(run, "invoiced", "text", experiment="LAB-001-002", billed_cents=43_800)
    money = OpenMoney(items=(item,), paid={"egfr-1": 131_400})
    cancel._show("egfr", [line], money)
    lines = capsys.readouterr().out.splitlines()
    assert "Billed together: 1,752.00 USD, of which 1,314.00 USD is paid." in lines
    assert "  438.00 USD  ordered, not paid: LAB-001-002" in lines
    assert f"    {item.url}" in lines, "the link can be copied whole"


def test_where_nothing_was_billed_a_cancellation_says_so_without_sums(capsys):
    cancel._show("c", [cancel._line(a_run(spec={}), "quote-rejected", "withdrawn")], OpenMoney())
    said = capsys.readouterr().out
    assert "Nothing is billed." in said
    assert "0.00 USD" not in said


def test_the_page_of_a_quote_can_be_copied_from_the_question(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = "https://pay.example.org/" + "q" * 90
    description = f"costs 5.00 USD\n\n- quote holds: until May, [its page]({page})"
    asked = replace(question("approve"), description=description)
    answer._show(asked)
    assert f"its page: {page}" in capsys.readouterr().out.splitlines()


def test_what_an_unpaid_order_leaves_claims_no_more_than_is_known():
    invoice = Invoice(id="i", status="open", amount=43_800)
    texts = {}
    for status in ("waiting_for_materials", "in_production", "done"):
        order = Order(order_key="k", experiment_id="e", status=status, adopted=True)
        report = CancellationReport(
            state=CanceledOrderState.INVOICED, order=order, payment=PaymentStatus(invoice=invoice)
        )
        texts[status] = cancel._text(report)
    assert texts["waiting_for_materials"].endswith(
        "the laboratory may be at work (waiting for materials): ask it whether it can stop, or pay it"
    )
    assert "may be at work (in production)" in texts["in_production"]
    assert texts["done"].endswith("the work is done: pay it")


def test_what_has_ended_is_not_canceled(monkeypatch):
    monkeypatch.setattr(cancel, "require_api", lambda: None)
    monkeypatch.setattr(cancel, "get_client", lambda **_: nullcontext())
    monkeypatch.setattr(cancel, "active_schedule", lambda *_: None)
    monkeypatch.setattr(cancel, "with_children", lambda _client, _which: [a_run("c", Completed())])
    done = CliRunner().invoke(app, ["cancel", "c", "--yes", "--json"])
    assert done.exit_code == 2
    assert "nothing to cancel" in json.loads(done.stdout)["error"]["message"]


def test_a_run_that_no_worker_stops_is_left_to_the_sweep(monkeypatch):
    stuck = a_run("c 1/1", State(type=StateType.RUNNING, name="Running"), spec={})

    class Server:
        def set_flow_run_state(self, _run_id, state, **_):
            stuck.state = state
            return SimpleNamespace(status=SetStateStatus.ACCEPT)

        def read_flow_run(self, _run_id):
            return stuck

    monkeypatch.setattr(cancel, "_PATIENCE_SECONDS", 0.0)
    (line,) = cancel._cancel(Server(), [stuck])
    assert (line.outcome, "its worker has not stopped it yet" in line.text) == ("canceling", True)


def test_the_runs_of_a_campaign_that_no_worker_stops_are_canceled_all_the_same(monkeypatch):
    """Its machine has died: the campaign stays Cancelling, also for a second `cancel`."""
    stuck = a_run("c", State(type=StateType.CANCELLING), [CHILDREN_TAG + "g"])
    child = a_run("c 1/1", Suspended(timeout_seconds=60, pause_key="results-k:1"), [GROUP_TAG + "g"], spec={})
    runs = {run.id: run for run in (stuck, child)}

    class Server:
        def read_flow_runs(self, *, flow_run_filter, **_):
            return [run for run in runs.values() if set(flow_run_filter.tags.all_) <= set(run.tags)]

        def read_flow_run(self, run_id):
            return runs[run_id]

        def set_flow_run_state(self, run_id, _state, **_):
            assert run_id == child.id
            child.state = Cancelled()
            return SimpleNamespace(status=SetStateStatus.REJECT)

    monkeypatch.setattr(cancel, "require_api", lambda: None)
    monkeypatch.setattr(cancel, "get_client", lambda **_: nullcontext(Server()))
    monkeypatch.setattr(cancel, "active_schedule", lambda *_: None)
    monkeypatch.setattr(cancel, "with_children", lambda *_: [stuck])
    monkeypatch.setattr(cancel, "parents_of", lambda *_: [stuck])
    monkeypatch.setattr(cancel, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(cancel, "_archive_is_here", lambda _: False)
    monkeypatch.setattr(cancel, "find_open_money", lambda _: OpenMoney())
    done = CliRunner().invoke(app, ["cancel", "c", "--json"])
    assert done.exit_code == 0, done.output
    lines = json.loads(done.stdout)["experiments"]
    assert [(line["run"], line["outcome"]) for line in lines] == [("c", "canceling"), ("c 1/1", "canceled")]


def test_a_run_that_crashes_while_it_is_canceled_does_not_come_back(monkeypatch):
    run = a_run("c", State(type=StateType.RUNNING, name="Running"))
    wanted = []

    class Server:
        def set_flow_run_state(self, _run_id, state, **_):
            wanted.append(state.type)
            run.state = Crashed() if state.type == StateType.CANCELLING else state
            return SimpleNamespace(status=SetStateStatus.ACCEPT)

        def read_flow_run(self, _run_id):
            return run

    monkeypatch.setattr(cancel, "_POLL_SECONDS", 0.0)
    assert [run.state.name for run in cancel._ended(Server(), [run])] == ["Cancelled"]
    assert wanted == [StateType.CANCELLING, StateType.CANCELLED]


def test_a_crashed_run_needs_its_order_as_much_as_a_suspended_one():
    """The sweep starts it again: what it waits for is neither canceled nor its quote rejected."""
    mine, other = a_run("mine"), a_run("other", Crashed())
    server = SimpleNamespace(read_flow_runs=lambda **_: [mine, other])
    assert cancellations._others(server, mine, ["assay-waits:g"]) == [other]
    other.state = Cancelled()
    assert cancellations._others(server, mine, ["assay-waits:g"]) == []
