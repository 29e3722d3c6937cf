"""Purchases that are played on a measured table."""

import random

import pytest

from prefect_assay.errors import InputError
from prefect_assay.models.selection import SelectionSettings
from prefect_assay.results import DesignSummary, Outcome
from prefect_assay.selection.backtest import RIDGE, Plan, backtest
from prefect_assay.selection.identity import families

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def table(seed=1, count=12):
    """Families of five; half of the families, those of method `good`, have four hits each."""
    chance = random.Random(seed)
    designs = []
    for family in range(count):
        base = "".join(chance.choices(LETTERS, k=60))
        for member in range(5):
            letters = list(base)
            letters[member * 3] = "W"
            hit = family % 2 == 0 and member > 0
            designs.append(
                DesignSummary(
                    name="twice",
                    experiment_code="",
                    outcome=Outcome.MEASURED if hit else Outcome.NO_BINDING,
                    kd_M=10 ** chance.uniform(-9, -7) if hit else None,
                    aa_string="".join(letters),
                    attributes={
                        "method": "good" if family % 2 == 0 else "bad",
                        "ipTM": f"{chance.random():.2f}",
                    },
                )
            )
    return designs


def figures(found):
    return {each.policy: each for each in found.played}


def test_families_are_what_shares_words():
    designs = [design.aa_string for design in table()]
    numbers = families(designs)
    assert len(set(numbers)) == 12
    assert all(len(set(numbers[at : at + 5])) == 1 for at in range(0, 60, 5))


def test_what_is_known_is_used_and_the_difference_to_the_next_policy_is_said():
    told = []
    found = backtest(
        table(),
        SelectionSettings(score_column="ipTM", higher_is_better=True),
        Plan(rounds=2, batch=5, splits=6, warm=True),
        told.append,
    )
    by = figures(found)
    assert found.families == 12
    assert len(by["gp"].first) == 6
    assert sum(by["gp"].first) > sum(by["random"].first)
    assert {"gp", RIDGE, "top_score", "random"} < set(by)
    assert told[0] == "gp: 6 splits"
    verdict = found.verdict()
    means = sorted((sum(each.last) / 6 for each in found.played), reverse=True)
    assert verdict.difference == pytest.approx(means[0] - means[1])
    assert verdict.real == (verdict.difference > 2 * verdict.error)


def test_the_best_value_is_a_distance_in_decades():
    found = backtest(table(), SelectionSettings(aim="best"), Plan(rounds=3, batch=60, splits=2))
    assert all(value == 0 for each in found.played for value in each.last)
    assert not found.more_is_better


def test_groups_of_a_column_stay_together():
    with pytest.raises(InputError, match="no design has a cell in the column 'author'"):
        backtest(table(), SelectionSettings(), Plan(splits=2, by="author"))
    found = backtest(table(), SelectionSettings(), Plan(rounds=1, batch=5, splits=4, by="method"))
    assert sum(figures(found)["random"].first) % 1 == 0


@pytest.mark.parametrize("designs", [[], table()[:3], [design for design in table() if design.kd_M]])
def test_a_table_that_cannot_tell_is_refused(designs):
    with pytest.raises(InputError, match="of which some hit and some do not"):
        backtest(designs, SelectionSettings(), Plan(splits=2))
