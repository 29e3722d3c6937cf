"""Lists runs that have failed, or crashed for good, with an order that no other run waits for. Changes nothing."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun, StateType

from prefect_assay.alerts.find import open_order
from prefect_assay.models.billing import usd
from prefect_assay.models.problem import Problem
from prefect_assay.runs.queries import ASSAY_FLOWS, is_assay_run, is_experiment, read_runs, run_filter
from prefect_assay.runs.states import LOST_AFTER, has_ended, is_open
from prefect_assay.runs.tags import (
    CAMPAIGN_TAG,
    EXPERIMENT_CODE_LABEL,
    ORDER_OVER_LABEL,
    ORDER_TAG,
    PRICE_LABEL,
    WAITS_TAG,
    tag_values,
)

_LOOK_BACK: Final = 2 * LOST_AFTER  # a crashed run counts as ended after the first half
_VALUES_MAX: Final = 200  # of one filter
_REASON_LENGTH: Final = 300


def find_open_orders(client: SyncPrefectClient, now: datetime) -> list[Problem]:
    """Return a problem per order whose newest run has failed; not if another run of it goes on or has completed."""
    ended = run_filter(
        states=[StateType.FAILED, StateType.CRASHED], ended_after=now - _LOOK_BACK, deployed=True
    )
    failed = [run for run in read_runs(client, ended, ASSAY_FLOWS) if is_assay_run(run) and has_ended(run)]
    subjects = {subject for run in failed for subject in _subjects(run)}
    by_subject: dict[str, dict[str, FlowRun]] = defaultdict(dict)
    for run in runs_with_tags(client, subjects):
        for tag in run.tags:
            if tag in subjects:
                by_subject[tag][str(run.id)] = run
    found = [
        _problem(newest, subject)
        for subject, runs in sorted(by_subject.items())
        if (newest := _newest_failed(runs.values()))
    ]
    return sorted(found, key=lambda problem: problem.text)


def _subjects(run: FlowRun) -> list[str]:
    """The tags of an order, or of a campaign that has started its experiments."""
    if is_experiment(run):
        return [ORDER_TAG + key for key in tag_values(run.tags, ORDER_TAG)]
    campaigns = [CAMPAIGN_TAG + name for name in tag_values(run.tags, CAMPAIGN_TAG)]
    return campaigns if tag_values(run.tags, WAITS_TAG) else []


def runs_with_tags(client: SyncPrefectClient, tags: Collection[str]) -> Iterator[FlowRun]:
    """Every run that has one of these tags; it may come twice."""
    for part in in_parts(tags):
        yield from read_runs(client, run_filter(any_tags=part), ASSAY_FLOWS)


def in_parts(values: Collection[str]) -> Iterator[list[str]]:
    """The values of a filter, as many at a time as one request may name."""
    ordered = sorted(values)
    for start in range(0, len(ordered), _VALUES_MAX):
        yield ordered[start : start + _VALUES_MAX]


def _newest_failed(runs: Iterable[FlowRun]) -> FlowRun | None:
    """The newest run of an order, if it has failed with the order open. None if the order is over or another run has taken it up."""
    runs = list(runs)
    if any(is_open(run) or (run.state is not None and run.state.is_completed()) for run in runs):
        return None
    newest = max(runs, key=lambda run: run.created or datetime.min.replace(tzinfo=UTC))
    failed = newest.state is not None and (newest.state.is_failed() or newest.state.is_crashed())
    return newest if failed and not newest.labels.get(ORDER_OVER_LABEL) else None


def _problem(run: FlowRun, subject: str) -> Problem:
    since = run.state.timestamp if run.state else datetime.now(UTC)
    reason = " ".join(((run.state and run.state.message) or "without a message").split())[:_REASON_LENGTH]
    if not is_experiment(run):
        text = "has failed, and no run collects the results of the experiments that it has started"
    elif code := run.labels.get(EXPERIMENT_CODE_LABEL):
        price = str(run.labels.get(PRICE_LABEL) or "")
        costs = f", {usd(int(price))}," if price.isdecimal() else ""
        text = f"has failed, and its order{costs} is open: experiment {code}"
    else:
        text = "has failed, and has ordered, or may have"
    return open_order(run.name, subject.partition(":")[2], since, f"{text} ({reason.rstrip('. ')})")
