"""`prefect-assay loop` and the rounds of `prefect-assay status LOOP`, without a server."""

import inspect
import json
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
from prefect.blocks.core import Block
from prefect.client.schemas.objects import DeploymentSchedule, FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Completed, Failed, Suspended
from pydantic import TypeAdapter
from rich.console import Console
from typer.testing import CliRunner

from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.cli.app import app
from prefect_assay.cli.campaigns import cancel, find, known_runs, status
from prefect_assay.cli.loops import schedule as loop_schedule
from prefect_assay.cli.loops import start as loop
from prefect_assay.cli.loops import status as loop_status
from prefect_assay.errors import LoopFailed
from prefect_assay.flows import design_build_test
from prefect_assay.looping import LoopBook, RoundEnded, RoundFixed, designs_address
from prefect_assay.looping.book import PoolFile
from prefect_assay.models.open_money import OpenMoney
from prefect_assay.models.report import LoopReport
from prefect_assay.runs.children import no_deployment
from prefect_assay.runs.tags import CAMPAIGN_TAG, LOOP_TAG

RUNNER = CliRunner()
BLOCKS = ["--credentials", "c", "--policy", "p", "--archive", "a"]


@pytest.fixture
def started(monkeypatch, tmp_path):
    """What the command starts."""
    calls = []

    def start_run(deployment, parameters, *, name):
        assert name == f"loop {parameters['loop_id']}"
        calls.append((deployment, parameters))
        return SimpleNamespace(id=uuid4(), name="quiet-otter")

    blocks = {
        "credentials": AssayCredentials(base_url="https://lab.example", token="t"),
        "policy": SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1),
        "archive": LocalArchive(root=str(tmp_path)),
    }
    monkeypatch.setattr(loop, "require_api", lambda: None)
    monkeypatch.setattr(loop, "load_blocks", lambda _: blocks)
    monkeypatch.setattr(loop, "offer", lambda *_, **__: None)
    monkeypatch.setattr("prefect_assay.runs.children.start_run", start_run)
    return calls


def test_the_options_become_parameters_of_the_deployment(started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = [
        "--designer",
        "m:f",
        "--designs",
        "24",
        "--rounds",
        "3",
        "--goal-kd-nm",
        "5",
        "--budget-cents",
        "1000",
    ]
    options += [
        "--select",
        "top_score",
        "--seed",
        "7",
        "--score-column",
        "magic",
        "--lower-is-better",
        "--flat-rounds",
        "2",
        "--ask",
    ]
    done = RUNNER.invoke(app, ["loop", "egfr", "designs", *BLOCKS, *options, "--target", "t", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["loop_id"] == "egfr"
    ((deployment, given),) = started
    assert deployment == "design-build-test/assay-design-build-test"
    assert given.keys() <= inspect.signature(design_build_test.fn).parameters.keys()
    assert given["source"] == str(tmp_path / "designs")
    expected = {
        "designer": "m:f",
        "designs_per_round": 24,
        "max_rounds": 3,
        "goal_kd_nM": 5.0,
        "budget_cents": 1000,
    }
    assert expected.items() <= given.items()
    assert (given["ask_each_round"], given["stop_after_flat_rounds"], given["wait_days"]) == (True, 2, 30)
    chosen = given["selection"]
    assert (chosen.policy, chosen.seed, chosen.score_column) == ("top_score", 7, "magic")
    assert chosen.higher_is_better is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["egfr", "--target", "t"], "a loop needs designs"),
        (["no good", "designs", "--target", "t"], "not usable"),
        (["egfr", "designs"], "--target"),
        (["egfr", "--designer", "m:f", "--wait-days", "3", "--target", "t"], "--wait-days would be ignored"),
        (
            ["egfr", "designs", "--select", "gp", "--score-column", "magic", "--target", "t"],
            "--score-column: the title 'magic' does not say whether a higher or a lower score is better",
        ),
        (["egfr", "designs", "--lower-is-better", "--target", "t"], "--lower-is-better would be ignored"),
    ],
)
def test_what_cannot_work_starts_nothing(started, arguments, words):
    done = RUNNER.invoke(app, ["loop", *arguments, *BLOCKS])
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())
    assert started == []


