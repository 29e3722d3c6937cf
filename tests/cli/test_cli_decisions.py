"""`approve`, `reject`, `cancel` and `adopt`: real logs in an archive, a real Prefect server and a lab."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State, StateType
from prefect.states import Running, Scheduled, Suspended
from prefect.testing.utilities import prefect_test_harness
from typer.testing import CliRunner

from assay_lab.testing import LocalLab
from prefect_assay.blocks import AssayAccount, LocalArchive, S3Archive
from prefect_assay.campaigns.play import stop_with_run
from prefect_assay.campaigns.remains import CanceledOrderState, CancellationReport
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG
from prefect_assay.campaigns.runs.variables import home_id
from prefect_assay.campaigns.stop import OrderRemains, StopReport
from prefect_assay.cli import asking
from prefect_assay.cli.app import app
from prefect_assay.cli.campaigns import adopt, answer, cancel
from prefect_assay.cli.campaigns import run as running
from prefect_assay.cli.campaigns.answer import AnswerRequest
from prefect_assay.cli.services.saved_blocks import save_account
from prefect_assay.errors import InputError
from prefect_assay.orders.job import Order
from prefect_assay.orders.ledger.campaign_log import CampaignLog, StartedKind
from prefect_assay.orders.ledger.open_money import OpenItem, OpenKind, OpenMoney
from prefect_assay.orders.payments.interfaces import normalize_address
from prefect_assay.orders.payments.reconciliation import PaymentStatus
from prefect_assay.service.models.billing import Invoice
from support.accounts import make_account
from support.campaign_logs import WrittenCampaign, started


@pytest.fixture(scope="module")
def server():
    with prefect_test_harness(server_startup_timeout=180), get_client(sync_client=True) as client:
        S3Archive.register_type_and_schema()
        yield client


@pytest.fixture(scope="module")
def lab():
    with LocalLab() as made:
        yield made


@pytest.fixture
def world(server, lab, tmp_path, monkeypatch):
    """An account of a name of its own, whose archive is empty."""
    for module in (answer, cancel, adopt):
        monkeypatch.setattr(
            module, "require_api", lambda: None
        )  # the harness's address is for its process alone
    monkeypatch.setattr(cancel, "read_open_money", lambda _: OpenMoney())
    for document in server.read_block_documents_by_type(LocalArchive.get_block_type_slug()):
        server.delete_block_document(document.id)
    name = f"b-{uuid4().hex[:6]}"
    policy = {"per_experiment_usd": 0.01, "per_campaign_usd": 0.01, "answer_ceiling_usd": 1_000}
    account = make_account(base_url=lab.base_url, token=lab.token, archive=tmp_path, policy=policy)
    save_account(account, name)
    archive = account.archive
    return SimpleNamespace(server=server, lab=lab, archive=archive, store=archive.get_store(), name=name)


def begun(world, name=None, *, home="home-1", what=StartedKind.CAMPAIGN):
    """A campaign of two orders with the account of this world."""
    written = WrittenCampaign(
        world.store,
        world.archive.prefix,
        name or f"c-{uuid4().hex[:6]}",
        service=normalize_address(world.lab.base_url),
    )
    record = started(written.ledgers, written.name, what, service=written.service, home=home)
    parameters = {"account": {"$block": f"assay-account/{world.name}"}}
    log = CampaignLog(world.store, world.archive.prefix, written.name, what)
    log.start(record.model_copy(update={"parameters": parameters}))
    written.log = log
    return written


def command(*arguments, code=0, answers=None):
    done = CliRunner().invoke(app, arguments, input=answers)
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def exactly(*arguments, revision=1, usd="900.00"):
    named = ["--question", "q1", "--revision", str(revision), "--by", "Ada", "--yes"]
    return [*arguments, *named, *(["--usd", usd] if usd else [])]


def test_what_is_shown_is_recorded(world):
    written = begun(world)
    written.ask("q1", 90_000)
    shown = json.loads(command(*exactly("approve", written.name), "--json"))
    assert (shown["question"], shown["revision"], shown["amount_cents"], shown["simulated"]) == (
        "q1",
        1,
        90_000,
        True,
    )
    (asked, answered) = written.log.read().decisions["q1"]
    assert (answered.decision, answered.answerer, answered.how) == ("approve", "Ada", "prefect-assay approve")
    assert asked.revision == 1
    assert "was answered before: approve, by Ada" in command(*exactly("approve", written.name), code=1)
    assert "there is no open question" in command("approve", written.name, code=2)


def test_a_question_is_shown_with_its_amount_and_whether_it_is_live(world, capsys, monkeypatch):
    written = begun(world)
    written.ask("q1", 90_000)
    monkeypatch.setattr(asking.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    asked = []
    monkeypatch.setattr(asking.typer, "confirm", lambda text, **_: asked.append(text) or False)
    request = AnswerRequest(
        decision="approve", question=None, revision=None, amount=None, by="Ada", archive=None, yes=False
    )
    with pytest.raises(SystemExit):
        answer.show_and_answer(written.name, request, as_json=False)
    shown = capsys.readouterr().out
    assert asked == ["approve (900.00 USD)?"]
    for text in (
        "question q1",
        "(simulated)",
        world.lab.base_url,
        "amount: 900.00 USD",
        "approve: it is ordered",
    ):
        assert text in shown
    assert written.log.read().decisions == {}
    asked.clear()
    monkeypatch.setattr(asking.typer, "confirm", lambda text, **_: asked.append(text) or True)
    answer.show_and_answer(written.name, request, as_json=False)
    assert written.log.read().decisions["q1"][1].decision == "approve"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (exactly("approve", usd="900.01"), "is about 900.00 USD, and --usd names 900.01 USD"),
        (exactly("approve", usd="9e400"), "is not an amount in USD"),
        (exactly("approve", usd=None), "--usd; nothing was recorded"),
        (exactly("approve", revision=2), "in revision 1 by now"),
        (["approve", "--yes", "--usd", "900"], "--question, --revision; nothing was recorded"),
        (["reject", "--yes"], "--question, --revision; nothing was recorded"),
        (["approve"], "there is no terminal to confirm it"),
        ([*exactly("approve"), "--decision", "pay_again"], "takes approve, reject"),
        ([*exactly("approve", usd=None), "--question", "q2"], "question q2 is not open; open are q1"),
    ],
)
def test_what_does_not_name_exactly_what_is_open_is_refused(world, arguments, says):
    written = begun(world)
    written.ask("q1", 90_000)
    count = written.log.read().count
    done = CliRunner().invoke(app, [arguments[0], written.name, *arguments[1:]])
    assert done.exit_code != 0
    assert says in " ".join(done.output.split())
    assert written.log.read().count == count


def test_an_answer_above_the_policys_ceiling_is_refused(world):
    written = begun(world)
    written.ask("q1", 100_001)
    done = command(*exactly("approve", written.name, usd="1000.01"), code=2)
    assert "ceiling" in done
    command(*exactly("reject", written.name, usd=None))
    assert written.log.read().decisions["q1"][1].decision == "reject"


def test_the_campaign_is_found_by_its_run_and_by_its_loop(world, monkeypatch):
    written = begun(world)
    written.ask("q1", 90_000)
    run = a_run(world.server, CAMPAIGN_TAG + written.name, state=Running())
    command(*exactly("reject", str(run.id), usd=None))
    assert written.log.read().decisions["q1"][1].decision == "reject"

    loop = begun(world, what=StartedKind.LOOP)
    written.ask("q1", 5)
    monkeypatch.setattr(
        answer, "read_round_logs", lambda log: [written.log] if log.what is StartedKind.LOOP else []
    )
    command(*exactly("approve", loop.name, revision=2, usd="0.05"))
    assert written.log.read().decisions["q1"][1].decision == "approve"


def test_a_user_without_a_name_says_who_decides(monkeypatch):
    def nameless():
        raise KeyError("uid not found")

    monkeypatch.setattr(asking.getpass, "getuser", nameless)
    with pytest.raises(InputError, match="--by"):
        asking.user_name()


@pytest.mark.parametrize(
    ("text", "cents"),
    [
        *[
            ("438.50", 43_850),
            ("438.5", 43_850),
            ("5,000", 500_000),
            ("$1,234,567.89", 123_456_789),
            ("0", 0),
        ],
        *[
            (text, None)
            for text in ("438,50", "1,5", "1,2,3", "5,0000", "0,500.0,0", "5.000,00", "5.000", ",5")
        ],
        *[
            (text, None)
            for text in ("0.001", "-1", "x", "", "1e4", "5_000", "nan", "5,000 $", "10000000000.01")
        ],
    ],
)
def test_an_amount_is_exact(text, cents):
    request = AnswerRequest(
        decision="approve", question=None, revision=None, amount=text, by=None, archive=None, yes=True
    )
    if cents is None:
        with pytest.raises(InputError, match="not an amount"):
            _ = request.amount_cents
    else:
        assert request.amount_cents == cents


def a_run(server, *tags, state=None, name=None, **parameters):
    @flow(name="campaign")
    def campaign(account=None, assay=None, campaign_id=None):
        return None

    deployment = server.create_deployment(server.create_flow(campaign), name="decisions")
    run = server.create_flow_run_from_deployment(
        deployment,
        tags=list(tags),
        name=name,
        parameters={"account": {}, "assay": {}, **parameters},
    )
    server.set_flow_run_state(run.id, state or Scheduled(), force=True)
    return server.read_flow_run(run.id)


def test_a_campaign_is_canceled_and_what_remains_is_said(world):
    written = begun(world)
    run = a_run(world.server, CAMPAIGN_TAG + written.name, state=Suspended(timeout_seconds=60))
    shown = json.loads(command("cancel", written.name, "--yes", "--by", "Ada", "--json"))
    (canceled,) = shown["canceled"]
    assert (canceled["kind"], canceled["name"], canceled["settled"]) == ("campaign", written.name, True)
    assert [one["outcome"] for one in canceled["experiments"]] == ["nothing", "nothing"]
    assert world.server.read_flow_run(run.id).state.is_cancelled()
    assert written.log.read().stopped.person == "Ada"
    again = command("cancel", str(run.id), "--yes")
    assert "Nothing is billed." in again
    assert "not ordered: nothing is billed" in again


def test_a_canceled_campaign_without_its_account_is_stopped_and_left_to_the_sweep(world):
    written = begun(world)
    written.order(1)
    AssayAccount.delete(world.name)
    shown = command("cancel", written.name, "--yes")
    assert "The sweep looks again" in shown
    assert written.ledger(1).read().stopped is not None
    assert "Nothing is billed" not in shown


def test_a_cancellation_is_confirmed_at_a_terminal_alone(world):
    written = begun(world)
    assert "there is no terminal to confirm it" in command("cancel", written.name, code=2)
    assert written.log.read().stopped is None


def test_a_run_that_has_begun_nothing_is_canceled(world):
    run = a_run(world.server, campaign_id="c-late", name="late")
    shown = command("cancel", "late", "--yes")
    assert "run late is canceled. It had begun nothing: nothing was ordered." in shown
    assert world.server.read_flow_run(run.id).state.is_cancelled()


def test_what_a_run_begins_before_its_cancellation_is_canceled_with_it(world, monkeypatch):
    run = a_run(world.server, campaign_id="c-begun", name="early")
    at_prefect, logs = cancel.cancel_run, []

    def begin_and_cancel(client, canceled):
        logs.append(begun(world).log)
        client.update_flow_run(run.id, tags=[CAMPAIGN_TAG + logs[0].name])
        at_prefect(client, canceled)

    monkeypatch.setattr(cancel, "cancel_run", begin_and_cancel)
    shown = command("cancel", "early", "--yes")
    assert "had begun nothing" not in shown
    assert logs[0].read().stopped is not None


@pytest.mark.parametrize(
    ("state", "stops"),
    [
        (State(type=StateType.CANCELLING), True),
        (State(type=StateType.CANCELLED), True),
        (State(type=StateType.CANCELLING, message="Runner is shutting down."), False),
        (None, False),
    ],
    ids=["by a person", "ended by a person", "with its runner", "not at all"],
)
def test_what_a_run_begins_after_its_cancellation_is_stopped(world, state, stops):
    run = a_run(world.server, campaign_id="c-late", state=Running())
    if state is not None:
        world.server.set_flow_run_state(run.id, state, force=True)
    log = begun(world).log
    assert (stop_with_run(log, run.id) is not None) is stops
    assert (log.read().stopped is not None) is stops


@pytest.fixture
def scheduled(monkeypatch):
    """The loops that have an active schedule."""
    loops = []

    def active_schedule(_client, which):
        return SimpleNamespace(slug=which) if which in loops else None

    monkeypatch.setattr(cancel, "active_schedule", active_schedule)
    monkeypatch.setattr(cancel, "end_schedule", lambda _client, schedule: loops.remove(schedule.slug))
    return loops


def test_the_schedule_of_a_loop_ends_with_it(world, scheduled):
    loop = begun(world, what=StartedKind.LOOP)
    scheduled += [loop.name, "not-begun"]
    carrier = a_run(world.server, LOOP_TAG + loop.name, state=Suspended(timeout_seconds=60))
    shown = command("cancel", loop.name, "--yes")
    assert f"The schedule of the loop {loop.name} is deactivated" in shown
    assert world.server.read_flow_run(carrier.id).state.is_cancelled()
    assert "not-begun is deactivated" in command("cancel", "not-begun", "--yes")
    assert scheduled == []


@pytest.mark.parametrize("is_deleted", [False, True])
def test_the_schedule_of_a_loop_ends_with_it_by_its_run(world, scheduled, is_deleted):
    loop, other = begun(world, what=StartedKind.LOOP), begun(world)
    scheduled += [loop.name, other.name]
    carrier = a_run(world.server, LOOP_TAG + loop.name, state=Suspended(timeout_seconds=60))
    loop.log.note_run(str(carrier.id), carrier.name)
    if is_deleted:
        world.server.delete_flow_run(carrier.id)
    shown = command("cancel", str(carrier.id), "--yes")
    assert f"The schedule of the loop {loop.name} is deactivated" in shown
    assert loop.log.read().stopped is not None
    assert scheduled == [other.name]


@pytest.fixture
def rehearsed(world, tmp_path_factory):
    """A campaign `round-1`, and another one of this id in a second saved archive, where it was rehearsed."""
    archive = LocalArchive(root=str(tmp_path_factory.mktemp("rehearsed")))
    archive.save(f"rehearsed-{world.name}")
    WrittenCampaign(archive.get_store(), "", "round-1").ask("q1", 90_000)
    written = begun(world, "round-1")
    written.ask("q1", 90_000)
    return written


@pytest.mark.parametrize("arguments", [["cancel", "round-1", "--yes"], exactly("approve", "round-1")])
def test_an_id_in_two_archives_is_refused_unless_one_is_named(world, rehearsed, arguments):
    count = rehearsed.log.read().count
    refused = command(*arguments, code=2)
    for name in (f"assay-local-archive/{world.name}", f"assay-local-archive/rehearsed-{world.name}"):
        assert f"{name} (" in refused
    assert rehearsed.log.read().count == count
    command(*arguments, "--archive", world.name)
    assert rehearsed.log.read().count > count


def test_a_run_names_its_own_campaign_where_two_archives_have_the_id(world, rehearsed):
    run = a_run(world.server, CAMPAIGN_TAG + "round-1", state=Suspended(timeout_seconds=60))
    rehearsed.log.note_run(str(run.id), run.name)
    (canceled,) = json.loads(command("cancel", str(run.id), "--yes", "--json"))["canceled"]
    assert rehearsed.log.read().stopped is not None
    assert canceled["name"] == "round-1"


@pytest.fixture
def away(world, tmp_path_factory):
    """A second saved archive, whose folder is not mounted."""
    folder = tmp_path_factory.mktemp("away")
    LocalArchive(root=str(folder)).save(f"away-{world.name}")
    folder.rmdir()
    return f"{LocalArchive.get_block_type_slug()}/away-{world.name}"


def test_a_loop_that_may_be_in_an_archive_that_cannot_be_read_is_not_called_canceled(world, away, scheduled):
    scheduled.append("loop1")
    shown = json.loads(command("cancel", "loop1", "--yes", "--json", code=5))
    assert "does not exist here: mount it" in shown["error"]["message"]
    assert scheduled == ["loop1"]


def test_an_archive_that_cannot_be_read_is_named_after_what_was_canceled(world, away):
    written = begun(world)
    assert (
        f"archive {away} cannot be read, so what it may have of {written.name} is still running"
        in " ".join(command("cancel", written.name, "--yes", code=5).split())
    )
    assert written.log.read().stopped is not None
    shown = json.loads(command("cancel", written.name, "--yes", "--json", code=5))
    assert len(shown["canceled"]) == 1
    assert list(shown["archives_not_read"]) == [away]


def remains(**changes):
    payment = PaymentStatus(invoice=Invoice(id="i", status="open", amount=43_800))
    order = Order(order_key="k", experiment_id="e", experiment_code="LAB-1", status="done", adopted=True)
    report = CancellationReport(state=CanceledOrderState.INVOICED, order=order, payment=payment)
    fields = {"campaign_id": "c", "order_key": "k", "name": "c, order 1 of 1", "remains": report}
    return OrderRemains(**fields | changes)


def a_report(*orders, **changes):
    fields = {"what": StartedKind.CAMPAIGN, "name": "c", "person": "Ada", "how": "a test", "is_settled": True}
    return StopReport(**fields | changes, orders=orders)


def test_the_sums_have_the_rounds_that_were_over_and_each_open_sum_its_link(capsys, monkeypatch):
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
    cancel._show([a_report(remains())], [], OpenMoney(items=(item,), paid={"egfr-1": 131_400}))
    lines = capsys.readouterr().out.splitlines()
    assert "Billed together: 1,752.00 USD, of which 1,314.00 USD is paid." in lines
    assert f"    {item.url}" in lines, "the link can be copied whole"


def test_where_something_is_not_known_yet_nothing_is_said_about_what_is_billed(capsys):
    unread = remains(remains=None, problem="the service is away", is_pending=True)
    cancel._show([a_report(unread, is_settled=False)], [], OpenMoney())
    shown = " ".join(capsys.readouterr().out.split())
    assert "the service is away; the sweep looks again" in shown
    assert "billed" not in shown


def test_open_campaigns_of_a_lost_home_are_adopted(world):
    here = home_id(world.server)
    lost, mine, over = begun(world, home="lost"), begun(world, home=here), begun(world, home="lost")
    over.log.finish("2 measured", complete=True)
    assert "there is no terminal to confirm it" in command("adopt", code=2)
    assert lost.log.read().home == "lost"
    shown = json.loads(command("adopt", "--yes", "--by", "Ada", "--json"))
    assert shown["adopted"] == [{"kind": "campaign", "name": lost.name, "missing_account": None}]
    assert (lost.log.read().home, mine.log.read().home, over.log.read().home) == (here, here, "lost")
    assert "No open campaign or loop belongs to another Prefect home" in command("adopt", "--yes")


def test_an_account_that_an_adopted_campaign_needs_is_named(world):
    lost = begun(world, home="lost")
    AssayAccount.delete(world.name)
    assert f"save the account assay-account/{world.name} first" in command("adopt", "--yes")
    assert lost.log.read().home != "lost"


@pytest.fixture
def started_with(monkeypatch, tmp_path):
    """The parameters of the runs that `run` starts of the campaign `c`, whose archive is `tmp_path`."""
    started_with = []

    def start_deployed(_flow, parameters, **_named):
        started_with.append(parameters)
        return SimpleNamespace(id=uuid4(), name="quiet-otter")

    monkeypatch.setattr(running, "require_api", lambda: None)
    monkeypatch.setattr(running, "load_account", lambda _: make_account(archive=tmp_path))
    purchase = SimpleNamespace(campaign_id="c", new=(), total_cents=0)
    monkeypatch.setattr(running, "look_up", lambda *_, **__: purchase)
    monkeypatch.setattr(running, "show_purchase", lambda _: None)
    monkeypatch.setattr(running, "start_deployed", start_deployed)
    (tmp_path / "d.fasta").write_text(">d1\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGG\n")
    return started_with


def test_a_quote_is_requested_of_the_campaign(started_with, tmp_path):
    for more in ([], ["--request-quote"]):
        command("run", str(tmp_path / "d.fasta"), "--target", "t", *more)
    assert [parameters["options"].spending.request_quote for parameters in started_with] == [False, True]


def test_reopening_a_campaign_leaves_a_loop_of_its_id_canceled(started_with, tmp_path):
    store = LocalArchive(root=str(tmp_path)).get_store()
    written = WrittenCampaign(store, "", "other")
    loop = CampaignLog(store, "", "c", StartedKind.LOOP)
    loop.start(started(written.ledgers, "c", StartedKind.LOOP))
    loop.stop("Ada", "a test")
    shown = command("run", str(tmp_path / "d.fasta"), "--target", "t", "--reopen", code=1)
    assert "has no campaign 'c'" in shown
    assert loop.read().stopped is not None
    assert started_with == []
