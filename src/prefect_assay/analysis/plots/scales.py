"""The axes of a figure: from values to shares of its length, with ticks at round values. Knows no drawing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count
from typing import Final

from prefect_assay.analysis.results.formats import format_molar

_STEPS: Final = ("1", "2", "2.5", "5")
_LABEL: Final = 6  # characters next to an axis; longer numbers have an exponent
_DECADES: Final = 6  # so many labels of concentrations fit below an axis
_FEWEST: Final = 2  # ticks: one alone shows no distance
_ROUNDING: Final = 1e-6
_WIDER: Final = 1e-3  # on either side of a large number that stands alone


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low`, which is left or at the bottom, to `high`; `low` is the larger value on an axis that falls.

    Without a title its ticks have no labels, and without ticks it is not drawn.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    title: str = ""
    is_log: bool = False

    def get_share(self, value: float) -> float:
        """How far along the axis a value is: 0 at `low`, 1 at `high`."""
        if self.is_log:
            return math.log10(value / self.low) / math.log10(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def hide_title(self) -> "Scale":
        """The axis without labels and title, for a panel above another one."""
        return replace(self, title="")

    def reverse(self) -> "Scale":
        """The axis in the other direction."""
        return replace(self, low=self.high, high=self.low)


def widen_range(low: float, high: float, margin: float) -> tuple[float, float]:
    """The range, widened on both sides by a share of itself; where all values are equal, by enough to hold two ticks."""
    more = (high - low) * margin if high > low else max(0.5, abs(high) * _WIDER)
    return low - more, high + more


def make_linear_scale(low: float, high: float, title: str = "", *, most: int = 6) -> Scale:
    """An axis with two to `most` ticks, for which three at least must be allowed."""
    first, last = Decimal(str(float(low))), Decimal(str(float(high)))
    smallest = math.floor(math.log10((high - low) / most))
    steps = (Decimal(digits).scaleb(power) for power in count(smallest) for digits in _STEPS)
    step = next(step for step in steps if math.floor(last / step) - math.ceil(first / step) < most)
    ticks = [number * step for number in range(math.ceil(first / step), math.floor(last / step) + 1)]
    return Scale(low, high, tuple(zip(map(float, ticks), _write_ticks(ticks), strict=True)), title)


def _write_ticks(ticks: Sequence[Decimal]) -> list[str]:
    """The labels, with equally many decimals; with an exponent where that is too long."""
    labels = [f"{tick:f}" for tick in ticks]
    if max(map(len, labels)) > _LABEL:
        labels = [f"{tick.normalize():e}".replace("e+", "e") if tick else "0" for tick in ticks]
    return [label.replace("-", "−") for label in labels]  # noqa: RUF001  the sign of a number


def make_molar_scale(low: float, high: float, title: str) -> Scale:
    """A logarithmic axis of concentrations in M with a tick per decade, more or less often where that fits better."""
    first, last = math.ceil(math.log10(low) - _ROUNDING), math.floor(math.log10(high) + _ROUNDING)
    decades = [float(f"1e{power}") for power in range(first, last + 1)]
    ticks = decades[:: max(1, math.ceil(len(decades) / _DECADES))]
    for digits in ("125", "123456789"):
        if len(ticks) < _FEWEST:
            finer = [float(f"{digit}e{power}") for power in range(first - 1, last + 1) for digit in digits]
            ticks = [value for value in finer if low <= value <= high]
    labeled = tuple((value, _write_decade(value)) for value in ticks)
    return Scale(low, high, labeled, title, is_log=True)


def _write_decade(value: float) -> str:
    """A round concentration: `1e-8` gives `10 nM`."""
    number, unit = format_molar(value).split(" ")
    return f"{float(number):g} {unit}"
