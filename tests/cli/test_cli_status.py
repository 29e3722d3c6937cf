"""`prefect-assay status`: what it says of each run, from what the Prefect API holds."""

import io
import json
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.states import Cancelled, Completed, Failed, Scheduled, Suspended
from rich.console import Console

from prefect_assay.cli.campaigns import find, known_runs, status
from prefect_assay.errors import NotFound
from prefect_assay.models.open_money import OpenItem, OpenMoney
from prefect_assay.runs.tags import CAMPAIGN_TAG, LOOP_TAG, REPLACED_TAG
from prefect_assay.waiting import WaitsFor

PARAMETERS = {"credentials": {"$ref": str(uuid4())}, "policy": {}, "archive": {}}


class Server:
    """Lists flow runs, page by page; holds no artifacts."""

    def __init__(self, *runs):
        self.runs = list(runs)

    def read_flow_runs(self, *, flow_filter=None, flow_run_filter=None, limit, offset=0, **_):
        tags = set(flow_run_filter.tags.all_) if flow_run_filter else set()
        names = flow_filter.name.any_ if flow_filter else ["campaign"]
        matching = [
            run for run in self.runs if tags <= set(run.tags) and (tags or known_runs._kind(run) in names)
        ]
        return matching[offset : offset + limit]

    def read_flow_run(self, run_id):
        return next(run for run in self.runs if run.id == run_id)

    def read_artifacts(self, **_):
        return []


def run(name, *, state=None, tags=(), labels=None, start_time=None, created=None, **parameters):
    return FlowRun(
        start_time=start_time,
        created=created,
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
    (line,) = known_runs.named(server, which)
    return line


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("quote-k:1", "the quote"),
        ("results-k:1", "the laboratory"),
        ("partial-k:1", "the laboratory, for the remaining results"),
        ("children-campaign-c:1", "its experiments"),
        ("approve-0a1b-500-until-1-0f", "a person's approval"),
        (
            "doubt-0a1b-until-1-0f",
            "a person's answer about an uncertain payment",
        ),
        ("again-steps-k:1", "its next attempt; see its log"),
        (
            "again-block-wallet=assay-x402-wallet/purse:1",
            "the block assay-x402-wallet/purse, which was deleted or is not valid",
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
    assert [line.name for line in known_runs.recent(server, 2)] == ["campaign 0", "campaign 1"]
    assert [line.name for line in known_runs.recent(server, 20)] == ["campaign 0", "campaign 1", "campaign 2"]


def test_loops_are_listed_before_campaigns():
    server = Server(run("campaign", campaign_id="c"), run("loop", loop_id="egfr"))
    assert [(line.name, line.loop_id) for line in known_runs.recent(server, 9)] == [
        ("loop", "egfr"),
        ("campaign", None),
    ]


def test_the_experiment_code_comes_from_the_run_itself():
    tags = ["assay-group:campaign-c", "assay-experiment:e-1"]
    labeled = run("c 1/1", tags=tags, labels={"assay.experiment-code": "LAB-001-001"}, spec={})
    line = only(Server(labeled), "c")
    assert (line.experiment_id, line.experiment_code) == ("e-1", "LAB-001-001")


def shown(width, *lines):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(status.runs_table(lines))
    return console.export_text()


REASON = (
    "Flow run encountered an exception: InvalidSpec: the experiment specification is not valid, and nothing was ordered (1):\n"
    "  - target: there is no target 'Human EGFR' in the catalog; did you mean 'Human EGFR, extracellular domain'"
)
INVOICE = "https://pay.example.org/i/acct_1Q2w3e/live_YWNjdF8xUTJ3M2U_4r5t6y7u8i9o0p"


def campaign_of_three():
    group = ["assay-group:campaign-round-3"]
    ordered = {
        "assay.experiment-code": "LAB-001-001",
        "assay.price-cents": "87600",
        "assay.eta": "2026-12-02T09:00:00Z",
    }
    asleep = suspended("results-k:1")
    asleep.message = "in the laboratory: in production, results expected 2 Dec 2026"
    began = datetime(2026, 11, 20, 9, tzinfo=UTC)
    return Server(
        run(
            "round-3, 96 designs",
            state=suspended("children-campaign-round-3:1"),
            tags=["assay-campaign:round-3"],
        ),
        run(
            "round-3-0",
            state=asleep,
            tags=[*group, "assay-experiment:e-1"],
            labels=ordered,
            spec={},
            deadline_days=45,
            campaign_id="round-3",
            start_time=began,
            created=began,
        ),
        run(
            "round-3-1",
            state=suspended("results-l:1"),
            tags=[*group, "assay-experiment:e-2"],
            campaign_id="round-3",
            spec={},
            labels={
                "assay.experiment-code": "LAB-001-002",
                "assay.price-cents": "43800",
                "assay.unpaid-invoice": INVOICE,
            },
        ),
        run("round-3-2", state=Failed(message=REASON), tags=group, campaign_id="round-3", spec={}),
    )


@pytest.mark.parametrize("width", [80, 160])
def test_everything_that_is_known_can_be_read_at_any_width(width):
    text = shown(width, *known_runs.named(campaign_of_three(), "round-3"))
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for sentence in (
        "waits for its experiments",
        "waits for the laboratory: in production, results expected 2 Dec 2026",
        "876.00 USD, waits until 4 Jan 2027",
        "438.00 USD",
        "did you mean 'Human EGFR, extracellular domain'",
    ):
        assert sentence in words, text
    below = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2] != " "]
    assert sorted(below) == ["LAB-001-001", "LAB-001-002", "round-3-2"], (
        "experiments are below their campaign"
    )
    sentences = [line[40:].strip() for line in text.splitlines() if line[40:].strip()]
    assert max(map(len, sentences)) > 35, "no sentence is folded into a column of a few letters"


