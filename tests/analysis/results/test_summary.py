"""One row per design: what it takes from which result, its value, verdict and place."""

import itertools
import math

import pytest

from prefect_assay.analysis.kinetics.analysis import (
    Estimate,
    KineticsFit,
    PackageAnalysis,
    ReplicateKinetics,
    Verdict,
)
from prefect_assay.analysis.results import Outcome, ResultRow, is_hit
from prefect_assay.analysis.results.hits import get_objective_value
from prefect_assay.analysis.results.ranked import format_value, list_replicate_parts
from prefect_assay.analysis.results.summary import combine_verdicts, summarize
from prefect_assay.service.assays import Objective


def row(name, **fields):
    values = {"experiment_code": "E-1", "result_id": "r", "result_type": "affinity", "level": "summary"}
    return ResultRow.model_validate({**values, "name": name, "outcome": "measured", **fields})


def replicates(name, *kds, strength="strong", **fields):
    return [
        row(name, level="replicate", replicate=number, kd_M=kd, binding_strength=strength, **fields)
        for number, kd in enumerate(kds, start=1)
    ]


def curves(name="d1", replicate=1, verdict="agrees", reasons=(), kd=(1e-9, 0.8e-9, 1.2e-9)):
    value = Estimate(value=kd[0], low=kd[1], high=kd[2])
    fit = KineticsFit(
        kon_per_M_s=Estimate(value=1e5),
        koff_per_s=Estimate(value=1e-4),
        kd_M=value,
        kd_uncertainty_M=value,
        rmax=(1.0,),
        mae=0.01,
        relative_mae=0.01,
        misfit=0.002,
    )
    return ReplicateKinetics(
        name=name,
        replicate=replicate,
        unit="nm",
        concentrations_nM=(1.0,),
        verdict=verdict,
        reasons=reasons,
        fit=fit,
    )


@pytest.mark.parametrize(
    ("kd_molar", "verdict", "parts"),
    [
        (1e-9, "agrees", ("agrees",)),
        (1.1e-9, "agrees", ("extrapolated",)),
        (1.1e-9, "review", ("to review", "extrapolated")),
    ],
)
def test_a_replicate_is_called_extrapolated_above_its_highest_concentration(kd_molar, verdict, parts):
    replicate = curves(kd=(kd_molar, 0.8e-9, 1.4e-9), verdict=verdict)
    assert replicate.concentrations_nM == (1.0,)
    assert list_replicate_parts(replicate) == parts


def test_a_design_is_one_row_with_what_is_known_of_its_experiment():
    table = [
        row(
            "d1",
            kd_M=2e-9,
            kon_per_M_s=1e5,
            koff_per_s=2e-4,
            binding="true",
            expression="high",
            aa_string="MK",
        ),
        *replicates("d1", 1e-9, 2e-9, 3e-9),
    ]
    (design,) = summarize(
        table,
        targets={"E-1": "EGFR"},
        prices={"E-1": 11900},
        attributes={"d1": {"ipTM": "0.8"}, "d2": {"a": "b"}},
    )
    assert (design.name, design.target, design.koff_per_s, design.replicates) == ("d1", "EGFR", 2e-4, 3)
    assert (design.reported_kd_M, design.replicates_reported, design.replicates_averaged) == (2e-9, 3, 3)
    assert design.kd_M == pytest.approx((1 * 2 * 3) ** (1 / 3) * 1e-9)
    assert (design.price_cents, design.attributes, design.expression, design.aa_string) == (
        11900,
        {"ipTM": "0.8"},
        "high",
        "MK",
    )
    assert design.kd_low_M < design.kd_M < design.kd_high_M
    assert design.verdict is None


def test_a_limit_has_no_interval():
    above = {"kd_M": 1e-4, "qualifier": ">"}
    measured = [row("d1", level="replicate", replicate=number, **above) for number in (1, 2, 3)]
    (design,) = summarize([row("d1", **above), *measured])
    assert (design.kd_M, design.kd_low_M, design.kd_high_M) == (1e-4, None, None)


def test_a_non_binder_has_no_constants():
    fields = {"kd_M": 1e-6, "kon_per_M_s": 1e4, "koff_per_s": 1e-2, "qualifier": ">", "binding": "false"}
    (design,) = summarize([row("d1", outcome="no_binding", **fields), *replicates("d1", 1e-6)])
    assert (design.kd_M, design.kd_low_M, design.kon_per_M_s, design.koff_per_s, design.qualifier) == (
        None,
    ) * 5
    assert (design.outcome, design.binding) == (Outcome.NO_BINDING, "false")


