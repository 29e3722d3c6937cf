"""Affinities as people write them: a column's title, its cells and its unit become K_D in M (docs/loops.md#affinities).

Pure: knows neither files nor tables. A column is read as a whole, because a number alone says neither its unit nor whether
its comma is a decimal one.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from prefect_assay.analysis.results.calls import Call, read_call
from prefect_assay.analysis.results.quantities import SIGNS
from prefect_assay.designs.scores import is_bookkeeping, is_confidence_score

MOLAR: Final[Mapping[str, float]] = {
    "M": 1.0,
    "mM": 1e-3,
    "uM": 1e-6,
    "nM": 1e-9,
    "pM": 1e-12,
    "fM": 1e-15,
}
"""Factors of the units of K_D."""
LOWEST_M: Final = 1e-15
HIGHEST_M: Final = 0.1
"""No assay gives a K_D outside."""

_SURELY_MOLAR: Final = 1e-7  # in any other unit this were less than 0.1 pM
_LIKELY_MOLAR: Final = 1e-4
_WEAK_MOLAR: Final = 1e-2  # higher numbers are of another unit
_TIGHTEST: Final = 1e-13  # M; with weaker values than the next one in a column, some are in another unit
_ORDINARY: Final = 1e-8
_SAME: Final = 0.01  # two columns of one table that say the same, rounded

_PREFIXES: Final = {"": "M", "m": "mM", "u": "uM", "n": "nM", "p": "pM", "f": "fM"}
_LONG: Final = {"milli": "m", "micro": "u", "nano": "n", "pico": "p", "femto": "f"}
_UNIT: Final = re.compile(r"(?P<prefix>milli|micro|nano|pico|femto|[munpf]?)_?(?:m|molar|mol_?(?:_l|l_1|l))")
_FILL: Final = r"(?:mean|average|avg|median|geomean|values?|exp|experimental|measured|fit|fitted|bli|spr|in|global|overall)"
_NAMED: Final = r"(?:equilibrium_)?(?:dissociation_constant|affinity|binding_affinity)"
_TITLE: Final = re.compile(
    rf"(?:{_FILL}_)*(?P<log>p_?|(?P<minus>neg(?:ative)?_?|minus_?)?(?:log_?10_?|log_?|lg_?)(?:of_)?)?"
    rf"(?P<core>k_?d|{_NAMED}(?:_k_?d)?)(?P<rest>(?:_\w+|[munpf]m)?)"
)
_UNITS_TITLE: Final = re.compile(r"(?:k_?d|affinity)_units?")
_ANY_UNITS_TITLE: Final = re.compile(r"units?")
_LIMIT_TITLE: Final = re.compile(r"(?:k_?d|affinity)_(?:qualifier|relation|operator|sign)|qualifier|relation")
_LIMIT_WORDS: Final = frozenset(
    {"qualifier", "relation", "operator", "sign", "modifier", "prefix", "comparator", "inequality"}
    | {"censor", "censored", "censoring", "standard", "is"}
)
_ON_RATE: Final = re.compile(r"(?:k_?a|k_?on|k_?ass|association_rate)(?:_.*)?")
_OFF_RATE: Final = re.compile(r"(?:k_?off|k_?dis|k_?diss)(?:_.*)?")
_KD_WORDS: Final = frozenset({"kd", "k", "d", "affinity", "pkd"})

_LIKE_KD: Final = re.compile(rf"p?k_?d(_.*)?|{_NAMED}(_.*)?")
# Columns next to a K_D: its scatter, its interval, another quantity.
_BESIDE: Final = re.compile(
    r"_(?:log_?std|std(?:ev)?|sd|sem?|cv|err(?:or)?s?|low(?:er)?|high(?:er)?|upper|ci\d*|min|max|app|r2|rmse|n|rank|score|units?"
    r"|qualifier|relation|operator|sign|1_s|per_s|s|s_1)(?:_|$)"
)

_EMPTY: Final = frozenset(
    {"", "null", "none", "na", "n/a", "#n/a", "nan", "-", "--", "–", "—", "?", "."}  # noqa: RUF001
    | {"not available", "not fitted", "no fit"}
)
# An approximate value counts as the value.
_SIGNS: Final = {**SIGNS, **dict.fromkeys(("~", "≈", "≃", "ca.", "ca", ""), None), "≲": "<", "≳": ">"}
# Words for a sign that are not read: a column of them next to a K_D is refused, because its limits would count as values.
_UNREAD_SIGNS: Final = frozenset(
    {
        "gt",
        "lt",
        "ge",
        "le",
        "gte",
        "lte",
        "greater than",
        "less than",
        "lower bound",
        "upper bound",
        "lower_bound",
    }
    | {"upper_bound", "&gt;", "&lt;", "&gt;=", "&lt;=", "&ge;", "&le;", "=>", "=<"}
)
# The same below a title such as `censored` or `modifier` only: elsewhere they may mean anything.
_UNREAD_BELOW_TITLE: Final = frozenset(
    {
        "greater",
        "less",
        "above",
        "below",
        "at least",
        "at most",
        "left",
        "right",
        "censored",
        "true",
        "t",
        "yes",
        "y",
        "1",
    }
)
_EXACT: Final = frozenset(
    {sign for sign, limit in _SIGNS.items() if limit is None}
    | {"eq", "equal", "equals", "exact", "uncensored", "false", "f", "no", "n", "0"}
)
_NO_VALUE: Final = frozenset({Call.NOT_STATED, Call.UNKNOWN, Call.IN_PROGRESS})
_SIGN: Final = re.compile(r"(<<|<=|>>|>=|[<>≤≥≲≳~≈≃=]|ca\.?(?=\s*\d))?\s*(.*)", re.DOTALL)
_GROUPED: Final = re.compile(r"\d{1,3}(?:[ '’_\u00a0\u2009\u202f]\d{3})+(?![\d])")  # noqa: RUF001
_POWER: Final = re.compile(r"\s*[x×*·]\s*10\s*(?:\^|\*\*)?\s*\(?([+-]?\d+)\)?")  # noqa: RUF001
_NUMBER: Final = re.compile(
    r"(?P<number>[+-]?(?:\d[\d.,]*|[.,]\d+)(?:e[+-]?\d+)?)\s*"
    r"(?:(?:±|\+/-|\+-)\s*[\d.,]+(?:e[+-]?\d+)?\s*)?(?P<unit>[a-z].*)?"
)
_SUPERSCRIPTS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−", "0123456789-+-")  # noqa: RUF001
_BOTH: Final = re.compile(r"[+-]?\d{1,3}(?:([.,])\d{3})+(?!\1)[.,]\d+(?:e[+-]?\d+)?")
_ONE_GROUP: Final = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(?:e[+-]?\d+)?")
_GROUPS: Final = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})+")


class UnclearAffinity(ValueError):
    """A column or a cell does not say which K_D it means. `at` is the position of the cell; None: the column."""

    def __init__(self, problem: str, at: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at


@dataclass(frozen=True, slots=True)
class Scale:
    """Says what the numbers of a column are: K_D in `unit` (None: not said), or with `log` 1 or -1 its (negative) log10."""

    unit: str | None = None
    log: int = 0

    def molar(self, number: float, unit: str) -> float:
        """K_D in M of a number of this scale."""
        try:
            linear = 10.0 ** (self.log * number) if self.log else number
        except OverflowError:
            return math.inf
        return linear / _per_molar(unit)


def _per_molar(unit: str) -> float:
    """How many of the unit are one M: dividing by it is exact where multiplying with its factor is not."""
    return round(1 / MOLAR[unit])


@dataclass(frozen=True, slots=True)
class Affinity:
    """What one cell says: `kd_M` with `<` or `>` for a limit, or that the design does not bind. All None: nothing."""

    kd_M: float | None = None  # noqa: N815  units are spelled as scientists spell them
    qualifier: str | None = None
    binds: bool | None = None


NOTHING: Final = Affinity()


@dataclass(frozen=True, slots=True)
class AffinityColumns:
    """The columns of a table that say K_D, by their positions: the values, a unit per row, a qualifier per row."""

    values: tuple[tuple[int, Scale], ...] = ()
    unit: int | None = None
    limit: int | None = None
    limited: int | None = None  # the column of values that the qualifiers are about
    rates: frozenset[int] = (
        frozenset()
    )  # columns of values that are rates of dissociation unless a unit says otherwise

    @property
    def used(self) -> frozenset[int]:
        """The positions of all of them."""
        found = {at for at, _ in self.values} | {self.unit, self.limit}
        return frozenset(at for at in found if at is not None)


def unit_of(text: str) -> str | None:
    """The unit that a text names, such as `nM`, `µM`, `nmol/L` or `nanomolar`; None for any other."""
    match = _UNIT.fullmatch(_plain(text))
    if match is None:
        return None
    prefix = match["prefix"]
    return _PREFIXES[_LONG.get(prefix, prefix)]


def scale_of(title: str) -> Scale | None:
    """The scale of a column by its title, such as `KD (nM)`, `kd_nM`, `pKD` or `-log10(KD)`; None if it is not a K_D."""
    plain = _plain(title)
    match = _TITLE.fullmatch(plain)
    if match is None:
        return None
    log = match["log"] or ""
    core, rest = match["core"], match["rest"].strip("_")
    words = [word for word in rest.split("_") if word and not re.fullmatch(_FILL, word)]
    unit = unit_of("_".join(words)) if words else None
    if words and unit is None:
        return None
    if not log:
        # `affinity` alone may be any score.
        return Scale(unit) if unit or core.startswith("k") else None
    negative = log.startswith("p") or bool(match["minus"]) or _begins_with_minus(title)
    return Scale(unit or ("M" if log.startswith("p") else None), -1 if negative else 1)


def affinity_columns(titles: Sequence[str]) -> AffinityColumns:
    """The columns of a table that say K_D.

    `kd` next to `KD` is the rate of dissociation, as instruments write it.
    """
    values = [(at, scale) for at, title in enumerate(titles) if (scale := scale_of(title)) is not None]
    written = {titles[at].strip()[:2] for at, _ in values}
    if "KD" in written:
        values = [(at, scale) for at, scale in values if titles[at].strip() != "kd"]
    if not values:
        return AffinityColumns()
    plain = [_plain(title) for title in titles]
    unit = next((at for at, title in enumerate(plain) if _UNITS_TITLE.fullmatch(title)), None)
    if unit is None and any(scale.unit is None for _, scale in values):
        unit = next((at for at, title in enumerate(plain) if _ANY_UNITS_TITLE.fullmatch(title)), None)
    limit = next((at for at, title in enumerate(plain) if _LIMIT_TITLE.fullmatch(title)), None)
    limited = None if limit is None else min(values, key=lambda each: (each[1].log != 0, each[0]))[0]
    is_rated = any(map(_ON_RATE.fullmatch, plain)) and not any(map(_OFF_RATE.fullmatch, plain))
    rates = frozenset(
        at
        for at, scale in values
        if is_rated and scale == Scale() and not titles[at].strip().startswith(("KD", "K_D"))
    )
    return AffinityColumns(tuple(values), unit, limit, limited, rates)


def find_affinity_columns(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> AffinityColumns:
    """`affinity_columns`, with a column whose cells are only signs as the qualifier of the K_D next to it.

    Raises:
        UnclearAffinity: it is not clear which column such signs are about, or they are words that are not read.
    """
    columns = affinity_columns(titles)
    if not columns.values:
        return columns
    cells = [[row[at].strip().strip("'\"").casefold() for row in rows] for at in range(len(titles))]
    for at, title in enumerate(titles):
        is_titled = not _LIMIT_WORDS.isdisjoint(set(_plain(title).split("_")) - {"is", "standard"})
        signs = _SIGNS.keys() | _UNREAD_SIGNS | (_UNREAD_BELOW_TITLE | _EXACT if is_titled else frozenset())
        words = {word for word in cells[at] if word not in _EMPTY}
        if at in columns.used or not words <= signs or words <= _EXACT:
            continue
        limited = _limited_column(titles, cells, at, columns.values)
        if limited is None:
            continue
        if unread := sorted(words - _SIGNS.keys() - _EXACT):
            raise UnclearAffinity(
                f"the column {title!r} seems to say which K_D are limits, as {unread[0]!r}; write <, > or =, or leave the column out"
            )
        if columns.limit is not None:
            raise UnclearAffinity(
                f"the columns {titles[columns.limit]!r} and {title!r} both hold qualifiers; leave one of the two out"
            )
        columns = replace(columns, limit=at, limited=limited)
    return columns


def _limited_column(
    titles: Sequence[str],
    cells: Sequence[Sequence[str]],
    at: int,
    columns: Sequence[tuple[int, Scale]],
) -> int | None:
    """The K_D that a column of signs is about; None if it is about another column.

    Its title decides, or else the only column of numbers next to it. Of K_D and pKD, whose limits are opposite, only a title does.
    """
    values = dict(columns)
    about = set(_plain(titles[at]).split("_")) - _LIMIT_WORDS
    others = [
        other
        for other, title in enumerate(titles)
        if other != at
        and (other in values or not (is_confidence_score(title) or is_bookkeeping(title)))
        and _is_numeric(cells[other])
    ]
    is_named = bool(about) and about <= _KD_WORDS
    if about and not is_named and any(about <= set(_plain(titles[other]).split("_")) for other in others):
        return None
    beside = [other for other in others if abs(other - at) == 1] or others
    if is_named:
        beside = [other for other, scale in values.items() if (scale.log < 0) is ("pkd" in about)]
    directions = {scale.log < 0 for scale in values.values()}
    if beside and values.keys() >= set(beside) and (is_named or len(directions) == 1):
        return min(beside, key=lambda other: abs(other - at))
    raise UnclearAffinity(
        f"the column {titles[at]!r} holds only signs such as <, and it is not clear which column they are about; call it "
        "'kd_qualifier', put it next to K_D, or leave it out"
    )


def _is_numeric(cells: Sequence[str]) -> bool:
    """Whether the filled cells are numbers, as far as limits and units allow to say."""
    filled = [cell for cell in cells if cell not in _EMPTY]
    return (
        bool(filled)
        and sum(bool(re.match(r"[<>≤≥=~]*\s*[+-]?[.,]?\d", cell)) for cell in filled) > len(filled) / 2
    )


def unclear_titles(titles: Sequence[str]) -> tuple[str, ...]:
    """The titles that look like K_D and whose unit is not known here."""
    return tuple(
        title
        for title in titles
        if scale_of(title) is None
        and _LIKE_KD.fullmatch(plain := _plain(title))
        and not _BESIDE.search(plain)
    )


def read_affinities(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    unit: str | None = None,
    delimiter: str | None = None,
) -> tuple[list[Affinity], list[str]]:
    """What each row says of K_D, and a note on what was decided.

    Args:
        titles: of the columns.
        rows: cells below the titles.
        unit: the unit of the numbers, whatever the title says of it; a unit in a cell or of a row still counts.
        delimiter: of the table: where cells are separated by `;`, points may separate thousands.

    Raises:
        UnclearAffinity: the unit is not clear, values are outside of what an assay gives, or columns contradict each other.
    """
    if unit is not None and unit not in MOLAR:
        raise UnclearAffinity(f"{unit!r} is not a unit of K_D; give one of {', '.join(MOLAR)}")
    columns = find_affinity_columns(titles, rows)
    found = [NOTHING] * len(rows)
    notes: list[str] = []
    before: str | None = None
    for at, scale in columns.values:
        cells = [row[at] for row in rows]
        units = [row[columns.unit] for row in rows] if columns.unit is not None else None
        signs = (
            [row[columns.limit] for row in rows]
            if columns.limit is not None and at == columns.limited
            else None
        )
        style = _Style(titles[at], scale, is_rate=at in columns.rates, has_decimal_commas=delimiter == ";")
        read, said = _column(style, cells, unit, units, signs)
        notes += said
        for place, value in enumerate(read):
            if value is not NOTHING:
                found[place] = _agreed(found[place], value, (before or "", titles[at]), place)
        before = titles[at]
    return found, notes


def _agreed(known: Affinity, value: Affinity, titles: tuple[str, str], at: int) -> Affinity:
    """What two columns say together: the same K_D, and a limit where either says so."""
    if known is NOTHING:
        return value
    same = (known.kd_M is None) == (value.kd_M is None) and (
        known.kd_M is None or value.kd_M is None or math.isclose(known.kd_M, value.kd_M, rel_tol=_SAME)
    )
    if not same or (known.qualifier and value.qualifier and known.qualifier != value.qualifier):
        raise UnclearAffinity(
            f"the columns {titles[0]!r} and {titles[1]!r} give different K_D ({_shown(known)} and {_shown(value)}); "
            "leave one of the two out",
            at,
        )
    return replace(known, qualifier=known.qualifier or value.qualifier)


def _shown(value: Affinity) -> str:
    return "no binding" if value.kd_M is None else f"{value.qualifier or ''}{value.kd_M:.3g} M"


@dataclass(frozen=True, slots=True)
class _Style:
    """How the numbers of a column are written; `is_rate`: without a unit they are rates of dissociation."""

    title: str
    scale: Scale
    is_rate: bool
    has_decimal_commas: bool  # where the table may have points between thousands


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell's number with its unit and sign, before the column's scale is known."""

    at: int
    number: float
    unit: str | None
    sign: str | None


