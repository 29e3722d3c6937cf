"""What is known of a campaign without asking any run: its log, the ledgers, the plan and the archive are enough."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.campaigns.status import Progress, list_campaigns, view_of
from prefect_assay.errors import ArchiveError
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    Looked,
    ShownExperiment,
    StartedKind,
)
from prefect_assay.orders.ledger.log import Withdrawn
from prefect_assay.orders.stages import Stage
from support.archive.stores import bucket_store
from support.campaign_logs import WrittenCampaign, started


@pytest.fixture(params=["folder", "bucket"])
def store(request, tmp_path):
    if request.param == "folder":
        return LocalStore(tmp_path)
    return bucket_store(request.getfixturevalue("moto_endpoint"))


def read_view(store, prefix, name):
    log = CampaignLog(store, prefix, name, StartedKind.CAMPAIGN)
    log.read()
    return view_of(log)


def test_a_view_holds_stages_amounts_questions_and_runs(store):
    written = WrittenCampaign(store, "team", "c-1")
    written.log.note_run("r-1", "first")
    written.log.note_run("r-2", "second", restarted=True, why="its run was deleted")
    written.order(1)
    written.bill(1, 43_800)
    written.pay(1, 43_800)
    written.deliver(1, "LAB-001-001")
    written.order(2)
    written.bill(2, 87_600)
    written.ask("q-1", 90_000, number=2)

    view = read_view(store, "team", "c-1")

    assert (view.progress, view.planned, view.started_by, view.home) == ("asks", 2, "ada", "home-1")
    assert view.terms.simulated
    first, second = view.experiments
    assert (first.number, first.stage, first.experiment_code) == (1, Stage.MEASURED, "LAB-001-001")
    assert (first.approved_cents, first.invoiced_cents, first.paid_cents) == (50_000, 43_800, 43_800)
    assert (first.results_status, first.location) == (
        "all",
        store.location("team/c-1/LAB-001-001/v001"),
    )
    assert (second.stage, second.experiment_id, second.paid_cents) == (Stage.ASKS, "exp-c-1-2", None)
    assert (view.approved_cents, view.invoiced_cents, view.paid_cents) == (100_000, 131_400, 43_800)
    (question,) = view.questions
    assert (question.question_id, question.revision, question.amount_cents) == ("q-1", 1, 90_000)
    assert question.decisions == ("approve", "reject")
    assert [run.run for run in view.runs] == ["r-1", "r-2"]
    assert (view.restarts, view.run.why) == (1, "its run was deleted")


def test_experiments_that_are_not_ordered_are_in_the_view(store):
    WrittenCampaign(store, "", "c-1")
    view = read_view(store, "", "c-1")
    assert [(one.number, one.stage) for one in view.experiments] == [
        (1, Stage.NOT_ORDERED),
        (2, Stage.NOT_ORDERED),
    ]
    assert view.progress is Progress.OPEN


@pytest.mark.parametrize(("complete", "progress"), [(True, Progress.COMPLETE), (False, Progress.INCOMPLETE)])
def test_the_end_is_the_one_of_the_log(store, complete, progress):
    written = WrittenCampaign(store, "", "c-1")
    written.ask("q-1", 5)
    written.log.finish("1 of 2 measured", complete=complete, report="/archive/report.html")
    view = read_view(store, "", "c-1")
    assert (view.progress, view.outcome, view.report) == (progress, "1 of 2 measured", "/archive/report.html")
    assert view.ended is not None
    assert view.questions == (), "an answer would change nothing any more"
    written.start()
    assert read_view(store, "", "c-1").progress is Progress.ASKS, "another start opens it again"


def test_a_canceled_campaign_says_who_canceled_it(store):
    written = WrittenCampaign(store, "", "c-1")
    written.log.stop("grace", "prefect-assay cancel")
    view = read_view(store, "", "c-1")
    assert (view.progress, view.stopped_by, view.is_over) == (Progress.STOPPED, "grace", True)
    written.log.finish("nothing was ordered", complete=False)
    assert read_view(store, "", "c-1").progress is Progress.STOPPED


def test_the_open_ones_come_from_the_index_and_all_from_the_logs(store):
    for name in ("c-1", "c-2", "c-3"):
        WrittenCampaign(store, "", name)
    done = CampaignLog(store, "", "c-2")
    done.finish("measured", complete=True)
    loop = CampaignLog(store, "", "egfr", StartedKind.LOOP)
    loop.start(started(WrittenCampaign(store, "", "c-3").ledgers, "egfr", StartedKind.LOOP))

    assert [(view.kind, view.name) for view in list_campaigns(store, "", open_only=True)] == [
        ("loop", "egfr"),
        ("campaign", "c-3"),
        ("campaign", "c-1"),
    ]
    names = [view.name for view in list_campaigns(store, "", open_only=False)]
    assert names == ["egfr", "c-3", "c-2", "c-1"], "newest first"


def test_an_index_entry_that_was_left_behind_lists_nothing(store):
    written = WrittenCampaign(store, "", "c-1")
    written.log.finish("measured", complete=True)
    written.log.open_index()  # a kill right before the entry was removed
    assert list_campaigns(store, "", open_only=True) == ()


def test_a_damaged_ledger_is_a_note_and_hides_no_other_order(tmp_path):
    store = LocalStore(tmp_path)
    written = WrittenCampaign(store, "", "c-1")
    written.order(1)
    ledger = written.order(2) and written.ledger(2)
    (tmp_path / ledger._log._build_key(2)).write_text("{")
    view = read_view(store, "", "c-1")
    assert [one.stage for one in view.experiments if one.experiment_id] == [Stage.PAYMENT]
    (note,) = view.notes
    assert "archive verify" in note


def test_a_damaged_log_is_an_error_and_not_a_shorter_list(tmp_path):
    store = LocalStore(tmp_path)
    written = WrittenCampaign(store, "", "c-1")
    written.log.note_run("r-1", "first")
    (tmp_path / written.log._log._build_key(1)).unlink()
    with pytest.raises(ArchiveError, match="is missing"):
        read_view(store, "", "c-1")


def test_a_withdrawn_order_ends_without_a_quote(store):
    written = WrittenCampaign(store, "", "c-1")
    written.order(1, Withdrawn(reason="expired"))
    assert read_view(store, "", "c-1").experiments[0].stage is Stage.NO_QUOTE


def test_views_need_no_flow():
    program = "import sys, prefect_assay.campaigns.status; print([m for m in sys.modules if m == 'prefect_assay.flows'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_last_look_adds_what_no_ledger_knows(store):
    written = WrittenCampaign(store, "", "c-1")
    written.order(1)
    written.pay(1, 43_800)
    written.order(2)
    expected = datetime(2026, 12, 2, tzinfo=UTC)
    shown = ShownExperiment(
        experiment_id="exp-c-1-1",
        experiment_code="LAB-001-001",
        stage=Stage.LABORATORY,
        status="in_production",
        expected=expected,
    )
    canceled = ShownExperiment(experiment_id="exp-c-1-2", stage=Stage.CANCELED, status="canceled")
    keys = written.plan.order_keys
    written.log.append(Looked(read_at=expected, experiments=dict(zip(keys, (shown, canceled), strict=True))))
    view = read_view(store, "", "c-1")
    assert [one.stage for one in view.experiments] == [Stage.LABORATORY, Stage.CANCELED]
    assert (view.experiments[0].experiment_code, view.experiments[0].service_status) == (
        "LAB-001-001",
        "in_production",
    )
    assert view.results_expected_at == expected
    written.deliver(1, "LAB-001-001")
    view = read_view(store, "", "c-1")
    assert (view.experiments[0].stage, view.results_expected_at) == (Stage.MEASURED, None), (
        "the ledger decides"
    )


def test_a_look_at_another_experiment_says_nothing_of_the_order(store):
    written = WrittenCampaign(store, "", "c-1")
    written.order(1)
    shown = ShownExperiment(experiment_id="exp-other", experiment_code="LAB-9", stage=Stage.CANCELED)
    written.log.append(Looked(read_at=datetime.now(UTC), experiments={written.plan.order_keys[0]: shown}))
    first = read_view(store, "", "c-1").experiments[0]
    assert (first.stage, first.experiment_code) == (Stage.PAYMENT, None)
