"""One table, written in every way in which people send it, reads as the same rows."""

import bz2
import datetime as dt
import gzip
import io
import lzma
import zipfile

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table as OdfTable
from odf.table import TableCell, TableRow
from odf.text import P

from prefect_assay.designs.tables.errors import NoHeader, UnreadableFile
from prefect_assay.designs.tables.table import read_table

TITLES = ["name", "KD (nM)", "note"]
ROWS = [["a", "12.5", "x, y"], ["Zürich", "850", ""], ["c", "1e3", 'he said "no"']]


def text(delimiter: str = ",", *, decimal: str = ".") -> str:
    def cell(value: str) -> str:
        value = value.replace(".", decimal)
        doubled = value.replace('"', '""')
        return f'"{doubled}"' if delimiter in value or '"' in value else value

    return "".join(delimiter.join(map(cell, row)) + "\n" for row in [TITLES, *ROWS])


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def workbook(**sheets: list[list[object]]) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def ods() -> bytes:
    document = OpenDocumentSpreadsheet()
    sheet = OdfTable(name="designs")
    for cells in [TITLES, *ROWS]:
        row = TableRow()
        for value in cells:
            cell = TableCell(valuetype="string")
            cell.addElement(P(text=value))
            row.addElement(cell)
        sheet.addElement(row)
    document.spreadsheet.addElement(sheet)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(
        pa.table({title: [row[column] or None for row in ROWS] for column, title in enumerate(TITLES)}),
        buffer,
    )
    return buffer.getvalue()


def cells(data: bytes) -> list[list[str]]:
    return [row for _, row in read_table(data).rows]


PLAIN = text().encode()


@pytest.mark.parametrize(
    "data",
    [
        PLAIN,
        text(";").encode(),
        text("\t").encode(),
        text("|").encode(),
        text(";", decimal=",").encode(),
        text("\t", decimal=",").encode(),
        ("sep=;\n" + text(";")).encode(),
        ("# made today\n\n" + text()).encode(),
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b"\n", b"\r"),
        text().encode("utf-8-sig"),
        text().encode("utf-16"),
        text().encode("latin-1"),
        gzip.compress(PLAIN),
        bz2.compress(PLAIN),
        lzma.compress(PLAIN),
        zipped(**{"a/designs.csv": PLAIN, "__MACOSX/a/._designs.csv": b"junk", "a/.DS_Store": b"junk"}),
        zipped(**{"designs.csv.gz": gzip.compress(PLAIN)}),
        gzip.compress(workbook(s=[TITLES, *ROWS])),
        workbook(s=[TITLES, *ROWS]),
        workbook(notes=[["made today"]], s=[["Designs of round 2"], [], TITLES, *ROWS]),
        ods(),
        parquet(),
    ],
    ids=lambda _: "",
)
def test_the_same_table_written_in_many_ways(data):
    assert cells(data) == ROWS


def test_numbers_and_days_of_a_workbook_are_text_as_a_person_types_it():
    data = workbook(
        s=[["name", "n", "day", "yes"], ["a", 12, dt.date(2026, 3, 2), True], ["b", 0.5, None, False]]
    )
    assert cells(data) == [["a", "12", "2026-03-02", "true"], ["b", "0.5", "", "false"]]


def test_rows_have_the_lines_of_their_file():
    table = read_table(b'\n# c\nname,note\n\na,"x\ny"\nb,z\n')
    assert list(table.rows) == [(5, ["a", "x\ny"]), (7, ["b", "z"])]
    assert table.line == 3
    sheet = read_table(workbook(s=[["Designs"], ["name", "note"], [], ["a", "x"]]))
    assert list(sheet.rows) == [(4, ["a", "x"])]


