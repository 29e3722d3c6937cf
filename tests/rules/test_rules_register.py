"""No rule without a test on every side that holds it, and no test of a rule that nobody registered."""

import re
from collections import Counter

from support.rules.register import RULES
from support.rules.tests import RuleTests


def test_every_rule_has_a_test_on_each_side_that_holds_it():
    found = RuleTests.read()
    missing = [
        f"{rule.id} ({side}): {rule.says}"
        for rule in RULES
        for side, why_not in (("client", rule.client), ("lab", rule.lab))
        if not why_not and not found.of(rule.id, side)
    ]
    assert not missing, "\n".join(missing)


def test_every_mark_names_a_registered_rule():
    known = {rule.id for rule in RULES}
    assert not RuleTests.read().ids() - known


def test_the_register_is_in_order():
    assert not [name for name, count in Counter(rule.id for rule in RULES).items() if count > 1]
    assert all(re.fullmatch(r"(2|4|6|7|8|shapes)\.[0-9a-z_.]+", rule.id) for rule in RULES)
    assert all(rule.says for rule in RULES)
    assert not [rule.id for rule in RULES if rule.client and rule.lab], "nobody holds it"


def test_no_rule_is_left_for_later():
    assert not RuleTests.read().postponed