def _column(
    style: _Style,
    cells: Sequence[str],
    chosen: str | None,
    units: Sequence[str] | None,
    signs: Sequence[str] | None,
) -> tuple[list[Affinity], list[str]]:
    title, scale = style.title, style.scale
    found: list[Affinity] = [NOTHING] * len(cells)
    texts: list[tuple[int, str | None, str]] = []  # place, sign, the rest
    for at, written in enumerate(cells):
        sign, text = _split(written)
        call, unread = read_call(text.strip(" .()"), "kd")
        if written.strip().casefold() in _EMPTY or (call in _NO_VALUE and unread is None):
            continue
        if call is Call.DOES_NOT_BIND:
            found[at] = Affinity(binds=False)
        else:
            texts.append((at, sign, text))
    comma = _decimal_comma(style, texts)
    numbers = [
        _Cell(at, *_number(title, text, comma=comma, at=at), _sign(sign, signs, at))
        for at, sign, text in texts
    ]
    own = [cell.unit or (_row_unit(units[cell.at], cell.at) if units else None) for cell in numbers]
    unit, notes = _unit(
        style, chosen, [cell for cell, other in zip(numbers, own, strict=True) if other is None]
    )
    exact: list[float] = []
    for cell, other in zip(numbers, own, strict=True):
        # A unit within the cell is that of a plain K_D, also below a title such as pKD.
        kd = (Scale() if cell.unit else scale).molar(cell.number, other or unit)
        if not LOWEST_M <= kd <= HIGHEST_M:
            raise UnclearAffinity(
                f"{title} is {cells[cell.at].strip()[:40]!r}, which is {kd:.3g} M, and no assay gives a K_D outside "
                f"{LOWEST_M:g} to {HIGHEST_M:g} M; is the unit right? Leave the cell empty without a value, and write NB "
                "for no binding",
                cell.at,
            )
        sign = {"<": ">", ">": "<"}.get(cell.sign or "") if scale.log < 0 and not cell.unit else cell.sign
        found[cell.at] = Affinity(kd, sign, None)
        if sign is None:
            exact.append(kd)
    if chosen is None and exact and min(exact) < _TIGHTEST and max(exact) > _ORDINARY:
        raise UnclearAffinity(
            f"the values of {title} are from {min(exact):.3g} to {max(exact):.3g} M: some seem to be in another unit; write "
            "all in one unit"
        )
    return found, notes


