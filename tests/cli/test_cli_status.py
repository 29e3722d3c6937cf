"""`prefect-assay status`: what it says of each run, from what the Prefect API holds."""

from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.states import Suspended

from prefect_assay.cli.campaigns import status
from prefect_assay.waiting import WaitsFor

PARAMETERS = {"credentials": {"$ref": str(uuid4())}, "policy": {}, "archive": {}}


class Server:
    """Lists flow runs, page by page; holds no artifacts."""

    def __init__(self, *runs):
        self.runs = list(runs)

    def read_flow_runs(self, *, flow_filter=None, flow_run_filter=None, limit, offset=0, **_):
        tags = set(flow_run_filter.tags.all_) if flow_run_filter else set()
        names = flow_filter.name.any_ if flow_filter else ["campaign"]
        loops = names == ["design-build-test"]
        matching = [
            run for run in self.runs if tags <= set(run.tags) and ("loop_id" in run.parameters) == loops
        ]
        return matching[offset : offset + limit]

    def read_artifacts(self, **_):
        return []


def run(name, *, state=None, tags=(), labels=None, **parameters):
    return FlowRun(
        id=uuid4(),
        flow_id=uuid4(),
        name=name,
        parameters=PARAMETERS | parameters,
        state=state or State(type=StateType.RUNNING, name="Running"),
        tags=list(tags),
        labels=labels or {},
    )


def suspended(key):
    return Suspended(timeout_seconds=60, pause_key=key)


def only(server, which):
    (line,) = status._named(server, which)
    return line


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("quote-k:1", "the quote"),
        ("results-k:1", "the laboratory"),
        ("partial-k:1", "the laboratory, for the remaining results"),
        ("children-campaign-c:1", "its experiments"),
        ("approve-0a1b-500-until-1-0f", "a person's approval in the UI"),
        ("doubt-0a1b-until-1-0f", "a person's answer in the UI about an uncertain payment"),
        ("again-steps-k:1", "its next attempt; see its log"),
        (
            "again-block-wallet=assay-x402-wallet/purse:1",
            "the block assay-x402-wallet/purse, which was deleted",
        ),
        (None, "a person who resumes it"),
        ("9d1c", "a person who resumes it"),
    ],
)
def test_status_says_what_a_suspended_run_waits_for(key, expected):
    waiting = run("c 1/1", state=suspended(key), tags=["assay-group:campaign-c"], spec={})
    assert only(Server(waiting), "c").waits_for == expected


@pytest.mark.parametrize("word", WaitsFor)
def test_every_reason_to_wait_is_described(word):
    waiting = run("c 1/1", state=suspended(f"{word}-k:1"), tags=["assay-group:campaign-c"], spec={})
    assert only(Server(waiting), "c").waits_for != "a person who resumes it"


def test_recent_campaigns_leave_out_flows_of_other_packages():
    others = [run(f"other {n}", campaign_id="x") for n in range(250)]
    for other in others:
        del other.parameters["archive"]
    ours = [run(f"campaign {n}", campaign_id=f"c{n}") for n in range(3)]
    server = Server(*others, *ours)
    assert [line.name for line in status._recent(server, 2)] == ["campaign 0", "campaign 1"]
    assert [line.name for line in status._recent(server, 20)] == ["campaign 0", "campaign 1", "campaign 2"]


def test_loops_are_listed_before_campaigns():
    server = Server(run("campaign", campaign_id="c"), run("loop", loop_id="egfr"))
    assert [(line.name, line.loop_id) for line in status._recent(server, 9)] == [
        ("loop", "egfr"),
        ("campaign", None),
    ]


def test_the_experiment_code_comes_from_the_run_itself():
    tags = ["assay-group:campaign-c", "assay-experiment:e-1"]
    labeled = run("c 1/1", tags=tags, labels={"assay.experiment-code": "LAB-001-001"}, spec={})
    line = only(Server(labeled), "c")
    assert (line.experiment_id, line.experiment_code) == ("e-1", "LAB-001-001")


def test_the_table_shows_the_id_of_an_experiment_whose_code_is_unknown():
    unlabeled = run("c 1/1", tags=["assay-group:campaign-c", "assay-experiment:e-1"], spec={})
    lines = status._named(Server(unlabeled), "c")
    assert [str(cell) for cell in status._table(lines).columns[2].cells] == ["e-1"]