def test_json_has_all_of_it():
    lines = known_runs.named(campaign_of_three(), "round-3")
    first = next(line.as_json() for line in lines if line.experiment_id == "e-1")
    assert (first["price_cents"], first["expected"]) == (87600, "2026-12-02T09:00:00+00:00")
    assert first["deadline"] == "2027-01-04T09:00:00+00:00"
    assert json.loads(json.dumps(first)) == first
    assert next(line for line in lines if line.experiment_id == "e-2").open_invoice == INVOICE
    assert next(line for line in lines if line.ended).message == REASON


def test_a_campaign_is_known_before_its_run_begins():
    """Its tags come with the first execution."""
    scheduled = State(type=StateType.SCHEDULED, name="Scheduled")
    server = Server(run("round-9, 3 designs", state=scheduled, campaign_id="round-9"))
    for which in ("round-9", "round-9, 3 designs"):
        assert only(server, which).waits_for == "a free worker"
    with pytest.raises(NotFound, match="neither a campaign, a loop nor an assay run 'round-8'"):
        known_runs.named(server, "round-8")


def test_a_campaign_and_a_loop_of_one_id_are_both_meant():
    ended = run("campaign", state=Completed(), tags=[f"{CAMPAIGN_TAG}egfr"], campaign_id="egfr")
    waits = run("loop", state=suspended("children-x:1"), tags=[f"{LOOP_TAG}egfr"], loop_id="egfr")
    late = run("late", state=Scheduled(), loop_id="egfr")
    old = run("old", state=Cancelled(name="Replaced"), tags=[f"{REPLACED_TAG}{late.id}"], loop_id="egfr")
    server = Server(ended, waits, late, old)
    for found in (known_runs.named(server, "egfr"), find.with_children(server, "egfr")):
        assert [one.name for one in found] == ["campaign", "loop", "late"]


def test_a_run_that_was_replaced_is_followed_to_the_one_that_goes_on():
    new = run("round-9", state=suspended("children-campaign-round-9:1"), campaign_id="round-9")
    old = run("round-9", state=Cancelled(name="Replaced"), tags=[f"{REPLACED_TAG}{new.id}"])
    server = Server(old, new)
    assert only(server, str(old.id)).flow_run_id == str(new.id)
    shown = {line.flow_run_id: line.ended for line in known_runs.recent(server, 9)}
    assert shown == {str(old.id): True, str(new.id): False}, "--watch ends with the new one"


