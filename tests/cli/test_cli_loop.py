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
from prefect.client.schemas.objects import DeploymentSchedule
from prefect.exceptions import ObjectNotFound
from prefect.states import Failed
from rich.console import Console
from typer.testing import CliRunner

from prefect_assay.blocks import LocalArchive
from prefect_assay.blocks.deployment_runs import make_missing_deployment_error
from prefect_assay.campaigns.flow_results import LoopReport
from prefect_assay.campaigns.loops.loop_log import LoopLog, PoolFile, RoundEnded, RoundFixed
from prefect_assay.cli.app import app
from prefect_assay.cli.campaigns import cancel
from prefect_assay.cli.campaigns.find import Archives
from prefect_assay.cli.loops import schedule as loop_schedule
from prefect_assay.cli.loops import start as loop
from prefect_assay.cli.loops import status as loop_status
from prefect_assay.designs.options import LoopOptions
from prefect_assay.errors import ArchiveUnavailable, LoopFailed, NotFound
from prefect_assay.flows import design_build_test
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    Started,
    StartedKind,
    Terms,
)
from prefect_assay.orders.ledger.open_money import OpenMoney
from support.accounts import make_account

RUNNER = CliRunner()


@pytest.fixture
def started(monkeypatch, tmp_path):
    """What the command starts."""
    calls = []

    def start_run(deployment, parameters, *, name, tags):
        assert tags == ()
        assert name == f"loop {parameters['loop_id']}"
        calls.append((deployment, parameters))
        return SimpleNamespace(id=uuid4(), name="quiet-otter")

    monkeypatch.setattr(loop, "require_api", lambda: None)
    monkeypatch.setattr(loop, "load_account", lambda _: make_account(archive=tmp_path))
    monkeypatch.setattr(loop, "show_rounds_and_confirm", lambda *_, **__: None)
    monkeypatch.setattr("prefect_assay.blocks.deployment_runs.start_run", start_run)
    return calls


def test_the_options_become_parameters_of_the_deployment(started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = [
        "--designer",
        "m:f",
        "--designs-per-round",
        "24",
        "--max-rounds",
        "3",
        "--goal-kd-nm",
        "5",
        "--budget-usd",
        "1000.50",
    ]
    options += [
        "--policy",
        "top_score",
        "--seed",
        "7",
        "--score-column",
        "magic",
        "--lower-is-better",
        "--stop-after-flat-rounds",
        "2",
        "--chain",
        "A",
    ]
    done = RUNNER.invoke(app, ["loop", "egfr", "designs", *options, "--target", "t", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["loop_id"] == "egfr"
    ((deployment, parameters),) = started
    assert deployment == "design-build-test/assay-design-build-test"
    assert parameters.keys() <= inspect.signature(design_build_test.fn).parameters.keys()
    assert parameters["source"] == str(tmp_path / "designs")
    assert (parameters["designer"], parameters["budget_usd"]) == ("m:f", 1000.5)
    rounds = parameters["rounds"]
    assert (rounds.designs_per_round, rounds.max_rounds, rounds.goal_kd_nM) == (24, 3, 5.0)
    assert (rounds.stop_after_flat_rounds, rounds.wait_days) == (2, 30)
    assert parameters["options"].reading.chain == "A"
    chosen = rounds.selection
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
            ["egfr", "designs", "--policy", "top_score", "--score-column", "magic", "--target", "t"],
            "--score-column: the title 'magic' does not say whether a higher or a lower score is better",
        ),
        (
            ["egfr", "designs", "--lower-is-better", "--target", "t"],
            "--higher-is-better has no effect without a --score-column",
        ),
        (["egfr", "designs", "--seed", "3", "--target", "t"], "--seed would be ignored"),
    ],
)
def test_what_cannot_work_starts_nothing(started, arguments, words):
    done = RUNNER.invoke(app, ["loop", *arguments])
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
        (entry,) = [one for one in self.schedules if one.id == schedule_id]
        entry.active = active
        entry.schedule = schedule or entry.schedule

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
    monkeypatch.setattr(cancel, "read_open_money", lambda _: OpenMoney())
    return made


