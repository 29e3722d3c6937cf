"""Prefect's own workers, as `prefect-assay up` starts them: kills, runs that hang, wake-ups that come too early.

One worker with a limit runs the flows, another one the sweep, which is scheduled more often here than it is shipped.
The lab's books are the judge.
"""

import random
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from math import inf
from uuid import UUID

import psutil
import pytest
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.schedules import IntervalSchedule
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from prefect_assay.archive import verify
from prefect_assay.runs.crashes import crashes_in_a_row
from prefect_assay.runs.queries import is_assay_run, run_filter
from prefect_assay.runs.states import cancel
from support.runs.held import DESIGN
from support.runs.world import EGFR, a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(3000)]

LIMIT = 4
KILLS = 50
RUNS = 10
SWEEP_SECONDS = 20
# As `runner.env` has it, for the runs and for the sweep.
HEARTBEAT = {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: 30}
WITHIN = 600  # the promise for runs whose worker was killed
# Between the first word to the service and the wait: each run is killed at another one.
FIRST = [
    {"method": "GET", "path": "/api/v1/experiments"},
    {"method": "POST", "path": "/api/v1/experiments/cost-estimate"},
    {"method": "POST", "path": "/api/v1/experiments"},
    {"method": "GET", "path": "/api/v1/invoices*"},
    {"method": "POST", "path": "/api/v1/invoices/*/pay"},
    {"method": "POST", "path": "/api/v1/invoices/*/pay", "after": 1},
]

DESIGNERS = """
import threading
import time
from pathlib import Path


def design_for_long(history, n, budget_cents, round):
    while not Path({go!r}).exists():
        time.sleep(0.2)
    return [{{"name": "designed", "sequence": "MKTAYIAKQRQISFVKSHFSRQ"}}]


def hang(history, n, budget_cents, round):
    threading.Event().wait()
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    return tmp_path_factory.mktemp("modules")


@pytest.fixture(scope="module")
def world(tmp_path_factory, modules):
    env = {setting.name: str(value) for setting, value in HEARTBEAT.items()}
    (modules / "slow_designers.py").write_text(DESIGNERS.format(go=str(modules / "go")))
    env["PYTHONPATH"] = str(modules)
    options = {"runner": "worker", "worker_limit": LIMIT, "sweep": True, "env": env}
    with (
        temporary_settings(HEARTBEAT),
        a_world(tmp_path_factory.mktemp("workers"), stack_options=options) as made,
    ):
        sweep = made.api.read_deployment_by_name("sweep/assay-sweep")
        made.api.update_deployment_schedule(sweep.id, sweep.schedules[0].id, active=False)
        yield made


def executions(world):
    """The processes of each run at work: the supervisor that Prefect's worker starts, and the engine below it."""
    found = {}
    for process in world.stack.runner_processes():
        with suppress(psutil.Error, KeyError):
            found.setdefault(UUID(process.environ()["PREFECT__FLOW_RUN_ID"]), []).append(process)
    return found


def signal_all(processes, signal):
    """Suspend or resume the processes that have not ended."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            signal(process)


def crashes(world, run_id):
    """The crashes of a run's whole life: those in a row before each of its waits, and before its end."""
    count, row = 0, []
    for state in sorted(world.api.read_flow_run_states(run_id), key=lambda state: state.timestamp):
        if state.type in {StateType.PAUSED, StateType.COMPLETED}:
            count, row = count + crashes_in_a_row(row), []
        row.append(state)
    return count + crashes_in_a_row(row)


