"""Tables for people: nothing runs in a spreadsheet, numbers remain numbers."""

import csv
import io

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prefect_assay.analysis.results import ResultRow, from_csv, to_csv
from prefect_assay.analysis.results.summary import DesignSummary
from prefect_assay.analysis.results.tables import (
    encode_summary_parquet,
    guard_cell,
    write_summary_csv,
)

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
INVISIBLE = " \t\r\n\x00\x0b\x1f\xa0\u200b\u2028\u3000\ufeff"


def design(name="d1", **fields):
    return DesignSummary.model_validate(
        {"name": name, "experiment_code": "E-1", "outcome": "measured", **fields}
    )


def lines(data):
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))


HOSTILE = [
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "  =1",
    "\ufeff=1",
    "\uff1d1",
    "x;=1",
    "x\n=1",
    "x\r\n=1",
    "x\t @y",
    ";;-1",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_cannot_run(name):
    written = lines(write_summary_csv([design(name, attributes={name: name})]))[0]
    for text in (written["name"], *written):
        for cell in text.replace("\t", ";").replace("\r", ";").replace("\n", ";").split(";"):
            assert cell.lstrip(INVISIBLE)[:1] not in {*SIGNS}
    assert "'" in written["name"]


@pytest.mark.parametrize("name", ["d1", "a-b", "deep:7 n:0|mpnn:1.320|i_ptm:0.893", "x=1", "a;b", "café"])
def test_a_harmless_name_is_as_it_was(name):
    assert lines(write_summary_csv([design(name)]))[0]["name"] == name == guard_cell(name)


@given(
    st.text(st.sampled_from(SIGNS + INVISIBLE + ";'\"aé,|1")),
    st.text(st.characters(codec="utf-8")),
    st.dictionaries(st.text(st.sampled_from(SIGNS + INVISIBLE + "aB")), st.text(max_size=5), max_size=3),
)
@example(name="", expression="", attributes={"\x1f": "", "\r": ""})
def test_no_text_cell_begins_with_a_sign(name, expression, attributes):
    data = write_summary_csv([design(name, expression=expression, reasons=(name,), attributes=attributes)])
    header, cells = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    assert len(header) == len(set(header)) == len(cells)
    for cell in (*header, *cells):
        if not is_number(cell):
            assert cell.lstrip(INVISIBLE)[:1] not in {*SIGNS}


def is_number(cell):
    try:
        return cell.isascii() and cell[-1:].isdigit() and float(cell) is not None
    except ValueError:
        return False


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(1e-15, 1), st.integers(-9, 9))
def test_numbers_come_back_as_they_were(value, kd, score):
    written = lines(
        write_summary_csv([design(tm_C=value, kd_M=kd, attributes={"dG": repr(value), "score": str(score)})])
    )[0]
    assert (float(written["tm_C"]), float(written["kd_M"])) == (value, kd)
    assert (float(written["dG"]), int(written["score"])) == (value, score)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_an_empty_cell(value):
    assert lines(write_summary_csv([design(kd_M=value)]))[0]["kd_M"] == ""


def test_own_columns_follow_and_give_way_to_the_tables_columns():
    designs = [
        design("d1", attributes={"ipTM": "0.9", "Name": "x", "method": "rfd"}),
        design("d2", attributes={"round": "2", "design_name": "y"}),
    ]
    first, second = lines(write_summary_csv(designs))
    assert list(first)[-5:] == ["ipTM", "design_Name", "method", "round", "design_design_name"]
    assert (first["name"], first["design_Name"], first["round"]) == ("d1", "x", "")
    assert (second["round"], second["design_design_name"]) == ("2", "y")


def test_the_exact_table_is_not_changed():
    row = ResultRow.model_validate(
        {"experiment_code": "E", "result_id": "r", "result_type": "affinity", "level": "summary"}
        | {"name": "=1+1", "outcome": "measured", "kd_M": 1e-9}
    )
    assert from_csv(to_csv([row])) == (row,)


def test_parquet_has_the_columns_of_the_csv_and_exact_texts():
    designs = [
        design("=1", kd_M=1e-9, control=True, replicates=3, reasons=("a", "b"), attributes={"ipTM": "0.9"})
    ]
    data = encode_summary_parquet(designs)
    table = pq.read_table(io.BytesIO(data))
    assert table.column_names == list(lines(write_summary_csv(designs))[0])
    record = table.to_pylist()[0]
    assert (record["name"], record["kd_M"], record["control"], record["replicates"]) == ("=1", 1e-9, True, 3)
    assert (record["reasons"], record["ipTM"], record["tm_C"]) == (["a", "b"], "0.9", None)
    assert encode_summary_parquet(designs) == data
    assert pq.read_table(io.BytesIO(encode_summary_parquet([]))).num_rows == 0


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(Exception, match=r"reading and writing Parquet needs an extra.*\[parquet\]"):
        encode_summary_parquet([])
