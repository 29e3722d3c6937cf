"""The list of breaks fits the code: whoever replaces code moves its breaks (tests/breaks/README.md)."""

import re
import tomllib
from collections import Counter

import pytest

from breaks import play

BREAKS = play.read_breaks()


@pytest.mark.parametrize("one", BREAKS, ids=lambda one: one.id)
def test_a_break_is_one_change_of_the_present_code(one):
    assert (play.ROOT / one.file).read_text(encoding="utf-8").count(one.old) == 1, "move it to the new code"
    assert one.new != one.old
    one.apply(play.ROOT)  # Python's syntax
    assert [path for path in one.tests if not (play.ROOT / path).exists()] == []
    assert one.promise.endswith(".")


def test_the_result_names_its_commit_and_adds_up():
    """The list may have changed since: the result is that of the commit that it names."""
    result = tomllib.loads(play.RESULT.read_text(encoding="utf-8"))
    assert re.fullmatch(r"[0-9a-f]{40}", result["commit"])
    areas = {name: counts for name, counts in result["totals"].items() if name != "all"}
    assert sum(map(Counter, areas.values()), Counter()) == Counter(result["totals"]["all"])
    assert sum(result["totals"]["all"].values()) == len(result["breaks"])


FAILED = ("tests/pay/test_a.py::test_one[a - b]", "tests/pay/test_a.py::test_two")


def test_a_failure_counts_unless_it_is_there_without_the_break():
    outcome = play.Played(1, FAILED, "").judge("pay.x", frozenset(FAILED[:1]))
    assert (outcome.result, outcome.failing, outcome.tests) == ("seen", 1, FAILED[1:])
    assert play.Played(1, FAILED, "").judge("pay.x", frozenset(FAILED)).result == "unseen"
    assert play.Played(0, (), "").judge("pay.x", frozenset()).result == "unseen"
    assert tomllib.loads(outcome.line()) == {"pay.x": {"result": "seen", "failing": 1, "tests": [FAILED[1]]}}


@pytest.mark.parametrize(
    ("status", "failed", "result"),
    [(-1, (), "seen"), (2, ("tests/pay/test_a.py",), "invalid"), (4, (), "invalid"), (1, (), "invalid")],
)
def test_a_time_limit_is_noticed_and_what_was_not_run_is_no_result(status, failed, result):
    assert play.Played(status, failed, "no such file").judge("pay.x", frozenset()).result == result


def test_a_copy_imports_its_own_code(tmp_path):
    copy = play.Copy.make(play.ROOT, tmp_path / "copy")
    (copy.root / "tests" / "test_here.py").write_text(
        "import prefect_assay.orders.ledger.log as log, prefect_assay.flows as flows\n"
        f"def test_here():\n    assert all({str(copy.root)!r} in one.__file__ for one in (log, flows))\n",
        encoding="utf-8",
    )
    played = copy.run(["tests/test_here.py"])
    assert (played.status, played.failed) == (0, ()), played.output
