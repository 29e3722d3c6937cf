"""CSV and Parquet: every row comes back as it was."""

import csv
import io

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from prefect_assay.analysis.results import (
    COLUMNS,
    Level,
    Outcome,
    ResultRow,
    collate_rows,
    from_csv,
    to_csv,
)
from prefect_assay.errors import InputError

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
optional_text = st.none() | text.filter(bool)
number = st.none() | st.floats(allow_nan=False, allow_infinity=False)
row_strategy = st.builds(
    ResultRow,
    experiment_code=text,
    result_id=text,
    result_type=text,
    level=st.sampled_from(Level),
    name=text,
    replicate=st.none() | st.integers(0, 9),
    control=st.none() | st.booleans(),
    outcome=st.sampled_from(Outcome),
    qualifier=optional_text,
    kd_M=number,
    log10_kd=number,
    kd_log_std=number,
    kon_per_M_s=number,
    koff_per_s=number,
    tm_C=number,
    concentration_nM=number,
    binding=optional_text,
    binding_strength=optional_text,
    expression=optional_text,
    fit_quality=optional_text,
    aa_string=optional_text,
    extra=optional_text,
)


def row(name="d", **fields):
    values = {"experiment_code": "E", "result_id": "r", "result_type": "affinity", "level": "summary"}
    return ResultRow.model_validate({**values, "name": name, "outcome": "measured", **fields})


@given(st.lists(row_strategy, max_size=4))
def test_csv_comes_back_exactly(table):
    assert from_csv(to_csv(table)) == tuple(table)


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "+1", "@SUM(A1)", "-1", "\t=1"])
def test_a_name_that_a_spreadsheet_takes_for_a_formula_keeps_its_bytes(name):
    """docs/results.md warns of it: the same value is wanted back."""
    data = to_csv([row(name=name)])
    assert f",{name}," in data.decode()
    assert from_csv(data)[0].name == name


def test_csv_is_read_by_others_with_units_in_the_header():
    data = to_csv([row(kd_M=7.4e-8, name='a,"b"\nc', control=False)])
    (cells,) = csv.DictReader(io.StringIO(data.decode(), newline=""))
    assert tuple(cells) == COLUMNS
    assert (cells["kd_M"], cells["name"], cells["tm_C"], cells["control"]) == (
        "7.4e-08",
        'a,"b"\nc',
        "",
        "false",
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "columns are missing: level, name"),
        (to_csv([]).replace(b"outcome", b"result"), "columns are missing: outcome"),
        (to_csv([row(kd_M=1.5)]).replace(b"1.5", b"abc"), "row 1, column kd_M"),
        (to_csv([row()]) + b"a,b\r\n", "row 2 has 2 cells"),
        (b"\xff\xfe", "not a results table: .*decode"),
    ],
)
def test_what_is_no_table_is_refused_by_name(data, message):
    with pytest.raises(InputError, match=message):
        from_csv(data)


def test_a_table_without_columns_that_may_be_empty_is_read():
    lines = to_csv([row(kd_M=1.5)]).decode().split("\r\n")
    cut = COLUMNS.index("kd_M") + 1
    old = "\r\n".join(",".join(line.split(",")[:cut]) for line in lines if line)
    assert from_csv(old.encode()) == (row(kd_M=1.5),)


@pytest.mark.parametrize("left_out", [name for name in COLUMNS if name not in {"level", "name", "outcome"}])
def test_a_table_of_another_version_is_read(left_out):
    """A column less, and one more in any place."""
    whole = row(kd_M=1.5, control=True, replicate=2, extra="{}")
    (cells,) = csv.DictReader(io.StringIO(to_csv([whole]).decode(), newline=""))
    for place in (0, 5, len(cells)):
        items = [(name, cell) for name, cell in cells.items() if name != left_out]
        items.insert(place, ("later_column", "x"))
        lines = [",".join(text) for text in zip(*items, strict=True)]
        (parsed_row,) = from_csv("\r\n".join(lines) + "\r\n")
        assert parsed_row == ResultRow.model_validate(whole.model_dump(exclude={left_out}))


def test_csv_takes_a_very_large_extra():
    (parsed_row,) = from_csv(to_csv([row(extra="x" * 1_000_000)]))
    assert len(parsed_row.extra) == 1_000_000


def to_parquet_type(table, column):
    return table.schema.field(column).type


def test_collate_keeps_the_later_of_a_row_that_comes_twice():
    partial = [row("a", binding="in_progress", outcome="pending"), row("b", result_id="", outcome="pending")]
    final = [row("a", kd_M=1e-9), row("b", kd_M=2e-9), row("c", result_id="", outcome="missing")]
    rows = collate_rows([partial, final])
    assert [(r.name, r.kd_M, r.outcome) for r in rows] == [
        ("a", 1e-9, "measured"),
        ("b", 2e-9, "measured"),
        ("c", None, "missing"),
    ]


def test_collate_keeps_replicates_without_a_number_and_equal_names_of_other_experiments():
    twins = [row(level="replicate", kd_M=1e-9), row(level="replicate", kd_M=1e-9)]
    assert len(collate_rows([twins, [row(experiment_code="F")]])) == 3


def test_a_table_is_read_from_bytes_text_and_places(tmp_path, monkeypatch):
    table = (row("a"), row("b"))
    data = to_csv(table)
    path = tmp_path / "results.csv"
    path.write_bytes(data)
    assert from_csv(data.decode()) == from_csv(path) == from_csv(str(path)) == from_csv(data) == table
    with pytest.raises(InputError, match=r"none\.csv: no such file"):
        from_csv(tmp_path / "none.csv")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="results")
        client.put_object(Bucket="results", Key="round 1/results.csv", Body=data)
        assert from_csv("s3://results/round 1/results.csv") == table
        with pytest.raises(InputError, match="no such object"):
            from_csv("s3://results/none.csv")
