"""`prefect-assay report`: a file made of the archive alone, and errors that name the next step."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prefect_assay.archive import Document, LocalStore, archive_version
from support.command import command

GOLDEN = Path(__file__).parents[1] / "golden" / "archive"
TABLE = (
    b"experiment_code,result_id,result_type,level,name,outcome,kd_M\r\n"
    b"LAB-001-001,r1,affinity,summary,tight,measured,3e-09\r\n"
    b"LAB-001-001,r1,affinity,summary,loose,measured,4e-07\r\n"
)


@pytest.fixture
def archive(tmp_path):
    folder = tmp_path / "archive"
    archive_version(
        LocalStore(folder),
        "",
        campaign_id="round-1",
        experiment_id="e1",
        experiment_code="LAB-001-001",
        results_status="all",
        documents=[Document(path="results.csv", content_type="text/csv", body=TABLE)],
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return folder


def test_it_writes_one_file_and_shows_the_ranking(archive, tmp_path):
    before = sorted(archive.rglob("*"))
    done = command("report", "round-1", str(archive), cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "round-1-report.html"
    assert done.out.index("tight") < done.out.index("loose")
    assert "3.00 nM" in (tmp_path / "round-1-report.html").read_text(encoding="utf-8")
    assert sorted(archive.rglob("*")) == before


def test_what_bound_how_sure_and_what_to_do_next_is_read_at_80_columns(tmp_path):
    """By somebody who sees only the terminal, of the golden campaign: two of seven bind, beside the control."""
    done = command("report", "golden-affinity", str(GOLDEN), cwd=tmp_path, COLUMNS="80")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    table = lines[: next(number for number, line in enumerate(lines) if line.startswith("Result: "))]
    assert max(map(len, table)) <= 80
    ranked = [line.split() for line in table if line[:1].isdigit()]
    assert [row[0] for row in ranked] == ["1", "2"]
    assert all("nM" in row for row in ranked), "a value and its interval in the line of each binder"
    assert sum("no binding" in line for line in table) == 5
    summary = dict(
        line.split(": ", 1) for line in lines if line.startswith(("Result: 2", "Controls: ", "Next: "))
    )
    best = ranked[0][2]
    assert summary["Result"].startswith("2 of 7 bind; best ")
    assert f"({best})" in summary["Result"]
    assert summary["Controls"].startswith("1 of 1 control as expected")


def test_json_names_the_file_and_its_digest(archive, tmp_path):
    file = tmp_path / "page.html"
    answer = command("report", "round-1", str(archive), "--output", str(file), "--json").json()
    body = file.read_bytes()
    assert answer == {
        "report": str(file),
        "bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "notes": [],
    }


def test_open_shows_the_file_in_the_browser(archive, tmp_path):
    url_file = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {url_file}\n')
    browser.chmod(0o755)
    done = command("report", "round-1", str(archive), "--open", cwd=tmp_path, BROWSER=f"{browser} %s")
    assert done.code == 0, done.err
    assert url_file.read_text().strip() == (tmp_path / "round-1-report.html").as_uri()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("round-2", "ARCHIVE"), "has nothing of campaign round-2"),
        (("round-1",), "name one archive"),
        (("round-1", "ARCHIVE", "--output", "missing/folder/page.html"), "choose another file with --output"),
    ],
)
def test_errors_name_the_next_step(archive, tmp_path, arguments, message):
    command_words = [str(archive) if argument == "ARCHIVE" else argument for argument in arguments]
    done = command("report", *command_words, cwd=tmp_path)
    assert done.code == 1
    assert message in done.err
    assert "Traceback" not in done.err
