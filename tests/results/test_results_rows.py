"""Tidy rows from result records: null is not zero, failures are told apart, nothing unknown is lost."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.looping.rules import best_value
from prefect_assay.models.result import Result
from prefect_assay.models.selection import Objective
from prefect_assay.models.sequences import ProteinSequence
from prefect_assay.results import Level, Outcome, from_csv, rows, summarize, to_csv, unread_values


def result(*entries, result_type="affinity"):
    return Result.model_validate({"id": "r-1", "result_type": result_type, "summary": list(entries)})


AFFINITY = {
    "result_type": "affinity",
    "sequence": {"name": "d1", "aa_string": "MKV", "control": False, "metadata": {"round": 2}},
    "kd_units": "M",
    "kd_mean": 7.4e-8,
    "kd_log_std": 0.1,
    "kon_mean": 7.0e4,
    "koff_mean": 5.2e-3,
    "binding": "true",
    "binding_strength": "medium",
    "expression": "high",
    "fit_quality": "good",
    "kd_app": {"value": 8e-8, "ci_low": 7e-8, "ci_high": 9e-8},
    "replicates": [
        {"replicate": 1, "kd": 9.6e-8, "kon": 7.0e4, "koff": 6.7e-3, "binding": "true", "kon_method": "1:1"},
        {"replicate": 2, "kd": None, "binding": "unknown"},
    ],
}


def test_a_design_gives_a_summary_row_and_one_row_per_replicate():
    summary, first, second = rows([result(AFFINITY)], experiment_code="EGFR-1")
    assert (summary.level, summary.replicate, summary.kd_M, summary.kon_per_M_s) == (
        Level.SUMMARY,
        None,
        7.4e-8,
        7.0e4,
    )
    assert summary.log10_kd == pytest.approx(-7.13, abs=0.01)
    assert (first.level, first.replicate, first.kd_M, first.koff_per_s) == (
        Level.REPLICATE,
        1,
        9.6e-8,
        6.7e-3,
    )
    assert (second.kd_M, second.log10_kd, second.outcome) == (None, None, Outcome.UNKNOWN)
    assert {row.name for row in (summary, first, second)} == {"d1"}
    assert {row.experiment_code for row in (summary, first, second)} == {"EGFR-1"}


def test_what_has_no_column_is_kept():
    summary, first, _ = rows([result(AFFINITY)])
    assert json.loads(summary.extra) == {
        "kd_units": "M",
        "kd_app": {"value": 8e-8, "ci_low": 7e-8, "ci_high": 9e-8},
        "sequence": {"metadata": {"round": 2}},
    }
    assert json.loads(first.extra) == {"kon_method": "1:1"}


NANOMOLAR = {
    "sequence_name": "d1",
    "kd_units": "nM",
    "kd_mean": 4.2,
    "kd_log_std": 0.1,
    "kon_mean": 7.0e4,
    "binding": "true",
    "replicates": [{"replicate": 1, "kd": 4.2}, {"replicate": 2, "kd": 4.2e-9, "kd_units": "M"}],
}


@pytest.mark.parametrize("unit", ["M", " M ", None])
def test_a_dissociation_constant_is_in_molar_unless_it_says_otherwise(unit):
    summary, *_ = rows([result({**AFFINITY, "kd_units": unit})])
    assert (summary.kd_M, summary.outcome) == (7.4e-8, Outcome.MEASURED)


def test_nanomolar_becomes_molar_and_each_replicate_may_have_a_unit_of_its_own():
    found = rows([result(NANOMOLAR)])
    assert [row.kd_M for row in found] == [4.2e-9] * 3
    assert found[0].log10_kd == pytest.approx(-8.377, abs=0.001)
    assert (found[0].kon_per_M_s, found[0].kd_log_std) == (7.0e4, 0.1)
    assert json.loads(found[0].extra) == {"kd_units": "nM"}
    assert unread_values([result(NANOMOLAR)]) == ()


@pytest.mark.parametrize(
    ("in_entry", "in_result"),
    [
        ({"kd_unit": "nM"}, {}),
        ({"kd_mean_units": "nM"}, {}),
        ({"KdUnit": "nM"}, {}),
        ({"unit": "nM"}, {}),
        ({"units": {"kd": "nM", "kon": "1/(M s)"}}, {}),
        ({"units": {"kd_mean": "nM"}}, {}),
        ({}, {"kd_units": "nM"}),
        ({}, {"units": {"kd": "nM"}}),
        ({}, {"metadata": {"kd_units": "nM"}}),
    ],
)
def test_a_unit_counts_wherever_a_record_names_it(in_entry, in_result):
    entry = {name: value for name, value in NANOMOLAR.items() if name != "kd_units"}
    made = Result.model_validate(
        {"id": "r-1", "result_type": "affinity", "summary": [{**entry, **in_entry}], **in_result}
    )
    found = rows([made])
    assert [row.kd_M for row in found] == [pytest.approx(4.2e-9)] * 3
    assert [row.kon_per_M_s for row in found] == [7.0e4, None, None]


@pytest.mark.parametrize("value", [4.2, -9.1, 0.5])
def test_a_number_that_no_measurement_gives_in_molar_puts_the_unit_of_all_in_doubt(value):
    odd = {"sequence_name": "d1", "kd_mean": value, "kd_app": {"value": value}, "binding": "true"}
    other = {**odd, "sequence_name": "d2", "kd_mean": 0.004, "kd_app": None}
    named = {**other, "sequence_name": "d3", "kd_units": "M"}
    found = rows([result(odd, other), result(named)])
    assert [row.kd_M for row in found] == [None, None, 0.004]
    assert [json.loads(row.extra)["kd_mean"] for row in found[:2]] == [value, 0.004]
    assert [design.kd_M for design in summarize(found)] == [0.004, None, None]
    (line,) = unread_values([result(odd, other), result(named)])
    assert "K_D in result r-1 is without a unit" in line


def test_an_apparent_kd_has_the_unit_of_its_record():
    entry = {"sequence_name": "d1", "binding": "true", "kd_app": {"value": 42.0}}
    (design,) = summarize(rows([result({**entry, "kd_units": "nM"})]))
    assert design.kd_M == pytest.approx(4.2e-8)
    (design,) = summarize(rows([result({**entry, "kd_units": "mg/mL"})]))
    assert design.kd_M is None


@pytest.mark.parametrize(
    ("entry", "column", "unit"),
    [
        ({"tm": 331.2, "tm_unit": "K"}, "tm_C", "'K', and only .C is known"),
        ({"tm": 131.0, "units": "F"}, "tm_C", "'F', and only .C is known"),
        ({"tm": 331.2}, "tm_C", "without a unit"),
        ({"concentration_value": 2.0, "concentration_units": "mg/mL"}, "concentration_nM", "'mg/mL'"),
        ({"kon_mean": 1e-4, "kon_units": "1/(nM s)"}, "kon_per_M_s", "1/.nM s.', and only"),
        ({"koff_mean": 1.0, "koff_unit": "1/h"}, "koff_per_s", "'1/h', and only 1/s is known"),
    ],
)
def test_no_number_of_another_unit_is_in_a_column(entry, column, unit):
    made = result({"sequence_name": "d1", **entry}, result_type="thermostability")
    (row,) = rows([made])
    assert getattr(row, column) is None
    name = next(iter(entry))
    assert json.loads(row.extra)[name] == entry[name]
    (line,) = unread_values([made])
    assert re.search(unit, line)


@pytest.mark.parametrize(
    "entry",
    [
        {"tm": 61.5, "tm_unit": "°C"},
        {"kon_mean": 1e5, "kon_units": "1/(M·s)"},
        {"kon_mean": 1e5, "kon_units": "M^-1 s^-1"},
        {"koff_mean": 1e-3, "koff_units": "s^-1"},
        {"concentration_value": "12.5", "unit": "nM"},
    ],
)
def test_the_unit_of_the_column_in_other_spellings(entry):
    made = result({"sequence_name": "d1", **entry})
    (row,) = rows([made])
    assert float(next(iter(entry.values()))) in {
        row.tm_C,
        row.kon_per_M_s,
        row.koff_per_s,
        row.concentration_nM,
    }
    assert unread_values([made]) == ()


def test_what_comes_in_place_of_a_number_is_kept():
    (row,) = rows([result({"sequence_name": "d1", "kd_mean": {"value": 4.2, "unit": "nM"}})])
    assert row.kd_M is None
    assert json.loads(row.extra) == {"kd_mean": {"value": 4.2, "unit": "nM"}}


@pytest.mark.parametrize("unit", ["uM", "nm", "mg/mL", 7, ["M"]])
def test_an_unknown_unit_leaves_the_cell_empty_and_says_so(unit):
    entry = {**NANOMOLAR, "kd_units": unit}
    summary, first, second = rows([result(entry)])
    assert (summary.kd_M, summary.log10_kd, summary.outcome) == (None, None, Outcome.BINDING)
    assert (first.kd_M, second.kd_M) == (None, 4.2e-9)
    assert json.loads(summary.extra) == {"kd_mean": 4.2, "kd_units": str(unit)}
    assert json.loads(first.extra) == {"kd": 4.2, "kd_units": str(unit)}
    (line,) = unread_values([result(entry), result(AFFINITY)])
    assert line.startswith(f"K_D in result r-1 is in {str(unit)!a}, and only M and nM are known here")


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"kd_mean": 1e-9, "binding": "true"}, Outcome.MEASURED),
        ({"kd_mean": 1e-9}, Outcome.MEASURED),
        ({"binding": "true", "binding_strength": "weak"}, Outcome.BINDING),
        ({"binding": "false", "binding_strength": "none", "expression": "high"}, Outcome.NO_BINDING),
        ({"binding": "false", "kd_mean": 1e-6}, Outcome.NO_BINDING),
        ({"binding_strength": "none"}, Outcome.NO_BINDING),
        ({"binding": "unknown", "binding_strength": "unknown"}, Outcome.UNKNOWN),
        ({"binding": "unknown", "expression": "none"}, Outcome.NO_EXPRESSION),
        ({"binding": "false", "expression": "none"}, Outcome.NO_EXPRESSION),
        ({"binding": "in_progress"}, Outcome.PENDING),
        ({}, Outcome.UNKNOWN),
    ],
)
def test_outcomes_are_told_apart(fields, outcome):
    (row,) = rows([result({"sequence_name": "d", **fields})])
    assert row.outcome is outcome


def test_thermostability_and_its_absent_tm():
    found = rows(
        [
            result(
                {"sequence_name": "a", "tm": 61.5, "initial_330nm": 3.2},
                {"sequence_name": "b", "tm": None, "initial_330nm": 3.2},
                result_type="thermostability",
            )
        ]
    )
    assert [(row.tm_C, row.outcome) for row in found] == [(61.5, Outcome.MEASURED), (None, Outcome.UNKNOWN)]


def test_an_unknown_type_keeps_its_fields():
    (row,) = rows(
        [
            result(
                {"sequence_name": "a", "shape": {"alpha": [1.5, 2]}, "note": "x"},
                result_type="circular_dichroism",
            )
        ]
    )
    assert (row.result_type, row.outcome) == ("circular_dichroism", Outcome.MEASURED)
    assert json.loads(row.extra) == {"shape": {"alpha": [1.5, 2]}, "note": "x"}


def test_numbers_of_the_design_are_no_measurement():
    entry = {"sequence": {"name": "a", "aa_string": "MK", "metadata": {"score": 0.9}}, "place": 3}
    (row,) = rows([result(entry, result_type="fluorescence")])
    assert row.outcome is Outcome.UNKNOWN


def test_zero_stays_zero_and_has_no_logarithm():
    (row,) = rows([result({"sequence_name": "a", "kd_mean": 0.0, "koff_mean": 0.0})])
    assert (row.kd_M, row.log10_kd, row.koff_per_s, row.kon_per_M_s) == (0.0, None, 0.0, None)


def test_a_limit_is_marked():
    entry = {"sequence_name": "a", "concentration_value": 5.0, "concentration_display": "<5.0"}
    (row,) = rows([result(entry, result_type="expression")])
    assert (row.concentration_nM, row.qualifier, row.outcome) == (5.0, "<", Outcome.MEASURED)
    (row,) = rows([result({"sequence_name": "a", "kd_mean": 1e-12, "kd_display": "< 1 pM"})])
    assert row.qualifier == "<"


@pytest.mark.parametrize(("complete", "outcome"), [(False, Outcome.PENDING), (True, Outcome.MISSING)])
def test_an_ordered_design_without_result_stays_in_the_table(complete, outcome):
    ordered = [
        ProteinSequence(name="d1", aa_string="MKV"),
        ProteinSequence(name="d2", aa_string="MKL", control=True),
    ]
    found = rows([result(AFFINITY)], experiment_code="E", ordered=ordered, complete=complete)
    assert [(row.name, row.outcome) for row in found if row.level is Level.SUMMARY] == [
        ("d1", Outcome.MEASURED),
        ("d2", outcome),
    ]
    assert (found[-1].aa_string, found[-1].control) == ("MKL", True)


def test_calls_and_numbers_are_read_in_any_notation():
    entry = {"sequence_name": "a", "binding": True, "kd_mean": "1e-9", "koff_mean": "n/a", "replicates": None}
    (row,) = rows([result(entry)])
    assert (row.binding, row.kd_M, row.koff_per_s) == ("true", 1e-9, None)


def test_a_text_in_place_of_a_number_is_kept():
    entry = {
        "sequence_name": "a",
        "kd_mean": ">1e-4",
        "tm": "<25",
        "concentration_value": "< 5",
        "replicates": [{"kd": ">1e-4", "kon": "", "tm": "<25", "koff": "2e-3"}],
    }
    whole, replicate = rows([result(entry)])
    kept = {"kd_mean": ">1e-4", "tm": "<25", "concentration_value": "< 5"}
    assert json.loads(whole.extra) == kept
    assert json.loads(replicate.extra) == {"kd": ">1e-4", "tm": "<25"}
    assert (whole.kd_M, whole.tm_C, whole.outcome) == (None, None, Outcome.UNKNOWN)
    assert replicate.koff_per_s == 2e-3


def test_models_made_in_python_keep_their_entries():
    made = result(AFFINITY)
    again = Result(id="r-1", result_type="affinity", summary=made.summary)
    assert rows([again]) == rows([made])
    assert len(Result.model_validate_json(made.model_dump_json()).summary[0].replicates) == 2


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
words = st.sampled_from(["true", "false", "none", "unknown", "in_progress", "strong", "high", "<5.0", "1e-9"])
anything = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
)
fields = [
    "result_type",
    "sequence",
    "sequence_name",
    "kd_mean",
    "kd_log_std",
    "kon_mean",
    "binding",
    "expression",
]
fields += [
    "binding_strength",
    "fit_quality",
    "tm",
    "concentration_value",
    "concentration_display",
    "kd_display",
    "x",
]
odd_replicate = st.dictionaries(st.sampled_from(["replicate", "kd", "kon", "binding", "tm", "y"]), anything)
odd_entry = st.builds(
    lambda entry, replicates: {**entry, "replicates": replicates},
    st.dictionaries(
        st.sampled_from(fields), anything | st.fixed_dictionaries({"name": anything, "aa_string": anything})
    ),
    anything | st.lists(odd_replicate, max_size=2),
)


@given(
    st.lists(odd_entry | anything, max_size=3), st.sampled_from(["affinity", "thermostability", "new_type"])
)
def test_no_content_ends_a_run_that_has_waited_ten_days(entries, result_type):
    found = rows([result(*entries, result_type=result_type)], experiment_code="E")
    assert len([row for row in found if row.level is Level.SUMMARY]) == sum(
        isinstance(e, dict) for e in entries
    )
    assert from_csv(to_csv(found)) == found


def test_what_a_result_does_not_say_of_its_design_comes_from_the_order():
    """Thermostability results name the sequence and say neither its residues nor whether it is a control."""
    melted = {"result_type": "thermostability", "sequence_name": "ref", "tm": 85.0}
    (row,) = rows([result(melted)], ordered=[ProteinSequence("ref", "MKV", control=True)])
    assert (row.control, row.aa_string, row.tm_C) == (True, "MKV", 85.0)
    assert best_value([row], Objective.MELTING) is None
    (row,) = rows([result(melted | {"sequence": "MKVL"})], ordered=[ProteinSequence("ref", "MKV")])
    assert (row.control, row.aa_string) == (False, "MKVL")


@pytest.mark.parametrize("call", ["yes", "0", 1, "positive"])
def test_a_call_in_a_word_that_is_not_published_is_no_call_and_is_named(call):
    odd = {"sequence_name": "d1", "binding": call, "binding_strength": None}
    fine = [
        {"sequence_name": "d2", "binding": word} for word in (True, "false", "In progress", "unknown", None)
    ]
    (first, *_) = rows([result(odd, *fine)])
    assert (first.binding, first.outcome) == (str(call), Outcome.UNKNOWN)
    (line,) = unread_values([result(odd, *fine)])
    assert line.startswith(f"binding in result r-1 is {str(call)!r} (1 row)")
