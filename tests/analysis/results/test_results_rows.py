"""Tidy rows from result records: null is not zero, failures are told apart, nothing unknown is lost."""

import json
import math
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.analysis.results import Level, Outcome, from_csv, is_hit, summarize, to_csv
from prefect_assay.analysis.results.summary import pool_scatters
from prefect_assay.analysis.results.tidy import list_unread_values, read_rows
from prefect_assay.campaigns.loops.rules import best_value
from prefect_assay.service.assays import Objective
from prefect_assay.service.models.result import Result
from prefect_assay.service.models.sequences import ProteinSequence


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
    summary, first, second = read_rows([result(AFFINITY)], experiment_code="EGFR-1")
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
    summary, first, _ = read_rows([result(AFFINITY)])
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
    summary, *_ = read_rows([result({**AFFINITY, "kd_units": unit})])
    assert (summary.kd_M, summary.outcome) == (7.4e-8, Outcome.MEASURED)


def test_nanomolar_becomes_molar_and_each_replicate_may_have_a_unit_of_its_own():
    rows = read_rows([result(NANOMOLAR)])
    assert [row.kd_M for row in rows] == [4.2e-9] * 3
    assert rows[0].log10_kd == pytest.approx(-8.377, abs=0.001)
    assert (rows[0].kon_per_M_s, rows[0].kd_log_std) == (7.0e4, 0.1)
    assert json.loads(rows[0].extra) == {"kd_units": "nM"}
    assert list_unread_values([result(NANOMOLAR)]) == ()


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
    rows = read_rows([made])
    assert [row.kd_M for row in rows] == [pytest.approx(4.2e-9)] * 3
    assert [row.kon_per_M_s for row in rows] == [7.0e4, None, None]


@pytest.mark.parametrize("value", [4.2, -9.1, 0.5])
def test_a_number_that_no_measurement_gives_in_molar_puts_the_unit_of_all_in_doubt(value):
    odd = {"sequence_name": "d1", "kd_mean": value, "kd_app": {"value": value}, "binding": "true"}
    other = {**odd, "sequence_name": "d2", "kd_mean": 0.004, "kd_app": None}
    named = {**other, "sequence_name": "d3", "kd_units": "M"}
    rows = read_rows([result(odd, other), result(named)])
    assert [row.kd_M for row in rows] == [None, None, 0.004]
    assert [json.loads(row.extra)["kd_mean"] for row in rows[:2]] == [value, 0.004]
    assert [design.kd_M for design in summarize(rows)] == [0.004, None, None]
    (line,) = list_unread_values([result(odd, other), result(named)])
    assert "K_D in result r-1 is without a unit" in line


@pytest.mark.parametrize("value", ["0.5 nM", math.nan])
def test_a_value_that_is_not_a_number_without_a_unit_says_nothing_on_the_unit_of_others(value):
    entries = [{"sequence_name": f"d{n}", "kd_mean": one} for n, one in enumerate([value, "4.1e-9"])]
    assert read_rows([result(*entries)])[1].kd_M == 4.1e-9


@pytest.mark.parametrize(
    "fields",
    [
        {"kd_mean": "0.05"},
        {"kd_mean": "> 0.5"},
        {"kd_app": 0.05},
        {"kd_app": "0.05"},
        {"kd_app": {"value": "0.05"}},
    ],
)
def test_a_text_or_an_apparent_kd_that_cannot_be_in_molar_puts_the_unit_of_all_in_doubt(fields):
    odd = {"sequence_name": "d1", "binding": "true", **fields}
    rows = read_rows([result(odd, {"sequence_name": "d2", "kd_mean": 2e-5})])
    assert [design.kd_M for design in summarize(rows)] == [None, None]


def test_an_apparent_kd_has_the_unit_of_its_record():
    entry = {"sequence_name": "d1", "binding": "true", "kd_app": {"value": 42.0}}
    (design,) = summarize(read_rows([result({**entry, "kd_units": "nM"})]))
    assert design.kd_M == pytest.approx(4.2e-8)
    (design,) = summarize(read_rows([result({**entry, "kd_units": "mg/mL"})]))
    assert design.kd_M is None


@pytest.mark.parametrize(
    "fields",
    [
        {"kd_app": {"value": 0.012, "unit": "uM"}},
        {"kd_app": {"value": 1e-5, "qualifier": ">"}},
        {"kd_app": {"value": 1e-5, "ci_low": 1e-5, "at_limit": True}},
        {"kd_app": {"value": ">1e-5"}},
        {"kd_app": {"ci_low": 1e-5}},
        *({"kd_app": {"value": 1e-5}, "kd_qualifier": word} for word in (">", "gt")),
        *(
            {"kd_app": {"value": 1e-5}, name: "> 10 uM (no fit)"}
            for name in ("kd_mean", "kd_display", "comment")
        ),
        *({"kd_app": 1e-5, name: word} for name, word in (("kd_app_relation", ">"), ("kd_app_units", "uM"))),
    ],
)
def test_an_apparent_kd_with_another_unit_or_a_limit_is_no_affinity(fields):
    entry = {"sequence_name": "d1", "binding": "true", "kd_units": "M", "kd_mean": None}
    (design,) = summarize(read_rows([result({**entry, **fields})]))
    assert (design.kd_M, design.outcome) == (None, Outcome.BINDING)


