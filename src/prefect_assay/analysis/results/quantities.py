"""One reader for measured quantities: a value, a qualifier and a unit become a number in the unit of its column.

Only the spellings in docs/results.md are read. Everything else is `Unread` with a reason: a limit never becomes an exact
value, and a unit is never guessed.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class QuantityKind:
    """A kind of number: its column, its fields, its units, and the values that are physically possible.

    `units` says how many of a unit are one of the column's, which comes first in `shown`. `least` and `most` bound a value in
    the column's unit; `is_positive` excludes zero.
    """

    word: str
    column: str
    fields: tuple[str, ...]
    units: Mapping[str, float]
    shown: tuple[str, ...]
    least: float
    most: float
    is_positive: bool = False
    most_without_unit: float = math.inf  # a number above it is in another unit than the column's

    def unit_names(self) -> frozenset[str]:
        """The fields that may hold its unit and that of no other quantity."""
        stems = (self.fields[-1], *self.fields)
        return frozenset(f"{stem}_{word}" for stem in stems for word in ("unit", "units"))

    def is_possible(self, value: float) -> bool:
        """Whether a measurement may give this value, in the column's unit."""
        return self.least <= value <= self.most and not (self.is_positive and value <= 0)


_BLANKS: Final = re.compile(r"[\s^*·()]+")
_MOLAR: Final = {"M": 1.0, "mM": 1e3, "uM": 1e6, "µM": 1e6, "μM": 1e6, "nM": 1e9, "pM": 1e12}

KD: Final = QuantityKind(
    "K_D",
    "kd_M",
    ("kd_mean", "kd"),
    _MOLAR,
    ("M", "mM", "uM", "nM", "pM"),
    1e-15,
    0.1,
    is_positive=True,
    most_without_unit=1e-4,
)
KON: Final = QuantityKind(
    "k_on",
    "kon_per_M_s",
    ("kon_mean", "kon"),
    dict.fromkeys(("1/Ms", "1/M/s", "/M/s", "M-1s-1", "M⁻¹s⁻¹", "1/M.s", "M-1.s-1"), 1.0),
    ("1/(M s)",),
    1.0,
    1e10,
    is_positive=True,
)
KOFF: Final = QuantityKind(
    "k_off",
    "koff_per_s",
    ("koff_mean", "koff"),
    dict.fromkeys(("1/s", "/s", "s-1", "s⁻¹"), 1.0),
    ("1/s",),
    0.0,
    1e4,
    is_positive=True,
)
TM: Final = QuantityKind(
    "T_m",
    "tm_C",
    ("tm",),
    dict.fromkeys(("C", "°C", "℃", "degC", "celsius", "Celsius"), 1.0),
    ("°C",),
    -50.0,
    150.0,
)
CONCENTRATION: Final = QuantityKind(
    "the concentration",
    "concentration_nM",
    ("concentration_value", "concentration"),
    {"M": 1e-9, "mM": 1e-6, "uM": 1e-3, "µM": 1e-3, "μM": 1e-3, "nM": 1.0, "pM": 1e3},
    ("nM", "M", "mM", "uM", "pM"),
    0.0,
    1e9,
)
QUANTITIES: Final = (KD, KON, KOFF, TM, CONCENTRATION)

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
    number, sign, own_unit = _split(value)
    word = "" if qualifier is None else str(qualifier).strip()
    factor = find_unit_factor(quantity, own_unit or unit or quantity.shown[0])
    if number is None or not math.isfinite(number):
        reason = f"{text}, which is no number, with or without a sign and a unit"
    elif own_unit and unit and factor != find_unit_factor(quantity, unit):
        reason = f"{text} and in {_shorten(unit)}: two units that contradict each other"
    elif factor is None:
        reason = f"{text} in {_shorten(own_unit or unit)}, and the units known here are {', '.join(quantity.shown)}"
    elif word and word not in SIGNS:
        reason = f"{text} with the qualifier {_shorten(word)}, which is no known sign"
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


def _split(value: Any) -> tuple[float | None, str | None, str | None]:
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