def schedule_it(*options):
    arguments = ["loop", "egfr", "designs", "--target", "t", "--cron", "0 6 * * 1-5", *options]
    return RUNNER.invoke(app, arguments)


def test_a_loop_that_is_not_started_is_not_scheduled(started, deployments, monkeypatch):
    def refused(deployment, *_, **__):
        raise make_missing_deployment_error(deployment)

    monkeypatch.setattr("prefect_assay.blocks.deployment_runs.start_run", refused)
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
        (["--cron", "0 6 * * *", "--max-rounds", "7", "--wait-days", "2"], 7, 2),
        (["--cron", "0 6 * * *", "--designer", "m:f"], 10, 0),
    ],
)
def test_a_scheduled_loop_of_files_takes_what_has_come_and_has_no_tenth_round_as_its_last(
    started, deployments, options, rounds, days
):
    assert RUNNER.invoke(app, ["loop", "egfr", "d", "--target", "t", *options]).exit_code == 0
    ((_, parameters),) = started
    assert (parameters["rounds"].max_rounds, parameters["rounds"].wait_days) == (rounds, days)
    LoopOptions.model_validate(parameters["rounds"].model_dump())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--timezone", "Berlin"], "not an IANA time zone"),
        (["--cron", "every morning"], "not a cron expression"),
        (["--cron", "0 6 30 2 *"], "not a cron expression"),
    ],
)
def test_a_schedule_that_cannot_be_kept_starts_nothing(started, deployments, options, words):
    done = schedule_it(*options)
    assert (done.exit_code, words in done.stderr) == (2, True)
    assert (started, deployments.schedules) == ([], [])


def test_canceling_a_loop_ends_its_schedule_also_before_its_first_start(started, deployments, monkeypatch):
    def find_nothing(*_):
        raise NotFound("no archive has a loop 'egfr'")

    monkeypatch.setattr(cancel, "open_archives", lambda *_: Archives([]))
    monkeypatch.setattr(cancel, "find_named", find_nothing)
    schedule_it()
    (kept,) = deployments.schedules
    assert "there is no terminal" in RUNNER.invoke(app, ["cancel", "egfr"]).stderr
    assert kept.active
    done = RUNNER.invoke(app, ["cancel", "egfr", "--yes"])
    assert (done.exit_code, kept.active) == (0, False), done.output
    assert "The schedule of the loop egfr is deactivated" in " ".join(done.stdout.split())
    schedule_it()
    assert kept.active, "the same loop on a schedule again"


TERMS = Terms(
    service="https://lab.example",
    organisation="o",
    simulated=True,
    archive_id="a",
    payment_method="async_invoice",
    per_experiment_cents=1,
    per_campaign_cents=1,
    accept_quotes=False,
    deadline_days=45,
)


def log_of(archive, name, what=StartedKind.CAMPAIGN, **parameters):
    log = CampaignLog(archive.get_store(), archive.prefix, name, what)
    log.start(Started(what=what, name=name, terms=TERMS, parameters=parameters))
    return log


@pytest.fixture
def archive(tmp_path):
    made = LocalArchive(root=str(tmp_path / "archive"), prefix="lab")
    loop_log = LoopLog(made.get_store(), made.prefix, "egfr")
    pool = PoolFile(name="f", key="POOLS/f", sha256="0", size=1, designs=9)
    for number in (1, 2):
        campaign_id = f"egfr-round-00{number}"
        loop_log.fix(
            RoundFixed(
                loop_id="egfr",
                number=number,
                name=f"r{number}",
                campaign_id=campaign_id,
                origin="f",
                pool=pool,
            )
        )
    loop_log.end(
        RoundEnded(number=1, table="/t.csv", rows=9, best=2e-9, best_kd_M=2e-9, spent_cents=1_234_50)
    )
    return made


def test_status_shows_rounds_best_and_spending_from_the_loops_log(archive):
    log = log_of(archive, "egfr", StartedKind.LOOP, assay={"experiment_type": "affinity"})
    report = loop_status.read_rounds(archive, log)
    assert [(r.number, r.best) for r in report.rounds] == [(1, "K_D 2.00 nM"), (2, None)]
    assert report.stop_message == "still running"
    console = Console(width=200, record=True, file=sys.stderr)
    console.print(loop_status.rounds_table(report))
    text = console.export_text()
    for shown in ("K_D 2.00 nM", "1,234.50 USD", "not measured yet", "/t.csv"):
        assert shown in text


