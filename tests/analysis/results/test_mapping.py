"""A declared mapping: strictly validated, and read by the same reader as published shapes."""

import json

import pytest

from prefect_assay.analysis.results import Outcome
from prefect_assay.analysis.results.mapping import read_mapping
from prefect_assay.analysis.results.tidy import list_unread_values, read_rows
from prefect_assay.errors import InputError
from prefect_assay.service.models.result import Result

TOML = b"""
[affinity.fields.KD_nM]
column = "kd_M"
unit = "nM"
[affinity.fields."constants.kon"]
column = "kon_per_M_s"
unit = "1/(M s)"
[affinity.fields.hit]
column = "binding"
words = { "++" = "binds", "o" = "does_not_bind", "no protein" = "no_expression" }
[affinity.fields.range]
column = "qualifier"
words = { "above" = ">", "within" = "=" }
[fluorescence.fields.brightness]
column = "intensity_mean"
[nano_dsf.fields.melting]
column = "tm_C"
unit = "C"
"""
MAPPING = read_mapping(TOML, "mapping.toml")


def read(entry, kind="affinity"):
    made = Result.model_validate(
        {"id": "r-1", "result_type": kind, "summary": [{"sequence_name": "d1", **entry}]}
    )
    (row,) = read_rows([made], mapping=MAPPING)
    return row, list_unread_values([made], MAPPING)


def test_json_says_the_same():
    as_json = json.dumps(MAPPING.model_dump(exclude_defaults=True)["assays"]).encode()
    assert read_mapping(as_json, "mapping.json") == MAPPING


@pytest.mark.parametrize(
    ("entry", "outcome", "kd", "qualifier"),
    [
        ({"KD_nM": 5.0, "hit": "++"}, Outcome.MEASURED, 5e-9, None),
        ({"KD_nM": "5.0", "range": "within"}, Outcome.MEASURED, 5e-9, None),
        ({"KD_nM": 5000, "range": "above"}, Outcome.MEASURED, 5e-6, ">"),
        ({"KD_nM": 5.0, "hit": "o"}, Outcome.NO_BINDING, 5e-9, None),
        ({"KD_nM": None, "hit": "no protein"}, Outcome.NO_EXPRESSION, None, None),
    ],
)
def test_a_mapped_field_is_read_as_its_column(entry, outcome, kd, qualifier):
    row, lines = read(entry)
    assert (row.outcome, row.kd_M, row.qualifier) == (outcome, kd and pytest.approx(kd), qualifier)
    assert lines == ()
    came = {name: value for name, value in entry.items() if value is not None}
    assert json.loads(row.extra).items() >= came.items()


@pytest.mark.parametrize(
    ("entry", "outcome"),
    [
        ({"KD_nM": 5.0, "hit": "+++"}, Outcome.UNKNOWN),
        ({"KD_nM": 5.0, "range": "around"}, Outcome.UNKNOWN),
        ({"KD_nM": "5 M"}, Outcome.UNKNOWN),
        ({"KD_nM": -5}, Outcome.UNKNOWN),
        ({"KD_nM": 5.0, "kd_mean": 7e-9}, Outcome.UNKNOWN),
        ({"KD_nM": 5.0, "kd_qualifier": "gt"}, Outcome.UNKNOWN),
    ],
)
def test_a_mapped_field_is_checked_like_any_other(entry, outcome):
    row, lines = read(entry)
    assert row.outcome is outcome
    assert len(lines) == 1


def test_a_path_a_field_without_a_column_and_an_unknown_type():
    row, _ = read({"constants": {"kon": 2e5}})
    assert row.kon_per_M_s == 2e5
    row, _ = read({"brightness": 12.5}, "fluorescence")
    assert (row.outcome, json.loads(row.extra)) == (
        Outcome.MEASURED,
        {"brightness": 12.5, "intensity_mean": 12.5},
    )
    row, _ = read({"melting": 61.5}, "NanoDsf")
    assert (row.outcome, row.tm_C) == (Outcome.MEASURED, 61.5)
    row, lines = read({"melting": 335.0}, "nano_dsf")
    assert (row.outcome, row.tm_C, len(lines)) == (Outcome.UNKNOWN, None, 1)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"[affinity", "neither TOML nor JSON"),
        (b"\xff", "neither TOML nor JSON"),
        (b"", "at least 1 item"),
        (b"[affinity.fields]", "affinity.fields: .*at least 1 item"),
        (b'[affinity.field.x]\ncolumn = "kd_M"', "affinity.field"),
        (b'[affinity.fields.x]\ncolumn = "kd_M"', "kd_M needs a unit, such as 'M'"),
        (b'[affinity.fields.x]\ncolumn = "kd_M"\nunit = "ng/mL"', "'ng/mL' is not a unit of kd_M"),
        (b'[affinity.fields.x]\ncolumn = "kd_nM"\nunit = "nM"', "'kd_nM' is not a column"),
        (
            b'[affinity.fields.x]\ncolumn = "intensity_mean"',
            "'intensity_mean' is not a column of a result of this type",
        ),
        (b'[affinity.fields.x]\ncolumn = "binding"\nunit = "nM"', "takes no unit"),
        (b'[affinity.fields.x]\ncolumn = "kd_M"\nunit = "nM"\nwords = {a = "b"}', "takes no words"),
        (b'[affinity.fields.x]\ncolumn = "binding"\nwords = {a = "maybe"}', "'maybe' is not a known word"),
        (b'[affinity.fields.x]\ncolumn = "qualifier"\nwords = {a = "gt"}', "'gt' is not a known word"),
        (b'[affinity.fields.x]\ncolumn = "kd_M"\nunit = "nM"\nfactor = 2', "Extra inputs"),
        (b"[affinity.fields.x]\ncolumn = 3", "valid string"),
        (b'{"affinity": []}', "affinity"),
    ],
)
def test_a_mapping_that_is_unclear_is_refused_with_its_place(content, cause):
    with pytest.raises(InputError, match=f"map.toml.*{cause}"):
        read_mapping(content, "map.toml")
