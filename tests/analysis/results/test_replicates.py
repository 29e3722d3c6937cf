"""Means over replicates: their intervals, the groups of ranks, what the laboratory averaged, limits, controls."""

import json
import random

import pytest

from prefect_assay.analysis.kinetics.analysis import (
    Estimate,
    KineticsFit,
    PackageAnalysis,
    ReplicateKinetics,
)
from prefect_assay.analysis.results import Outcome, ResultRow, summarize
from prefect_assay.analysis.results.controls import list_controls
from prefect_assay.analysis.results.interval import (
    average_values,
    compute_student_t,
    find_averaged,
    is_apart,
    pool_scatter,
)
from prefect_assay.analysis.results.summary import list_counted_replicates, pool_scatters


def row(name, **fields):
    values = {"experiment_code": "E-1", "result_id": "r", "result_type": "affinity", "level": "summary"}
    return ResultRow.model_validate({**values, "name": name, "outcome": "measured", **fields})


def measured(name, *kds, reported=None, strengths=("strong",) * 9, **fields):
    """A design with replicates; K_D in nM."""
    place = {"experiment_code": fields.get("experiment_code", "E-1")}
    rows = [
        row(name, level="replicate", replicate=number, kd_M=kd * 1e-9, binding_strength=word, **place)
        for number, (kd, word) in enumerate(zip(kds, strengths, strict=False), start=1)
    ]
    mean = reported * 1e-9 if reported else None
    return [row(name, **({"kd_M": mean, "outcome": "measured" if mean else "binding"} | fields)), *rows]


def one(rows, name):
    return next(design for design in summarize(rows) if design.name == name)


def fit(low, value, high):
    return KineticsFit(
        kon_per_M_s=Estimate(value=1e5),
        koff_per_s=Estimate(value=1e-4),
        kd_M=Estimate(value=value, low=low, high=high),
        kd_uncertainty_M=Estimate(value=value, low=low, high=high),
        rmax=(1.0,),
        mae=0.01,
        relative_mae=0.01,
        misfit=0.002,
    )


def analysis(name, *fits):
    return PackageAnalysis(
        kinetics=tuple(
            ReplicateKinetics(
                name=name,
                replicate=number,
                unit="nm",
                concentrations_nM=(1.0,),
                verdict="review",
                fit=replicate_fit,
            )
            for number, replicate_fit in enumerate(fits, start=1)
        )
    )


def test_quantiles_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    for freedom in (*range(1, 40), 100, 1000):
        assert compute_student_t(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=2e-4)


@pytest.mark.parametrize(("count", "designs"), [(2, 12), (3, 12), (3, 96), (1, 96)])
def test_the_interval_holds_the_truth_as_often_as_it_says(count, designs):
    chance = random.Random(f"{count} {designs}")
    held = total = 0
    for _ in range(400 if designs < 50 else 60):
        truths = [chance.uniform(-10, -6) for _ in range(designs)]
        values = [[chance.gauss(truth, 0.156) for _ in range(count)] for truth in truths]
        others = [[chance.gauss(-8, 0.156) for _ in range(3)] for _ in range(10)]
        scatter = pool_scatter(values, others)
        for truth, sample in zip(truths, values, strict=True):
            low, high = average_values(sample, scatter).interval
            held += low <= truth <= high
            total += 1
    assert 0.93 < held / total < 0.97


def test_a_pooled_interval_is_narrow_where_that_of_two_replicates_spans_decades():
    chance = random.Random(5)
    campaign = [[chance.gauss(-8, 0.156) for _ in range(3)] for _ in range(30)]
    low, high = average_values([-8.0, -8.1, -7.9], pool_scatter(campaign)).interval
    assert 2.0 < 10 ** (high - low) < 2.7  # SD 0.156: 2.3-fold


