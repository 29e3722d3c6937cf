"""Artifacts with inline plots: images beside the table, and notes that cannot become markup."""

from prefect_assay.analysis.report.images import Image
from prefect_assay.analysis.results import DesignSummary
from prefect_assay.analysis.results.row import ArchivedResults
from prefect_assay.archive.archived import ArchiveRecord
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.campaigns import artifacts
from prefect_assay.campaigns.flow_results import (
    CampaignExperiment,
    CampaignReport,
    LoopReport,
    RoundReport,
)
from prefect_assay.service.models.spec import Assay

ACCOUNT = "account main (simulated)"
IMAGE = Image(alt="curves of <b>](x", svg="<svg/>")
SHOWN = "](data:image/svg+xml,%3Csvg/%3E)"
PLAN = Plan(campaign_id="c", source="", assay=Assay(), experiments=())
DESIGNS = (DesignSummary(name="d", experiment_code="E-1", outcome="measured", kd_M=1e-9, binding="true"),)


def shown(monkeypatch, show):
    made = []
    monkeypatch.setattr(artifacts, "create_markdown_artifact", lambda text, **_: made.append(text))
    show()
    (text,) = made
    return text


def test_a_campaign_shows_its_report_and_plots(monkeypatch):
    report = CampaignReport(campaign_id="c", experiments=(), rows=0, table=None, page="archive/report.html")
    text = shown(
        monkeypatch,
        lambda: artifacts.show_campaign(
            PLAN,
            report,
            DESIGNS,
            ACCOUNT,
            decision=[("Result", "a|b <i>")],
            opening="`prefect-assay report c --open`",
            images=[IMAGE],
            notes=["needs `x` | [y](z)"],
        ),
    )
    assert "Report: `prefect-assay report c --open`" in text
    assert "`archive/report.html`" in text
    assert "bind, best" not in text, "the summary says it"
    assert f"- `{ACCOUNT}`" in text
    assert "- **Result**: a\\|b &lt;i>" in text
    assert "| 1 | d | 1.00 nM |" in text
    assert SHOWN in text
    assert "<b>" not in text
    assert "- `needs 'x' / [y](z)`" in text


def test_a_campaign_without_a_summary_begins_with_its_outcome(monkeypatch):
    report = CampaignReport(campaign_id="c", experiments=(), rows=0, table=None)
    text = shown(monkeypatch, lambda: artifacts.show_campaign(PLAN, report, DESIGNS, ACCOUNT))
    assert "**1 of 1 bind; best 1.00 nM (d).**" in text


def test_an_experiment_shows_its_plots_below_the_table(monkeypatch):
    record = ArchiveRecord(
        location="archive/E-1/v001",
        experiment_code="E-1",
        campaign_id="c",
        version=1,
        manifest_sha256="0",
        files=1,
        total_bytes=1,
        unchanged=False,
    )
    kept = ArchivedResults(record=record, rows=())
    text = shown(
        monkeypatch, lambda: artifacts.show_results("c-1", kept, ACCOUNT, images=[IMAGE], notes=["a note"])
    )
    assert text.index("No results.") < text.index(SHOWN)
    assert "- `a note`" in text
    assert f"- `{ACCOUNT}`" in text


ODD = "<img src=x> |\n\n# [y](http://z)"
PLAIN = "`<img src=x> / # [y](http://z)`"


def test_reasons_and_warnings_of_others_are_no_markup(monkeypatch):
    line = CampaignExperiment(order_key="k", batch_index=0, problem=ODD)
    report = CampaignReport(campaign_id="c", experiments=(line,), rows=0, table=None)
    text = shown(monkeypatch, lambda: artifacts.show_campaign(PLAN, report, (), ACCOUNT))
    assert f"\n- {PLAIN}\n" in text

    of_round = RoundReport(name="r", campaign_id="c", table=None, best_kd_M=None, problem=ODD)
    loop = LoopReport(loop_id="l", rounds=(of_round,), stop_message=ODD)
    text = shown(monkeypatch, lambda: artifacts.show_loop(loop, ACCOUNT))
    assert f"Stopped: {PLAIN}." in text
    assert f"`{ACCOUNT}`" in text
    assert f"| {PLAIN} |" in text