def test_a_watch_that_is_over_says_what_is_open_and_what_to_do_next(monkeypatch, capsys):
    ended = run("c", state=Completed(message=OUTCOME + "; report: prefect-assay report c"), campaign_id="c")
    monkeypatch.setattr(status, "require_api", lambda: None)
    monkeypatch.setattr(status, "get_client", lambda **_: nullcontext(Server(ended)))
    monkeypatch.setattr(status, "find_open_money", lambda _: OpenMoney(notes=("a note",)))
    status.show_status(str(ended.id), credentials=None, limit=5, watch=True, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert "  Note: a note" in lines
    assert "Report of c: prefect-assay report c" in lines


def test_the_starts_that_a_schedule_has_planned_are_no_runs_yet():
    def start(name, hours):
        begins = datetime.now(UTC) + timedelta(hours=hours)
        made = run(name, state=Scheduled(scheduled_time=begins), loop_id="egfr")
        return made.model_copy(update={"auto_scheduled": True, "expected_start_time": begins})

    server = Server(
        start("on Tuesday", 30), start("on Monday", 6), start("now", -1), run("c", campaign_id="c")
    )
    assert [line.name for line in known_runs.recent(server, 2)] == ["now", "c"]
    assert [line.name for line in known_runs.named(server, "egfr")] == ["now"]


def test_an_experiment_that_was_started_by_itself_is_listed():
    alone = run("solo-0", spec={}, campaign_id="solo")
    of_campaign = run("c-0", spec={}, campaign_id="c", tags=["assay-group:campaign-c"])
    assert [line.name for line in known_runs.recent(Server(alone, of_campaign), 9)] == ["solo-0"]


def test_the_table_shows_the_name_of_a_run_whose_experiment_is_unknown():
    unlabeled = run("c 1/1", tags=["assay-group:campaign-c", "assay-experiment:e-1"], spec={})
    assert "c 1/1" in shown(80, *known_runs.named(Server(unlabeled), "c"))


OUTCOME = "4 of 8 bind, best 21.6 nM (d3); results of 1 of 1 experiment"
COMMAND = (
    "prefect-assay report egfr-round-with-a-long-name-12 --open --archive assay-local-archive/main-of-the-lab"
)
SPENT = "Flow run encountered an exception: ApprovalRejected: experiment 1 was not approved at 1,314.00 USD; nothing was ordered"


def measured(which="egfr-round-with-a-long-name-12"):
    done = Completed(message=f"{OUTCOME}; report: {COMMAND}")
    return run("first", state=done, tags=[f"{CAMPAIGN_TAG}{which}"], campaign_id=which)


def test_a_completed_campaign_tells_its_outcome_and_a_whole_command_for_its_report():
    lines = known_runs.named(Server(measured()), "egfr-round-with-a-long-name-12")
    text = " ".join(shown(80, *lines).split())
    assert OUTCOME in text
    assert "--open" not in text, "a command in a table is folded"
    assert status.whole_lines(lines) == [f"Report of egfr-round-with-a-long-name-12: {COMMAND}"]


def test_a_later_start_that_fails_does_not_hide_the_results():
    mistaken = run(
        "second",
        state=Failed(message="Flow run encountered an exception: InvalidSpec: the campaign id is used"),
        tags=[f"{CAMPAIGN_TAG}c"],
        campaign_id="c",
    )
    lines = known_runs.recent(Server(mistaken, measured("c")), 5)
    text = shown(80, *lines)
    assert [line.split()[:2] for line in text.splitlines() if line.startswith("c ")] == [["c", "Completed"]]
    words = " ".join(text.split())
    assert OUTCOME in words
    assert "another start of it ended Failed: the campaign id is used" in words
    alone = shown(80, *known_runs.recent(Server(mistaken), 5))
    assert "Failed" in alone
    assert "encountered an exception" not in alone


def test_a_rejection_reads_as_a_rejection():
    rejected = run("c 1/1", state=Failed(message=SPENT), campaign_id="c", spec={})
    text = " ".join(shown(80, *known_runs.recent(Server(rejected), 5)).split())
    assert "Rejected" in text
    assert "experiment 1 was not approved at 1,314.00 USD; nothing was ordered" in text
    assert "Failed" not in text
    assert "exception" not in text


def test_what_a_person_is_asked_has_a_command_that_names_the_run():
    asking = run("c", state=suspended("approve-0a1b-500-until-1-0f"), campaign_id="c")
    (line,) = known_runs.recent(Server(asking), 5)
    assert status.whole_lines([line]) == [f"Answer of c: prefect-assay approve {asking.id}  (or reject)"]


def test_a_question_says_until_when_it_can_be_answered_and_not_how_long_results_are_awaited():
    state = suspended("approve-0a1b-500-until-1-0f")
    state.state_details.pause_timeout = datetime(2026, 11, 30, 1, 1, tzinfo=UTC)
    asking = run("c-0", state=state, campaign_id="c", spec={}, start_time=datetime(2026, 11, 27, tzinfo=UTC))
    text = " ".join(shown(80, *known_runs.recent(Server(asking), 5)).split())
    assert "answer it by 2026-11-30 01:01 UTC" in text
    assert "waits until" not in text


def test_open_money_is_said_of_its_campaign():
    lines = known_runs.recent(Server(measured("c"), run("other", campaign_id="d")), 5)
    item = OpenItem(
        kind="to_pay",
        campaign_id="c",
        order_key="k",
        amount_cents=131_400,
        since=datetime(2026, 1, 1, tzinfo=UTC),
    )
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(status.runs_table(lines, OpenMoney(items=(item,))))
    text = " ".join(console.export_text().split())
    assert text.count("open: 1,314.00 USD ordered, not paid") == 1
