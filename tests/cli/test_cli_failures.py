import json
import sys
from pathlib import Path

import httpx
import pytest
import typer

from assay_lab import __main__ as lab
from prefect_assay import errors
from prefect_assay.cli.failures import exit_code, report_errors
from prefect_assay.cli.prefect_api import api_errors
from prefect_assay.orders.question import Question, QuestionKind
from support.command import command

DOC = Path(__file__).parents[2] / "docs" / "commands.md"


def _all(kind):
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:  # those of other rooms are made of what is theirs
            yield below
        yield from _all(below)


def _made(kind):
    if issubclass(kind, errors._Findings):
        return kind(["first", "second"])
    if kind is errors.PartialOrder:
        return kind("partial", experiment_id="e1")
    if kind is errors.NewerFormat:
        return kind("LEDGERS/FORMAT", 3, 2)
    if kind is errors.DecisionNeeded:
        choices = {"continue": "the order continues", "reject": "the run ends"}
        return kind(Question.of(QuestionKind.LEDGER, subject="Which?", reason="It is open.", choices=choices))
    return kind("what happened; what to do")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.InvalidSequences, 2),
        (errors.RequestRefused, 2),
        (errors.Unauthorized, 3),
        (errors.Forbidden, 3),
        (errors.PaymentRefused, 4),
        (errors.BudgetExceeded, 4),
        (errors.Overdue, 4),
        (errors.ServiceUnavailable, 5),
        (errors.RateLimited, 5),
        (errors.ArchiveUnavailable, 5),
        (errors.NotReady, 5),
        (errors.PartialOrder, 6),
        (errors.PaymentOutcomeUnknown, 6),
        (errors.NotFound, 1),
        (errors.ArchiveError, 1),
        (errors.ConfigurationError, 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(kind, code):
    assert exit_code(_made(kind)) == code


def test_every_error_is_reported_without_a_traceback(capsys):
    for kind in _all(errors.AssayError):
        if kind.__name__.startswith("_"):
            continue
        error = _made(kind)
        with pytest.raises(SystemExit) as left, report_errors():
            raise error
        shown = capsys.readouterr()
        assert left.value.code == exit_code(error)
        assert shown.out == ""
        assert str(error) in shown.err


def test_json_errors_go_to_stdout_with_every_finding(capsys):
    with pytest.raises(SystemExit), report_errors(as_json=True):
        raise errors.InvalidSpec(["a: wrong", "b: missing"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["type"] == "InvalidSpec"
    assert error["findings"] == ["a: wrong", "b: missing"]
    assert error["exit_code"] == 2


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), report_errors():
        _ = 1 / 0


def test_ctrl_c_is_exit_code_130():
    with pytest.raises(SystemExit) as left, report_errors():
        raise KeyboardInterrupt
    assert left.value.code == 130


def test_ctrl_c_at_a_question_says_that_nothing_was_ordered(capsys):
    with pytest.raises(SystemExit) as ended, report_errors():
        raise typer.Abort  # what each question of typer raises for Ctrl-C and Ctrl-D
    assert ended.value.code == 130
    assert "Stopped at the question: nothing was ordered or paid." in capsys.readouterr().err


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_prefect_server_that_is_busy_or_restarts_is_tried_again_later(status):
    with pytest.raises(errors.ServiceUnavailable, match=f"HTTP {status}.*repeat the command"), api_errors():
        httpx.Response(status, request=httpx.Request("GET", "http://prefect")).raise_for_status()
    with pytest.raises(httpx.HTTPStatusError), api_errors():
        httpx.Response(409, request=httpx.Request("GET", "http://prefect")).raise_for_status()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["archive", "verify", "~no-such-user/x"], "no home folder of that user"),
        (["demo", "--folder", "~no-such-user/x"], "no home folder of that user"),
        (["demo", "--folder", __file__], "cannot be used as a folder (File exists)"),
        (["demo", "--folder", f"{__file__}/below"], "cannot be used as a folder (Not a directory)"),
        (["lab", "--clock", "scaled:0"], "--clock takes manual, auto or scaled:SECONDS_PER_DAY"),
        (["lab", "--clock", "scaled"], "--clock takes"),
    ],
)
def test_a_value_that_cannot_be_used_is_no_traceback(arguments, words):
    done = command(*arguments)
    assert (done.code, words in done.err, "Traceback" in done.err) == (2, True, False), done.err


@pytest.mark.parametrize("clock", ["scaled:0", "scaled:-1", "scaled:soon", "scaled:nan", "scaled:inf"])
def test_the_lab_refuses_a_clock_without_a_rate(monkeypatch, clock):
    monkeypatch.setattr(sys, "argv", ["lab", "--clock", clock])
    with pytest.raises(SystemExit, match="--clock takes"):
        lab.main()


def test_the_docs_name_every_exit_code():
    text = DOC.read_text(encoding="utf-8")
    codes = {exit_code(_made(kind)) for kind in _all(errors.AssayError) if not kind.__name__.startswith("_")}
    for code in codes | {0, 130}:
        assert f"| {code} |" in text