def _unit(style: _Style, chosen: str | None, cells: Sequence[_Cell]) -> tuple[str, list[str]]:
    """The unit of the numbers that have none of their own, and a note if their values decided it."""
    title, scale = style.title, style.scale
    if chosen is not None or scale.unit is not None or not cells:
        if chosen and scale.unit and chosen != scale.unit and cells:
            return chosen, [f"{title} is read in {chosen}, as asked for, and not in {scale.unit}"]
        return chosen or scale.unit or "M", []
    if style.is_rate:
        raise UnclearAffinity(
            f"{title!r} next to the rate of association is the rate of dissociation in 1/s, as instruments write it, and not K_D; "
            "give K_D in a column such as 'KD (nM)', or, if these are K_D, name their unit in the title or give --kd-unit"
        )
    advice = "name the unit in the title, such as 'kd_nM', or give --kd-unit"
    values = [cell.number for cell in cells]
    if scale.log:
        if all(LOWEST_M <= scale.molar(value, "M") <= _WEAK_MOLAR for value in values):
            return "M", [f"{title} has no unit; its values are taken as log10 of K_D in M"]
        raise UnclearAffinity(
            f"{title} has no unit, and {_outlier(cells, scale):g} is not a log10 of a K_D in M; {advice}"
        )
    exact = [cell.number for cell in cells if cell.sign is None] or values
    low, high = min(exact), max(exact)
    if low < _SURELY_MOLAR and max(values) > _WEAK_MOLAR:
        raise UnclearAffinity(
            f"{title} has no unit, and its values, {low:g} to {max(values):g}, are not in one unit; write all in one unit, and "
            f"{advice}"
        )
    if high > _WEAK_MOLAR:
        large = ", ".join(f"{value:g}" for value in sorted(set(exact), reverse=True)[:2][::-1])
        raise UnclearAffinity(f"{title} has no unit, and its values ({large}) cannot be M; {advice}")
    if high > _LIKELY_MOLAR and low >= _SURELY_MOLAR:
        raise UnclearAffinity(
            f"{title} has no unit, and its values, {low:g} to {high:g}, may be in M, mM or uM; {advice}"
        )
    span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return "M", [f"{title} has no unit, and its values ({span}) are taken as M"]


