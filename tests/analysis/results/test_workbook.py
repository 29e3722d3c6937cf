"""A workbook that spreadsheet programs read: values with their types, texts that never are formulas."""

import io

import openpyxl

from prefect_assay.analysis.results.workbook import write_workbook

LINES = [["name", "kd_M", "ok"], ["=1+1", 1.25e-9, True], ["<b>&\x00", None, False], ["x" * 40_000, -3, ""]]


def test_what_is_written_is_what_a_program_reads():
    body = write_workbook({"designs": LINES, "a & b": [["x"]]})
    book = openpyxl.load_workbook(io.BytesIO(body))
    assert book.sheetnames == ["designs", "a & b"]
    cells = [[cell.value for cell in row] for row in book["designs"].iter_rows()]
    assert cells[:3] == [["name", "kd_M", "ok"], ["=1+1", 1.25e-9, True], ["<b>&\ufffd", None, False]]
    assert (len(cells[3][0]), cells[3][1:]) == (32_767, [-3, None])
    assert book["designs"]["A2"].data_type == "s"


def test_the_same_tables_give_the_same_bytes():
    assert write_workbook({"a": LINES}) == write_workbook({"a": LINES})