@pytest.mark.parametrize(
    ("kind", "entry", "column", "unit"),
    [
        ("thermostability", {"tm": 331.2, "tm_unit": "K"}, "tm_C", "'K', and the units known here are .C"),
        ("thermostability", {"tm": 131.0, "units": "F"}, "tm_C", "'F', and the units known here are .C"),
        ("thermostability", {"tm": 331.2}, "tm_C", "without a unit"),
        (
            "expression",
            {"concentration_value": 2.0, "concentration_units": "mg/mL"},
            "concentration_nM",
            "'mg/mL'",
        ),
        ("affinity", {"kon_mean": 1e-4, "kon_units": "1/(nM s)"}, "kon_per_M_s", "1/.nM s.', and the units"),
        (
            "affinity",
            {"koff_mean": 1.0, "koff_unit": "1/h"},
            "koff_per_s",
            "'1/h', and the units known here are 1/s",
        ),
    ],
)
def test_no_number_of_another_unit_is_in_a_column(kind, entry, column, unit):
    made = result({"sequence_name": "d1", **entry}, result_type=kind)
    (row,) = read_rows([made])
    assert getattr(row, column) is None
    name = next(iter(entry))
    assert json.loads(row.extra)[name] == entry[name]
    (line,) = list_unread_values([made])
    assert re.search(unit, line)


@pytest.mark.parametrize(
    "entry",
    [
        {"result_type": "thermostability", "tm": 61.5, "tm_unit": "°C"},
        {"kon_mean": 1e5, "kon_units": "1/(M·s)"},
        {"kon_mean": 1e5, "kon_units": "M^-1 s^-1"},
        {"koff_mean": 1e-3, "koff_units": "s^-1"},
        {"concentration_value": "12.5", "unit": "nM"},
    ],
)
def test_the_unit_of_the_column_in_other_spellings(entry):
    made = result({"sequence_name": "d1", **entry})
    (row,) = read_rows([made])
    assert float(
        next(value for name, value in entry.items() if name != "result_type" and "unit" not in name)
    ) in {
        row.tm_C,
        row.kon_per_M_s,
        row.koff_per_s,
        row.concentration_nM,
    }
    assert list_unread_values([made]) == ()


def test_what_comes_in_place_of_a_number_is_kept():
    (row,) = read_rows([result({"sequence_name": "d1", "kd_mean": {"value": 4.2, "unit": "nM"}})])
    assert row.kd_M is None
    assert json.loads(row.extra) == {"kd_mean": {"value": 4.2, "unit": "nM"}}


@pytest.mark.parametrize("unit", ["uMol", "nm", "mg/mL", 7, ["M"]])
def test_an_unknown_unit_leaves_the_cell_empty_and_says_so(unit):
    entry = {**NANOMOLAR, "kd_units": unit}
    summary, first, second = read_rows([result(entry)])
    assert (summary.kd_M, summary.log10_kd, summary.outcome) == (None, None, Outcome.BINDING)
    assert (first.kd_M, second.kd_M) == (None, 4.2e-9)
    assert json.loads(summary.extra) == {"kd_mean": 4.2, "kd_units": str(unit)}
    assert json.loads(first.extra) == {"kd": 4.2, "kd_units": str(unit)}
    (line,) = list_unread_values([result(entry), result(AFFINITY)])
    assert line.startswith(
        f"K_D in result r-1 is 4.2 in {str(unit)!a}, and the units known here are M, mM, uM, nM, pM (2 rows)"
    )


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
    (row,) = read_rows([result({"sequence_name": "d", **fields})])
    assert row.outcome is outcome


def test_thermostability_and_its_absent_tm():
    rows = read_rows(
        [
            result(
                {"sequence_name": "a", "tm": 61.5, "initial_330nm": 3.2},
                {"sequence_name": "b", "tm": None, "initial_330nm": 3.2},
                result_type="thermostability",
            )
        ]
    )
    assert [(row.tm_C, row.outcome) for row in rows] == [(61.5, Outcome.MEASURED), (None, Outcome.UNKNOWN)]


def test_an_unknown_type_keeps_its_fields_and_measures_nothing():
    (row,) = read_rows(
        [
            result(
                {"sequence_name": "a", "shape": {"alpha": [1.5, 2]}, "note": "x"},
                result_type="circular_dichroism",
            )
        ]
    )
    assert (row.result_type, row.outcome) == ("circular_dichroism", Outcome.UNKNOWN)
    assert json.loads(row.extra) == {"shape": {"alpha": [1.5, 2]}, "note": "x"}


