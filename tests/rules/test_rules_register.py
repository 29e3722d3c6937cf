"""Each rule has a row or a test on every side that holds it, and no row or test is of a rule that nobody registered."""

import ast
import re
from collections import Counter
from pathlib import Path

from support.rules.register import RULES, SHOWN
from support.rules.rows import ROWS

SIDES = {"client_holds": "client", "lab_holds": "lab"}
TESTS = Path(__file__).parents[1]
POSTPONED = {"xfail", "skip", "skipif"}


def decorators():
    """The calls and names in the decorators of all tests of rules."""
    for path in sorted(TESTS.glob("rules/test_*.py")) + sorted(TESTS.glob("contract/test_*.py")):
        for function in ast.parse(path.read_text(encoding="utf-8")).body:
            for decorator in function.decorator_list if isinstance(function, ast.FunctionDef) else ():
                yield from ast.walk(decorator)


def held():
    """Rules and the side on which a row or a test shows them."""
    yield from SHOWN
    for row in ROWS:
        for letter, side in (("c", "client"), ("l", "lab")):
            yield from ((rule, side) for rule in row.rules.split() if letter in row.sides)
    for call in decorators():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in SIDES:
            yield from ((ast.literal_eval(rule), SIDES[call.func.id]) for rule in call.args)


def test_every_rule_is_shown_on_each_side_that_holds_it():
    shown = set(held())
    sides = [(rule, side, getattr(rule, side)) for rule in RULES for side in ("client", "lab")]
    missing = [f"{rule.id} ({side}): {rule.says}" for rule, side, why_not in sides if not why_not]
    assert [one for one in missing if (one.split()[0], one.split("(")[1].split(")")[0]) not in shown] == []


def test_every_row_and_mark_names_a_registered_rule():
    assert {rule for rule, _ in held()} - {rule.id for rule in RULES} == set()


def test_the_register_is_in_order():
    assert [name for name, count in Counter(rule.id for rule in RULES).items() if count > 1] == []
    assert all(re.fullmatch(r"(2|4|6|7|8|shapes)\.[0-9a-z_.]+", rule.id) and rule.says for rule in RULES)
    assert [rule.id for rule in RULES if rule.client and rule.lab] == []


def test_no_rule_is_left_for_later():
    assert [
        part.attr for part in decorators() if isinstance(part, ast.Attribute) and part.attr in POSTPONED
    ] == []


def test_what_is_shown_elsewhere_is_there():
    for place in SHOWN.values():
        path, _, name = place.partition("::")
        assert f"\ndef {name}(" in (TESTS.parent / path).read_text(encoding="utf-8"), place
