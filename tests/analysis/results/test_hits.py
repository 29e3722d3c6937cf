"""Hit rates: what counts, and that a design with several measurements counts once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.analysis.results import (
    DesignSummary,
    HitRate,
    Outcome,
    count_hit_rates,
    count_hits,
    describe_outcomes,
)
from prefect_assay.analysis.results.repeats import join_repeats
from prefect_assay.service.assays import Objective

RESIDUES = "ACDEFGHIKL"


def design(name, outcome=Outcome.MEASURED, *, campaign_id="c-1", residues=None, **fields):
    values = {"kd_M": 1e-9, "binding": "true"} if outcome is Outcome.MEASURED else {}
    return DesignSummary(
        name=name,
        campaign_id=campaign_id,
        experiment_code=f"E-{campaign_id}",
        outcome=outcome,
        aa_string=residues,
        **{"result_type": "affinity"} | values | fields,
    )


def test_the_rate_is_that_of_designs_with_a_known_outcome():
    table = [
        *(design(f"b{n}") for n in range(18)),
        *(design(f"n{n}", Outcome.NO_BINDING) for n in range(14)),
        *(design(f"s{n}", Outcome.NO_EXPRESSION) for n in range(3)),
        *(design(f"u{n}", Outcome.UNKNOWN) for n in range(5)),
        design("control", control=True),
    ]
    counted = count_hits(table)
    assert counted.rate == HitRate(18, 35)
    assert counted.words == "18 of 35 bind, 3 did not express, 5 unknown"


def test_an_unknown_outcome_is_no_hit_whatever_its_words_say():
    assert count_hits([design("d", Outcome.UNKNOWN, binding="true")]).rate == HitRate(0, 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(Outcome), st.sampled_from(["c-1", "c-2", "c-3"])),
        max_size=30,
    )
)
def test_measuring_a_design_again_never_changes_how_many_there_are(rows):
    table = [
        design(f"d{number}", outcome, campaign_id=campaign, residues=RESIDUES[number:] + RESIDUES[:number])
        for number, outcome, campaign in rows
    ]
    joined = join_repeats(table)
    assert len(joined) == len({number for number, _, _ in rows})
    assert count_hits(table).rate == count_hits(joined).rate
    known = {
        number
        for number, outcome, _ in rows
        if outcome not in {Outcome.UNKNOWN, Outcome.PENDING, Outcome.MISSING}
    }
    assert count_hits(table).rate.known == len(known)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((Outcome.MEASURED, Outcome.NO_BINDING), HitRate(1, 1)),
        ((Outcome.MEASURED, Outcome.NO_BINDING, Outcome.NO_BINDING), HitRate(0, 1)),
        ((Outcome.MEASURED, Outcome.UNKNOWN), HitRate(1, 1)),
        ((Outcome.BINDING, Outcome.MEASURED, Outcome.NO_BINDING, Outcome.NO_BINDING), HitRate(1, 1)),
    ],
)
def test_most_measurements_decide_and_as_many_count_as_a_hit(outcomes, expected):
    table = [design("d", outcome, campaign_id=f"c-{n}", residues="MKV") for n, outcome in enumerate(outcomes)]
    assert count_hits(table).rate == expected


def test_values_of_several_campaigns_are_averaged_and_limits_left_out():
    table = [
        design("a", residues="MKV", kd_M=1e-9, kd_low_M=8e-10, kd_high_M=2e-9, target="EGFR"),
        design("b", campaign_id="c-2", residues="mkv", kd_M=4e-9, simulated=True),
        design("c", campaign_id="c-3", residues="MKV", kd_M=1e-6, qualifier=">", target="egfr"),
    ]
    (joined,) = join_repeats(table)
    assert (joined.kd_M, joined.qualifier) == (pytest.approx(2e-9), None)
    assert joined.doubts == ("1 of 3 measurements are limits, and no part of a mean",)
    assert (joined.kd_low_M, joined.kd_high_M, joined.simulated) == (None, None, True)


@pytest.mark.parametrize(
    ("temperatures", "expected"),
    [
        ([(95.0, ">"), (94.0, ">")], (94.0, ">")),
        ([(90.0, None), (92.0, None), (120.0, ">")], (91.0, None)),
        ([(90.0, None), (95.0, ">"), (95.0, ">")], (95.0, ">")),
        ([(95.0, ">"), (25.0, "<")], (None, None)),
    ],
)
def test_melting_temperatures_that_are_limits_are_no_part_of_a_mean_over_campaigns(temperatures, expected):
    kind = {"residues": "MKV", "kd_M": None, "binding": None}
    table = [
        design("d", campaign_id=f"c-{number}", tm_C=tm, qualifier=sign, **kind)
        for number, (tm, sign) in enumerate(temperatures)
    ]
    (joined,) = join_repeats(table)
    assert (joined.tm_C, joined.qualifier) == expected
    is_mixed = len({sign for _, sign in temperatures}) > 1
    assert any("limits" in doubt for doubt in joined.doubts) is is_mixed


def test_two_targets_are_two_measurements():
    table = [design("a", residues="MKV", target=target) for target in ("EGFR", "HER2")]
    assert count_hits(table).rate == HitRate(2, 2)


def of_type(result_type, outcome=Outcome.MEASURED, **fields):
    """A measurement of another assay in a campaign of its own, which has no target."""
    code = f"c-{result_type}"
    values = {"kd_M": None, "binding": None, "residues": "MKV", "result_type": result_type}
    return design("d", outcome, campaign_id=code, **values | fields)


MELTS = of_type("thermostability", tm_C=61.0)
EXPRESSES = of_type("expression", concentration_nM=5000.0, expression="high")
BINNED = of_type("epitope_binning")


@pytest.mark.parametrize("targets", [("EGFR",), ("EGFR", "HER2")])
@pytest.mark.parametrize(
    "others", [(MELTS,), (EXPRESSES,), (MELTS, EXPRESSES, BINNED), (of_type("mass_photometry"),)]
)
@pytest.mark.parametrize("is_first", [True, False])
def test_what_another_assay_measured_has_no_vote_on_binding(targets, others, is_first):
    misses = [design("d", Outcome.NO_BINDING, residues="MKV", target=target) for target in targets]
    table = [*others, *misses] if is_first else [*misses, *others]
    hit = design("d9", residues="MKVW", target="EGFR")
    rate = HitRate(1, len(targets) + 1)
    assert count_hits([*table, hit]).words == f"{rate.words} bind"
    assert describe_outcomes([hit, *table]) == f"{rate.words} bind; best 1.00 nM (d9)"
    assert count_hit_rates([*table, hit], lambda _: "all") == {"all": rate}
    for joined in join_repeats(table):
        assert joined.outcome is Outcome.NO_BINDING
        assert (joined.tm_C, joined.expression) == (
            61.0 if MELTS in others else None,
            "high" if EXPRESSES in others else None,
        )


def test_a_rate_of_another_objective_is_of_what_its_own_assay_measured():
    silent = design("d", Outcome.NO_EXPRESSION, residues="MKV", target="EGFR")
    for objective, other in ((Objective.MELTING, MELTS), (Objective.EXPRESSION, EXPRESSES)):
        assert count_hit_rates([silent, silent, other], lambda _: "all", objective) == {"all": HitRate(1, 1)}
    assert count_hits([silent, MELTS, EXPRESSES]).rate == HitRate(0, 1)


def test_rows_without_an_assay_type_vote_and_a_limit_is_never_a_value():
    untyped = [
        design("d", outcome, campaign_id=f"c-{outcome}", residues="MKV", result_type="")
        for outcome in (Outcome.MEASURED, Outcome.NO_BINDING, Outcome.NO_EXPRESSION, Outcome.NO_BINDING)
    ]
    assert count_hits(untyped).rate == HitRate(0, 1)
    limit = of_type("thermostability", tm_C=95.0, qualifier=">")
    (joined,) = join_repeats([limit, design("d", residues="MKV", target="EGFR")])
    assert (joined.kd_M, joined.qualifier, joined.tm_C) == (1e-9, None, None)