def test_numbers_of_the_design_are_no_measurement():
    entry = {"sequence": {"name": "a", "aa_string": "MK", "metadata": {"score": 0.9}}, "place": 3}
    (row,) = read_rows([result(entry, result_type="fluorescence")])
    assert row.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "spellings", [("Affinity", "affinity"), ("affinity", "AFFINITY"), ("Epitope-Binning", "epitopeBinning")]
)
def test_spellings_of_one_type_are_one_kind_of_result(spellings):
    results = [
        Result.model_validate(
            {"id": name, "result_type": kind, "summary": [{"sequence_name": "d1", "binding": call}]}
        )
        for name, kind, call in zip("ab", spellings, ("true", "false"), strict=True)
    ]
    rows = read_rows(results)
    assert len({row.result_type for row in rows}) == 1
    (design,) = summarize(rows)
    assert design.outcome is Outcome.NO_BINDING


def test_zero_is_no_constant_and_is_named():
    made = result({"sequence_name": "a", "kd_mean": 0.0, "koff_mean": 0.0})
    (row,) = read_rows([made])
    assert (row.kd_M, row.log10_kd, row.koff_per_s, row.kon_per_M_s) == (None, None, None, None)
    assert json.loads(row.extra) == {"kd_mean": 0.0, "koff_mean": 0.0}
    assert [line.partition(" is ")[0] for line in list_unread_values([made])] == [
        "K_D in result r-1",
        "k_off in result r-1",
    ]


def test_a_limit_is_marked():
    entry = {"sequence_name": "a", "concentration_value": 5.0, "concentration_display": "<5.0"}
    (row,) = read_rows([result(entry, result_type="expression")])
    assert (row.concentration_nM, row.qualifier, row.outcome) == (5.0, "<", Outcome.MEASURED)
    (row,) = read_rows([result({"sequence_name": "a", "kd_mean": 1e-12, "kd_display": "< 1 pM"})])
    assert row.qualifier == "<"


@pytest.mark.parametrize(("complete", "outcome"), [(False, Outcome.PENDING), (True, Outcome.MISSING)])
def test_an_ordered_design_without_result_stays_in_the_table(complete, outcome):
    ordered = [
        ProteinSequence(name="d1", aa_string="MKV"),
        ProteinSequence(name="d2", aa_string="MKL", control=True),
    ]
    rows = read_rows([result(AFFINITY)], experiment_code="E", ordered=ordered, complete=complete)
    assert [(row.name, row.outcome) for row in rows if row.level is Level.SUMMARY] == [
        ("d1", Outcome.MEASURED),
        ("d2", outcome),
    ]
    assert (rows[-1].aa_string, rows[-1].control) == ("MKL", True)


def test_calls_and_numbers_are_read_in_any_notation():
    entry = {"sequence_name": "a", "binding": True, "kd_mean": "1e-9", "koff_mean": "n/a", "replicates": None}
    (row,) = read_rows([result(entry)])
    assert (row.binding, row.kd_M, row.koff_per_s) == ("true", 1e-9, None)


def test_a_text_in_place_of_a_number_is_a_limit():
    entry = {
        "sequence_name": "a",
        "kd_mean": ">1e-4",
        "replicates": [{"kd": ">1e-4", "kon": "", "koff": "2e-3"}],
    }
    for row in read_rows([result(entry)]):
        assert (row.kd_M, row.qualifier, row.outcome, row.extra) == (1e-4, ">", Outcome.MEASURED, None)
    assert row.koff_per_s == 2e-3
    (melted,) = read_rows([result({"sequence_name": "a", "tm": "<25"}, result_type="thermostability")])
    assert (melted.tm_C, melted.qualifier, melted.outcome) == (25.0, "<", Outcome.MEASURED)


def test_models_made_in_python_keep_their_entries():
    made = result(AFFINITY)
    again = Result(id="r-1", result_type="affinity", summary=made.summary)
    assert read_rows([again]) == read_rows([made])
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


NAMING = ("sequence", "sequence_name", "name", "aa_string")
NAMELESS = json.dumps([None] * len(NAMING))


@given(
    st.lists(odd_entry | anything, max_size=3), st.sampled_from(["affinity", "thermostability", "new_type"])
)
def test_no_content_ends_a_run_that_has_waited_ten_days(entries, result_type):
    rows = read_rows([result(*entries, result_type=result_type)], experiment_code="E")
    summaries = [row for row in rows if row.level is Level.SUMMARY]
    designs = [entry for entry in entries if isinstance(entry, dict)]
    assert bool(summaries) == bool(designs)
    names = [json.dumps([entry.get(name) for name in NAMING], default=str) for entry in designs]
    if all(name == NAMELESS for name in names):  # entries of one name are replicates of one design
        assert len(summaries) == len(designs)
    assert len(summaries) <= len(designs)
    assert from_csv(to_csv(rows)) == rows


def test_what_a_result_does_not_say_of_its_design_comes_from_the_order():
    """Thermostability results name the sequence and say neither its residues nor whether it is a control."""
    melted = {"result_type": "thermostability", "sequence_name": "ref", "tm": 85.0}
    (row,) = read_rows([result(melted)], ordered=[ProteinSequence("ref", "MKV", control=True)])
    assert (row.control, row.aa_string, row.tm_C) == (True, "MKV", 85.0)
    assert best_value(summarize([row]), Objective.MELTING) is None
    (row,) = read_rows([result(melted | {"sequence": "MKVL"})], ordered=[ProteinSequence("ref", "MKV")])
    assert (row.control, row.aa_string) == (False, "MKVL")


