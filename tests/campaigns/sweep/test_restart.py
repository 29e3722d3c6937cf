"""The sweep starts another run for each open campaign of its home that has no live run, and for no other."""

import shutil
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State, StateType
from prefect.logging import disable_run_logger
from prefect.states import Cancelled, Completed, Crashed, Failed, Pending, Running

from prefect_assay.campaigns.problems import kinds
from prefect_assay.campaigns.problems.saved import read_saved
from prefect_assay.campaigns.runs.states import is_canceled_by_person
from prefect_assay.campaigns.sweep.watermarks import SweepState
from prefect_assay.flows.sweep import _Sweep
from prefect_assay.orders.ledger.campaign_log import StartedKind
from support.accounts import reference
from support.runs.sweeps import SELDOM, swept

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
STOPPED_RUNNER = "Runner is shutting down."


def problems(api, kind):
    return [problem for problem in read_saved(api).problems if problem.kind == kind]


ENDS = {
    "failed by hand": lambda home, run: home.set(run, Failed(message="by hand")),
    "crashed": lambda home, run: home.set(run, Crashed(message="process ended")),
    "deleted": lambda home, run: home.api.delete_flow_run(run.id),
    "stopped with its worker": lambda home, run: home.set(run, Cancelled(message=STOPPED_RUNNER)),
    "completed too early": lambda home, run: home.set(run, Completed()),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("what", StartedKind)
def test_whatever_has_ended_the_run_another_one_goes_on_with_what_was_recorded(home, end, what):
    log = home.start(
        "c-1",
        what,
        parameters={
            "account": {"$block": home.name_of("account")},
            f"{what}_id": "c-1",
            "options": {"waiting": {"deadline_days": 9}},
        },
    )
    ENDS[end](home, home.run(log))
    report = swept()
    (again,) = home.restarted(log)
    assert report.started == (again.name,)
    run = home.runs(log)[-1]
    assert (str(run.id), run.deployment_id) == (again.run, home.deployments[what])
    assert run.parameters == {
        "account": reference(home.blocks["account"]),
        f"{what}_id": "c-1",
        "options": {"waiting": {"deadline_days": 9}},
    }
    assert swept().started == ()
    assert home.restarted(log) == [again]


@pytest.mark.parametrize(
    "state", [None, Running(), Pending(), "scheduled"], ids=["suspended", "running", "pending", "scheduled"]
)
def test_a_live_run_is_left_alone(home, state):
    log = home.start("c-1")
    if state == "scheduled":
        run = home.run(log, State(type=StateType.SCHEDULED, name="Late"))
    else:
        run = home.run(log, state)
    assert swept().started == ()
    assert home.read(run).state.name == (
        state.name if isinstance(state, State) else home.read(run).state.name
    )
    assert len(home.runs(log)) == 1


def test_an_account_that_was_deleted_and_saved_again_is_found_by_its_name(home, api):
    log = home.start("c-1")
    home.set(home.run(log), Failed(message="its account is gone"))
    home.delete("account")
    report = swept()
    assert report.started == ()
    (problem,) = problems(api, kinds.CAMPAIGN_WITHOUT_RUN)
    assert f"its account {home.name_of('account')} was deleted" in problem.text
    home.save("account", home.blocks["account"].model_copy(update={"_block_document_id": None}))
    assert len(swept().started) == 1
    assert home.runs(log)[-1].parameters["account"] == reference(home.blocks["account"])
    assert problems(api, kinds.CAMPAIGN_WITHOUT_RUN) == []


def test_a_deployment_that_was_made_again_gets_a_new_run_and_the_old_one_is_canceled(home, api):
    log = home.start("c-1")
    old = home.run(log)
    api.delete_deployment(home.deployments[StartedKind.CAMPAIGN])
    assert swept().started == ()
    assert "there is no deployment" in problems(api, kinds.CAMPAIGN_WITHOUT_RUN)[0].text
    home.deployments[StartedKind.CAMPAIGN] = home.deploy(StartedKind.CAMPAIGN)
    assert len(swept().started) == 1
    assert home.read(old).state.is_cancelled()
    assert not is_canceled_by_person(home.read(old)), "no person has canceled the campaign"
    assert home.restarted(log)[0].why == "its run belonged to a deployment that was deleted"
    swept(after=DAY)
    assert log.read().stopped is None


def test_a_campaign_that_is_started_again_three_times_within_a_day_is_a_problem(home, api):
    log = home.start("c-1")
    home.set(home.run(log), Failed(message="no such file: designs.fasta"))
    for count, after in enumerate((timedelta(), timedelta(minutes=5), timedelta(minutes=10)), start=1):
        assert len(swept(after=after).started) == 1
        assert len(problems(api, kinds.CAMPAIGN_WITHOUT_RUN)) == (count == 3)
        home.set(home.runs(log)[-1], Failed(message="no such file: designs.fasta"))
    (problem,) = problems(api, kinds.CAMPAIGN_WITHOUT_RUN)
    assert "started again 3 times within a day" in problem.text
    assert "no such file" in problem.text
    identity = problem.identity, problem.since
    swept(after=timedelta(minutes=11))
    assert [(one.identity, one.since) for one in problems(api, kinds.CAMPAIGN_WITHOUT_RUN)] == [identity]
    log.finish("over", complete=True)
    swept(after=timedelta(minutes=12))
    assert problems(api, kinds.CAMPAIGN_WITHOUT_RUN) == []


def test_two_sweeps_at_once_start_one_run(home, api):
    log = home.start("c-1")
    home.set(home.run(log), Failed(message="x"))
    swept()  # so that both have nothing else to do
    home.set(home.runs(log)[-1], Failed(message="x"))
    sweeps, errors = [], []

    def one(client):
        try:
            with disable_run_logger():
                now = datetime.now(UTC) + HOUR
                _Sweep(client, SweepState.read(client), now, SELDOM).run()
        except Exception as error:  # noqa: BLE001 - of a thread; it is asserted below
            errors.append(error)

    with get_client(sync_client=True) as first, get_client(sync_client=True) as second:
        sweeps = [Thread(target=one, args=(client,)) for client in (first, second)]
        for thread in sweeps:
            thread.start()
        for thread in sweeps:
            thread.join()
    assert errors == []
    assert len(home.runs(log)) == 3
    assert len(home.restarted(log)) == 2


def test_a_run_that_was_started_and_not_recorded_is_found_again(home, monkeypatch):
    """The sweep is killed between the run and its record: the next one gets the same run."""
    log = home.start("c-1")
    home.set(home.run(log), Failed(message="x"))

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("prefect_assay.campaigns.sweep.restart.Restarts._note", killed)
        with pytest.raises(KeyboardInterrupt):
            swept()
    assert len(home.runs(log)) == 2
    home.set(home.runs(log)[-1], Failed(message="and fails before anybody looks"))
    swept()
    assert len(home.runs(log)) == 2
    assert len(home.restarted(log)) == 1
    swept(after=HOUR)
    assert len(home.runs(log)) == 3


def test_the_campaigns_of_another_home_are_left_to_it(home, api):
    log = home.start("c-1", home="another")
    home.set(home.run(log), Failed(message="x"))
    assert swept().started == ()
    assert problems(api, kinds.HOME_SILENT) == []
    swept(after=DAY + HOUR)
    (problem,) = problems(api, kinds.HOME_SILENT)
    assert "another" in problem.text
    assert "c-1" in problem.text
    log.finish("over", complete=True)
    swept(after=2 * DAY)
    assert problems(api, kinds.HOME_SILENT) == []


def test_a_start_in_a_notebook_does_not_take_a_campaign_from_its_home(home):
    log = home.start("c-1")
    home.set(home.run(log), Failed(message="x"))
    home.start("c-1", home=None, deployment=None, parameters={})
    assert len(swept().started) == 1


@pytest.mark.parametrize("end", ["over", "stopped"])
def test_a_campaign_that_is_over_or_stopped_is_not_started(home, end):
    log = home.start("c-1")
    home.set(home.run(log), Failed(message="the design is not valid"))
    if end == "over":
        log.finish("it failed before anything was ordered", complete=False)
        log.open_index()  # a hint that could not be removed
    else:
        log.stop("ada", "by command")
    assert swept(minutes=0).started == ()
    assert list(home.store.keys("LEDGERS/OPEN")) == []


def test_a_round_of_a_loop_is_its_loops(home):
    loop = home.start("l-1", StartedKind.LOOP)
    round_log = home.start("l-1-r1", deployment=f"design-build-test/d-{home.slug}")
    run = home.run(loop, Failed(message="killed in mid-round"))
    round_log.note_run(str(run.id), run.name)
    report = swept()
    assert len(report.started) == 1
    assert home.runs(loop)[-1].parameters["loop_id"] == "l-1"
    assert home.runs(round_log) == []


def test_a_run_that_ended_to_be_continued_is_followed_at_once_and_counts_as_no_restart(home):
    log = home.start("c-1")
    home.set(home.run(log), Completed(name="Continued"))
    for _ in range(3):
        assert len(swept().started) == 1
        home.set(home.runs(log)[-1], Completed(name="Continued"))
    assert home.restarted(log) == []


def test_an_unreachable_archive_is_a_problem_and_never_an_empty_one(home, api, tmp_path):
    log = home.start("c-1")
    home.set(home.run(log), Failed(message="x"))
    assert len(swept().started) == 1
    home.set(home.runs(log)[-1], Failed(message="x"))
    folder = home.store.root
    folder.rename(tmp_path / "away")
    report = swept(after=HOUR)
    (problem,) = problems(api, kinds.ARCHIVE_UNREACHABLE)
    assert home.name_of("archive") in problem.text
    assert report.started == ()
    (tmp_path / "away").rename(folder)
    assert len(swept(after=HOUR).started) == 1
    swept(after=2 * HOUR, minutes=0)
    assert problems(api, kinds.ARCHIVE_UNREACHABLE) == []


def test_an_unreachable_archive_hides_no_other(home, api, tmp_path):
    from support.runs.sweeps import SweptHome

    other = SweptHome(api, tmp_path / "other")
    try:
        log = home.start("c-1")
        home.set(home.run(log), Failed(message="x"))
        other.start("c-2")
        swept()
        home.set(home.runs(log)[-1], Failed(message="x"))
        shutil.move(other.store.root, tmp_path / "gone")
        assert len(swept(after=HOUR).started) == 1
    finally:
        other.close()


def test_a_damaged_log_hides_no_other(home, api):
    damaged, log = home.start("a-1"), home.start("c-1")
    home.set(home.run(log), Failed(message="x"))
    (home.store.root / "LEDGERS/CAMPAIGNS/a-1/000001.json").write_text("{")
    assert len(swept().started) == 1
    (problem,) = problems(api, kinds.CAMPAIGN_WITHOUT_RUN)
    assert damaged.name in problem.text


@pytest.mark.parametrize("state", [Running(), Pending()], ids=["running", "pending"])
def test_a_run_without_a_process_counts_as_dead(home, state):
    log = home.start("c-1")
    run = home.run(log, state)
    assert swept(after=timedelta(minutes=9)).started == ()
    assert len(swept(after=timedelta(minutes=12)).started) == 1
    assert home.read(run).state.is_crashed()


def test_a_run_with_heartbeats_is_alive(home, monkeypatch):
    log = home.start("c-1")
    run = home.run(log, Running())
    monkeypatch.setattr(
        "prefect_assay.campaigns.runs.heartbeats.read_last_heartbeat", lambda *_: datetime.now(UTC) + HOUR
    )
    assert swept(after=HOUR).started == ()
    assert home.read(run).state.is_running()