def test_status_counts_what_a_running_round_has_ordered(archive):
    log = log_of(archive, "egfr", StartedKind.LOOP, assay={"experiment_type": "affinity"})
    ledgers = Ledgers.open(archive.get_store(), archive.prefix, TERMS.service, "org")
    ledgers.budget.reserve("key", "egfr-round-002", 43_800)
    report = loop_status.read_rounds(archive, log)
    assert [one.spent_cents for one in report.rounds] == [123_450, 43_800]
    assert report.spent_cents == 167_250


def test_status_says_why_a_loop_has_ended(archive):
    log = log_of(archive, "egfr", StartedKind.LOOP)
    log.finish("the loop has had its 2 rounds", complete=True)
    assert loop_status.read_rounds(archive, log).stop_message == "the loop has had its 2 rounds"
    log = log_of(archive, "other", StartedKind.LOOP)
    log.stop("Ada", "the command")
    assert loop_status.read_rounds(archive, log).stop_message == "canceled by Ada"


@pytest.fixture
def kept(started, archive, monkeypatch):
    """The archive of the command's account is the one of the loop."""
    monkeypatch.setattr(loop, "load_account", lambda _: make_account(archive=archive))
    return archive


def start_it(*options):
    return RUNNER.invoke(app, ["loop", "egfr", "designs", "--target", "t", *options])


def test_a_canceled_loop_is_not_started_before_a_person_reopens_it(started, kept):
    log = log_of(kept, "egfr", StartedKind.LOOP)
    log.stop("Ada", "the command")
    done = start_it()
    assert done.exit_code == 2
    refused = " ".join(done.stderr.split())
    assert "by Ada (the command)" in refused
    assert "start the loop by command with --reopen" in refused
    assert started == []
    assert start_it("--reopen").exit_code == 0
    assert log.read().stopped is None
    assert len(started) == 1


def test_reopening_a_loop_reopens_the_round_that_was_canceled_by_itself(started, kept):
    log_of(kept, "egfr", StartedKind.LOOP).finish("round 2 was canceled", complete=False)
    campaign = log_of(kept, "egfr-round-002")
    campaign.stop("Ada", "the command")
    assert start_it("--reopen").exit_code == 0
    assert campaign.read().stopped is None


def test_reopening_a_loop_leaves_a_campaign_of_its_id_canceled(started, kept):
    loop, campaign = log_of(kept, "egfr", StartedKind.LOOP), log_of(kept, "egfr")
    for log in (loop, campaign):
        log.stop("Ada", "the command")
    assert start_it("--reopen").exit_code == 0
    assert loop.read().stopped is None
    assert campaign.read().stopped is not None


def test_an_archive_that_cannot_be_read_here_is_left_to_the_run(started, kept, monkeypatch):
    def away(_):
        raise ArchiveUnavailable("503")

    monkeypatch.setattr(CampaignLog, "read", away)
    assert start_it().exit_code == 0
    assert len(started) == 1
    assert start_it("--reopen").exit_code != 0
    assert len(started) == 1


@pytest.mark.parametrize(
    ("options", "expected"), [(["--json"], '"rounds": []'), ([], "Failed: round 1 gave nothing")]
)
def test_a_loop_that_fails_here_prints_its_report(started, tmp_path, monkeypatch, options, expected):
    report = LoopReport(loop_id="egfr", rounds=(), stop_message="round 1 gave nothing", stop_reason="failed")
    failed = Failed(data=LoopFailed("round 1 gave nothing", report=report), message="LoopFailed")
    monkeypatch.setattr("prefect_assay.flows.design_build_test", lambda **_: failed)
    monkeypatch.setattr(loop, "start_temporary_server", lambda: None)
    done = RUNNER.invoke(
        app, ["loop", "egfr", str(tmp_path), "--target", "EGFR", "--here", "--budget-usd", "1", *options]
    )
    assert (done.exit_code, expected in done.stdout) == (1, True)