@pytest.mark.parametrize(
    ("binding", "outcome"),
    [
        ("binder", Outcome.MEASURED),
        (True, Outcome.MEASURED),
        *(
            (word, Outcome.NO_BINDING)
            for word in ("non_binder", "No", "0", 0, False, "no binding", "NB", "-")
        ),
        ("no_expression", Outcome.NO_EXPRESSION),
        ("In progress", Outcome.PENDING),
        ("perhaps", Outcome.UNKNOWN),
        (2, Outcome.UNKNOWN),
        ({"call": "no"}, Outcome.UNKNOWN),
    ],
)
def test_a_call_overrides_the_number_beside_it(binding, outcome):
    entry = {
        "sequence_name": "d1",
        "binding": binding,
        "kd_mean": 4.2e-9,
        "replicates": [{"replicate": 1, "kd": 4e-9}],
    }
    rows = read_rows([result(entry)])
    assert [row.outcome for row in rows] == [outcome, outcome]
    is_binder = outcome is Outcome.MEASURED
    (design,) = summarize(rows)
    assert (is_hit(design) is True) == is_binder
    assert (design.kd_M is not None) == is_binder
    assert pool_scatters(rows).log_kd is None


@pytest.mark.parametrize(
    "fields",
    [
        {"is_binder": False},
        {"binder": "no"},
        {"binding": None, "is_binder": "false"},
    ],
)
def test_a_call_in_another_field_of_public_tables_counts(fields):
    (row,) = read_rows([result({"sequence_name": "d1", "kd_mean": 4.2e-9, **fields})])
    assert row.outcome is Outcome.NO_BINDING


@pytest.mark.parametrize(
    "fields",
    [
        {"hit": False},
        {"classification": "non-binder"},
        {"comment": "does not bind"},
        {"Binding": "non-binder"},
        {"binding": "true", "is_binder": False},
        {"binding": "true", "outcome": "non_binder"},
        {"binding": "true", "binding_strength": "none"},
        {"binding": "false", "binding_strength": "strong"},
        {"binding_strength": "feeble"},
        {"expression": "so-so"},
    ],
)
def test_a_call_that_is_unclear_makes_the_outcome_unknown_and_is_quoted(fields):
    made = result({"sequence_name": "d1", "kd_mean": 4.2e-9, **fields})
    rows = read_rows([made])
    assert rows[0].outcome is Outcome.UNKNOWN
    assert [is_hit(design) for design in summarize(rows)] == [None]
    (line,) = list_unread_values([made])
    assert str(next(reversed(fields.values()))) in line


@pytest.mark.parametrize(
    "named", [{"sequence_name": "non-binder"}, {"name": "No Binder"}, {"sequence_id": "does not bind"}]
)
def test_a_design_may_be_called_like_a_negative_call(named):
    made = result({"kd_mean": 4.2e-9, **named})
    assert [row.outcome for row in read_rows([made])] == [Outcome.MEASURED]
    assert list_unread_values([made]) == ()


def test_the_calls_of_a_public_showcase():
    """Thirteen binders, six non-binders of which three have a number, and one design that did not express."""
    entries = [
        {"sequence_name": f"b{n}", "binding": "binder", "kd_mean": 1e-9 * (n + 1), "kd_units": "M"}
        for n in range(13)
    ]
    entries += [
        {"sequence_name": f"n{n}", "binding": "non_binder", "kd_mean": 1e-10 if n < 3 else None}
        for n in range(6)
    ]
    entries += [{"sequence_name": "x", "binding": "no_expression", "expression": "none", "kd_mean": None}]
    rows = read_rows([result(*entries)])
    counts = Counter(row.outcome for row in rows)
    assert counts == {Outcome.MEASURED: 13, Outcome.NO_BINDING: 6, Outcome.NO_EXPRESSION: 1}
    assert [design.name for design in summarize(rows) if is_hit(design)] == [f"b{n}" for n in range(13)]
    assert list_unread_values([result(*entries)]) == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"kd_mean": "> 1e-6"},
        {"kd_mean": "≥1 µM"},
        {"kd_mean": 1e-6, "kd_qualifier": ">"},
        {"kd_mean": 1e-6, "kd_qualifier": ">="},
        {"kd_mean": 1e-6, "kd_relation": "≥"},
        {"kd_mean": 1e-6, "operator": ">"},
        {"kd_mean": 1e-6, "kd_display": "> 1 uM"},
        {"kd_mean": 1e-6, "kd_display": ">1e-6"},
    ],
)
def test_a_limit_in_a_listed_spelling_is_a_limit(fields):
    (row,) = read_rows([result({"sequence_name": "d1", "binding": "true", **fields})])
    assert (row.kd_M, row.qualifier) == (pytest.approx(1e-6), ">")