def test_a_later_result_counts_and_another_kind_fills_in():
    (design,) = summarize(
        [
            row("d1", kd_M=1e-9, result_id="first"),
            row("d1", tm_C=61.0, result_type="thermostability", result_id="melt", expression="high"),
            row("d1", kd_M=2e-9, result_id="second"),
            row("d1", outcome="pending", result_id="third"),
        ]
    )
    assert (design.kd_M, design.tm_C, design.result_type, design.expression) == (
        2e-9,
        61.0,
        "affinity",
        "high",
    )
    (design,) = summarize([row("d1", outcome="pending", result_id="", result_type=""), row("d1", kd_M=1e-9)])
    assert (design.kd_M, design.outcome) == (1e-9, Outcome.MEASURED)


def test_two_experiments_are_two_rows():
    designs = summarize(
        [row("d1", kd_M=1e-9), row("d1", experiment_code="E-2", kd_M=1e-8)], prices={"E-2": math.nan}
    )
    assert [(design.experiment_code, design.kd_M, design.price_cents) for design in designs] == [
        ("E-1", 1e-9, None),
        ("E-2", 1e-8, None),
    ]


TABLE = [
    row("none", outcome="no_binding"),
    row("gone", outcome="missing", result_id="", result_type=""),
    row("waits", outcome="pending", result_id="", result_type=""),
    row("silent", outcome="no_expression"),
    row("odd", outcome="unknown"),
    row("melts", tm_C=61.27, result_type="thermostability"),
    row("melts-late", tm_C=81.27, result_type="thermostability"),
    row("zero", kd_M=0.0),
    row("screened", outcome="binding", binding_strength="medium", result_type="screening"),
    row("weak", kd_M=3.2e-6),
    row("control", kd_M=5e-10, control=True),
    row("best", kd_M=7.41e-11),
    row("a-tie", kd_M=3.2e-6),
]


def test_binders_come_as_they_are_ranked_and_the_rest_by_outcome():
    order = [design.name for design in summarize(TABLE)]
    assert order[:5] == ["best", "control", "a-tie", "weak", "screened"]
    assert order[5:] == ["melts-late", "melts", "zero", "none", "silent", "odd", "waits", "gone"]


def test_controls_and_non_binders_are_no_hits_whatever_number_they_have():
    table = [*TABLE, row("artefact", kd_M=1e-10, outcome="no_binding"), *replicates("artefact", 1e-10)]
    assert [design.name for design in summarize(table) if is_hit(design)] == [
        "best",
        "a-tie",
        "weak",
        "screened",
    ]


def test_a_design_that_binds_weaker_than_a_limit_comes_after_all_that_were_measured():
    table = [row("limit", kd_M=1e-7, qualifier=">"), row("weaker", kd_M=5e-7), row("at-most", kd_M=1e-9)]
    assert [design.name for design in summarize(table)] == ["at-most", "weaker", "limit"]


@pytest.mark.parametrize(("sign", "kd"), [("<", 3e-9), (">", 1e-9)])
def test_of_several_limits_the_one_counts_that_all_agree_with(sign, kd):
    parts = replicates("d1", 2e-9, 1e-9, 3e-9, qualifier=sign)
    (design,) = summarize([row("d1", outcome="binding"), *parts])
    assert (design.kd_M, design.qualifier) == (kd, sign)


def test_a_design_is_compared_with_the_controls_of_its_own_experiment():
    table = [
        row("control", kd_M=1e-9, control=True, experiment_code="E-2"),
        row("mine", kd_M=4e-9, control=True),
        row("d1", kd_M=2e-9),
    ]
    designs = {design.name: design for design in summarize(table)}
    assert (designs["d1"].reference, designs["d1"].fold) == ("mine", 2.0)


def test_the_order_of_the_rows_does_not_matter():
    few = TABLE[-6:]
    assert (
        len({tuple(design.name for design in summarize(some)) for some in itertools.permutations(few)}) == 1
    )


@pytest.mark.parametrize(
    ("verdicts", "combined"),
    [
        ((), None),
        (("agrees",), Verdict.AGREES),
        (("agrees", "agrees", "not_1_to_1"), Verdict.AGREES),
        (("agrees", "not_1_to_1", "not_1_to_1"), Verdict.NOT_1_TO_1),
        (("agrees", "no_binding"), Verdict.REVIEW),
        (("agrees", "review", "no_binding"), Verdict.REVIEW),
    ],
)
def test_the_verdict_is_that_of_most_replicates_or_else_review(verdicts, combined):
    parts = [curves(replicate=number, verdict=word) for number, word in enumerate(verdicts, start=1)]
    assert combine_verdicts(parts)[0] is combined


