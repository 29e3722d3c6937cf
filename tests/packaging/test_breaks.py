"""The list of breaks fits the code: whoever replaces code moves its breaks (tests/breaks/README.md)."""

import tomllib

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


def test_the_result_is_of_breaks_that_are_listed():
    result = tomllib.loads(play.RESULT.read_text(encoding="utf-8"))
    listed = {one.id for one in BREAKS}
    assert result["breaks"].keys() <= listed
    assert sum(result["totals"]["all"].values()) == len(result["breaks"])


OUTPUT = """
FAILED tests/pay/test_a.py::test_one[a - b] - assert 1 == 2
FAILED tests/pay/test_a.py::test_two
ERROR tests/pay/test_a.py::test_three - ValueError: x
1 passed
"""


def test_a_failure_counts_unless_it_was_there_before():
    failed = tuple(play.read_failures(OUTPUT))
    assert failed[1:] == ("tests/pay/test_a.py::test_two", "tests/pay/test_a.py::test_three")
    outcome = play.judge("pay.x", 1, OUTPUT, frozenset(failed[:1]))
    assert (outcome.result, outcome.failing, outcome.tests) == ("seen", 2, failed[1:])
    assert play.judge("pay.x", 1, OUTPUT, frozenset(failed)).result == "unseen"
    assert play.judge("pay.x", 0, "", frozenset()).result == "unseen"


def test_a_time_limit_is_noticed_and_a_broken_import_is_no_result():
    assert play.judge("pay.x", -1, "", frozenset()).result == "seen"
    assert play.judge("pay.x", 2, "ERROR tests/pay/test_a.py - ImportError", frozenset()).result == "invalid"
    assert play.judge("pay.x", 4, "no such file", frozenset()).result == "invalid"
    assert play.judge("pay.x", 1, "", frozenset()).result == "invalid"


def test_a_copy_imports_its_own_code(tmp_path):
    copy = play.Copy.make(play.ROOT, tmp_path / "copy")
    (copy.root / "tests" / "test_here.py").write_text(
        "import prefect_assay.books.log as log, prefect_assay.flows as flows\n"
        f"def test_here():\n    assert all({str(copy.root)!r} in one.__file__ for one in (log, flows))\n",
        encoding="utf-8",
    )
    status, output = copy.run(["tests/test_here.py"], 120)
    assert status == 0, output