class Killer:
    """Kills executions, and notes by run how many; a process that its run has left already does not count."""

    def __init__(self, world):
        self.world = world
        self.draw = random.Random(34)
        self.reported, self.silent = Counter(), Counter()  # by a worker that is left, and by nobody

    @property
    def kills(self):
        return (self.reported + self.silent).total()

    def kill(self, run_id, processes):
        """The process of a flow, or the one that supervises it, unless it has left its run already.

        It is stopped meanwhile: the worker reports a kill within moments, and a run that is left alone suspends itself.
        """
        signal_all(processes, psutil.Process.suspend)
        if self.world.api.read_flow_run(run_id).state.type in {StateType.PENDING, StateType.RUNNING}:
            self.draw.choice(processes).kill()
            self.reported[run_id] += 1
        signal_all(processes, psutil.Process.resume)

    def at_work(self):
        """What has begun is Running, what is being started Pending."""
        states = run_filter(states=[StateType.RUNNING, StateType.PENDING])
        return {
            run.id: run.state.type
            for run in self.world.api.read_flow_runs(flow_run_filter=states)
            if is_assay_run(run)
        }

    def kill_machine(self):
        """The workers with all their processes, in a moment when a run has begun and another one is being started.

        They are stopped meanwhile: a run that is being started begins within a second.
        """
        stack = self.world.stack

        def stopped_in_between():
            workers = [psutil.Process(stack.pid(name)) for name in ("runner", "sweeper")]
            processes = workers + [child for worker in workers for child in worker.children(recursive=True)]
            signal_all(processes, psutil.Process.suspend)
            if {*self.at_work().values()} == {StateType.RUNNING, StateType.PENDING}:
                return True
            signal_all(processes, psutil.Process.resume)
            return False

        eventually(stopped_in_between, seconds=90, what="a run to begin and another one to be started")
        stack.kill_runner()
        left = self.at_work()
        for run_id, state in left.items():
            (self.reported if state == StateType.RUNNING else self.silent)[run_id] += 1
        return left

    def kill_each_once(self, runs, *, seconds, until):
        """Kill an execution of each run at some moment of its first seconds; then wait for what comes of all of them."""
        due = {}
        wanted = {run.id for run in runs}

        def step():
            now = time.monotonic()
            for run_id, processes in executions(self.world).items():
                if run_id in wanted and due.setdefault(run_id, now + self.draw.uniform(0, seconds)) <= now:
                    self.kill(run_id, processes)
                    due[run_id] = inf
            return all(self.world.run(run).state.name == until for run in runs)

        eventually(step, seconds=WITHIN, what=f"all runs to be {until}")


def sweep_often(world):
    """As an operator may set it; until then no sweep is scheduled."""
    sweep = world.api.read_deployment_by_name("sweep/assay-sweep")
    often = IntervalSchedule(interval=timedelta(seconds=SWEEP_SECONDS))
    world.api.update_deployment_schedule(sweep.id, sweep.schedules[0].id, active=True, schedule=often)


def stop_sweeping(world):
    """Until no sweep is left: one that is killed with its machine keeps the slot of the sweep for Prefect's five minutes."""
    sweep = world.api.read_deployment_by_name("sweep/assay-sweep")
    world.api.update_deployment_schedule(sweep.id, sweep.schedules[0].id, active=False)
    at_work = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=[sweep.id]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING])),
    )
    eventually(
        lambda: not world.api.count_flow_runs(flow_run_filter=at_work),
        seconds=WITHIN,
        what="the end of the last sweep",
    )


def all_asleep(world, runs):
    eventually(
        lambda: all(world.run(run).state.name == "Suspended" for run in runs),
        seconds=WITHIN,
        what="all runs to be suspended",
    )


def wake(world, runs):
    for run in runs:
        world.api.resume_flow_run(run.id)


