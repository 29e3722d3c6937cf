"""Stop rules: pure decisions, checked against their definitions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.analysis.results import ResultRow, summarize
from prefect_assay.campaigns.loops.rules import (
    RoundValue,
    Stop,
    StopRules,
    best_of,
    best_value,
    count_affordable,
    has_measurement,
    rounds_without_improvement,
    stop_reason,
)
from prefect_assay.service.assays import Objective

AFFINITY = Objective.AFFINITY
VALUES = st.lists(st.none() | st.sampled_from([1e-9, 2e-9, 3e-9, 5e-8]), max_size=8)


def rules(**changes):
    return StopRules(**{"objective": AFFINITY, "max_rounds": 99, "goals": {}} | changes)


def rounds(values):
    return [RoundValue(f"r{n}", value) for n, value in enumerate(values, start=1)]


@given(VALUES, st.sampled_from(list(Objective)))
def test_rounds_without_improvement_are_those_after_the_first_best(values, objective):
    flat = rounds_without_improvement(values, objective)
    best = best_of(values, objective)
    if best is None:
        assert flat == max(0, len(values) - 1)
    else:
        assert flat == len(values) - 1 - values.index(best)


@given(
    VALUES,
    st.sampled_from([1e-9, 2.5e-9]),
    st.integers(1, 9),
    st.none() | st.integers(1, 4),
    st.integers(0, 20),
)
def test_a_loop_stops_exactly_when_a_rule_says_so(values, goal, most, flat, spent):
    loop_rules = rules(goals={AFFINITY: goal}, max_rounds=most, flat_rounds=flat, budget_cents=10)
    reason = stop_reason(loop_rules, rounds(values), spent)
    expected = (
        any(value is not None and value <= goal for value in values)
        or len(values) >= most
        or spent >= 10
        or (flat is not None and rounds_without_improvement(values, AFFINITY) >= flat)
    )
    assert (reason is not None) == expected
    if reason:
        assert reason[1]


def test_reasons_name_the_figures():
    assert stop_reason(rules(goals={AFFINITY: 2e-9}), rounds([None, 1.5e-9]), 0) == (
        Stop.GOAL,
        "round r2 reached the goal of 2.00 nM with K_D 1.50 nM",
    )
    hot = rules(objective=Objective.MELTING, goals={Objective.MELTING: 70.0})
    assert stop_reason(hot, rounds([69.9]), 0) is None
    assert stop_reason(hot, rounds([70.0]), 0)[0] is Stop.GOAL
    assert stop_reason(rules(budget_cents=100), [], 100)[1] == "1.00 USD of the budget of 1.00 USD is spent"


@given(st.integers(1, 300), st.integers(0, 400), st.integers(0, 100), st.integers(1, 8))
def test_as_many_designs_as_fit_and_the_assay_takes_are_afforded(most, left, base, step):
    asked = []
    requested = -(-most // step) * step

    def price(count):
        assert count % step == 0
        asked.append(count)
        return base + 2 * count

    fits = count_affordable(price, lambda count: count % step == 0, requested, left)
    assert fits == max((k for k in range(step, requested + 1, step) if base + 2 * k <= left), default=0)
    assert len(asked) <= 2 + math.ceil(math.log2(requested + 1))


def test_without_a_price_nothing_is_said():
    assert count_affordable(lambda _: None, lambda _: True, 5, 100) is None
    assert count_affordable(lambda count: 500 if count == 5 else None, lambda _: True, 5, 100) is None


def row(**changes):
    fields = {
        "experiment_code": "X",
        "result_id": "r",
        "result_type": "affinity",
        "level": "summary",
        "name": "a",
    }
    return ResultRow(**fields | {"outcome": "measured"} | changes)


@pytest.mark.parametrize(
    ("objective", "best"),
    [(AFFINITY, 2e-9), (Objective.MELTING, 60.0), (Objective.EXPRESSION, 9.0), (None, None)],
)
def test_the_best_value_is_that_of_a_measured_design(objective, best):
    table = [
        row(kd_M=5e-9, tm_C=50.0, concentration_nM=9.0),
        row(name="b", kd_M=2e-9, tm_C=60.0, concentration_nM=3.0),
        row(name="c", kd_M=1e-12, tm_C=99.0, concentration_nM=99.0, control=True),
        row(name="d", kd_M=1e-11, tm_C=98.0, outcome="no_binding"),
        row(name="d", kd_M=1e-10, tm_C=97.0, level="replicate"),
    ]
    assert best_value(summarize(table), objective) == best


def test_a_limit_is_the_best_value_only_where_the_design_is_at_least_that_good():
    binders = [
        row(name=name, **kd)
        for name, kd in {
            "a": {"kd_M": 5e-9, "qualifier": ">"},
            "b": {"kd_M": 3e-8},
            "c": {"kd_M": 2e-8, "qualifier": "<"},
        }.items()
    ]
    assert best_value(summarize(binders), AFFINITY) == 2e-8
    assert best_value(summarize(binders[:1]), AFFINITY) is None
    melts = [row(name="a", tm_C=70.0, qualifier="<"), row(name="b", tm_C=60.0)]
    assert best_value(summarize(melts), Objective.MELTING) == 60.0
    above = row(name="c", tm_C=65.0, qualifier=">")
    assert best_value(summarize([*melts, above]), Objective.MELTING) == 65.0
    levels = [
        row(name="a", concentration_nM=9.0, qualifier="<"),
        row(name="b", concentration_nM=3.0),
        row(name="c", concentration_nM=2.0),
    ]
    assert best_value(summarize(levels), Objective.EXPRESSION) == 3.0
    both = row(name="d", kd_M=5e-9, qualifier="<", concentration_nM=4.0)
    assert best_value(summarize([*levels, both]), Objective.EXPRESSION) == 4.0


def test_a_non_binder_is_a_measurement_and_no_expression_is_none():
    assert has_measurement(summarize([row(outcome="no_binding")]))
    assert not has_measurement(summarize([row(outcome="no_expression"), row(name="b", outcome="missing")]))


def test_a_control_is_no_measurement_of_a_design():
    """Else a round whose designs all failed would not stop the loop before it buys more."""
    assert not has_measurement(summarize([row(outcome="no_expression"), row(name="b", control=True)]))


def test_goals_of_another_assay_do_not_fit():
    assert rules(goals={AFFINITY: 1e-9}).misfits() == []
    assert len(rules(goals={Objective.MELTING: 50.0}).misfits()) == 1
    assert len(rules(objective=None, flat_rounds=2).misfits()) == 1
