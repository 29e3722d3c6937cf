"""What a workbook has besides its values: hidden rows, columns and sheets, formulas without a value, errors, stray cells.

The XML of a sheet is looked through before its values are read. The reader of values makes room for every cell up to the last
one, which a single stray cell can move out to 17 billion; and it leaves out what is noted here.
"""

import posixpath
import re
import zipfile
from dataclasses import dataclass, field
from typing import Final
from xml.etree.ElementTree import ParseError, fromstring
from xml.parsers import expat

from prefect_assay.designs.tables.errors import UnreadableFile

MAX_CELLS: Final = 20_000_000  # up to the last one of a sheet: some 600 MB
_CHUNK: Final = 1024 * 1024
_REFERENCE = re.compile(r"([A-Za-z]{1,3})(\d{1,7})")
_TRUE: Final = frozenset({"1", "true"})
_HIDDEN: Final = frozenset({"collapse", "filter"})
_OPENED: Final = "open the workbook and save it as xlsx again, or save the sheet as CSV UTF-8"

Attributes = dict[str, str]


@dataclass(slots=True)
class Layout:
    """What one sheet has in addition to its values; rows and columns count from 1.

    `rows` and `columns` are the last ones with something in them. `formulas` has the columns of formulas without a value by
    their rows, `errors` the texts of errors by their rows and columns, `merged` the first and last rows of merged cells.
    """

    rows: int = 0
    columns: int = 0
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    formulas: dict[int, int] = field(default_factory=dict)
    errors: dict[int, dict[int, str]] = field(default_factory=dict)
    merged: list[tuple[int, int]] = field(default_factory=list)

    def check_size(self, name: str) -> None:
        """Refuse a sheet whose last cell is too far away.

        Raises:
            UnreadableFile: it has more cells up to the last one than are read.
        """
        if self.rows * self.columns > MAX_CELLS:
            raise UnreadableFile(
                f"the sheet {name!r} reaches to row {self.rows:,} and column {self.columns:,}; delete the cells that are far from "
                "the table, or save the sheet as CSV UTF-8"
            )


def layouts_of(archive: zipfile.ZipFile) -> dict[str, Layout]:
    """The layout of each sheet of an xlsx or ods file, by its name.

    Raises:
        UnreadableFile: its XML is damaged or unusual, or a sheet is too large.
    """
    try:
        layouts = _ods_layouts(archive) if "content.xml" in archive.namelist() else _xlsx_layouts(archive)
    except (ParseError, expat.ExpatError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise UnreadableFile(
            f"the workbook is damaged or of an unusual kind ({type(error).__name__}); {_OPENED}"
        ) from None
    for name, layout in layouts.items():
        layout.check_size(name)
    return layouts


def _xlsx_layouts(archive: zipfile.ZipFile) -> dict[str, Layout]:
    book = fromstring(archive.read("xl/workbook.xml"))  # noqa: S314  expat limits what entities become
    relations = fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
    targets = {relation.get("Id"): relation.get("Target", "") for relation in relations}
    layouts = {}
    for sheet in book.iterfind("{*}sheets/{*}sheet"):
        relation = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), "")
        path = posixpath.normpath(posixpath.join("/xl", targets[relation]))
        scanner = _Xlsx()
        _scan_member(archive, path[1:], scanner)
        layouts[sheet.get("name", "")] = scanner.layout
    return layouts


def _ods_layouts(archive: zipfile.ZipFile) -> dict[str, Layout]:
    scanner = _Ods()
    _scan_member(archive, "content.xml", scanner)
    return scanner.layouts


def _scan_member(archive: zipfile.ZipFile, path: str, scanner: "_Xlsx | _Ods") -> None:
    """Call the scanner for each element of a member."""
    reader = expat.ParserCreate()
    reader.StartElementHandler = scanner.start
    reader.EndElementHandler = scanner.end
    reader.CharacterDataHandler = scanner.text
    with archive.open(path) as stream:
        while data := stream.read(_CHUNK):
            reader.Parse(data, False)
        reader.Parse(b"", True)