class Deployments:
    """The schedules of the loop's deployment, as Prefect keeps them."""

    id = uuid4()

    def __init__(self):
        self.schedules = []

    @contextmanager
    def __call__(self, **_):
        yield self

    def read_deployment_by_name(self, name):
        assert name == loop_schedule.DEPLOYMENT
        return self

    def read_deployment_schedules(self, deployment_id):
        assert deployment_id == self.id
        return self.schedules

    def create_deployment_schedules(self, deployment_id, made):
        self.schedules += [
            DeploymentSchedule(
                id=uuid4(), deployment_id=deployment_id, schedule=one.schedule, slug=one.slug, active=True
            )
            for one in made
        ]

    def update_deployment_schedule(self, deployment_id, schedule_id, *, active, schedule=None, **_):
        assert deployment_id == self.id
        (found,) = [one for one in self.schedules if one.id == schedule_id]
        found.active = active
        found.schedule = schedule or found.schedule

    def read_flow_run(self, run_id):
        raise ObjectNotFound(LookupError(run_id))

    def read_flow_runs(self, **_):
        return []


@pytest.fixture
def deployments(monkeypatch):
    made = Deployments()
    monkeypatch.setattr(loop_schedule, "get_client", made)
    monkeypatch.setattr(loop_schedule, "as_parameter", str)  # no block is saved here
    monkeypatch.setattr(cancel, "get_client", made)
    monkeypatch.setattr(cancel, "require_api", lambda: None)
    monkeypatch.setattr(cancel, "find_open_money", lambda _: OpenMoney())
    return made


def schedule_it(*options):
    arguments = ["loop", "egfr", "designs", *BLOCKS, "--target", "t", "--cron", "0 6 * * 1-5", *options]
    return RUNNER.invoke(app, arguments)


def test_a_loop_that_is_not_started_is_not_scheduled(started, deployments, monkeypatch):
    def refused(deployment, *_, **__):
        raise no_deployment(deployment)

    monkeypatch.setattr("prefect_assay.runs.children.start_run", refused)
    done = schedule_it()
    assert (done.exit_code, "prefect-assay deploy" in done.stderr) == (1, True)
    assert deployments.schedules == []


def test_a_loop_that_is_started_and_not_scheduled_says_so(started, deployments, monkeypatch):
    def away(*_):
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(deployments, "create_deployment_schedules", away)
    done = schedule_it()
    assert (done.exit_code, len(started)) == (5, 1)
    assert "does not answer" in done.stderr
    assert "The loop egfr was started" in done.stderr
    assert "but not scheduled. Repeat the command" in done.stderr


def test_a_schedule_runs_in_a_time_zone_that_is_shown(started, deployments):
    done = schedule_it("--timezone", "Europe/Berlin", "--json")
    (kept,) = deployments.schedules
    assert (kept.slug, kept.schedule.timezone) == ("egfr", "Europe/Berlin")
    shown = json.loads(done.stdout)
    first = datetime.fromisoformat(shown["next_start"])
    assert (first.hour, shown["timezone"], first > datetime.now(UTC)) == (6, "Europe/Berlin", True)
    assert "06:00 in the time zone Europe/Berlin" in schedule_it("--timezone", "Europe/Berlin").stderr


@pytest.mark.parametrize(
    ("zone", "named"), [(":America/New_York", "America/New_York"), ("XYZ5", "UTC"), ("posix/UTC", "UTC")]
)
def test_the_time_zone_is_this_machines_if_it_has_a_name(started, deployments, monkeypatch, zone, named):
    monkeypatch.setenv("TZ", zone)
    assert json.loads(schedule_it("--json").stdout)["timezone"] == named


