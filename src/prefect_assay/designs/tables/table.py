"""A table of a text or of a workbook: its header, its rows with their lines, and what was read in a special way.

The delimiter is the one that gives the header that the reader looks for. Decimal commas become points where the first rows
leave no doubt. A header that is repeated below starts another part: files that were joined.
"""

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from prefect_assay.designs.tables.content import Sheet, read_content
from prefect_assay.designs.tables.errors import NoHeader, UnreadableFile
from prefect_assay.designs.tables.text import Block
from prefect_assay.designs.tables.workbook import Layout

SPACE: Final = " "
DELIMITERS: Final = (",", "\t", ";", "|")
COMMENTS: Final = (";", "#")  # how a line above the header may start
LIMIT: Final = 256 * 1024 * 1024
_HINT = re.compile(r"sep=(.)", re.IGNORECASE)  # Excel's own first line
_FIELD_LIMIT: Final = 2**31 - 1
_NOISE = re.compile(r"[\s_\-]+")
_HEADER_LINES: Final = 10  # a quoted title may hold line ends
_ABOVE: Final = 20  # lines of a sheet that may stand above the header
_COMMENTED: Final = 10_000  # lines of a text that may stand above the header
_SAMPLE: Final = 1000  # rows that decide about decimal commas
_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d+(?:[eE][+-]?\d+)?|(?i:n/?a|nan|null|none)?")

# The line on which it starts, counted from 1, and its cells without white space around them.
Row = tuple[int, list[str]]
Accepts = Callable[[Sequence[str]], bool]


@dataclass(slots=True)
class Table:
    """A header and the rows below it, which are read once, as they are asked for.

    `parts` has the lines of repeated headers above rows that were read, `notes` what was read in a special way: both grow
    with the rows. `first_width` is the number of cells of the first row, once that is read. `delimiter` is None for a
    workbook and a Parquet file.
    """

    titles: tuple[str, ...]
    line: int
    delimiter: str | None
    rows: Iterator[Row]
    parts: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    first_width: int = 0

    def misfit(self, cells: Sequence[str]) -> str | None:
        """What is wrong with the number of a row's cells."""
        width = len(self.titles)
        if self.delimiter == SPACE and len([cell for cell in cells if cell]) < width:
            return f"{len(cells)} words under {width} columns; write 'nan' for an empty cell, or save the table as CSV"
        # A delimiter at the end of every row is a habit of writers; at the end of one, the cells may be out of place.
        is_usual = self.delimiter in {None, SPACE} or len(cells) == self.first_width
        if len(cells) > width and (any(cells[width:]) or not is_usual):
            quote = (
                f"; quote cells that contain {self.delimiter!r}"
                if self.delimiter
                else "; give each column a title"
            )
            remove = "" if any(cells[width:]) else ", or remove the empty ones at the end"
            return f"{len(cells)} cells under {width} columns{quote}{remove}"
        return None


def key_of(title: str) -> str:
    """A title without case, white space, `-` and `_`."""
    return _NOISE.sub("", title).casefold()


def any_titles(cells: Sequence[str]) -> bool:
    """Accept every line of two words or more."""
    return sum(bool(cell.strip()) for cell in cells) > 1


def read_table(data: bytes | BinaryIO, accepts: Accepts = any_titles, *, limit: int = LIMIT) -> Table:
    """The table of a file of any kind that is read here.

    Args:
        data: the content, or a stream of it.
        accepts: whether the cells of a line are the header that is looked for.
        limit: the most characters of text.

    Raises:
        UnreadableFile: it is not a table, or is damaged; also later, while rows are read.
        NoHeader: it has no header that is accepted.
    """
    content = read_content(io.BytesIO(data) if isinstance(data, bytes) else data, limit)
    if content.lines is None:
        return sheet_table(content.sheets, accepts, content.notes)
    return text_table(content.lines, accepts, content.notes)