@pytest.mark.parametrize(
    "fields",
    [
        *({"kd_qualifier": word} for word in ("gt", "lower_bound", "&gt;", "greater than", "gte", "~", True)),
        *({"kd_display": text} for text in ("Kd > 1 uM", "&gt; 1 uM", "no fit", "> 5 uM", "< 1 nM")),
        {"kd_relation": "GreaterThan"},
        {"kd_limit": "lower"},
        {"kd_is_lower_bound": True},
        {"kd_censored": 1},
        {"censored": True},
        {"modifier": "above range"},
        {"relation": "gt"},
        {"out_of_range": "high"},
        {"comment": "Kd > 1 uM"},
        {"note": "> 1 µM"},
        {"kd_relation": ">", "kd_display": "< 1 uM"},
        {"kd_unit": "nM", "kd_units": "M"},
        {"kd": 2e-6},
    ],
)
def test_a_limit_in_another_spelling_is_never_an_exact_value(fields):
    made = result({"sequence_name": "d1", "binding": "true", "kd_mean": 1e-6, **fields})
    (row,) = read_rows([made])
    assert (row.kd_M, row.outcome) == (None, Outcome.BINDING)
    assert json.loads(row.extra)["kd_mean"] == 1e-6
    (line,) = list_unread_values([made])
    assert line.startswith("K_D in result r-1 is ")


@pytest.mark.parametrize(
    "fields",
    [
        {"kd_low": 1e-7, "kd_high": 2e-6, "kd_std": 1e-7, "kd_n": 3, "kd_r2": 0.99},
        {"kd_qualifier": "=", "censored": False, "kd_limit": None, "kd_method": "1:1"},
        {"comment": "chi2 < 0.1", "fit_quality": "good", "koff_relation": ">"},
    ],
)
def test_what_stands_beside_an_exact_value_leaves_it_exact(fields):
    (row,) = read_rows([result({"sequence_name": "d1", "kd_mean": 1e-6, **fields})])
    assert (row.kd_M, row.qualifier) == (1e-6, None)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"koff_mean": "<1e-5"}, "k_off"),
        ({"koff_mean": 1e-5, "koff_qualifier": "<"}, "k_off"),
        ({"kon_mean": "> 1e7"}, "k_on"),
        ({"kd_mean": None, "kon_mean": "> 1e7"}, "k_on"),
        ({"concentration_value": 5.0, "concentration_display": "<5.0"}, "the concentration"),
    ],
)
@pytest.mark.parametrize("listed", [1, 2])
def test_a_limit_beside_the_main_value_is_never_an_exact_value(fields, word, listed):
    made = result(*[{"sequence_name": "d1", "binding": "true", "kd_mean": 1e-10, **fields}] * listed)
    for row in read_rows([made]):
        assert (row.kon_per_M_s, row.koff_per_s, row.concentration_nM) == (None, None, None)
        assert row.kd_M == (None if "kd_mean" in fields else pytest.approx(1e-10))
        assert row.qualifier is None
    for row in read_rows([made])[-listed:]:
        assert fields.items() <= {"kd_mean": None, **json.loads(row.extra or "{}")}.items()
    (line,) = list_unread_values([made])
    assert line.startswith(f"{word} in result r-1 is ")


def test_a_limit_of_the_main_value_keeps_its_sign_and_the_others_stay_exact():
    (row,) = read_rows([result({"sequence_name": "d1", "kd_mean": "<1e-10", "koff_mean": 1e-5})])
    assert (row.kd_M, row.qualifier, row.koff_per_s) == (1e-10, "<", 1e-5)
    limit, exact = {"concentration_value": "<5.0"}, {"kd_mean": 1e-9}
    row, *_ = read_rows(
        [result(*({"sequence_name": "d1", "binding": "true", **one} for one in (exact, limit)))]
    )
    assert (row.kd_M, row.qualifier, row.concentration_nM) == (1e-9, None, None)


@pytest.mark.parametrize(
    "value", ["1_000", "1,5", {"value": 1e-9}, [1e-9], "1e400", 1e400, "about 5", -1e-9, 5.0, 0.001]
)
def test_a_number_that_is_not_read_has_a_line(value):
    made = result({"sequence_name": "d1", "kd_mean": value})
    (row,) = read_rows([made])
    assert (row.kd_M, row.outcome) == (None, Outcome.UNKNOWN)
    assert len(list_unread_values([made])) == 1


@pytest.mark.parametrize(
    "kind", ["enzyme_activity", "screening", "thermostability", "expression", "isothermal_titration"]
)
def test_a_kd_of_another_assay_is_no_affinity(kind):
    made = result({"sequence_name": "d1", "kd": 1e-9, "replicates": [{"kd": 1e-9}]}, result_type=kind)
    assert {(row.kd_M, row.outcome) for row in read_rows([made])} == {(None, Outcome.UNKNOWN)}
    (line,) = list_unread_values([made])
    assert line.startswith("kd in result r-1 is 1e-09, which is not a value of ")