def test_after_fifty_kills_each_run_has_ordered_and_paid_once_and_completes(world):
    killer = Killer(world)
    runs = []
    for number in range(RUNS):
        request = FIRST[number % len(FIRST)]
        fault = world.stack.lab.fault("late_answer", seconds=20, **request)
        runs.append(world.experiment(f"killed-{number}", DESIGN))
        eventually(lambda: fault.used, seconds=90, what=f"{request} to be handled")  # noqa: B023 - called here
        killer.kill(runs[-1].id, executions(world)[runs[-1].id])
        fault.remove()
    assert killer.kills == RUNS
    sweep_often(world)
    all_asleep(world, runs)

    stop_sweeping(world)
    world.fault("delay", method="GET", path="/api/v1/experiments/*", seconds=30, count=LIMIT - 1)
    wake(world, runs)
    left = killer.kill_machine()
    assert {*left.values()} == {StateType.RUNNING, StateType.PENDING}
    world.stack.start_runner()
    sweep_often(world)

    # What the machine has left goes on after minutes: meanwhile the others are killed, most of them several times.
    others = [run for run in runs if run.id not in left]
    all_asleep(world, others)
    while killer.kills < KILLS - RUNS // 2:
        wake(world, others)
        killer.kill_each_once(others, seconds=3, until="Suspended")
    all_asleep(world, runs)
    world.advance(days=16)
    killer.kill_each_once(runs, seconds=3, until="Completed")
    assert killer.kills >= KILLS

    for number, run in enumerate(runs):
        assert crashes(world, run.id) == killer.reported[run.id], world.history(run)
        (order,) = world.orders(f"killed-{number}")
        (payment,) = world.settlements(f"killed-{number}")
        assert payment["experiment_id"] == order.id
        assert verify(world.archive.get_store(), f"killed-{number}").findings == ()


def test_runs_that_hang_or_design_for_long_do_not_keep_the_sweep_waiting(world, modules):
    """They take all slots of their worker, while a run's results are there and no webhook tells it."""
    sweep_often(world)
    waiting = world.experiment("starved", DESIGN, webhook=None)
    world.until(waiting, "Suspended", seconds=WITHIN)
    loop = {"assay": {"experiment_type": "affinity", "method": "bli", "target": EGFR}, "max_rounds": 1}
    busy = [
        world.start(
            "design-build-test",
            **world.shared(),
            **loop,
            designer=f"slow_designers:{designer}",
            loop_id=f"{designer.replace('_', '-')}-{number}",
        )
        for number in range(LIMIT // 2)
        for designer in ("design_for_long", "hang")
    ]

    def states():
        return {world.run(run).state.name for run in busy}

    eventually(lambda: states() == {"Running"}, seconds=WITHIN, what="all slots to be taken")
    world.advance(days=16)
    world.until(waiting, "Resuming", "Late", seconds=WITHIN)
    assert states() == {"Running"}

    (modules / "go").touch()
    world.until(waiting, "Completed", seconds=WITHIN)
    assert len(world.orders("starved")) == len(world.settlements("starved")) == 1
    for run in busy:
        cancel(world.api, world.run(run))


def stopped_behind_its_wait(world, run):
    """The processes of a run that is suspended already, stopped before they have ended."""
    for _ in range(10):
        world.until(run, "Running", seconds=WITHIN)
        while world.run(run).state.name == "Running":
            pass
        processes = executions(world).get(run.id, [])
        for process in processes:
            process.suspend()
        if processes:
            return processes
        world.api.resume_flow_run(run.id)
    raise AssertionError("its processes have always ended before they could be stopped")


def test_a_run_that_is_woken_before_its_last_process_has_ended_goes_on(world):
    run = world.experiment("early", DESIGN, webhook=None)
    processes = stopped_behind_its_wait(world, run)
    world.advance(days=16)
    assert world.api.resume_flow_run(run.id).status == "ACCEPT"

    def seen():
        """The worker has met the woken run: it leaves it until the process has ended, or starts another one."""
        noted = f"Duplicate submission of flow run '{run.id}'" in world.stack.logs["runner"].read_text()
        return noted or len(executions(world).get(run.id, [])) > len(processes)

    eventually(seen, seconds=WITHIN, what="the worker to meet the run")
    for process in processes:
        process.resume()
    world.until(run, "Completed", seconds=WITHIN)
    assert len(world.orders("early")) == len(world.settlements("early")) == 1
    assert "Crashed" not in world.history(run)
