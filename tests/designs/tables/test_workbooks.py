"""Hidden rows and sheets, formulas without values, errors and stray cells of workbooks; small files that unpack to large ones."""

import gzip
import io
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prefect_assay.designs.tables.errors import UnreadableFile
from prefect_assay.designs.tables.table import Table, read_table

CASES = Path(__file__).parents[2] / "designs" / "cases" / "tables"
SHEET = "xl/worksheets/sheet1.xml"
ROWS = [["name", "sequence", "score"], ["a", "ACDEF", 1], ["b", "GHIKL", 2], ["c", "MNPQR", 3]]


def saved(book: openpyxl.Workbook) -> bytes:
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def workbook() -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    for row in ROWS:
        book.active.append(row)
    return book


def changed(data: bytes, members: dict[str, bytes | None]) -> bytes:
    """A workbook with other members, or without some."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in dict.fromkeys([*old.namelist(), *members]):
            if (new := members[name] if name in members else old.read(name)) is not None:
                archive.writestr(name, new)
    return buffer.getvalue()


def sheet(cells: str, before: str = "") -> bytes:
    xml = f'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{before}<sheetData>{cells}</sheetData></worksheet>'
    return changed(saved(workbook()), {SHEET: xml.encode()})


def text(reference: str, value: str) -> str:
    return f'<c r="{reference}" t="inlineStr"><is><t>{value}</t></is></c>'


HEADER = f'<row r="1">{text("A1", "name")}{text("B1", "sequence")}</row>'
ROW = f'<row r="2">{text("A2", "a")}{text("B2", "ACDEF")}</row>'


def ods(rows: str, table: str = "designs") -> bytes:
    namespaces = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for short, name in (("office", "office"), ("table", "table"), ("text", "text"))
    )
    extension = 'xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
    xml = (
        f"<office:document-content {namespaces} {extension}><office:body><office:spreadsheet>"
        f'<table:table table:name="{table}">{rows}</table:table></office:spreadsheet></office:body></office:document-content>'
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", xml)
    return buffer.getvalue()


def ods_row(*cells: str, attributes: str = "") -> str:
    inside = "".join(
        f'<table:table-cell office:value-type="string"><text:p>{c}</text:p></table:table-cell>' for c in cells
    )
    return f"<table:table-row {attributes}>{inside}</table:table-row>"


ODS = ods_row("name", "sequence") + ods_row("a", "ACDEF")


def read(data: bytes) -> Table:
    table = read_table(data, lambda titles: "sequence" in titles)
    table.rows = iter(list(table.rows))
    return table


def refused(data: bytes) -> UnreadableFile:
    with pytest.raises(UnreadableFile) as caught:
        read(data)
    return caught.value


def cells(data: bytes) -> list[list[str]]:
    return [row for _, row in read(data).rows]


# -- hidden


def test_rows_hidden_by_a_filter_are_never_read_or_left_out_silently():
    error = refused((CASES / "filtered_rows.xlsx").read_bytes())
    assert (error.line, error.message.partition(",")[0]) == (4, "4 of 6 rows are hidden")
    for hide in ({2}, {4}, {2, 3, 4}):
        book = workbook()
        for row in hide:
            book.active.row_dimensions[row].hidden = True
        error = refused(saved(book))
        assert (error.line, error.message.partition(",")[0]) == (
            min(hide),
            f"{len(hide)} of 3 rows are hidden",
        )


def test_hidden_rows_without_content_or_above_the_header_are_no_matter():
    book = workbook()
    book.active.row_dimensions[9].hidden = True
    assert len(cells(saved(book))) == 3
    book.active.insert_rows(1, 2)
    book.active["A1"] = "made today"
    book.active.row_dimensions[1].hidden = True
    assert len(cells(saved(book))) == 3


@pytest.mark.parametrize("state", ["hidden", "veryHidden"])
def test_a_hidden_sheet_is_never_read(state):
    book = workbook()
    copy = book.copy_worksheet(book.active)
    copy.title, copy.sheet_state = "old", state
    table = read(saved(book))
    assert table.notes == ["read from the sheet 'Sheet'; other sheets: 'old (hidden)'"]
    assert len(list(table.rows)) == 3
    book.remove(book["Sheet"])
    book.create_sheet("notes").append(["see the other sheet"])
    assert "only a hidden sheet holds such a table: 'old'" in refused(saved(book)).message


def test_hidden_columns_are_said():
    book = workbook()
    book.active.column_dimensions["B"].hidden = True
    table = read(saved(book))
    assert table.notes == ["columns that are hidden in the sheet are read like the others: 'sequence'"]


@pytest.mark.parametrize("word", ["filter", "collapse"])
def test_rows_of_an_ods_file_that_are_hidden_are_refused(word):
    assert cells(ods(ODS)) == [["a", "ACDEF"]]
    error = refused(ods(ODS + ods_row("b", "GHIKL", attributes=f'table:visibility="{word}"')))
    assert (error.line, error.message.partition(",")[0]) == (3, "1 of 2 rows are hidden")


# -- values that are not there


def test_a_formula_without_a_value_is_refused_and_not_left_out():
    error = refused((CASES / "formulas_without_values.xlsx").read_bytes())
    assert error.line == 3
    assert "column 1 has a formula without a value" in error.message
    book = workbook()
    book.active["C3"] = "=C2*2"
    assert refused(saved(book)).line == 3
    assert refused(sheet(HEADER + ROW + '<row r="3"><c r="B3"><f>B2</f></c></row>')).line == 3
    assert refused(sheet(HEADER + ROW + '<row><c><f t="shared" si="0"/><v/></c></row>')).line == 3
    cell = '<table:table-row><table:table-cell table:formula="of:=[.A2]"/></table:table-row>'
    assert refused(ods(ODS + cell)).line == 3


def test_formulas_with_values_are_read_also_empty_ones():
    row = f'<row r="2">{text("A2", "a")}<c r="B2" t="str"><f>"AC"&amp;"D"</f><v>ACD</v></c><c r="C2" t="str"><f>IF(1,"")</f><v></v></c></row>'
    assert [row[:2] for row in cells(sheet(HEADER + row))] == [["a", "ACD"]]


def test_an_error_is_no_empty_cell():
    row = f'<row r="2">{text("A2", "a")}<c r="B2" t="e"><f>X()</f><v>#N/A</v></c></row>'
    assert cells(sheet(HEADER + row)) == [["a", "#N/A"]]
    error = '<table:table-cell table:formula="x" office:value-type="string" calcext:value-type="error"><text:p>#REF!</text:p></table:table-cell>'
    row = ods_row("b", "GHIKL").replace("</table:table-row>", f"{error}</table:table-row>")
    assert cells(ods(ODS + row))[1][:3] == ["b", "GHIKL", "#REF!"]


@pytest.mark.parametrize("place", ["B2:B3", "B3:B4", "B3:C3"])
def test_merged_cells_of_the_table_are_refused(place):
    book = workbook()
    book.active.merge_cells(place)
    error = refused(saved(book))
    assert (error.line, "are merged" in error.message) == (int(place[1]), True)
    spanned = ods_row("b", "GHIKL").replace(
        "<table:table-cell", '<table:table-cell table:number-rows-spanned="2"', 1
    )
    assert refused(ods(ODS + spanned)).line == 3


def test_a_merged_title_above_the_header_is_no_matter():
    book = workbook()
    book.active.insert_rows(1)
    book.active["A1"] = "Designs of round 2"
    book.active.merge_cells("A1:C1")
    assert len(cells(saved(book))) == 3


# -- small files of large content

BOMBS = {
    "a cell at the end": sheet(HEADER + ROW + f'<row r="1048576">{text("XFD1048576", "x")}</row>'),
    "only a cell at the end": sheet(f'<row r="1048576">{text("XFD1048576", "x")}</row>'),
    "two cells in a diagonal": sheet(HEADER + ROW + f'<row r="1000000">{text("A1000000", "x")}</row><row>{text("ZZ5", "x")}</row>'),
    "beyond any sheet": sheet(HEADER + ROW + f'<row r="9999999">{text("ZZZ9999999", "x")}</row>'),
    "repeated cells": ods(ODS + ods_row("x").replace("<table:table-cell", '<table:table-cell table:number-columns-repeated="2000000000"')),
    "repeated rows": ods(ODS + ods_row("x", "y", attributes='table:number-rows-repeated="2000000000"')),
    "elements in elements": sheet(HEADER + ROW + "<x>" * 1_000_000),
    "entities": changed(
        saved(workbook()),
        {SHEET: b'<!DOCTYPE x [<!ENTITY a "' + b"x" * 1000 + b'">' + b"".join(
            b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 100) for n in range(5)
        ) + b"]><worksheet><sheetData><row><c><v>&f;</v></c></row></sheetData></worksheet>"},
    ),
    "blanks": sheet(HEADER + ROW + " " * 40_000_000),
    "blanks in the strings": changed(saved(workbook()), {"xl/sharedStrings.xml": b"<sst>" + b" " * 40_000_000 + b"</sst>"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", BOMBS)
def test_a_small_workbook_of_large_content_is_refused(kind):
    assert len(BOMBS[kind]) < 200_000
    assert "save" in refused(BOMBS[kind]).message


@pytest.mark.parametrize(
    "changes",
    [
        {"xl/workbook.xml": None},
        {"xl/workbook.xml": b"<workbook><sheets><sheet name='a'/></sheets></workbook>"},
        {"xl/workbook.xml": b"<workbook"},
        {"xl/_rels/workbook.xml.rels": None},
        {SHEET: None},
        {SHEET: b"<worksheet><sheetData><row r='x'>"},
        {
            SHEET: b"<worksheet><sheetData><row r='-4'><c r='A1' t='s'><v>99999999</v></c></row></sheetData></worksheet>"
        },
    ],
    ids=str,
)
def test_a_damaged_workbook_is_named(changes):
    assert "save" in refused(changed(saved(workbook()), changes)).message


def test_a_cell_far_from_the_table_on_another_sheet_counts_too():
    book = workbook()
    book.create_sheet("notes")["XFD1048576"] = "x"
    assert "the sheet 'notes' reaches to row 1,048,576 and column 16,384" in refused(saved(book)).message


def test_a_large_sheet_and_formatted_cells_far_away_are_read():
    book = workbook()
    for number in range(3000):
        book.active.append([f"d{number}", "ACDEF", number / 2])
    book.active["XFD1048576"].font = openpyxl.styles.Font(bold=True)
    assert len(cells(saved(book))) == 3003


def test_long_cells_that_a_parquet_file_repeats_end_at_the_limit():
    buffer = io.BytesIO()
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["A" * 1_000_000]))
    pq.write_table(
        pa.table({"name": pa.array(["x"] * 20_000), "sequence": repeated}), buffer, compression="zstd"
    )
    assert len(buffer.getvalue()) < 1_100_000
    assert "characters" in refused(buffer.getvalue()).message


def test_empty_lines_that_unpack_without_an_end_are_refused():
    with pytest.raises(UnreadableFile, match="larger than"):
        read_table(gzip.compress(b"\n" * 30_000_000), limit=20_000_000)