@pytest.mark.parametrize(
    ("options", "rounds", "days"),
    [
        ([], 10, 30),
        (["--cron", "0 6 * * *"], 1000, 0),
        (["--cron", "0 6 * * *", "--rounds", "7", "--wait-days", "2"], 7, 2),
        (["--cron", "0 6 * * *", "--designer", "m:f"], 10, 0),
    ],
)
def test_a_scheduled_loop_of_files_takes_what_has_come_and_has_no_tenth_round_as_its_last(
    started, deployments, options, rounds, days
):
    assert RUNNER.invoke(app, ["loop", "egfr", "d", *BLOCKS, "--target", "t", *options]).exit_code == 0
    ((_, given),) = started
    assert (given["max_rounds"], given["wait_days"]) == (rounds, days)
    TypeAdapter(design_build_test.fn.__annotations__["max_rounds"]).validate_python(rounds)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--timezone", "Berlin"], "no IANA time zone"),
        (["--cron", "every morning"], "no cron expression"),
        (["--cron", "0 6 30 2 *"], "no cron expression"),
    ],
)
def test_a_schedule_that_cannot_be_kept_starts_nothing(started, deployments, options, words):
    done = schedule_it(*options)
    assert (done.exit_code, words in done.stderr) == (2, True)
    assert (started, deployments.schedules) == ([], [])


def test_canceling_a_loop_ends_its_schedule_also_when_no_run_is_open(started, deployments, monkeypatch):
    schedule_it()
    (kept,) = deployments.schedules
    assert "there is no terminal" in RUNNER.invoke(app, ["cancel", "egfr"]).stderr
    assert kept.active
    done = RUNNER.invoke(app, ["cancel", "egfr", "--yes"])
    assert (done.exit_code, kept.active) == (0, False), done.output
    assert "The schedule of the loop egfr is deactivated" in " ".join(done.stdout.split())
    schedule_it()
    assert kept.active, "the same loop on a schedule again"
    ended = FlowRun(id=uuid4(), flow_id=uuid4(), name="loop egfr", parameters={}, state=Completed())
    monkeypatch.setattr(cancel, "with_children", lambda *_: [ended])
    done = RUNNER.invoke(app, ["cancel", "egfr", "--yes", "--json"])
    shown = {"experiments": [], "paid_cents": 0, "schedule_deactivated": True, "schedules_active": []}
    printed = json.loads(done.stdout)
    assert printed.pop("open_money")["items"] == []
    assert printed == shown
    assert not kept.active
    assert "nothing to cancel" in RUNNER.invoke(app, ["cancel", "egfr", "--yes"]).stderr


def test_a_late_start_of_the_schedule_is_canceled_with_the_loop():
    """It has no tags yet, and deactivating the schedule leaves it."""

    class Listing(Deployments):
        def read_flow_runs(self, *, flow_filter=None, flow_run_filter=None, **_):
            if flow_filter is None:
                return [begun] if LOOP_TAG + "egfr" in flow_run_filter.tags.all_ else []
            return [late, begun] if flow_filter.name.any_ == ["design-build-test"] else []

    parameters = {"loop_id": "egfr", "credentials": {}, "policy": {}, "archive": {}}
    begun, late = (
        FlowRun(id=uuid4(), flow_id=uuid4(), name=name, parameters=parameters, start_time=at)
        for name, at in (("begun", datetime.now(UTC)), ("late", None))
    )
    assert [run.name for run in find.parents_of(Listing(), "egfr")] == ["begun", "late"]


@pytest.mark.parametrize("of_loop", [{"loop_id": "egfr"}, {"designs": designs_address("egfr", 2)}])
def test_canceling_one_run_of_a_loop_names_the_schedule_that_stays(
    started, deployments, monkeypatch, of_loop
):
    schedule_it()
    parameters = of_loop | {"credentials": {}, "policy": {}, "archive": {}}
    run = FlowRun(id=uuid4(), flow_id=uuid4(), name="a run", parameters=parameters, state=Cancelled())
    monkeypatch.setattr(cancel, "with_children", lambda *_: [run])
    monkeypatch.setattr(cancel, "parents_of", lambda *_: [])
    done = RUNNER.invoke(app, ["cancel", str(run.id), "--yes"])
    assert "stays active; end it: prefect-assay cancel egfr" in " ".join(done.stdout.split()), done.output
    done = RUNNER.invoke(app, ["cancel", str(run.id), "--yes", "--json"])
    assert json.loads(done.stdout)["schedules_active"] == ["egfr"]
    assert deployments.schedules[0].active


