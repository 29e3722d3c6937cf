"""The register of the service's rules that have tests of their own, and the marks that tie a test to a rule.

One record per rule, in this project's own words. A rule is held on both sides: the client refuses before anything is
sent, and the lab refuses (or does what the rule says) when the client's check is bypassed. Where a side cannot hold a
rule, its record says why. `tests/rules/test_rules_register.py` fails for a rule without a test on a side that holds it.
"""

import pytest

from support.rules.create import CREATE
from support.rules.errors import ERRORS
from support.rules.later import LATER
from support.rules.limits import LIMITS
from support.rules.record import Rule

__all__ = ["RULES", "Rule", "client_holds", "lab_holds"]

RULES: tuple[Rule, ...] = (*CREATE, *LATER, *ERRORS, *LIMITS)


def client_holds(*ids: str) -> pytest.MarkDecorator:
    """The test shows the client's side of these rules: refused before anything is sent."""
    return pytest.mark.rule(*ids, side="client")


def lab_holds(*ids: str) -> pytest.MarkDecorator:
    """The test shows the lab's side of these rules, with the client's check bypassed."""
    return pytest.mark.rule(*ids, side="lab")