def test_a_design_that_scatters_more_has_its_own_interval_and_leaves_the_others_alone():
    chance = random.Random(6)
    quiet = [[chance.gauss(-8, 0.1) for _ in range(3)] for _ in range(20)]
    wild = [-9.0, -8.0, -7.0]
    scatter = pool_scatter([*quiet, wild])
    assert scatter.designs == 20
    assert scatter.deviation == pytest.approx(pool_scatter(quiet).deviation)
    average = average_values(wild, scatter)
    assert average.is_own
    assert average.interval[1] - average.interval[0] > 4
    assert not average_values(quiet[0], scatter).is_own


def test_earlier_campaigns_count_unless_they_scatter_otherwise():
    chance = random.Random(7)
    now = [[chance.gauss(-8, 0.15) for _ in range(2)] for _ in range(6)]
    alike = [[chance.gauss(-7, 0.15) for _ in range(3)] for _ in range(30)]
    noisy = [[chance.gauss(-7, 1.5) for _ in range(3)] for _ in range(30)]
    assert (pool_scatter(now, alike).freedom, pool_scatter(now, alike).earlier) == (66, 30)
    assert (pool_scatter(now, noisy).freedom, pool_scatter(now, noisy).earlier) == (6, 0)
    assert pool_scatter([[-8.0]], alike).freedom == 60, "single replicates get an interval from earlier ones"
    assert pool_scatter([[-8.0]], []) is None


def test_a_result_that_a_later_one_replaces_counts_in_no_scatter():
    designs = [*measured("a", 1, 2), *measured("b", 3, 5), *measured("c", 4, 9)]
    (once, complete) = (
        [made.model_copy(update={"result_id": name}) for made in designs] for name in ("p", "r")
    )
    another = [made.model_copy(update={"result_type": "screening"}) for made in measured("d", 2, 3)]
    assert pool_scatters([*once, *another]).log_kd.designs == 4, "of another kind, and not replaced"
    assert pool_scatters([*once, *complete]) == pool_scatters(complete)
    assert summarize([*once, *complete]) == summarize(complete)
    assert list_counted_replicates([*once, *complete]) == list_counted_replicates(complete)
    unread = [made.model_copy(update={"outcome": "pending"}) for made in complete]
    assert list_counted_replicates([*once, *unread]) == list_counted_replicates(once)


def test_equal_numbers_are_no_scatter():
    assert pool_scatter([[-8.0, -8.0], [-7.0, -7.0]]) is None
    assert average_values([-8.0, -8.0], None).interval == (None, None)


def test_the_service_s_mean_stands_beside_the_mean_over_all():
    strengths = ("strong", "medium", "medium")
    rows = measured("third", 34.8, 54.3, 66.5, reported=34.8, strengths=strengths)
    design = one([*rows, *measured("other", 10, 12, 14, reported=12)], "third")
    assert (design.reported_kd_M, design.replicates_reported, design.replicates) == (34.8e-9, 1, 3)
    assert design.kd_M == pytest.approx(50.1e-9, rel=1e-3)
    assert design.kd_low_M < 50e-9 < design.kd_high_M
    assert find_averaged(34.8e-9, rows[1:])[0].replicate == 1


def test_the_order_is_that_of_the_means_over_all():
    strengths = ("strong", "medium", "medium")
    rows = [
        *measured("chosen", 30, 200, 210, reported=30, strengths=strengths),
        *measured("steady", 39, 40, 41, reported=40),
    ]
    assert [design.name for design in summarize(rows)] == ["steady", "chosen"]


def test_a_weak_binder_keeps_its_k_d_and_its_class():
    weak = measured(
        "weak", 3210, 1780, 2860, strengths=("weak",) * 3, binding="true", binding_strength="weak"
    )
    design = one(weak, "weak")
    assert (design.outcome, design.binding_strength, design.reported_kd_M) == (Outcome.MEASURED, "weak", None)
    assert design.kd_M == pytest.approx(2.54e-6, rel=0.01)
    alone = row("weak", outcome="binding", binding="true", extra=json.dumps({"kd_app": {"value": 2.54e-6}}))
    assert one([alone], "weak").kd_M == 2.54e-6