def _outlier(cells: Sequence[_Cell], scale: Scale) -> float:
    return next(c.number for c in cells if not LOWEST_M <= scale.molar(c.number, "M") <= _WEAK_MOLAR)


def _plain(title: str) -> str:
    """A title without case, brackets and separators: `K_D (nM)` is `k_d_nm`, and µ is u."""
    text = unicodedata.normalize("NFKC", title).casefold().replace("μ", "u").replace("ᴅ", "d")
    return re.sub(r"[^0-9a-z]+", "_", text).strip("_")


def _begins_with_minus(title: str) -> bool:
    return title.strip().translate(_SUPERSCRIPTS)[:1] == "-"


def _split(cell: str) -> tuple[str | None, str]:
    """The sign of a limit, if any, and the rest of a cell."""
    text = unicodedata.normalize("NFKC", cell.translate(_SUPERSCRIPTS)).casefold().replace("μ", "u").strip()
    match = _SIGN.fullmatch(text)
    return (_SIGNS[(match[1] or "").strip()], match[2].strip()) if match else (None, text)


def _sign(sign: str | None, signs: Sequence[str] | None, at: int) -> str | None:
    if sign is not None or signs is None:
        return sign
    word = signs[at].strip().strip("'\"").casefold()
    if word not in _SIGNS and word not in _EMPTY:
        raise UnclearAffinity(f"the qualifier is {word[:40]!r}; write < or >, or leave it empty", at)
    return _SIGNS.get(word)


