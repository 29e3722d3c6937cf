"""Affinities of a table of measurements: a column's title, its cells and its unit become K_D in M (docs/loops.md#affinities).

Pure: knows neither files nor tables. Only the spellings of published files are read; everything else is refused with its place,
because a number alone does not say what it is.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from prefect_assay.analysis.results.calls import Call, read_call
from prefect_assay.analysis.results.quantities import SIGNS, Quantity, find_unit_factor, read_quantity
from prefect_assay.designs.scores import is_bookkeeping, is_confidence_score
from prefect_assay.service.assays import KD

_TIGHTEST: Final = 1e-13  # M; with weaker values than the next one in a column, some are in another unit
_ORDINARY: Final = 1e-8

_UNITS: Final = {unit.casefold(): unit for unit in KD.shown}
_TITLE: Final = re.compile(r"k_?d(?:_mean)?_?(?P<unit>[munp]?m)?")
_UNITS_TITLE: Final = re.compile(r"(?:k_?d_)?units?")
_LIMIT_TITLE: Final = re.compile(r"k_?d_(?:qualifier|relation|operator|sign)|qualifier|relation")
_LIMIT_WORDS: Final = frozenset(
    [
        "qualifier",
        "relation",
        "operator",
        "sign",
        "modifier",
        "prefix",
        "comparator",
        "inequality",
        "censor",
        "censored",
        "censoring",
    ]
)
_KD_WORDS: Final = frozenset({"kd", "k", "d"})
_ON_RATE: Final = re.compile(r"(?:k_?a|k_?on|k_?ass|association_rate)(?:_.*)?")
_OFF_RATE: Final = re.compile(r"(?:k_?off|k_?dis|k_?diss)(?:_.*)?")

_LIKE_KD: Final = re.compile(
    r"(?:p_?|(?:neg\w*_|minus_)?(?:log_?10_?|log_?|lg_?))?k_?d(?:_.*|[munpf]m)?"
    r"|(?:equilibrium_)?(?:dissociation_constant|affinity|binding_affinity)(?:_.*)?"
)
# Columns next to a K_D: its scatter, its interval, another quantity.
_BESIDE: Final = re.compile(
    r"_(?:log_?std|std(?:ev)?|sd|sem?|cv|err(?:or)?s?|low(?:er)?|high(?:er)?|upper|ci\d*|min|max|app|r2|rmse|n|rank|score|units?"
    r"|qualifier|relation|operator|sign|modifier|1_s|per_s|s|s_1)(?:_|$)"
)

_NO_VALUE: Final = frozenset({Call.NOT_STATED, Call.UNKNOWN, Call.IN_PROGRESS})
_DASHES: Final = frozenset({"-", "–"})  # noqa: RUF001 - people write both
# Words for a sign that are not read: a column of them next to a K_D is refused, because its limits would count as values.
_UNREAD_SIGNS: Final = frozenset(
    [
        "gt",
        "lt",
        "ge",
        "le",
        "gte",
        "lte",
        "lower_bound",
        "upper_bound",
        "&gt;",
        "&lt;",
        "&gt;=",
        "&lt;=",
        "&ge;",
        "&le;",
        "=>",
        "=<",
        "~",
        "≈",
        "≲",
        "≳",
    ]
) | {"greater than", "less than", "lower bound", "upper bound"}
# The same below a title such as `censored` or `modifier` only: elsewhere they may mean anything.
_UNREAD_BELOW_TITLE: Final = frozenset(
    ["greater", "less", "above", "below", "left", "right", "censored", "true", "t", "yes", "y", "1"]
) | {"at least", "at most"}
_EXACT: Final = frozenset(["=", "eq", "equal", "equals", "exact", "uncensored", "false", "f", "no", "n", "0"])
_ONE_GROUP: Final = re.compile(r"[<>≤≥=\s]*[1-9]\d{0,2}[.,]\d{3}")


class UnclearAffinity(ValueError):
    """A column or a cell does not say which K_D it means. `at` is the position of the cell; None: the column."""

    def __init__(self, problem: str, position: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = position


@dataclass(frozen=True, slots=True)
class Affinity:
    """What one cell says: `kd_M` with `<` or `>` for a limit, or that the design does not bind. All None: nothing."""

    kd_M: float | None = None  # noqa: N815  units are spelled as scientists spell them
    qualifier: str | None = None
    binds: bool | None = None


NOTHING: Final = Affinity()


@dataclass(frozen=True, slots=True)
class AffinityColumns:
    """The positions of the columns that say K_D: values, a unit and a qualifier per row; `unread` look like K_D."""

    values: tuple[int, ...] = ()
    unit: int | None = None
    limit: int | None = None
    unread: tuple[int, ...] = ()
    is_rate: bool = False  # the values are rates of dissociation unless a unit says otherwise

    @property
    def used(self) -> frozenset[int]:
        """The positions of all of them."""
        single = (position for position in (self.unit, self.limit) if position is not None)
        return frozenset({*self.values, *self.unread, *single})


def parse_kd_title(title: str) -> str | None:
    """The unit that the title of a column of K_D names, empty if it names none; None if it is no such title.

    >>> parse_kd_title("KD (nM)"), parse_kd_title("kd"), parse_kd_title("pKD")
    ('nM', '', None)
    """
    match = _TITLE.fullmatch(_normalize(title))
    return None if match is None else _UNITS[match["unit"]] if match["unit"] else ""


def unclear_titles(titles: Sequence[str]) -> tuple[str, ...]:
    """The titles that look like K_D and are not read, such as `pKD`."""
    return tuple(titles[position] for position in _find_unread(titles))


def _find_unread(titles: Sequence[str]) -> tuple[int, ...]:
    return tuple(
        position
        for position, title in enumerate(titles)
        if parse_kd_title(title) is None
        and _LIKE_KD.fullmatch(plain := _normalize(title))
        and not _BESIDE.search(plain)
    )


def affinity_columns(titles: Sequence[str]) -> AffinityColumns:
    """The columns of a table that say K_D, by their titles.

    `kd` next to `KD` is the rate of dissociation, as instruments write it.
    """
    values = [position for position, title in enumerate(titles) if parse_kd_title(title) is not None]
    if any(titles[position].strip()[:2] == "KD" for position in values):
        values = [position for position in values if titles[position].strip() != "kd"]
    if not values:
        return AffinityColumns(unread=_find_unread(titles))
    plain = [_normalize(title) for title in titles]
    is_rated = any(map(_ON_RATE.fullmatch, plain)) and not any(map(_OFF_RATE.fullmatch, plain))
    first = titles[values[0]]
    return AffinityColumns(
        tuple(values),
        next((position for position, title in enumerate(plain) if _UNITS_TITLE.fullmatch(title)), None),
        next((position for position, title in enumerate(plain) if _LIMIT_TITLE.fullmatch(title)), None),
        _find_unread(titles),
        is_rated and not parse_kd_title(first) and not first.strip().startswith(("KD", "K_D")),
    )


def find_affinity_columns(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> AffinityColumns:
    """`affinity_columns`, with a column whose cells are only signs as the qualifier of the K_D next to it.

    Raises:
        UnclearAffinity: there are several K_D, it is not clear which column such signs are about, or they are not read.
    """
    columns = affinity_columns(titles)
    if not columns.values:
        return columns
    if len(columns.values) > 1:
        both = " and ".join(repr(titles[position]) for position in columns.values[:2])
        raise UnclearAffinity(f"the columns {both} both give K_D; leave one of the two out")
    cells = [
        [row[position].strip().strip("'\"").casefold() for row in rows] for position in range(len(titles))
    ]
    for position, title in enumerate(titles):
        words = {word for word in cells[position] if not _is_empty(word)}
        signs = SIGNS.keys() | _UNREAD_SIGNS
        if not _LIMIT_WORDS.isdisjoint(_normalize(title).split("_")):
            signs |= _UNREAD_BELOW_TITLE | _EXACT
        if position in columns.used or not words <= signs or words <= _EXACT:
            continue
        if not _is_about_kd(titles, cells, position, columns):
            continue
        if unread := sorted(words - SIGNS.keys() - _EXACT):
            raise UnclearAffinity(
                f"the column {title!r} seems to say which K_D are limits, as {unread[0]!r}; write <, > or =, or leave the column out"
            )
        if columns.limit is not None:
            raise UnclearAffinity(
                f"the columns {titles[columns.limit]!r} and {title!r} both hold qualifiers; leave one of the two out"
            )
        columns = replace(columns, limit=position)
    return columns


def _is_about_kd(
    titles: Sequence[str], cells: Sequence[Sequence[str]], position: int, columns: AffinityColumns
) -> bool:
    """Whether a column of signs is about the K_D: its title decides, or else the only column of numbers next to it."""
    about = set(_normalize(titles[position]).split("_")) - _LIMIT_WORDS
    if about and about <= _KD_WORDS:
        return True
    others = [
        other
        for other, title in enumerate(titles)
        if other != position
        and (other in columns.used or not (is_confidence_score(title) or is_bookkeeping(title)))
        and _is_numeric(cells[other])
    ]
    if about and any(about <= set(_normalize(titles[other]).split("_")) for other in others):
        return False
    beside = [other for other in others if abs(other - position) == 1] or others
    if beside and set(columns.values) >= set(beside):
        return True
    raise UnclearAffinity(
        f"the column {titles[position]!r} holds only signs such as <, and it is not clear which column they are about; call it "
        "'kd_qualifier', put it next to K_D, or leave it out"
    )


def _is_numeric(cells: Sequence[str]) -> bool:
    """Whether the filled cells are numbers, as far as limits and units allow to say."""
    filled = [cell for cell in cells if not _is_empty(cell)]
    numbers = sum(bool(re.match(r"[<>≤≥=~]*\s*[+-]?[.,]?\d", cell)) for cell in filled)
    return numbers > len(filled) / 2


def read_affinities(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    unit: str | None = None,
    delimiter: str | None = None,
) -> tuple[list[Affinity], list[str]]:
    """Read the K_D of each row; the notes say what was decided and what was left unread.

    Args:
        titles: of the columns.
        rows: cells below the titles.
        unit: the unit of the numbers; it overrides the unit in the title.
        delimiter: of the table: where cells are separated by `;`, points may separate thousands.

    Raises:
        UnclearAffinity: the unit is not clear, a cell is not read, or values are outside of what an assay gives.
    """
    if unit is not None and unit not in KD.shown:
        raise UnclearAffinity(f"{unit!r} is not a unit of K_D; give one of {', '.join(KD.shown)}")
    columns = find_affinity_columns(titles, rows)
    unread = [titles[position] for position in columns.unread if titles[position] != "log10_kd"]
    notes = [
        f"{title!r} is not read; K_D is read below a title such as 'KD (nM)' or 'kd_nM'" for title in unread
    ]
    if not columns.values:
        return [NOTHING] * len(rows), notes
    return _read_column(titles, rows, columns, unit, delimiter, notes), notes


def _read_column(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: AffinityColumns,
    chosen: str | None,
    delimiter: str | None,
    notes: list[str],
) -> list[Affinity]:
    """The K_D of each row; adds to the notes."""
    value = columns.values[0]
    title, cells = titles[value], [row[value] for row in rows]
    if delimiter == ";":
        cells = _read_decimal_commas(title, cells)
        rows = [[*row[:value], cell, *row[value + 1 :]] for row, cell in zip(rows, cells, strict=True)]
    affinities = [NOTHING] * len(rows)
    filled: list[int] = []
    for position, cell in enumerate(cells):
        if read_call(cell.strip(" .()"), "kd").call is Call.DOES_NOT_BIND:
            affinities[position] = Affinity(binds=False)
        elif not _is_empty(cell):
            filled.append(position)
    title_unit = parse_kd_title(title)
    if chosen and title_unit and chosen != title_unit and filled:
        notes.append(f"{title} is read in {chosen}, as asked for, and not in {title_unit}")
    column_unit = chosen or title_unit or None
    if column_unit is None:
        notes += _take_for_molar(title, [rows[position] for position in filled], columns)
    quantities = {
        position: _read_cell(title, rows[position], columns, column_unit, position) for position in filled
    }
    exact = [quantity.value for quantity in quantities.values() if quantity.qualifier is None]
    if chosen is None and exact and min(exact) < _TIGHTEST and max(exact) > _ORDINARY:
        raise UnclearAffinity(
            f"the values of {title} are from {min(exact):.3g} to {max(exact):.3g} M: some seem to be in another unit; write "
            "all in one unit"
        )
    for position, quantity in quantities.items():
        affinities[position] = Affinity(quantity.value, quantity.qualifier)
    return affinities


def _read_cell(
    title: str, row: Sequence[str], columns: AffinityColumns, unit: str | None, position: int
) -> Quantity:
    """The K_D of a filled cell, with the unit and the sign of its row; without any unit in M, not yet judged."""
    cell = row[columns.values[0]].strip()
    row_unit = _get_row_unit(row, columns)
    if row_unit and find_unit_factor(KD, row_unit) is None:
        raise UnclearAffinity(f"the unit is {row_unit[:40]!r}; write one of {', '.join(KD.shown)}", position)
    sign = "" if columns.limit is None else row[columns.limit].strip().strip("'\"")
    if _is_empty(sign) or sign.casefold() in _EXACT:
        sign = ""
    elif sign not in SIGNS:
        raise UnclearAffinity(f"the qualifier is {sign[:40]!r}; write < or >, or leave it empty", position)
    quantity = read_quantity(cell, unit=row_unit or unit, qualifier=sign)
    if isinstance(quantity, Quantity):
        return quantity
    raise UnclearAffinity(
        f"{title} is {quantity.reason}; write a number, with < or > for a limit, NB for no binding, or leave the cell empty",
        position,
    )


def _take_for_molar(title: str, rows: Sequence[Sequence[str]], columns: AffinityColumns) -> list[str]:
    """A note that numbers without any unit are taken as M; UnclearAffinity where they may be another quantity."""
    numbers = [
        number
        for row in rows
        if not _get_row_unit(row, columns)
        and (number := _read_bare_number(row[columns.values[0]])) is not None
    ]
    if not numbers:
        return []
    if columns.is_rate:
        raise UnclearAffinity(
            f"{title!r} next to the rate of association is the rate of dissociation in 1/s, as instruments write it, and not K_D; "
            "give K_D in a column such as 'KD (nM)', or, if these are K_D, name their unit in the title or give --kd-unit"
        )
    if large := sorted(number for number in set(numbers) if number > KD.most_without_unit):
        raise UnclearAffinity(
            f"{title} has no unit, and its values ({', '.join(f'{number:g}' for number in large[-2:])}) cannot be taken as M; "
            "name the unit in the title, such as 'kd_nM', or give --kd-unit"
        )
    low, high = min(numbers), max(numbers)
    span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return [f"{title} has no unit, and its values ({span}) are taken as M"]


def _get_row_unit(row: Sequence[str], columns: AffinityColumns) -> str:
    """The text of a row's unit; empty if it has none. In a column of units `nM` is no short form of "not measured"."""
    unit = "" if columns.unit is None else row[columns.unit].strip()
    return "" if find_unit_factor(KD, unit) is None and _is_empty(unit) else unit