@pytest.mark.parametrize(
    ("kind", "fields", "outcome"),
    [
        ("affinity", {"n_replicates": 3, "plate": 7, "length": 120, "error_code": 0}, Outcome.UNKNOWN),
        ("affinity", {"concentration_value": 50.0}, Outcome.UNKNOWN),
        ("affinity", {"koff_mean": 1e-3}, Outcome.MEASURED),
        ("fluorescence", {"n_replicates": 3, "excitation_nm": 488, "background": 150.0}, Outcome.UNKNOWN),
        ("fluorescence", {"intensity_mean": 3.5}, Outcome.MEASURED),
        ("expression", {"molecular_weight_da": 12000.0}, Outcome.UNKNOWN),
        ("expression", {"expression": "unknown"}, Outcome.UNKNOWN),
        ("expression", {"expression": "low"}, Outcome.MEASURED),
        ("expression", {"yield_mean": 12.0}, Outcome.MEASURED),
        ("enzyme_activity", {"plate": 3}, Outcome.UNKNOWN),
        ("enzyme_activity", {"kcat_mean": 2.0}, Outcome.MEASURED),
        ("epitope_binning", {"bin": "A"}, Outcome.MEASURED),
        ("epitope_binning", {"responses": {"d2": 0.4}}, Outcome.MEASURED),
        ("epitope_binning", {"bin": None, "responses": {"d2": None}}, Outcome.UNKNOWN),
        ("screening", {"signal": 0.3}, Outcome.UNKNOWN),
        ("thermostability", {"initial_330nm": 3.2}, Outcome.UNKNOWN),
    ],
)
def test_a_measurement_is_a_value_in_a_field_of_its_assay_type(kind, fields, outcome):
    (row,) = read_rows([result({"sequence_name": "d1", **fields}, result_type=kind)])
    assert row.outcome is outcome


def test_a_row_per_replicate_gives_one_design_with_their_geometric_mean():
    entries = [
        {"sequence_name": "d1", "binding": "true", "replicate": n, "kd": kd}
        for n, kd in ((1, 0.5e-9), (2, 1e-9), (3, 2e-9))
    ]
    rows = read_rows([result(*entries, {"sequence_name": "d2", "kd_mean": 3e-9})])
    assert [(row.name, row.level, row.replicate) for row in rows] == [
        ("d1", Level.SUMMARY, None),
        *(("d1", Level.REPLICATE, n) for n in (1, 2, 3)),
        ("d2", Level.SUMMARY, None),
    ]
    assert rows[0].kd_M == pytest.approx(1e-9)
    first, _ = summarize(rows)
    assert (first.name, first.kd_M, first.replicates, first.replicates_averaged) == (
        "d1",
        pytest.approx(1e-9),
        3,
        3,
    )


@pytest.mark.parametrize(
    ("kind", "fields", "replicates", "outcome", "value"),
    [
        ("affinity", {}, [{"kd": kd * 1e-9} for kd in (1, 2, 4)], Outcome.MEASURED, 2e-9),
        ("affinity", {"expression": "high"}, [{"kd": 2e-9}, {"kd": 2e-9}], Outcome.MEASURED, 2e-9),
        ("affinity", {"binding_strength": "unknown"}, [{"kd": 2e-9}, {"kd": 2e-9}], Outcome.UNKNOWN, None),
        ("affinity", {}, [{"binding": "false"}, {"binding": "false"}], Outcome.NO_BINDING, None),
        ("affinity", {}, [{"kon": None}, {"kd": None}], Outcome.UNKNOWN, None),
        ("thermostability", {}, [{"tm": 61.0}, {"tm": 62.0}], Outcome.MEASURED, 61.5),
    ],
)
def test_an_entry_without_value_and_call_has_those_of_its_replicates(
    kind, fields, replicates, outcome, value
):
    entry = {"sequence_name": "d1", "concentration_value": 50.0, "fit_quality": "good", **fields}
    entry["replicates"] = replicates
    rows = read_rows([result(entry, result_type=kind)])
    (design,) = summarize(rows)
    assert (rows[0].outcome, design.outcome, design.replicates) == (outcome, outcome, len(replicates))
    assert (design.kd_M or design.tm_C) == pytest.approx(value)
    assert (design.reported_kd_M, design.reported_tm_C) == (None, None)
    assert rows[0].fit_quality == "good"
    assert design.expression == fields.get("expression")
    if kind == "affinity" and outcome is not Outcome.NO_BINDING:
        assert rows[0].concentration_nM == 50.0


@pytest.mark.parametrize("replicate", [{"fit_quality": "good"}, {"binding": "true"}])
def test_replicates_without_a_value_leave_that_of_their_entry(replicate):
    entries = [
        {"sequence_name": "d1", "kd_mean": kd, "binding": "true", "replicates": [replicate]}
        for kd in (1e-9, 4e-9)
    ]
    for listed, kd in ((entries[:1], 1e-9), (entries, 2e-9)):
        rows = read_rows([result(*listed)])
        (design,) = summarize(rows)
        assert (rows[0].outcome, design.kd_M) == (Outcome.MEASURED, pytest.approx(kd))


