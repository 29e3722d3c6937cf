"""What commands print of names that others have chosen."""

from types import SimpleNamespace

import pytest

from prefect_assay.cli.campaigns import run as command


@pytest.mark.parametrize("name", ["x[red], 3 designs", "x[/red], 3 designs"])
def test_the_name_of_a_design_file_is_no_markup(monkeypatch, capsys, name):
    monkeypatch.setattr(command, "run_url", lambda _id: None)
    command.announce(SimpleNamespace(id="run-1", name=name), {}, as_json=False)
    assert capsys.readouterr().err.splitlines() == [
        f"Started flow run {name} run-1",
        "Next: prefect-assay status run-1",
    ]