def _read_bare_number(cell: str) -> float | None:
    """The number of a cell without a unit; None for any other text."""
    try:
        return float(cell.strip().lstrip("<>≤≥= "))
    except ValueError:
        return None


def _read_decimal_commas(title: str, cells: Sequence[str]) -> list[str]:
    """The cells of a table with semicolons, with points for decimal commas; UnclearAffinity if all may be thousands."""
    marked = [
        (position, cell.strip()) for position, cell in enumerate(cells) if re.search(r"\d[.,]|[.,]\d", cell)
    ]
    if marked and all(_ONE_GROUP.fullmatch(cell) for _, cell in marked):
        raise UnclearAffinity(
            f"{title} has a number that may be meant in thousands or with three decimals; write it without separators of "
            "thousands",
            marked[0][0],
        )
    return (
        list(cells) if any("." in cell for _, cell in marked) else [cell.replace(",", ".") for cell in cells]
    )


def _is_empty(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    call, unread = read_call(cell.strip(" .()"), "kd")
    return cell.strip() in _DASHES or (call in _NO_VALUE and unread is None)


def _normalize(title: str) -> str:
    """A title without case, brackets and separators: `K_D (nM)` is `k_d_nm`, and µ is u."""
    text = unicodedata.normalize("NFKC", title).casefold().replace("μ", "u")
    return re.sub(r"[^0-9a-z]+", "_", text).strip("_")