def _row_unit(cell: str, at: int) -> str | None:
    if cell.strip().casefold() in _EMPTY:
        return None
    unit = unit_of(cell)
    if unit is None:
        raise UnclearAffinity(f"the unit is {cell.strip()[:40]!r}; write one of {', '.join(MOLAR)}", at)
    return unit


def _number(title: str, text: str, *, comma: bool, at: int) -> tuple[float, str | None]:
    """The number of a cell, and the unit behind it."""
    match = _NUMBER.fullmatch(_digits(text))
    unit = unit_of(match["unit"]) if match and match["unit"] else None
    number = match["number"] if match else ""
    number = number.replace(".", "").replace(",", ".") if comma else number.replace(",", "")
    if not match or (match["unit"] and unit is None) or number.count(".") > 1:
        raise UnclearAffinity(
            f"{title} is {text[:40]!r}; write a number, with < or > for a limit, NB for no binding, or leave the cell empty",
            at,
        )
    return float(number), unit


def _digits(text: str) -> str:
    """The text with powers of ten as exponents, and without blanks and apostrophes between thousands."""
    text = _POWER.sub(r"e\1", text)
    return _GROUPED.sub(lambda found: re.sub(r"\D", "", found[0]), text)


def _decimal_comma(style: _Style, texts: Sequence[tuple[int, str | None, str]]) -> bool:
    """Whether the column's commas are decimal ones; all cells decide it, and doubt is an error."""
    title = style.title
    commas: int | None = None  # cells that show the one or the other
    dots: int | None = None
    unclear: int | None = None
    for at, _, text in texts:
        match = _NUMBER.fullmatch(_digits(text))
        number = match["number"] if match else ""
        mark = _decimal_mark(number, has_decimal_commas=style.has_decimal_commas)
        if mark == ",":
            commas = at if commas is None else commas
        elif mark == ".":
            dots = at if dots is None else dots
        elif mark == "?":
            unclear = at if unclear is None else unclear
    if commas is not None and dots is not None:
        raise UnclearAffinity(
            f"{title} has decimal commas and decimal points; write all numbers alike", max(commas, dots)
        )
    if unclear is not None and (commas is not None or dots is None):
        raise UnclearAffinity(
            f"{title} has a number that may be meant in thousands or with three decimals; write it without separators of "
            "thousands",
            unclear,
        )
    return commas is not None


def _decimal_mark(number: str, *, has_decimal_commas: bool) -> str:
    """The decimal mark that a number shows: `,`, `.`, none, or `?` for `1,250`.

    `1.250` is taken for a decimal point, but in a table that may have decimal commas.
    """
    if _BOTH.fullmatch(number):
        return "," if number.rfind(",") > number.rfind(".") else "."
    if groups := _GROUPS.fullmatch(number):
        return "." if groups[1] == "," else ","
    if (one := _ONE_GROUP.fullmatch(number)) and (
        one[1] == "," or (has_decimal_commas and "e" not in number)
    ):
        return "?"
    return "," if "," in number else "." if "." in number else ""
