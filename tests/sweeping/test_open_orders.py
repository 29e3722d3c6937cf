"""A run that failed with an open order is a problem, until a run of the order goes on, completes or ends it."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType

from prefect_assay.alerts import kinds
from prefect_assay.runs.tags import (
    CAMPAIGN_TAG,
    EXPERIMENT_CODE_LABEL,
    EXPERIMENT_TAG,
    ORDER_OVER_LABEL,
    ORDER_TAG,
    PRICE_LABEL,
    REPLACED_TAG,
    WAITS_TAG,
)
from prefect_assay.sweeping import find_open_orders

NOW = datetime.now(UTC)
OURS = {"credentials": {}, "policy": {}, "archive": {}}
FAILED, CRASHED, PAUSED = StateType.FAILED, StateType.CRASHED, StateType.PAUSED


class Server:
    """Answers with the runs that fit a filter's states, tags and time."""

    def __init__(self, *runs):
        self.runs = runs

    def read_flow_runs(self, *, flow_run_filter, offset=0, **_):
        wanted = flow_run_filter
        return [
            run
            for run in self.runs[offset:]
            if (wanted.state is None or run.state.type in wanted.state.type.any_)
            and (wanted.tags is None or set(run.tags) & set(wanted.tags.any_ or ()))
            and (wanted.end_time is None or run.state.timestamp > wanted.end_time.after_)
        ]


def experiment(
    kind=FAILED, *, days=1, tags=(EXPERIMENT_TAG + "e1", ORDER_TAG + "k1"), labels=None, message="no"
):
    at = NOW - timedelta(days=days)
    return FlowRun(
        id=uuid4(),
        flow_id=uuid4(),
        name="c-0",
        created=at,
        parameters={**OURS, "spec": {}},
        state=State(type=kind, timestamp=at, message=message),
        tags=list(tags),
        labels={EXPERIMENT_CODE_LABEL: "EGFR-001", PRICE_LABEL: "43800"} if labels is None else labels,
    )


def campaign(kind=FAILED, *, tags=(CAMPAIGN_TAG + "c1", WAITS_TAG + "g"), labels=None):
    run = experiment(kind, tags=tags, labels=labels or {})
    return run.model_copy(update={"parameters": OURS, "name": "c1"})


def test_it_names_the_experiment_its_price_the_cause_and_the_next_step():
    (problem,) = find_open_orders(Server(experiment(message="ArchiveError: no\nspace")), NOW)
    assert (problem.kind, problem.subject, problem.runs) == (kinds.ORDER_OPEN, "k1", ("c-0",))
    assert problem.text == (
        "run c-0 has failed, and its order, 438.00 USD, is open: experiment EGFR-001 (ArchiveError: no space)"
    )
    assert "same campaign id" in problem.next_step


@pytest.mark.parametrize(
    "runs",
    [
        [experiment()],
        [experiment(CRASHED, days=61)],
        [experiment(days=119)],
        [experiment(tags=[ORDER_TAG + "k1"], labels={})],
        [experiment(days=3, labels={ORDER_OVER_LABEL: "QuoteRejected"}), experiment(days=1)],
        [experiment(message="Overdue: no results")],
        [campaign()],
    ],
)
def test_an_open_order_that_no_run_waits_for_is_one_problem(runs):
    (problem,) = find_open_orders(Server(*runs), NOW)
    assert problem.kind == kinds.ORDER_OPEN


@pytest.mark.parametrize(
    "runs",
    [
        [experiment(tags=[])],  # nothing was ordered
        [experiment(PAUSED)],
        [experiment(StateType.COMPLETED)],
        [experiment(CRASHED)],  # it is scheduled again
        [experiment(labels={ORDER_OVER_LABEL: "ExperimentCanceled"})],
        [experiment(days=2), experiment(PAUSED, days=1)],
        [experiment(days=2), experiment(StateType.COMPLETED, days=1)],
        [experiment(StateType.COMPLETED, days=2), experiment(days=1)],
        [experiment(days=2), experiment(StateType.CANCELLED, days=1)],  # reported as canceled
        [experiment(days=2), experiment(labels={ORDER_OVER_LABEL: "QuoteExpired"}, days=1)],
        [experiment(tags=[ORDER_TAG + "k1", f"{REPLACED_TAG}{uuid4()}"])],
        [experiment(message="The run was paused and never resumed.", days=0)],
        [campaign(tags=[CAMPAIGN_TAG + "c1"])],  # no experiment was started
        [campaign(labels={ORDER_OVER_LABEL: "reported"})],
        [campaign(), campaign(PAUSED)],
    ],
)
def test_an_order_that_is_over_or_waited_for_is_none(runs):
    assert find_open_orders(Server(*runs), NOW) == []


def test_each_order_of_hundreds_is_one_problem():
    runs = [experiment(tags=[ORDER_TAG + str(number)]) for number in range(450)]
    server = Server(*runs)
    pages = []

    def read(*, flow_run_filter, offset=0, **_):
        found = Server.read_flow_runs(server, flow_run_filter=flow_run_filter)
        pages.append(flow_run_filter)
        return found[offset : offset + 200]

    server.read_flow_runs = read
    assert len(find_open_orders(server, NOW)) == 450
    assert all(len(page.tags.any_) <= 200 for page in pages if page.tags)