@pytest.mark.parametrize("are_listed", [False, True])
@pytest.mark.parametrize("targets", [("A", "B"), ({"name": "A"}, {"name": "B"}), ("A", None)])
def test_replicates_against_two_targets_are_no_replicates_of_one_another(are_listed, targets):
    entries = []
    for target, kd in zip(targets, (1e-9, 1e-6), strict=True):
        entry = {"sequence_name": "d1", "target": target, "kd_mean": kd}
        replicates = [{"replicate": n, "kd": kd} for n in (1, 2)]
        entries += (
            [{**entry, **one} for one in replicates] if are_listed else [{**entry, "replicates": replicates}]
        )
    rows = read_rows([result(*entries)])
    assert [row.kd_M for row in rows] == pytest.approx([1e-9] * 3 + [1e-6] * 3)
    for read in (rows, from_csv(to_csv(rows))):
        (design,) = summarize(read)
        assert (design.kd_M, design.replicates, design.replicates_averaged) == (pytest.approx(1e-6), 2, 2)
        (doubt,) = design.doubts
        assert doubt.startswith("measured against several targets, and this is of ")


def test_what_all_rows_of_a_design_say_is_said_of_the_design():
    sequence = {"name": "blank", "aa_string": "MKV", "control": True}
    blank = {"sequence": sequence, "positive_control": False, "data_source": "model", "binding": "false"}
    rows = read_rows(
        [result(*({**blank, "replicate": n} for n in (1, 2)), {"sequence_name": "d1", "binding": "no"})]
    )
    assert json.loads(rows[0].extra) == {
        "positive_control": False,
        "data_source": "model",
        "replicates_listed": 2,
    }
    designs = {design.name: design for design in summarize(rows)}
    assert (designs["blank"].expects_binding, designs["blank"].data_source) == (False, "model")
    assert designs["d1"].doubts == ()


@pytest.mark.parametrize(
    ("others", "kd"),
    [({}, 1e-8), ({"kd_app": 2e-8}, None), ({"kd_units": "nM"}, None), ({"kd_qualifier": ">"}, None)],
)
def test_an_apparent_kd_that_all_rows_of_a_design_have_is_its_own(others, kd):
    entry = {"sequence_name": "d1", "binding": "true", "kd_app": 1e-8}
    for listed in ([entry, {**entry, **others}], [{**entry, **others}, entry]):
        (design,) = summarize(read_rows([result(*listed)]))
        assert design.kd_M == kd


@pytest.mark.parametrize(
    ("replicates", "outcome", "kd"),
    [
        (
            [{"binding": "true", "kd": 1e-9}, {"binding": "false"}, {"binding": "false", "kd": 1e-5}],
            Outcome.NO_BINDING,
            None,
        ),
        (
            [{"binding": "true", "kd": 1e-9}, {"binding": "true", "kd": 4e-9}, {"binding": "false"}],
            Outcome.MEASURED,
            2e-9,
        ),
        ([{"binding": "true", "kd": 1e-9}, {"binding": "false"}], Outcome.UNKNOWN, None),
        ([{"kd": ">1e-5"}, {"kd": ">2e-5"}], Outcome.MEASURED, 1e-5),
        ([{"kd": ">1e-5"}, {"kd": 2e-9}], Outcome.MEASURED, None),
        ([{"binding": "true"}, {"binding": "true"}], Outcome.BINDING, None),
        ([{"kd": None}, {"kd": None}], Outcome.UNKNOWN, None),
        ([{"expression": "none"}, {"expression": "none"}], Outcome.NO_EXPRESSION, None),
    ],
)
def test_the_outcome_of_replicate_rows_is_that_of_most(replicates, outcome, kd):
    summary, *others = read_rows([result(*({"sequence_name": "d1", **one} for one in replicates))])
    assert (summary.outcome, summary.kd_M) == (outcome, kd if kd is None else pytest.approx(kd))
    assert [row.replicate for row in others] == list(range(1, len(replicates) + 1))


def test_a_kd_above_the_highest_concentration_is_extrapolated():
    made = result(
        {"sequence_name": "d1", "kd_mean": 4e-6, "kd_units": "M"},
        {"sequence_name": "d2", "kd_mean": 4e-7, "kd_units": "M"},
    )
    first, second = read_rows([made], highest_molar=1e-6)
    assert first.doubt == "extrapolated: K_D is above the highest concentration, 1000 nM"
    assert second.doubt is None
    assert [(design.name, design.extrapolated) for design in summarize((first, second))] == [
        ("d2", False),
        ("d1", True),
    ]


@pytest.mark.parametrize(("koff", "is_doubted"), [(1e-4, False), (2.9e-4, False), (1e-2, True), (1e-6, True)])
def test_rate_constants_are_compared_with_the_affinity(koff, is_doubted):
    (row,) = read_rows([result({"sequence_name": "d1", "kd_mean": 1e-9, "kon_mean": 1e5, "koff_mean": koff})])
    assert row.kd_M == 1e-9
    assert (row.doubt is not None) == is_doubted


def test_units_of_one_place_that_contradict_each_other_are_quoted():
    made = result({"sequence_name": "d1", "kd_mean": 5.0, "kd_unit": "nM", "kd_units": "M"})
    (row,) = read_rows([made])
    assert (row.kd_M, row.outcome) == (None, Outcome.UNKNOWN)
    (line,) = list_unread_values([made])
    assert "in 'nM' and 'M': units that contradict each other" in line


