"""Purchases that are played on a measured table."""

import random

import numpy as np
import pytest

from prefect_assay.analysis.results import DesignSummary, Outcome
from prefect_assay.analysis.selection.backtest import (
    FEWEST_EDITS,
    RIDGE,
    Backtest,
    Plan,
    Played,
    play_purchases,
)
from prefect_assay.analysis.selection.identity import number_families
from prefect_assay.designs.selection import SelectionPolicy, SelectionSettings
from prefect_assay.errors import InputError

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


def figures(backtest):
    return {policy_run.policy: policy_run for policy_run in backtest.played}


def test_families_are_what_shares_words():
    designs = [design.aa_string for design in table()]
    numbers = number_families(designs)
    assert len(set(numbers)) == 12
    assert all(len(set(numbers[start : start + 5])) == 1 for start in range(0, 60, 5))


def test_what_is_known_is_used_and_the_difference_to_the_next_policy_is_said():
    told = []
    backtest = play_purchases(
        table(),
        SelectionSettings(score_column="ipTM", higher_is_better=True),
        Plan(rounds=2, batch=5, splits=6, warm=True),
        told.append,
    )
    by = figures(backtest)
    assert backtest.families == 12
    assert len(by["gp"].first) == 6
    assert sum(by["gp"].first) > sum(by["random"].first)
    assert {"gp", RIDGE, "top_score", "random"} < set(by)
    assert told[0] == "gp: 6 splits"
    verdict = backtest.give_verdict()
    means = {policy_run.policy: sum(policy_run.last) / 6 for policy_run in backtest.played}
    assert means[verdict.policy] == max(means[policy] for policy in SelectionPolicy)
    others = [mean for policy, mean in means.items() if policy != verdict.policy]
    assert verdict.difference == pytest.approx(means[verdict.policy] - max(others))
    assert verdict.splits == 6
    assert not verdict.is_real


def played(policy, *last):
    return Played(policy, last, last, last)


def verdict_of(*policies, independent=12):
    return Backtest(policies, 10, 5, 3, more_is_better=True, independent=independent).give_verdict()


def test_only_what_can_be_taken_is_recommended():
    verdict = verdict_of(
        played(RIDGE, 9, 8, 9), played("best single score (lowest mass)", 7, 7, 7), played("gp", 3, 2, 4)
    )
    assert (verdict.policy, verdict.beside) == ("gp", RIDGE)
    assert verdict.difference == pytest.approx(-17 / 3)
    assert verdict.is_real


def test_a_difference_is_real_from_twelve_independent_splits_on():
    policies = played("gp", *[9, 8] * 6), played("random", *[2, 3] * 6)
    assert verdict_of(*policies).is_real
    assert not verdict_of(*policies, independent=11).is_real


def test_splits_of_few_families_are_not_independent():
    of_two = play_purchases(table(), SelectionSettings(), Plan(rounds=1, batch=5, splits=20, by="method"))
    assert of_two.independent == 2


def test_fewest_edits_are_played_where_the_table_has_a_control():
    parent = table()[1]
    control = parent.model_copy(update={"control": True, "aa_string": parent.aa_string[:-1] + "W"})
    by_policy = figures(
        play_purchases([*table(), control], SelectionSettings(), Plan(rounds=1, batch=4, splits=4))
    )
    assert FEWEST_EDITS in by_policy
    assert FEWEST_EDITS not in figures(
        play_purchases(table(), SelectionSettings(), Plan(rounds=1, batch=4, splits=4))
    )


@pytest.mark.parametrize("splits", [1, 4])
def test_purchases_that_cannot_differ_are_no_proof(splits):
    assert not verdict_of(played("gp", *[9] * splits), played("random", *[2] * splits)).is_real


def test_designs_of_other_targets_are_not_played():
    on_target = [design.model_copy(update={"target": "one"}) for design in table()]
    others = [design.model_copy(update={"target": "two"}) for design in table(seed=2)]
    plan = Plan(rounds=1, batch=10, splits=8)
    of_one = play_purchases([*on_target, *others], SelectionSettings(target="one"), plan)
    assert of_one.designs == len({design.aa_string for design in on_target})
    assert figures(of_one)["gp"] == figures(play_purchases(on_target, SelectionSettings(), plan))["gp"]


def test_repeated_measurements_of_a_design_count_once_and_together():
    designs = table()
    misses = [
        designs[1].model_copy(update={"experiment_code": code, "outcome": Outcome.NO_BINDING, "kd_M": None})
        for code in ("E1", "E2")
    ]
    plan = Plan(rounds=1, batch=5, splits=2)
    once = play_purchases(designs, SelectionSettings(), plan)
    together = play_purchases([*designs, *misses], SelectionSettings(), plan)
    assert (together.designs, together.designs_that_hit) == (once.designs, once.designs_that_hit - 1)


def test_the_best_value_is_a_distance_in_decades():
    backtest = play_purchases(table(), SelectionSettings(aim="best"), Plan(rounds=3, batch=60, splits=2))
    assert all(value == 0 for policy_run in backtest.played for value in policy_run.last)
    assert not backtest.more_is_better


def test_splits_without_a_value_to_find_are_left_out_and_counted():
    chance = random.Random(3)
    designs = [
        DesignSummary(
            name=f"d{n}",
            experiment_code="",
            outcome=Outcome.MEASURED if n < 2 else Outcome.NO_BINDING,
            kd_M=(1e-9, 1e-8)[n] if n < 2 else None,
            aa_string="".join(chance.choices(LETTERS, k=60)),
        )
        for n in range(24)
    ]
    plan = Plan(rounds=1, batch=3, splits=14)
    backtest = play_purchases(designs, SelectionSettings(aim="best"), plan)
    assert 0 < backtest.left_out < 14
    for record in backtest.played:
        assert len(record.last) == 14 - backtest.left_out
        assert np.isfinite([*record.first, *record.last]).all()
    verdict = backtest.give_verdict()
    assert np.isfinite([verdict.difference, verdict.error]).all()
    assert verdict.splits == 14 - backtest.left_out
    assert play_purchases(designs, SelectionSettings(), plan).left_out == 0, "hits are counted in every split"

    called = [
        design.model_copy(update={"kd_M": None, "outcome": Outcome.BINDING}) if design.kd_M else design
        for design in designs
    ]
    with pytest.raises(InputError, match=r"no split has a value.*aim hits"):
        play_purchases(called, SelectionSettings(aim="best"), plan)


def test_groups_of_a_column_stay_together():
    with pytest.raises(InputError, match="no design has a cell in the column 'author'"):
        play_purchases(table(), SelectionSettings(), Plan(splits=2, by="author"))
    backtest = play_purchases(table(), SelectionSettings(), Plan(rounds=1, batch=5, splits=4, by="method"))
    assert sum(figures(backtest)["random"].first) % 1 == 0


@pytest.mark.parametrize("designs", [[], table()[:3], [design for design in table() if design.kd_M]])
def test_a_table_that_cannot_tell_is_refused(designs):
    with pytest.raises(InputError, match="of which some hit and some do not"):
        play_purchases(designs, SelectionSettings(), Plan(splits=2))
