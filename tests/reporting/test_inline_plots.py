"""Artifacts with inline plots: images beside the table, and notes that cannot become markup."""

from prefect_assay.models.archived import ArchiveRecord
from prefect_assay.models.report import CampaignReport
from prefect_assay.models.spec import Assay, Plan
from prefect_assay.reporting import artifacts
from prefect_assay.reporting.page.images import Image
from prefect_assay.results.row import ArchivedResults, CampaignTable

IMAGE = Image(alt="curves of <b>](x", svg="<svg/>")
SHOWN = "](data:image/svg+xml;base64,PHN2Zy8+)"
PLAN = Plan(campaign_id="c", source="", assay=Assay(), experiments=())
TABLE = CampaignTable(location=None, rows=(), best_kd_M=None)


def shown(monkeypatch, show):
    made = []
    monkeypatch.setattr(artifacts, "create_markdown_artifact", lambda text, **_: made.append(text))
    show()
    (text,) = made
    return text


def test_a_campaign_shows_its_report_and_plots(monkeypatch):
    report = CampaignReport(campaign_id="c", experiments=(), rows=0, table=None, report="archive/report.html")
    text = shown(
        monkeypatch,
        lambda: artifacts.show_campaign(PLAN, report, TABLE, images=[IMAGE], notes=["needs `x` | [y](z)"]),
    )
    assert "Report: `archive/report.html`" in text
    assert SHOWN in text
    assert "<b>" not in text
    assert "- `needs 'x' / [y](z)`" in text


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
    text = shown(monkeypatch, lambda: artifacts.show_results("c-1", kept, images=[IMAGE], notes=["a note"]))
    assert text.index("No results.") < text.index(SHOWN)
    assert "- `a note`" in text