@pytest.mark.parametrize(
    ("kind", "field", "column"),
    [("thermostability", "tm", "tm_C"), ("expression", "concentration_value", "concentration_nM")],
)
def test_a_number_beside_an_unknown_word_is_in_its_column_and_in_no_summary(kind, field, column):
    rows = read_rows([result({"sequence_name": "d1", field: 61.5, "expression": "so-so"}, result_type=kind)])
    assert getattr(rows[0], column) == 61.5
    (design,) = summarize(rows)
    assert (design.outcome, getattr(design, column)) == (Outcome.UNKNOWN, None)


def melts(*values, **fields):
    return {"tm": 60.5, "replicates": [{"replicate": n, **one} for n, one in enumerate(values, 1)], **fields}


@pytest.mark.parametrize("refusal", [{"call": "failed QC"}, {"expression": "none"}])
def test_a_melting_temperature_of_a_refused_replicate_is_no_part_of_the_mean(refusal):
    entry = {"sequence_name": "d1", **melts({"tm": 60}, {"tm": 61}, {"tm": 20, **refusal})}
    rows = read_rows([result(entry, result_type="thermostability")])
    (design,) = summarize(rows)
    assert (design.tm_C, rows[-1].tm_C) == (60.5, 20)
    assert pool_scatters(rows).tm_C.variance == 0.5


@pytest.mark.parametrize(
    ("kind", "fields", "objective"),
    [
        ("thermostability", {"tm": 90.0}, Objective.MELTING),
        ("thermostability", melts({"tm": 90.0}, {"tm": 91.0}), Objective.MELTING),
        ("expression", {"concentration_value": 900.0}, Objective.EXPRESSION),
    ],
)
def test_the_number_of_a_refused_measurement_is_no_hit(kind, fields, objective):
    rows = read_rows([result({"sequence_name": "d1", "outcome": "failed QC", **fields}, result_type=kind)])
    (design,) = summarize(rows)
    assert (design.outcome, design.tm_C, design.concentration_nM) == (Outcome.UNKNOWN, None, None)
    assert is_hit(design, objective) is None


def test_a_concentration_that_the_assay_does_not_measure_stays():
    (design,) = summarize(read_rows([result({"sequence_name": "d1", "concentration_value": 50.0})]))
    assert (design.outcome, design.concentration_nM) == (Outcome.UNKNOWN, 50.0)


@pytest.mark.parametrize(
    "replicates", [[1e-9, 2e-9], {"1": {"kd": 1e-9}}, "see the package", [{"kd": 1e-9}, 7]]
)
def test_replicates_that_are_not_objects_have_a_line_and_are_kept(replicates):
    made = result({"sequence_name": "d1", "binding": "true", "replicates": replicates})
    (line,) = list_unread_values([made])
    assert line.startswith("replicates in result r-1 is ")
    kept = json.loads(read_rows([made])[0].extra)["unread_replicates"]
    assert kept == ([7] if isinstance(replicates, list) and 7 in replicates else replicates)
    assert list_unread_values([Result.model_validate_json(made.model_dump_json())]) == (line,)
    assert list_unread_values([result({"sequence_name": "d1", "binding": "true", "replicates": []})]) == ()


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("fluorescence", {"intensity_mean": "1200"}),
        ("enzyme_activity", {"kcat": "about 5"}),
        ("affinity", {"kd_mean": 1e-9, "kd_log_std": "0.1"}),
    ],
)
def test_a_text_in_place_of_a_number_without_a_column_has_a_line(kind, fields):
    (line,) = list_unread_values([result({"sequence_name": "d1", **fields}, result_type=kind)])
    name, value = list(fields.items())[-1]
    assert line.startswith(f"{name} in result r-1 is {value!r}, which is a text and not a number")


@pytest.mark.parametrize(
    ("kind", "fields", "names"),
    [
        ("affinity", {"pkd": 8.1}, "'pkd'"),
        ("affinity", {"expression": "high", "KD": 1e-9, "kd_nM": 1}, "'KD', 'kd_nM'"),
        ("affinity", {"replicates": [{"replicate": 1, "KD": 1e-9}, {"replicate": 2, "KD": 2e-9}]}, "'KD'"),
        ("new_type", {"shape": {"alpha": 1.5}}, "'shape'"),
        ("affinity", {"binding": "unknown", "plate": 7}, None),
        ("affinity", {"replicates": [{"kd": 1e-9}], "plate": 7}, None),
        ("affinity", {"kd_units": "M", "kd_mean": None, "fit_quality": "poor"}, None),
        ("thermostability", {"tm": None, "initial_330nm": 3.2, "onset_pts_for_ratio": [55.0]}, None),
    ],
)
def test_an_entry_without_a_value_and_a_call_says_which_fields_are_not_read(kind, fields, names):
    lines = list_unread_values([result({"sequence_name": "d1", **fields}, result_type=kind)])
    assert len(lines) == (names is not None)
    assert all(f"is without a value or a call in a known field, and has {names} (1 row)" in x for x in lines)
