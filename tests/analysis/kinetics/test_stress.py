"""A small part of the stress sets; docs/kinetics.md has the tables of all, by `make kinetics-tables`."""

import numpy as np
import pytest

from support.kinetics.stress import ORDINARY
from support.kinetics.tables import row, schedules

SETS, SEED = 12, 7


@pytest.mark.parametrize("name", ["white noise", "all of them, half as strong", "all of them"])
def test_1_to_1_curves_of_a_real_instrument_agree_and_their_uncertainty_holds_the_truth(name):
    outcomes = row(f"1:1, {name}", SETS, SEED)
    assert outcomes.verdicts["agrees"] >= 10
    assert outcomes.verdicts["not_1_to_1"] <= 1
    assert sum(outcomes.uncertainty) >= 10
    assert np.median(outcomes.folds) <= 3


@pytest.mark.parametrize("name", ["two sites", "transport-limited"])
def test_another_mechanism_is_mostly_flagged(name):
    outcomes = row(name, SETS, SEED)
    assert outcomes.verdicts["agrees"] <= 6
    assert outcomes.verdicts["not_1_to_1"] >= 1


@pytest.mark.parametrize("name", ["two sites", "bivalent analyte"])
def test_a_second_process_is_flagged_by_the_curves_themselves(name):
    assert len(row(name, SETS, SEED).unflagged) <= 6


@pytest.mark.parametrize(
    "name", ["SPR, bulk of 20 RU", "SPR, 1 s of injection mixing", "SPR, curved baseline of 2 RU"]
)
def test_what_spr_adds_is_not_taken_for_another_mechanism(name):
    outcomes = row(name, SETS, SEED)
    assert outcomes.verdicts["not_1_to_1"] == 0
    assert sum(outcomes.sensors) >= 10


def test_a_tight_binder_gets_a_limit_or_an_interval_near_the_truth():
    outcomes = row("1:1, K_D 20 to 300 pM, wander of 4 pm", SETS, SEED)
    assert max(outcomes.off, default=1.0) <= 3
    assert sum(outcomes.uncertainty) >= 10


def test_a_schedule_is_found_or_refused():
    counts = schedules(SETS, 3, ORDINARY["all of them, half as strong"], SEED)
    assert counts["found"] >= 9
    assert counts["wrong"] <= 1