def text_table(lines: Iterable[Block], accepts: Accepts, notes: list[str] | None = None) -> Table:
    """The table of a text: the first line that is neither empty nor a comment is its header."""
    lines = iter(lines)
    notes = notes if notes is not None else []
    hinted: str | None = None
    for first, block in lines:
        for offset, line in enumerate(block if any(block) else ()):
            if not line.strip():
                continue
            if hint := _HINT.fullmatch(line.strip()):
                hinted = hint[1]
                continue
            if is_above_header(block[offset : offset + 2], first + offset, accepts):
                notes += note_json_metadata(line, first + offset)
                continue
            header, height, rest = _whole_header(itertools.chain([(first + offset, block[offset:])], lines))
            parsed_header = find_header(header, accepts, hinted)
            if parsed_header is not None:
                return _text_rows(parsed_header, first + offset, height, rest, notes)
            titles = max((cells_of(header, delimiter) for delimiter in DELIMITERS), key=len)
            raise NoHeader([title.strip() for title in titles], line, first + offset)
    raise UnreadableFile("empty")


def _skip_lines(lines: Iterator[Block], height: int) -> Iterator[Block]:
    """Without the first lines."""
    for number, block in lines:
        if height < len(block):
            yield number + height, block[height:]
            break
        height -= len(block)
    yield from lines


def _whole_header(lines: Iterator[Block]) -> tuple[str, int, Iterator[Block]]:
    """The header with the line ends in its quoted titles, its number of lines, and all lines again."""
    taken: list[Block] = []
    text: list[str] = []
    for number, block in lines:
        taken.append((number, block))
        text += block[: _HEADER_LINES - len(text)]
        if len(text) >= _HEADER_LINES:
            break
    height = 1
    while height < len(text) and "\n".join(text[:height]).count('"') % 2:
        height += 1
    header = "\n".join(text[:height])
    if header.count('"') % 2:
        header, height = text[0], 1
    return header, height, itertools.chain(taken, lines)


def is_above_header(lines: Sequence[str], number: int, accepts: Accepts) -> bool:
    """Whether the first of these lines may stand above a header, and is not one: a comment, or metadata above the header.

    Raises:
        UnreadableFile: it is further down than a header may be.
    """
    if find_header(lines[0], accepts) is not None:
        return False
    if number > _COMMENTED and lines[0].startswith(COMMENTS):
        raise UnreadableFile(f"no header in the first {_COMMENTED:,} lines, which are comments", number)
    return lines[0].startswith(COMMENTS) or (
        _is_metadata(lines[0]) and len(lines) > 1 and find_header(lines[1], accepts) is not None
    )


def note_json_metadata(line: str, number: int) -> list[str]:
    """A note if a line above the header is JSON; else none."""
    return (
        [f"line {number} above the header is metadata (JSON), and was left out"] if _is_metadata(line) else []
    )


def _is_metadata(line: str) -> bool:
    """Whether a line is a JSON object, in one cell or not, as files of OAS begin."""
    text = line.strip().rstrip(",;\t")
    if text.startswith('"{'):
        text = text[1:-1].replace('""', '"')
    try:
        return text.startswith("{") and bool(json.loads(text))
    except (ValueError, RecursionError):
        return False


def find_header(line: str, accepts: Accepts, hinted: str | None = None) -> tuple[list[str], str] | None:
    """The titles and the delimiter that make a header of this line."""
    delimiters = DELIMITERS if hinted is None else (hinted,)
    candidates = [
        (cells, delimiter) for delimiter in delimiters if accepts(cells := cells_of(line, delimiter))
    ]
    # Spaces last: they may also be part of a title, and a comment also has words.
    if (
        not candidates
        and not line.startswith((*COMMENTS, "{", '"{'))
        and accepts(words := cells_of(line, SPACE))
    ):
        return words, SPACE
    return max(candidates, key=lambda candidate: len(candidate[0]), default=None)