def test_reasons_are_given_once_and_name_the_replicate_that_differs():
    analysis = PackageAnalysis(
        kinetics=(
            curves(reasons=("short dissociation",)),
            curves(replicate=2, reasons=("short dissociation",)),
            curves(replicate=3, verdict="review", reasons=("residuals are not noise",)),
            curves(name="another", reasons=("not mine",)),
        )
    )
    analyses = {("E-1", "r"): analysis, ("E-1", "other"): analysis}
    (design,) = summarize([row("d1", kd_M=1e-9)], analyses=analyses)
    assert design.verdict is Verdict.AGREES
    assert design.reasons == ("short dissociation", "replicate 3: residuals are not noise")
    _, reasons = combine_verdicts(analysis.kinetics[1:3])
    assert reasons[0] == "the replicates differ: 1 agrees, 1 review"


@pytest.mark.parametrize(
    ("sign", "parts", "shown", "is_a_hit"),
    [
        (">", [], "> 95.0 °C", True),
        ("<", [], "< 95.0 °C", None),
        (">", [(90.0, None)], "> 95.0 °C", True),
        (None, [(94.0, None), (120.0, ">")], "95.0 °C", True),
    ],
)
def test_a_limit_of_the_melting_temperature_keeps_its_sign(sign, parts, shown, is_a_hit):
    melts = {"result_type": "thermostability", "concentration_nM": 5.0}
    replicas = [
        row("d1", level="replicate", replicate=number, tm_C=tm, qualifier=mark, **melts)
        for number, (tm, mark) in enumerate(parts, start=1)
    ]
    (design,) = summarize([row("d1", tm_C=95.0, qualifier=sign, **melts), *replicas])
    assert format_value(design) == shown
    assert is_hit(design, Objective.MELTING, 90.0) is is_a_hit
    assert get_objective_value(design, Objective.EXPRESSION) == 5.0


@pytest.mark.parametrize(
    ("parts", "shown", "doubt"),
    [
        ([(95.0, ">"), (94.0, ">")], "> 94.0 °C", None),
        ([(25.0, "<"), (26.0, "<")], "< 26.0 °C", None),
        ([(90.0, None), (91.0, None), (95.0, ">")], "90.5 °C", "1 of 3 replicates are limits"),
        ([(90.0, None), (95.0, ">"), (95.0, ">")], "> 95.0 °C", "2 of 3 replicates are limits"),
        ([(90.0, None), (95.0, ">")], "measured", "1 of 2 replicates are limits"),
        ([(95.0, ">"), (25.0, "<")], "measured", "limits on both sides"),
    ],
)
@pytest.mark.parametrize("column", ["tm_C", "kd_M"])
def test_limits_of_replicates_are_a_limit_or_a_doubt_where_the_laboratory_gives_no_mean(
    column, parts, shown, doubt
):
    kind = {"result_type": "thermostability" if column == "tm_C" else "affinity"}
    replicas = [
        row(
            "d1",
            level="replicate",
            replicate=number,
            qualifier=mark,
            **{column: value * (1e-9 if column == "kd_M" else 1)},
            **kind,
        )
        for number, (value, mark) in enumerate(parts, start=1)
    ]
    (design,) = summarize([row("d1", **kind), *replicas])
    assert format_value(design) == (shown.replace("°C", "nM") if column == "kd_M" else shown)
    assert [line for line in design.doubts if doubt and doubt in line] == list(design.doubts)
    assert bool(design.doubts) is bool(doubt)


def test_a_limit_of_the_concentration_is_none_of_the_melting_temperature():
    (design,) = summarize(
        [
            row("d1", result_type="expression", concentration_nM=5.0, qualifier="<", result_id="e"),
            row("d1", result_type="thermostability", tm_C=61.0),
        ]
    )
    assert format_value(design) == "61.0 °C"
    assert design.concentration_nM is None


@pytest.mark.parametrize("parts", [(), (94.0, 95.0)])
def test_a_limit_of_the_melting_temperature_beside_a_k_d_is_left_out(parts):
    melts = {"result_type": "thermostability", "qualifier": ">", "result_id": "melt"}
    replicas = [row("d1", level="replicate", replicate=n, tm_C=tm, **melts) for n, tm in enumerate(parts)]
    (design,) = summarize([row("d1", kd_M=1e-8), row("d1", tm_C=None if parts else 95.0, **melts), *replicas])
    assert (design.kd_M, design.qualifier, design.tm_C, design.reported_tm_C) == (1e-8, None, None, None)
    assert get_objective_value(design, Objective.MELTING) is None