def test_a_title_may_hold_a_line_end():
    table = read_table(b'name,"KD\n(nM)"\na,1\n')
    assert (table.titles, list(table.rows)) == (("name", "KD (nM)"), [(3, ["a", "1"])])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("titles", ["name,x,note", "name,note,x", "note,name,x"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_quote_in_one_row_and_another_further_down_hold_no_rows(delimiter, titles, number):
    notes = ["ok", '"good', *["y"] * number, 'bad"', "z"]
    rows = [{"name": f"d{row}", "x": "1", "note": note} for row, note in enumerate(notes)]
    lines = [titles, *(",".join(row[title] for title in titles.split(",")) for row in rows)]
    data = "\n".join(lines).replace(",", delimiter).encode()
    with pytest.raises(
        UnreadableFile, match=f"goes on to line {4 + number}, and may hold the rows"
    ) as caught:
        list(read_table(data).rows)
    assert caught.value.line == 3


@pytest.mark.parametrize("note", ["x\ny", "x, y\nz", "x\ny, z", "x\ny; z\n, w\nv"])
@pytest.mark.parametrize("titles", ["name,x,note", "name,note,x", "note,name,x"])
def test_a_cell_may_have_several_lines(note, titles):
    row = {"name": "d", "x": "1", "note": f'"{note}"'}
    data = f"{titles}\n{','.join(row[title] for title in titles.split(','))}\n".encode()
    ((_, read),) = read_table(data).rows
    assert read == [row[title].strip('"') for title in titles.split(",")]


def test_a_repeated_header_starts_another_part():
    table = read_table(b"name,x\na,1\nname,x\nb,2\n")
    assert (list(table.rows), table.parts) == ([(2, ["a", "1"]), (4, ["b", "2"])], [3])
    table = read_table(b",name,x\n0,a,1\n,name,x\n0,b,2\n")
    assert ([row for _, row in table.rows], table.parts) == ([["0", "a", "1"], ["0", "b", "2"]], [3])


def test_the_header_of_another_table_ends_the_reading_at_its_line():
    with pytest.raises(UnreadableFile, match="header of another table") as caught:
        list(read_table(b"name,x,y\na,1,2\nname,y,x\nb,2,1\n").rows)
    assert caught.value.line == 3


@pytest.mark.parametrize(
    "body",
    ["a;0,5;12,45\nb;0.5;1,2\n", "a;1,234;\nb;2,000;\n", "a;12,45,7;x\n"],
    ids=["points elsewhere", "could be thousands", "a list"],
)
def test_commas_that_may_be_something_else_are_kept(body):
    table = read_table(("name;x;y\n" + body).encode())
    assert [";".join(row) + "\n" for _, row in table.rows] == body.splitlines(keepends=True)
    assert table.notes == []


def test_a_limit_keeps_its_sign():
    table = read_table(b"name;kd\na;12,5\nb;>1000,0\n")
    assert [row[1] for _, row in table.rows] == ["12.5", ">1000.0"]
    assert table.notes == ["decimal commas were read as points in: kd"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            zipped(**{"a.csv": PLAIN, "b.csv": PLAIN}),
            "a zip archive of 2 files (a.csv, b.csv); unpack it, and give one",
        ),
        (zipped(), "without a file"),
        (zipped(**{"__MACOSX/x": b""}), "without a file"),
        (gzip.compress(gzip.compress(gzip.compress(gzip.compress(PLAIN)))), "unpack it first"),
        (gzip.compress(PLAIN)[:-4], "gzip data are damaged"),
        (lzma.compress(PLAIN)[:-20], "xz data are damaged"),
        (workbook(a=[TITLES, *ROWS], b=[TITLES, *ROWS]), "several sheets hold such a table: 'a', 'b'"),
        (workbook(s=[[""]]), "empty"),
        (b"PAR1nothing", "the Parquet file cannot be read"),
        (b"\xd0\xcf\x11\xe0nothing", "the workbook cannot be read"),
        (b'name,x\na,"1', "check its quotes"),
        (b"", "empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read_is_named_with_the_next_step(data, message):
    with pytest.raises(UnreadableFile) as caught:
        list(read_table(data).rows)
    assert message in caught.value.message


def test_a_table_without_the_wanted_header_gives_its_titles():
    for data in (b"a;b\n1;2\n", workbook(s=[["a", "b"], [1, 2]])):
        with pytest.raises(NoHeader) as caught:
            read_table(data, lambda titles: "name" in titles)
        assert caught.value.titles == ("a", "b")


@pytest.mark.parametrize("module", ["python_calamine", "pyarrow"])
def test_a_missing_extra_is_named(module, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(UnreadableFile, match=r"the extra `(spreadsheets|parquet)`"):
        list(read_table(parquet() if module == "pyarrow" else workbook(s=[TITLES])).rows)


_CELL = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=8)


@given(st.lists(st.lists(_CELL, min_size=2, max_size=2), max_size=6), st.sampled_from(",;\t|"))
def test_what_the_standard_library_writes_is_read(rows, delimiter):
    import csv

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerows([["first", "second"], *rows])
    table_rows = [row for _, row in read_table(buffer.getvalue().encode()).rows]
    kept = [[cell.strip() for cell in row] for row in rows]
    assert [[c.replace(",", ".") for c in row] for row in table_rows] == [
        [c.replace(",", ".") for c in row] for row in kept if any(row) and row[0] not in {"first", "second"}
    ]
