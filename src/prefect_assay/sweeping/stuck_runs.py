"""Lists the runs that need a person: crashed, hanging, late or blocked, each with the next step. Changes nothing."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.sorting import FlowRunSort

from prefect_assay.alerts.find import stuck_run
from prefect_assay.models.problem import Problem
from prefect_assay.runs.heartbeats import default_silence, last_heartbeat
from prefect_assay.runs.queries import read_first_page, run_filter
from prefect_assay.runs.states import LOST_AFTER
from prefect_assay.runs.transient_failures import needed_block, retry_count

LATE_AFTER: Final = timedelta(minutes=10)
SILENT_AFTER: Final = timedelta(minutes=30)  # an execution takes seconds; with every retry, some minutes
_RETRIES: Final = 3  # in a row: the failure has lasted for more than half an hour
_RUNNING: Final = (
    "Look into its log; then cancel it, or set it to Crashed, and it is rescheduled and orders nothing twice"
)
# Crashed would start it again.
_CANCELING: Final = "Leave it: the sweep sets it to Cancelled, within a day, then cancels what it has started and reports what remains"
_ACTIVE: Final = [StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]


def find_stuck_runs(client: SyncPrefectClient, now: datetime) -> list[Problem]:
    """Return a problem per assay run that crashed or is stuck."""
    active = run_filter(states=_ACTIVE, expected_before=now - LATE_AFTER, deployed=True)
    crashed = run_filter(states=[StateType.CRASHED], ended_after=now - LOST_AFTER)
    # One page each, the oldest first: a longer list would not be read.
    candidates = read_first_page(client, active, FlowRunSort.EXPECTED_START_TIME_ASC)
    found = [_crashed(run) for run in read_first_page(client, crashed)]
    return sorted(found + _stuck(client, candidates, now), key=_text)


def find_blocked_runs(runs: Iterable[FlowRun]) -> list[Problem]:
    """Return a problem per suspended run that waits for a block, or failed several times in a row to go on."""
    runs = list(runs)
    blocks = [
        _problem(
            run,
            f"waits for the block {needed.block} of its parameter {needed.parameter}, {needed.fault}",
            "Save a block of this type under this name again, and the run goes on; its artifact says what is not valid"
            if needed.missing
            else f"Its artifact assay-block-{needed.parameter} says why. Correct the block and save it, and the run goes on",
        )
        for run in runs
        if (needed := needed_block(run))
    ]
    return sorted(blocks, key=_text) + sorted(
        (
            _problem(
                run,
                f"is suspended and could not go on {retries} times in a row{_reason(run)}",
                "Its log says why. It is woken again every hour at the latest; bring back what is away, or correct the "
                "block that its log names",
            )
            for run in runs
            if (retries := retry_count(run)) >= _RETRIES and not needed_block(run)
        ),
        key=_text,
    )


def _stuck(client: SyncPrefectClient, runs: Iterable[FlowRun], now: datetime) -> list[Problem]:
    found: list[Problem] = []
    silent: list[tuple[FlowRun, State[Any]]] = []
    for run in runs:
        if run.state is None:
            continue
        age = now - run.state.timestamp
        if run.state.type == StateType.SCHEDULED:
            due = run.state.state_details.scheduled_time or run.state.timestamp
            if now - due > LATE_AFTER:
                found.append(_late(run, run.state))
        elif run.state.type == StateType.PENDING:
            if age > LATE_AFTER:
                found.append(
                    _problem(
                        run,
                        f"is pending since {_when(run.state)}: its process was never started",
                        "Look into the log of its worker; the sweep reschedules it",
                    )
                )
        elif age > SILENT_AFTER:
            silent.append((run, run.state))
    found += [
        _problem(
            run,
            f"is {state.name} since {_when(state)} without a heartbeat: its process is probably gone",
            _CANCELING if state.is_cancelling() else _RUNNING,
        )
        for run, state in silent
        if (last := last_heartbeat(client, run, state, now)) is None or now - last > default_silence()
    ]
    return found


def _crashed(run: FlowRun) -> Problem:
    when = f" at {_when(run.state)}" if run.state else ""
    return _problem(
        run,
        f"has crashed{when}: its process was killed",
        "It is rescheduled automatically, and orders nothing twice; if it stays crashed, look into its log and the "
        "worker's",
    )


def _late(run: FlowRun, state: State[Any]) -> Problem:
    if state.name == "AwaitingConcurrencySlot":
        return _problem(
            run,
            f"waits for a concurrency slot since {_when(state)}",
            "Raise the limit of its work pool or deployment, or look which run holds the slot",
        )
    return _problem(
        run,
        f"should have started, and is {state.name} since {_when(state)}: no worker serves its deployment",
        "Start the worker that `prefect-assay deploy` names, or prefect-assay deploy --serve",
    )


def _reason(run: FlowRun) -> str:
    message = run.state.message if run.state else None
    return f"; it {message.rstrip('. ')}" if message else ""


def _problem(run: FlowRun, text: str, next_step: str) -> Problem:
    since = run.state.timestamp if run.state else datetime.now(UTC)
    return stuck_run(run.name, str(run.id), since, text, next_step)


def _text(problem: Problem) -> str:
    return problem.text


def _when(state: State[Any]) -> str:
    return f"{state.timestamp:%Y-%m-%d %H:%M} UTC"
