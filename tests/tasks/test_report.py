"""The report at the end of a campaign: archived once, and no failure of it reaches the run."""

import logging
from datetime import UTC, datetime

import pytest
from prefect.logging import disable_run_logger

from prefect_assay.analysis.results import to_csv
from prefect_assay.analysis.results.row import Level, Outcome, ResultRow
from prefect_assay.archive import Document, LocalStore, archive_version, read_latest
from prefect_assay.blocks import LocalArchive, S3Archive
from prefect_assay.tasks import report

ROWS = (
    ResultRow(
        experiment_code="LAB-001-001",
        result_id="r1",
        result_type="affinity",
        level=Level.SUMMARY,
        name="a",
        outcome=Outcome.MEASURED,
        kd_M=3e-9,
    ),
    ResultRow(
        experiment_code="LAB-001-001",
        result_id="r1",
        result_type="affinity",
        level=Level.SUMMARY,
        name="b",
        outcome=Outcome.NO_EXPRESSION,
    ),
)


@pytest.fixture
def archive(tmp_path):
    """One experiment, with its table alone."""
    archive_version(
        LocalStore(tmp_path),
        "",
        campaign_id="c",
        experiment_id="e1",
        experiment_code="LAB-001-001",
        results_status="all",
        documents=[Document(path="results.csv", content_type="text/csv", body=to_csv(ROWS))],
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    with disable_run_logger():
        yield LocalArchive(root=str(tmp_path))


def test_the_report_is_archived_once(archive, tmp_path):
    first = report.report_campaign.fn(archive, "c")
    again = report.report_campaign.fn(archive, "c")
    assert (first.record.unchanged, again.record.unchanged) == (False, True)
    assert again.model_copy(update={"record": first.record}) == first
    assert first.location == f"{tmp_path}/c/REPORT/v001/report.html"
    assert first.notes == ()
    assert [image.alt for image in first.images] == ["overview of all designs", "ranked affinities"]
    kept = read_latest(LocalStore(tmp_path), "", "c", "REPORT")
    assert kept.manifest.results_status == "all"
    assert kept.manifest.version == 1
    assert {"summary.csv", "plots/ranked.svg"} <= kept.files.keys()
    assert b"did not express" in kept.read("report.html")


@pytest.mark.parametrize("error", [RuntimeError("no such glyph"), MemoryError(), OSError(28, "disk full")])
def test_no_error_of_a_report_is_raised(archive, monkeypatch, error):
    def fail(*_given):
        raise error

    monkeypatch.setattr(report, "make_report", fail)
    monkeypatch.setattr(report, "experiment_images", fail)
    made = report.report_campaign.fn(archive, "c")
    assert made.location is None
    (line,) = made.notes
    assert line.startswith("The report of campaign c could not be made: ")
    assert "`prefect-assay report c` makes it again" in line
    plots = report.plot_results.fn(archive, "c", "LAB-001-001")
    assert plots.images == ()
    assert "The plots of experiment LAB-001-001 could not be made" in plots.notes[0]


def test_a_damaged_archive_is_a_line(archive, tmp_path):
    table = tmp_path / "c/LAB-001-001/v001/results.csv"
    table.chmod(0o644)
    table.write_bytes(table.read_bytes().replace(b"3e-09", b"3e-12"))
    (line,) = report.report_campaign.fn(archive, "c").notes
    assert "has changed since it was archived" in line
    assert read_latest(LocalStore(tmp_path), "", "c", "REPORT") is None


def test_the_plots_of_an_experiment(archive):
    plots = report.plot_results.fn(archive, "c", "LAB-001-001")
    assert plots.notes == ()
    assert [image.alt for image in plots.images] == ["overview of all designs", "ranked affinities"]
    assert report.plot_results.fn(archive, "c", "LAB-009-009") == report.ResultPlots()


def test_a_logged_traceback_quotes_no_residues_and_no_whole_request(monkeypatch, caplog):
    residues = "MKTAYIAKQRQISFVKSHFSRQ" * 1000

    def make():
        raise ValueError("request " * 5000) from RuntimeError(residues)

    monkeypatch.setattr(report, "get_run_logger", lambda: logging.getLogger("assay"))
    line = report._try_to_make(make, "the plots", "the results are archived")
    assert len(line) < 2_200
    assert "Traceback" in caplog.text
    assert residues[:30] not in caplog.text
    assert max(map(len, caplog.text.splitlines())) < 2_200


def test_a_report_is_opened_by_a_command_and_a_bucket_s_in_the_console(archive):
    assert report.report_command(archive, "c") == "prefect-assay report c --open"
    saved = LocalArchive(root="/x")
    saved._block_document_name = "lab"
    assert (
        report.report_command(saved, "c") == "prefect-assay report c --open --archive assay-local-archive/lab"
    )
    bucket = S3Archive(bucket="results", region="eu-central-1")
    assert bucket.browser_url("s3://results/lab/c/REPORT/v001/report.html") == (
        "https://s3.console.aws.amazon.com/s3/object/results?region=eu-central-1&"
        "prefix=lab%2Fc%2FREPORT%2Fv001%2Freport.html"
    )
    elsewhere = S3Archive(bucket="results", endpoint_url="https://s3.example.org")
    assert elsewhere.browser_url("s3://results/c/report.html") is None


def test_the_report_gives_the_artifact_its_designs_and_its_summary(archive):
    made = report.report_campaign.fn(archive, "c")
    assert made.designs[0].outcome is Outcome.MEASURED
    assert made.decision[0][0] == "Result"
    assert report.plot_results.fn(archive, "c", "LAB-001-001").designs == made.designs