def test_a_number_of_a_non_binder_is_none():
    design = one(measured("no", 100, 120, outcome="no_binding", kd_M=1e-7), "no")
    assert (design.kd_M, design.reported_kd_M, design.group) == (None, None, None)


def test_curves_that_only_bound_k_d_from_above_make_it_a_limit():
    rows = measured("tight", 0.9, 1.0, 1.1, reported=1.0)
    open_ended = fit(None, None, 1.91e-9)
    closed = fit(0.8e-9, 1.0e-9, 1.2e-9)
    (design,) = summarize(rows, analyses={("E-1", "r"): analysis("tight", open_ended, open_ended, closed)})
    assert (design.qualifier, design.kd_M, design.kd_low_M, design.kd_high_M) == ("<", 1.91e-9, None, None)
    assert design.reported_kd_M == 1e-9
    (design,) = summarize(rows, analyses={("E-1", "r"): analysis("tight", open_ended, closed, closed)})
    assert design.qualifier is None


def test_curves_that_only_bound_k_d_from_below_make_it_a_limit():
    rows = measured("weak", 2000, 2100, 2200, reported=2100)
    weak = fit(1.5e-6, None, None)
    (design,) = summarize(rows, analyses={("E-1", "r"): analysis("weak", weak, weak, weak)})
    assert (design.qualifier, design.kd_M, design.kd_low_M, design.kd_high_M) == (">", 1.5e-6, None, None)


def test_limits_are_never_averaged():
    rows = measured("d", 1, 2, 3, reported=2)
    mixed = [rows[0], rows[1].model_copy(update={"qualifier": "<"}), *rows[2:]]
    design = one(mixed, "d")
    assert (design.kd_M, design.kd_low_M, design.kd_high_M) == (2e-9, None, None)
    assert design.doubts == ("1 of 3 replicates are limits, so there is no mean over all",)
    above = [
        rows[0].model_copy(update={"kd_M": None}),
        *(r.model_copy(update={"qualifier": ">"}) for r in rows[1:]),
    ]
    assert (one(above, "d").qualifier, one(above, "d").kd_M) == (">", 1e-9)


@pytest.mark.parametrize(("column", "unit"), [("kd_M", 1e-9), ("tm_C", 1.0)])
def test_a_design_whose_replicates_are_limits_for_the_most_part_is_a_limit(column, unit):
    kind = {"result_type": "affinity" if column == "kd_M" else "thermostability"}
    parts = [(50, ">"), (60, ">"), (40, None)]
    rows = [
        row("d", level="replicate", replicate=n, qualifier=sign, **{column: value * unit}, **kind)
        for n, (value, sign) in enumerate(parts)
    ]
    design = one([row("d", **{column: 40 * unit}, **kind), *rows], "d")
    assert (getattr(design, column), design.qualifier) == (pytest.approx(50 * unit), ">")
    assert getattr(design, f"reported_{column}") == 40 * unit
    assert design.doubts == ("2 of 3 replicates are limits, and no part of a mean",)


def test_replicates_that_do_not_bind_are_named():
    rows = measured("d", 10, 12, 14, reported=12)
    rows[-1] = rows[-1].model_copy(update={"outcome": Outcome.NO_BINDING})
    assert one(rows, "d").doubts == ("1 of 3 replicates do not bind; 2 give the K_D",)


def test_ranks_that_could_swap_are_one_group():
    rows = [
        *measured("a", 1.0, 1.2, 0.9),
        *measured("b", 1.1, 1.3, 1.0),
        *measured("c", 20, 24, 18),
        *measured("control", 1.0, 1.1, 0.95, control=True),
        *measured("d", 21, 26, 19),
    ]
    groups = {design.name: design.group for design in summarize(rows)}
    assert groups == {"a": "A", "b": "A", "c": "B", "d": "B", "control": None}
    # a limit claims nothing that it does not show, and without a scatter nobody claims anything
    below = row("e", kd_M=1.5e-9, qualifier="<")
    assert one([*rows, below], "e").group == "A"
    assert {design.group for design in summarize([row("a", kd_M=1e-9), row("b", kd_M=1e-6)])} == {None}
    two_targets = [*rows, *measured("f", 1, 2, experiment_code="E-2")]
    assert {design.group for design in summarize(two_targets, targets={"E-1": "x", "E-2": "y"})} == {None}


