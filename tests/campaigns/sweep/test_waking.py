"""The sweep wakes suspended runs: with news, whose next look is due, or whose question is over. Nothing else."""

import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from prefect.client.schemas.objects import State, StateDetails, StateType
from prefect.states import Cancelled, Cancelling, Failed, Running

from assay_lab.testing import LocalLab
from lab_support.core import spec
from prefect_assay.campaigns.approval.price import PriceApproval
from prefect_assay.campaigns.problems import kinds
from prefect_assay.campaigns.problems.saved import read_saved
from prefect_assay.campaigns.runs.queries import ASSAY_TAG
from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG
from prefect_assay.flows import sweep
from prefect_assay.orders.ledger.campaign_log import EXPIRED, StartedKind
from support.campaign_logs import question_of
from support.runs.sweeps import SELDOM, SweptHome, asleep, swept

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
STOPPED_RUNNER = "Runner is shutting down."


@pytest.fixture(scope="module")
def lab():
    with LocalLab() as started:
        yield started


@pytest.fixture
def home(api, tmp_path, lab):
    made = SweptHome(api, tmp_path, base_url=lab.base_url, token=lab.token)
    yield made
    made.close()


def order(lab):
    """A new experiment of the lab."""
    with lab.http() as http:
        answer = http.post(
            "/experiments", json={"experiment_spec": spec(), "name": "test", "auto_accept_quote": True}
        )
        answer.raise_for_status()
    return answer.json()["experiment_id"]


def is_asleep(home, run):
    return home.read(run).state.name == "Suspended"


def form(key="price-a1"):
    """A suspension with a form."""
    return State(
        type=StateType.PAUSED,
        name="Suspended",
        state_details=StateDetails(
            pause_timeout=datetime.now(UTC) + DAY,
            pause_key=key,
            run_input_keyset={"response": f"{key}-r", "schema": f"{key}-s"},
        ),
    )


def test_news_wake_the_run_of_their_experiment_once(home, lab):
    mine, other = order(lab), order(lab)
    log, quiet = home.start("c-1"), home.start("c-2")
    run = home.run(log, tags=(EXPERIMENT_TAG + mine,))
    left = home.run(quiet, tags=(EXPERIMENT_TAG + other,))
    swept()  # what is in the feed at the first reading is news
    for one in (run, left):
        home.set(one, asleep())
    assert swept().woken == ()
    with lab.http() as http:
        http.get(f"/experiments/{mine}").raise_for_status()
    lab.advance(days=1)
    report = swept()
    assert set(report.woken) >= {str(run.id)}
    assert report.updates_seen > 0
    home.set(run, asleep())
    assert str(run.id) not in swept().woken


def test_a_due_look_wakes_and_one_that_is_not_due_does_not(home):
    due = home.run(home.start("c-1"), asleep(timedelta(hours=1)))
    later = home.run(home.start("c-2"), asleep(timedelta(hours=6)))
    assert swept(after=timedelta(minutes=50)).woken == ()
    assert swept(after=timedelta(minutes=61)).woken == (str(due.id),)
    assert is_asleep(home, later)


def test_a_form_is_woken_by_neither(home, lab):
    experiment = order(lab)
    run = home.run(home.start("c-1"), form(), tags=(EXPERIMENT_TAG + experiment,))
    lab.advance(days=1)
    assert swept(after=DAY).woken == ()
    assert is_asleep(home, run)


def test_a_run_that_a_person_has_suspended_stays_so(home):
    by_hand = State(
        type=StateType.PAUSED,
        name="Suspended",
        state_details=StateDetails(pause_timeout=datetime.now(UTC) + 30 * DAY, pause_key="1"),
    )
    run = home.run(home.start("c-1"), by_hand)
    assert swept(after=2 * DAY).started == ()
    assert is_asleep(home, run)


def ask(log, now, hours=1, question_id="a1"):
    log.ask(question_id, question_of(500), order_key=None, now=now, expires_at=now + timedelta(hours=hours))


def service_now(lab):
    with lab.http() as http:
        answer = http.get("/targets", params={"limit": 1})
    return datetime.strptime(answer.headers["Date"], "%a, %d %b %Y %H:%M:%S %Z").replace(tzinfo=UTC)


def test_a_question_expires_by_the_services_clock_and_the_run_is_woken(home, api, lab):
    log = home.start("c-1")
    run = home.run(log)
    ask(log, service_now(lab))
    ask(log, service_now(lab) - 2 * HOUR, question_id="q-2")
    assert swept(after=2 * HOUR).woken == (str(run.id),)
    asked, answered = log.read().decisions["q-2"]
    assert (answered.decision, answered.revision, asked.question_id) == (EXPIRED, 1, "q-2")
    assert list(log.state.open_questions) == ["a1"], "only the clock of this machine is two hours ahead"
    (problem,) = [p for p in read_saved(api).problems if p.kind == kinds.QUESTION_OPEN]
    assert "c-1/a1" in problem.subject
    log.close_question("a1", 1)
    swept(after=2 * HOUR)
    assert [p for p in read_saved(api).problems if p.kind == kinds.QUESTION_OPEN] == []


