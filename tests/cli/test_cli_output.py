"""What commands print of names that others have chosen."""

from types import SimpleNamespace

import pytest

from prefect_assay.archive import VerifyReport
from prefect_assay.archive.verify import Finding
from prefect_assay.cli.archives.archive import show_report
from prefect_assay.cli.campaigns import run as command


@pytest.mark.parametrize("name", ["x[red], 3 designs", "x[/red], 3 designs"])
def test_the_name_of_a_design_file_is_no_markup(monkeypatch, capsys, name):
    monkeypatch.setattr(command, "run_url", lambda _id: None)
    command.announce_run(SimpleNamespace(id="run-1", name=name), {}, as_json=False)
    assert capsys.readouterr().err.splitlines() == [
        f"Started flow run {name} run-1",
        "Next: prefect-assay status run-1",
    ]


def test_a_finding_is_one_line_with_its_key_as_it_is_however_narrow_the_output(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    key = "lab/campaign/:dog:[red]/v001/" + "raw/" * 20 + "results.json"
    finding = Finding(kind="changed", key=key, detail="9 bytes")
    show_report(VerifyReport(location="archive", checked=1, versions=1, bytes=9, findings=(finding,)))
    line, verdict = capsys.readouterr().out.splitlines()
    assert line == f"changed: {key}: 9 bytes"
    assert verdict.startswith("archive: 1 damaged")
