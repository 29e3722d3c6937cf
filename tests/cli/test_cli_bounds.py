"""Numbers at the command line: the same bounds as in the models and forms, exit code 2."""

import re
import sys

import pytest
import typer
from typer.testing import CliRunner

from prefect_assay.cli.app import app, main


def commands(command=None, name=""):
    command = command or typer.main.get_command(app)
    for key, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{name} {key}".strip())
    if not hasattr(command, "commands"):
        yield name, command


def test_every_number_of_every_command_has_bounds():
    unbounded = [
        f"{name} {parameter.name}"
        for name, command in commands()
        for parameter in command.params
        if parameter.type_descriptor.annotation in {int, float, int | None, float | None}
        and None in {parameter.min, parameter.max}
    ]
    assert unbounded == []
    assert sum(p.type_descriptor.annotation in {int, float} for _, c in commands() for p in c.params) > 20


@pytest.mark.parametrize(
    "line",
    [
        "loop egfr designs --target t --budget-usd 99999999999999999999",
        "loop egfr designs --target t --budget-usd -1",
        "loop egfr designs --policy random --seed 340282366920938463463374607431768211456",
        "loop egfr designs --goal-tm-c nan",
        "loop egfr designs --goal-kd-nm inf",
        "loop egfr designs --stop-after-flat-rounds 99999999999999999999",
        "designs select pool.csv --budget-usd 99999999999999999999",
        "designs select pool.csv --hit-limit nan",
        "approve run --revision 99999999999999999999",
    ],
)
def test_a_number_that_no_run_keeps_is_refused_with_exit_code_2(line):
    answer = CliRunner().invoke(app, line.split())
    assert answer.exit_code == 2
    assert re.search("should be|is not an amount", answer.output)


def test_an_argument_that_is_not_utf8_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["prefect-assay", "run", "designs\udcff.fasta"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "not UTF-8" in capsys.readouterr().err