def test_groups_are_right_about_truly_equal_designs():
    chance = random.Random(8)
    apart = 0
    for _ in range(1000):
        values = [[chance.gauss(-8, 0.15) for _ in range(3)] for _ in range(10)]
        scatter = pool_scatter(values)
        apart += is_apart(
            *sorted((average_values(sample, scatter) for sample in values[:2]), key=lambda m: m.value)
        )
    assert 0.03 < apart / 1000 < 0.075


def test_melting_temperatures_have_an_interval_and_groups_too():
    def melts(name, *values):
        kind = {"result_type": "thermostability"}
        replicates = [
            row(name, level="replicate", replicate=n, tm_C=v, **kind) for n, v in enumerate(values, 1)
        ]
        return [row(name, tm_C=sum(values) / len(values), **kind), *replicates]

    designs = summarize([*melts("a", 70.0, 70.4), *melts("b", 70.1, 69.8), *melts("c", 55.0, 55.3)])
    assert [design.group for design in designs] == ["A", "A", "B"]
    assert designs[0].tm_low_C < 70.2 < designs[0].tm_high_C
    assert designs[0].tm_high_C - designs[0].tm_low_C < 2


def test_a_control_that_failed_is_named_and_doubts_the_calls_that_rest_on_it():
    rows = [
        *measured("binder", 10, 12, reported=11),
        row("silent", outcome="no_binding"),
        row("EGF", outcome="no_binding", control=True),
        row("elsewhere", outcome="no_binding", experiment_code="E-2"),
    ]
    designs = {design.name: design for design in summarize(rows)}
    (control,) = list_controls(designs.values())
    assert control.sentence == "EGF was expected to bind, and did not bind"
    assert designs["silent"].doubts == ("control EGF was expected to bind, and did not bind",)
    assert designs["binder"].doubts == designs["elsewhere"].doubts == designs["EGF"].doubts == ()


@pytest.mark.parametrize(
    ("extra", "attributes"),
    [
        ('{"positive_control": false}', {}),
        (None, {"Control type": "negative"}),
        (None, {"expected": "No binding"}),
    ],
)
def test_a_negative_control_that_binds_doubts_the_binders(extra, attributes):
    rows = [
        *measured("binder", 10, 12, reported=11),
        row("silent", outcome="no_binding"),
        *measured("blank", 100, 120, reported=110, control=True, extra=extra),
    ]
    designs = {design.name: design for design in summarize(rows, attributes={"blank": attributes})}
    (control,) = list_controls(designs.values())
    assert (control.expects_binding, control.as_expected) == (False, False)
    assert designs["binder"].doubts == ("control blank was expected not to bind, and bound",)
    assert (designs["silent"].doubts, designs["binder"].fold) == ((), None)


def test_binders_are_compared_with_the_tightest_control_of_their_experiment():
    rows = [
        *measured("EGF", 100, 100.1, control=True),
        *measured("loose", 1000, 1001, control=True),
        *measured("d", 10, 10.1),
        *measured("e", 10, 10.1, experiment_code="E-2"),
    ]
    assert (one(rows, "d").reference, one(rows, "d").fold) == ("EGF", pytest.approx(10, rel=1e-2))
    assert (one(rows, "e").fold, one(rows, "EGF").fold) == (None, None)


def test_a_control_that_is_not_measured_yet_has_not_failed():
    rows = [row("EGF", outcome="pending", control=True), row("d", outcome="no_binding")]
    designs = summarize(rows)
    assert [control.as_expected for control in list_controls(designs)] == [None]
    assert all(not design.doubts for design in designs)


def test_an_interval_that_leaves_the_numbers_is_open():
    design = one(measured("d", 1e-290, 1e300), "d")
    assert (design.kd_low_M, design.kd_high_M) == (0.0, None)