class _Xlsx:
    """Looks through one sheet of an xlsx file. Rows and cells without a reference follow the ones before."""

    def __init__(self) -> None:
        self.layout = Layout()
        self._row = self._column = 0
        self._kind = self._value = ""
        self._has_formula = self._is_in_value = False

    def start(self, name: str, attributes: Attributes) -> None:
        tag = name[name.rfind(":") + 1 :]
        if tag == "c":
            self._column += 1
            if match := _REFERENCE.fullmatch(attributes.get("r", "")):
                self._column, self._row = _column_of(match[1]), int(match[2])
            self._kind = attributes.get("t", "n")
            self._value, self._has_formula = "", False
        elif tag in {"v", "t"}:
            self._is_in_value = True
        elif tag == "f":
            self._has_formula = True
        elif tag == "row":
            self._row, self._column = int(attributes.get("r", self._row + 1)), 0
            if attributes.get("hidden") in _TRUE:
                self.layout.hidden_rows.add(self._row)
        elif tag == "mergeCell":
            rows = [int(row) for _, row in _REFERENCE.findall(attributes["ref"])]
            self.layout.merged.append((min(rows), max(rows)))
        elif tag == "col" and attributes.get("hidden") in _TRUE:
            first, last = int(attributes["min"]), int(attributes["max"])
            self.layout.hidden_columns.update(range(first, min(last, 16_384) + 1))

    def text(self, data: str) -> None:
        if self._is_in_value:
            self._value = data

    def end(self, name: str) -> None:
        tag = name[name.rfind(":") + 1 :]
        if tag in {"v", "t"}:
            self._is_in_value = False
        elif tag == "c" and (self._value or self._has_formula):
            layout = self.layout
            layout.rows, layout.columns = max(layout.rows, self._row), max(layout.columns, self._column)
            if self._kind == "e":
                layout.errors.setdefault(self._row, {})[self._column] = self._value
            elif (
                not self._value and self._kind != "str"
            ):  # the kind of a formula whose value is an empty text
                layout.formulas.setdefault(self._row, self._column)


def _column_of(letters: str) -> int:
    column = 0
    for letter in letters.upper():
        column = 26 * column + ord(letter) - ord("A") + 1
    return column


class _Ods:
    """Looks through all sheets of an ods file, where rows and cells may be repeated."""

    def __init__(self) -> None:
        self.layouts: dict[str, Layout] = {}
        self._layout = Layout()
        self._row = self._column = 0
        self._rows = self._columns = 1
        self._row_is_hidden = self._has_value = self._has_formula = self._is_error = False
        self._text = ""

    def start(self, name: str, attributes: Attributes) -> None:
        tag = name[name.rfind(":") + 1 :]
        if tag == "table":
            self._layout = self.layouts.setdefault(attributes.get("table:name", ""), Layout())
            self._row, self._rows = 0, 1
        elif tag == "table-row":
            self._rows = int(attributes.get("table:number-rows-repeated", 1))
            self._row_is_hidden = attributes.get("table:visibility") in _HIDDEN
            self._column = 0
        elif tag == "table-column":
            count = int(attributes.get("table:number-columns-repeated", 1))
            if attributes.get("table:visibility") in _HIDDEN:
                self._layout.hidden_columns.update(
                    range(self._column + 1, self._column + min(count, 16_384) + 1)
                )
            self._column += count
        elif tag in {"table-cell", "covered-table-cell"}:
            self._columns = int(attributes.get("table:number-columns-repeated", 1))
            spanned = int(attributes.get("table:number-rows-spanned", 1))
            if spanned > 1 or int(attributes.get("table:number-columns-spanned", 1)) > 1:
                self._layout.merged.append((self._row + 1, self._row + spanned))
            self._has_value = "office:value-type" in attributes
            self._has_formula = "table:formula" in attributes
            self._is_error = attributes.get("calcext:value-type") == "error"
            self._text = ""

    def text(self, data: str) -> None:
        self._text = self._text or data.strip()

    def end(self, name: str) -> None:
        tag = name[name.rfind(":") + 1 :]
        layout = self._layout
        if tag in {"table-cell", "covered-table-cell"}:
            first = self._column + 1
            self._column += self._columns
            if self._has_value or self._has_formula or self._text:
                layout.rows = max(layout.rows, self._row + self._rows)
                layout.columns = max(layout.columns, self._column)
                layout.check_size("")
                rows = range(self._row + 1, self._row + self._rows + 1)
                if self._row_is_hidden:
                    layout.hidden_rows.update(rows)
                if self._is_error:
                    for row in rows:
                        layout.errors.setdefault(row, {})[first] = self._text or "#ERROR"
                elif not self._has_value:
                    layout.formulas |= {row: first for row in rows if self._has_formula}
        elif tag == "table-row":
            self._row += self._rows