def loop_run(archive, state, **changes):
    parameters = {
        "loop_id": "egfr",
        "assay": {"experiment_type": "affinity"},
        "archive": {"$ref": {"block_document_id": str(uuid4())}},
        "credentials": {},
        "policy": {},
    }
    return FlowRun(id=uuid4(), flow_id=uuid4(), name="otter", parameters=parameters, state=state, **changes)


class Server:
    def __init__(self, *runs):
        self.runs = runs

    def read_flow_run(self, run_id):
        return next(run for run in self.runs if run.id == run_id)

    def read_flow_runs(self, *, flow_run_filter=None, **_):
        tags = flow_run_filter.tags.all_ if flow_run_filter else ["of a run that has begun"]
        return [run for run in self.runs if set(tags) <= set(run.tags)]


@pytest.fixture
def archive(tmp_path, monkeypatch):
    made = LocalArchive(root=str(tmp_path / "archive"), prefix="lab")
    monkeypatch.setattr(Block, "load_from_ref", lambda _: made)
    book = LoopBook(made.get_store(), made.prefix, "egfr")
    pool = PoolFile(name="f", key="POOLS/f", sha256="0", size=1, designs=9)
    for number in (1, 2):
        campaign_id = f"egfr-round-00{number}"
        book.fix(
            RoundFixed(
                loop_id="egfr",
                number=number,
                name=f"r{number}",
                campaign_id=campaign_id,
                origin="f",
                pool=pool,
            )
        )
    book.end(RoundEnded(number=1, table="/t.csv", rows=9, best=2e-9, best_kd_M=2e-9, spent_cents=1_234_50))
    return made


def test_status_shows_rounds_best_spending_and_what_is_waited_for(archive):
    waiting = loop_run(
        archive, Suspended(timeout_seconds=9, pause_key="children-x:1"), tags=[LOOP_TAG + "egfr"]
    )
    campaign = FlowRun(
        id=uuid4(), flow_id=uuid4(), name="second", parameters={}, tags=[CAMPAIGN_TAG + "egfr-round-002"]
    )
    server = Server(waiting, campaign)
    (line,) = known_runs.named(server, "egfr")
    assert (line.kind, line.loop_id, line.waits_for) == ("design-build-test", "egfr", "its round's campaign")
    report = loop_status.loop_rounds(server, [line.flow_run_id])
    assert [(r.number, r.best) for r in report.rounds] == [(1, "K_D 2 nM"), (2, None)]
    console = Console(width=200, record=True, file=sys.stderr)
    console.print(status.runs_table([line]))
    console.print(loop_status.rounds_table(report))
    text = console.export_text()
    for shown in ("loop egfr", "K_D 2 nM", "1,234.50 USD", "not measured yet", "/t.csv"):
        assert shown in text


def test_an_ended_loop_says_why_it_stopped(archive):
    run = loop_run(archive, Completed(message="the loop has had its 2 rounds"))
    assert loop_status.loop_rounds(Server(run), [str(run.id)]).stopped == "the loop has had its 2 rounds"
    assert loop_status.loop_rounds(Server(), []) is None


@pytest.mark.parametrize(
    ("word", "words"), [("designs-0a-until-1", "design file"), ("designer-x", "designer's run")]
)
def test_status_names_the_designs_that_a_loop_waits_for(archive, word, words):
    run = loop_run(archive, Suspended(timeout_seconds=9, pause_key=f"{word}:1"))
    assert words in known_runs.line_of(run).waits_for


@pytest.mark.parametrize(
    ("options", "said"), [(["--json"], '"rounds": []'), ([], "Failed: round 1 gave nothing")]
)
def test_a_loop_that_fails_here_prints_its_report(started, tmp_path, monkeypatch, options, said):
    report = LoopReport(loop_id="egfr", rounds=(), stopped="round 1 gave nothing", stop="failed")
    failed = Failed(data=LoopFailed("round 1 gave nothing", report=report), message="LoopFailed")
    monkeypatch.setattr("prefect_assay.flows.design_build_test", lambda **_: failed)
    monkeypatch.setattr(loop, "start_temporary_server", lambda: None)
    done = RUNNER.invoke(
        app, ["loop", "egfr", str(tmp_path), "--target", "EGFR", *BLOCKS, "--here", *options]
    )
    assert (done.exit_code, said in done.stdout) == (1, True)