def test_a_sweep_with_nothing_but_a_question_has_no_gap(home, api, lab):
    log = home.start("c-1")
    home.run(log)
    ask(log, service_now(lab), hours=72)
    swept(minutes=0)  # so that the next one leaves out the hourly look, which misses the workers of this home
    done = sweep(full_check_minutes=SELDOM, return_state=True)
    assert done.name == "Completed"
    assert "c-1 asks" in done.message


def test_an_answer_whose_wake_up_was_lost_is_made_up_for(home, lab):
    log = home.start("c-1")
    run = home.run(log)
    ask(log, service_now(lab), hours=72)
    log.answer(
        "a1",
        1,
        "approve",
        amount_cents=500,
        answerer="ada",
        how="by command",
        now=service_now(lab),
        ceiling_cents=500,
    )
    assert swept().woken == (str(run.id),)
    home.set(run, asleep())
    assert swept().woken == ()


def test_an_expired_price_wakes_the_run_that_shows_its_form_and_no_other_form(home, api, lab):
    log, other = home.start("c-1"), home.start("c-2")
    ask(log, service_now(lab) - 2 * HOUR)
    run = home.run(log, form("price-a1-1"))
    another = home.run(other, form("price-a1-2"))
    for one in (run, another):
        schema = home.read(one).state.state_details.run_input_keyset["schema"]
        api.create_flow_run_input(one.id, schema, json.dumps(PriceApproval.model_json_schema()))
    assert swept().woken == (str(run.id),)
    assert is_asleep(home, another)
    assert log.read().decisions["a1"][1].decision == EXPIRED


CANCELS = {
    "in the interface": lambda home, run: home.set(run, Cancelled()),
    "and its process has gone": lambda home, run: (home.set(run, Running()), home.set(run, Cancelling())),
}


@pytest.mark.parametrize("how", CANCELS)
@pytest.mark.parametrize("what", StartedKind)
def test_a_run_that_a_person_cancels_stops_what_it_carries(home, how, what):
    log = home.start("c-1", what)
    run = home.run(log)
    CANCELS[how](home, run)
    report = swept(after=timedelta(minutes=11))
    assert (report.started, report.stopped) == ((), ("c-1",))
    stopped = log.read().stopped
    assert run.name in stopped.how
    assert log.state.settled, "it had ordered nothing"
    assert swept(after=DAY).started == ()


def test_a_canceled_run_that_was_not_recorded_yet_stops_its_campaign(home):
    log = home.start("c-1")
    home.set(home.run(log, noted=False), Cancelled())
    assert swept().stopped == ("c-1",)


def test_a_worker_that_is_stopped_stops_no_campaign(home):
    log = home.start("c-1")
    run = home.run(log, Running())
    home.set(run, Cancelling(message=STOPPED_RUNNER))
    assert len(swept(after=timedelta(minutes=11)).started) == 1
    assert home.read(run).state.message == STOPPED_RUNNER
    assert log.read().stopped is None


def test_the_run_of_a_campaign_of_the_same_id_in_another_archive_is_none_of_its_own(home, api, lab, tmp_path):
    other = SweptHome(api, tmp_path / "other", base_url=lab.base_url, token=lab.token)
    try:
        log, theirs = home.start("c-1"), other.start("c-1")
        home.set(home.run(log), Failed(message="x"))
        other.set(other.run(theirs, noted=False), Cancelled())
        report = swept()
        assert len(report.started) == 1
        assert log.read().stopped is None
        assert theirs.read().stopped is not None
    finally:
        other.close()


def test_the_questions_of_a_loops_round_expire_too(home, lab):
    loop, in_round = home.start("l-1", StartedKind.LOOP), home.start("r-1", home=None, deployment=None)
    ask(in_round, service_now(lab) - 2 * HOUR)
    run = home.run(loop, tags=("assay-campaign:r-1",))
    assert swept().woken == (str(run.id),)
    assert in_round.read().decisions["a1"][1].decision == EXPIRED


def test_runs_of_other_packages_are_left_alone(home, api):
    """A flow may be called campaign, too."""
    flow = api.create_flow_from_name("campaign")
    deployment = api.create_deployment(flow, name="theirs", tags=[ASSAY_TAG], enforce_parameter_schema=False)
    run = api.create_flow_run_from_deployment(deployment, parameters={"budget": 3})
    home.set(run, asleep(timedelta()))
    assert swept(after=DAY).woken == ()
    assert is_asleep(home, run)


def test_what_prefect_does_not_answer_is_no_complete_sweep_and_closes_no_problem(home, api, monkeypatch):
    ask(home.start("c-1"), datetime.now(UTC) + DAY)
    swept()
    before = read_saved(api)

    def away(*_, **__):
        raise httpx.ConnectError("no connection")

    with monkeypatch.context() as patch:
        patch.setattr("prefect.client.orchestration.SyncPrefectClient.read_flow_runs", away)
        report = swept(after=HOUR)
    assert [line for line in report.problems if "no connection" in line]
    assert read_saved(api) == before
    assert before.problems
