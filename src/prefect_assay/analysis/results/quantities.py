"""One reader for measured quantities: a value, a qualifier and a unit become a number in the unit of its column.

Only the spellings in docs/results.md are read. Everything else is `Unread` with a reason: a limit never becomes an exact
value, and a unit is never guessed.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from prefect_assay.service.assays import KD, QuantityKind

_BLANKS: Final = re.compile(r"[\s^*·()]+")

SIGNS: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("<", "<=", "≤", "<<"), "<"),
    **dict.fromkeys((">", ">=", "≥", ">>"), ">"),
    "=": None,
}
"""The spellings of a qualifier: service shapes (`<`), ChEMBL's `standard_relation` and their typographic forms."""

_TEXT: Final = re.compile(
    r"(?P<sign><=|<<|>=|>>|[<>≤≥=])?\s*(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(?P<unit>[^\d\s_,.].*)?"
)
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in the unit of its kind's column, exact or a limit (`<` or `>`)."""

    value: float
    qualifier: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A quantity that is not read; `reason` completes "K_D is ..." and quotes what came."""

    reason: str


def finite_or_none(value: float | None) -> float | None:
    """The number, or None where it is not finite: NaN is no measurement, and JSON has no word for it."""
    return value if value is not None and math.isfinite(value) else None


def find_unit_factor(kind: QuantityKind, unit: str) -> float | None:
    """How many of a unit are one of the column's; None for an unknown one."""
    return kind.units.get(_BLANKS.sub("", unit))


def read_quantity(
    value: Any, *, unit: str | None = None, qualifier: Any = None, quantity: QuantityKind = KD
) -> Quantity | Unread:
    """Make a quantity of a value with its unit and qualifier.

    Args:
        value: a number, or a text such as `7.4e-8`, `<5.0` or `> 1 uM`.
        unit: the unit of the value; None for the column's.
        qualifier: a sign of `SIGNS`; None or an empty text for an exact value.
        quantity: the kind of the value.
    """
    text = _shorten(value)
    number, sign, own_unit = split_value(value)
    word = "" if qualifier is None else str(qualifier).strip()
    factor = find_unit_factor(quantity, own_unit or unit or quantity.shown[0])
    if number is None or not math.isfinite(number):
        reason = f"{text}, which is not a number, with or without a sign and a unit"
    elif own_unit and unit and factor != find_unit_factor(quantity, unit):
        reason = f"{text} and in {_shorten(unit)}: two units that contradict each other"
    elif factor is None:
        reason = f"{text} in {_shorten(own_unit or unit)}, and the units known here are {', '.join(quantity.shown)}"
    elif word and word not in SIGNS:
        reason = f"{text} with the qualifier {_shorten(word)}, which is not a known sign"
    elif word and sign and SIGNS[word] != SIGNS[sign]:
        reason = f"{text} with the qualifier {_shorten(word)}: two signs that contradict each other"
    elif not quantity.is_possible(number / factor):
        unit_shown = quantity.shown[0]
        reason = (
            f"{text}, that is {number / factor:g} {unit_shown}, outside of what is possible "
            f"({quantity.least:g} to {quantity.most:g} {unit_shown})"
        )
    else:
        return Quantity(number / factor, SIGNS.get(word or sign or "="))
    return Unread(reason)


def split_value(value: Any) -> tuple[float | None, str | None, str | None]:
    """Number, sign and unit of a value; no number where it has none of the known forms."""
    if isinstance(value, bool):
        return None, None, None
    if isinstance(value, int | float):
        try:
            return float(value), None, None
        except OverflowError:
            return None, None, None
    match = _TEXT.fullmatch(value.strip()) if isinstance(value, str) else None
    return (float(match["number"]), match["sign"], match["unit"]) if match else (None, None, None)


def _shorten(value: Any) -> str:
    """What came, on one line."""
    return (ascii(value) if isinstance(value, str) else str(value))[:_SHOWN]