def make_reader(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """A csv reader of one dialect."""
    # The limit is global to the process. Raised always, so that a file reads the same after other readers and before.
    csv.field_size_limit(_FIELD_LIMIT)
    if delimiter == SPACE:
        lines = (line.replace("\t", SPACE) for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of one line; no cells when it does not parse."""
    try:
        return next(make_reader([part + "\n" for part in line.split("\n")], delimiter), [])
    except csv.Error:
        return []


def _text_rows(
    header: tuple[list[str], str], line: int, height: int, lines: Iterator[Block], notes: list[str]
) -> Table:
    titles, delimiter = header
    position = _Position()
    reader = make_reader(position.feed(_skip_lines(lines, height)), delimiter)
    rows = _parse_rows(reader, position, delimiter, len(titles))
    return _make_table(titles, line, delimiter, rows, notes)


class _Position:
    """The first and the last line of the current row; a quoted cell may span several."""

    def __init__(self) -> None:
        self.line = self.last = 0
        self.fresh = True

    def feed(self, lines: Iterable[Block]) -> Iterator[str]:
        for first, block in lines:
            for number, line in enumerate(block, first):
                if self.fresh:
                    self.line, self.fresh = number, False
                self.last = number
                yield line + "\n"


def _parse_rows(table: Iterator[list[str]], position: _Position, delimiter: str, width: int) -> Iterator[Row]:
    """UnreadableFile for broken quoting, after which no row can be trusted, and for a cell that may hold rows."""
    while True:
        position.fresh = True
        try:
            cells = next(table, None)
        except csv.Error as error:
            raise UnreadableFile(
                f"the row does not parse ({error}); check its quotes, and quote cells that contain {delimiter!r}",
                position.line,
            ) from None
        if cells is None:
            return
        if position.last > position.line and _may_hold_rows(cells, delimiter, width):
            raise UnreadableFile(
                f"a cell between quotes goes on to line {position.last}, and may hold the rows between them: close its quotes, or write "
                "its text in one line",
                position.line,
            )
        yield position.line, [cell.strip() for cell in cells]


def _may_hold_rows(cells: Sequence[str], delimiter: str, width: int) -> bool:
    """Whether the lines of one row may be rows, between a quote in the first one and another in the last one."""
    if delimiter == "\t":  # which nobody writes into a cell
        return any("\n" in cell and delimiter in cell for cell in cells)
    inside = [line for cell in cells for line in cell.split("\n")[1:-1]]
    lines = delimiter.join(cells).split("\n")
    return any(_is_row(line, delimiter, width) for line in inside) or all(
        _is_row(line, delimiter, width) for line in lines
    )


def _is_row(line: str, delimiter: str, width: int) -> bool:
    return line.count(delimiter) == width - 1


def sheet_table(sheets: Iterable[Sheet], accepts: Accepts, notes: list[str] | None = None) -> Table:
    """The table of the one sheet that has such a header, within its first lines.

    Raises:
        UnreadableFile: several sheets have one, or a hidden one; rows below it are hidden, or have no values.
    """
    notes = notes if notes is not None else []
    entries: list[tuple[Sheet, int, list[str], Iterator[list[str]]]] = []
    first: list[str] = []
    others = []
    for sheet in sheets:
        rows = iter(sheet.rows)
        head = list(itertools.islice(rows, _ABOVE))
        index = next((index for index, cells in enumerate(head) if accepts(cells)), None)
        if index is not None:
            entries.append((sheet, index, head[index], itertools.chain(head[index + 1 :], rows)))
        elif any(map(any, head)):
            others.append(sheet.name)
            first = first or next([cell for cell in cells if cell] for cells in head if any(cells))
    if not entries:
        if not first:
            raise UnreadableFile("empty")
        raise NoHeader(first, "", 1)
    visible = [entry for entry in entries if not entry[0].is_hidden]
    if len(visible) != 1:
        listed = ", ".join(repr(sheet.name) for sheet, *_ in visible or entries)
        what = "several sheets hold" if visible else "only a hidden sheet holds"
        raise UnreadableFile(
            f"{what} such a table: {listed}; save the one that is meant as a file of its own"
        )
    sheet, index, titles, rows = visible[0]
    others += [f"{hidden.name} (hidden)" for hidden, *_ in entries if hidden.is_hidden]
    if others:
        notes.append(f"read from the sheet {sheet.name!r}; other sheets: {', '.join(map(repr, others))}")
    while titles and not titles[-1].strip():  # a sheet is as wide as its widest row
        titles = titles[:-1]
    numbered = [(number, [cell.strip() for cell in cells]) for number, cells in enumerate(rows, index + 2)]
    _check_layout(sheet.layout, titles, numbered, notes)
    return _make_table(titles, index + 1, None, iter(numbered), notes)


def _check_layout(layout: Layout, titles: Sequence[str], rows: Sequence[Row], notes: list[str]) -> None:
    filled = [line for line, cells in rows if any(cells)]
    hidden = [line for line in filled if line in layout.hidden_rows]
    if hidden:
        raise UnreadableFile(
            f"{len(hidden):,} of {len(filled):,} rows are hidden, as by a filter, from this one on; show them to read all rows, or "
            "copy the visible rows to a sheet of their own",
            hidden[0],
        )
    open_lines = [line for line in layout.formulas if rows and line >= rows[0][0]]
    if open_lines:
        line = min(open_lines)
        raise UnreadableFile(
            f"column {layout.formulas[line]} has a formula without a value, as programs write it; open the workbook in a "
            "spreadsheet program and save it, or write values",
            line,
        )
    merged = [place for place in layout.merged if filled and filled[0] <= place[1] and place[0] <= filled[-1]]
    if merged:
        first, last = min(merged)
        raise UnreadableFile(
            f"cells of rows {first} to {last} are merged, so that all but the first are empty; divide them, and write each value",
            first,
        )
    columns = [
        repr(title) for column, title in enumerate(titles, 1) if column in layout.hidden_columns and title
    ]
    if columns:
        notes.append(f"columns that are hidden in the sheet are read like the others: {', '.join(columns)}")


def _make_table(
    titles: Sequence[str], line: int, delimiter: str | None, rows: Iterator[Row], notes: list[str]
) -> Table:
    plain = tuple(" ".join(title.split()) for title in titles)
    table = Table(plain, line, delimiter, iter(()), notes=notes)
    table.rows = _clean_rows(table, rows)
    return table


def _clean_rows(table: Table, rows: Iterator[Row]) -> Iterator[Row]:
    """The rows with something in them, without repeated headers, and with decimal points."""
    titles, parts = table.titles, table.parts
    header = [" ".join(title.split()) for title in titles]
    words = {title for title in header if title}
    named = next(
        (column for column, title in enumerate(header) if title), 0
    )  # pandas leaves the title of its index empty
    sample = [] if table.delimiter in {",", SPACE} else list(itertools.islice(rows, _SAMPLE))
    commas = _comma_columns(sample, len(header))
    if commas:
        listed = ", ".join(header[column] for column in commas)
        table.notes.append(f"decimal commas were read as points in: {listed}")
    for line, cells in itertools.chain(sample, rows):
        if not any(cells):
            continue
        table.first_width = table.first_width or len(cells)
        if named < len(cells) and cells[named] in words and _is_header(cells, header, words, line):
            parts.append(line)
            continue
        for column in commas:
            if column < len(cells) and _COMMA.fullmatch(cells[column].lstrip("<>~= ")):
                cells[column] = cells[column].replace(",", ".")
        yield line, cells


def _is_header(cells: list[str], header: list[str], words: set[str], line: int) -> bool:
    if cells == header:
        return True
    filled = [cell for cell in cells if cell]
    if len(filled) > 1 and 2 * sum(cell in words for cell in filled) > len(filled):
        raise UnreadableFile(
            "this looks like the header of another table with other columns; give the joined tables as separate files",
            line,
        )
    return False


def _comma_columns(sample: Sequence[Row], width: int) -> tuple[int, ...]:
    """The columns of numbers with decimal commas; none where any number has a point, or all could be thousands."""
    columns, certain = [], False
    for column in range(width):
        cells = [row[column] for _, row in sample if column < len(row) and row[column]]
        with_comma = [cell for cell in cells if _COMMA.fullmatch(cell.lstrip("<>~= "))]
        if any(_POINT.fullmatch(cell.lstrip("<>~= ")) for cell in cells):
            return ()
        if with_comma and all(
            _COMMA.fullmatch(cell.lstrip("<>~= ")) or _WHOLE.fullmatch(cell) for cell in cells
        ):
            columns.append(column)
            certain = certain or not all(_THOUSANDS.fullmatch(cell.lstrip("<>~= ")) for cell in with_comma)
    return tuple(columns) if certain else ()
