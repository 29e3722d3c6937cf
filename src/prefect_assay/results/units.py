"""The unit of each number of a result. A number in another unit than its column's leaves the cell empty, and is reported.

The contract shows no unit (2.10), and the published shapes one, `kd_units` (service-shapes, Results). So a unit is looked
for wherever a record may have it, and a number that no measurement gives in the column's unit is in another one: a wrong
number in the table is worse than none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from prefect_assay.models.result import Replicate, Result, ResultEntry
from prefect_assay.models.vocabulary import snake_case

_BLANKS: Final = re.compile(r"[\s^*·()]+")
_SHOWN: Final = 20
NOT_NAMED: Final = "not named"


@dataclass(frozen=True)
class Quantity:
    """A number with a unit; `known` says how many of a unit are one of the column's, which comes first.

    Without a unit, all numbers of an experiment lie between `least` and `most`, or none is in the column's unit.
    """

    word: str
    column: str
    fields: tuple[str, ...]
    known: Mapping[str, float]
    shown: tuple[str, ...]
    least: float = float("-inf")
    most: float = float("inf")

    def names(self) -> frozenset[str]:
        """The fields that may hold its unit and no other's."""
        stems = (self.fields[-1], *self.fields)
        return frozenset(f"{stem}_{word}" for stem in stems for word in ("unit", "units"))


KD: Final = Quantity(
    "K_D", "kd_M", ("kd_mean", "kd"), {"M": 1.0, "nM": 1e9}, ("M", "nM"), least=0.0, most=0.01
)
KON: Final = Quantity(
    "k_on",
    "kon_per_M_s",
    ("kon_mean", "kon"),
    dict.fromkeys(("1/Ms", "1/M/s", "/M/s", "M-1s-1", "M⁻¹s⁻¹", "1/M.s", "M-1.s-1"), 1.0),
    ("1/(M s)",),
)
KOFF: Final = Quantity(
    "k_off", "koff_per_s", ("koff_mean", "koff"), dict.fromkeys(("1/s", "/s", "s-1", "s⁻¹"), 1.0), ("1/s",)
)
TM: Final = Quantity(
    "T_m",
    "tm_C",
    ("tm",),
    dict.fromkeys(("C", "°C", "℃", "degC", "celsius", "Celsius"), 1.0),
    ("°C",),
    least=-50.0,
    most=150.0,
)
CONCENTRATION: Final = Quantity(
    "the concentration", "concentration_nM", ("concentration_value", "concentration"), {"nM": 1.0}, ("nM",)
)
QUANTITIES: Final = (KD, KON, KOFF, TM, CONCENTRATION)
# A unit that names no quantity belongs to the first of these that the record has.
_MAIN: Final = (KD, TM, CONCENTRATION)


@dataclass(frozen=True)
class Units:
    """The units of the numbers in some results; `doubtful` quantities have numbers without a unit that are in another."""

    doubtful: frozenset[str] = frozenset()
    results: tuple[Result, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, results: Iterable[Result]) -> "Units":
        """The units of the results of one experiment."""
        known = tuple(results)
        return cls(
            frozenset(
                quantity.word
                for quantity in QUANTITIES
                for places in _places(known)
                if unit_of(quantity, *places) is None
                for value in (_value(quantity, places[0]), apparent(places[0]) if quantity is KD else None)
                if value is not None and not quantity.least <= value <= quantity.most
            ),
            known,
        )

    def column(
        self, quantity: Quantity, extra: dict[str, Any], *places: Mapping[str, Any]
    ) -> dict[str, float | None]:
        """The cell of a quantity; in another unit the number goes to `extra`, with the unit, as it came."""
        value, unit = _value(quantity, places[0]), unit_of(quantity, *places)
        factor = self._factor(quantity, unit)
        bare = value is not None and factor is None
        if quantity is KD and (bare or (factor != 1.0 and apparent(places[0]) is not None)):
            extra["kd_units"] = unit or NOT_NAMED  # also of the apparent K_D, which has no column
        if bare:
            extra[_field(quantity, places[0])] = value
        return {quantity.column: None if value is None or factor is None else value / factor}

    def lines(self) -> tuple[str, ...]:
        """A line per result and quantity whose unit is not known here, so that its cells are empty."""
        found = {
            (result.id, quantity.word, unit): quantity
            for result, places in _with_result(self.results)
            for quantity in QUANTITIES
            if (
                _value(quantity, places[0]) is not None
                or (quantity is KD and apparent(places[0]) is not None)
            )
            and self._factor(quantity, unit := unit_of(quantity, *places)) is None
        }
        return tuple(
            f"{word} in result {result_id} is {_said(quantity, unit)}: {quantity.column} is empty, and the value is in the "
            "column extra, as it came"
            for (result_id, word, unit), quantity in sorted(found.items(), key=lambda one: str(one[0]))
        )

    def _factor(self, quantity: Quantity, unit: str | None) -> float | None:
        """How many of the unit are one of the column's; None where that is not known."""
        if unit is None:
            return None if quantity.word in self.doubtful else 1.0
        return factor_of(quantity, unit)


def unit_of(quantity: Quantity, *places: Mapping[str, Any]) -> str | None:
    """The unit that a record, or what it is in, names for a quantity, from the inside out; None if none does."""
    main = KD if apparent(places[0]) is not None else None
    main = next((one for one in _MAIN if _value(one, places[0]) is not None), main)
    for place in places:
        fields = {str(snake_case(name)): value for name, value in place.items() if value is not None}
        own = next((fields[name] for name in sorted(quantity.names()) if name in fields), None)
        shared = next((fields[name] for name in ("unit", "units") if name in fields), None)
        if own is None and isinstance(shared, Mapping):
            said = {str(snake_case(name)): value for name, value in shared.items()}
            own = next((said[name] for name in (*quantity.fields, quantity.column) if said.get(name)), None)
        elif own is None and main is quantity:
            own = shared
        if own is not None:
            return str(own).strip()[:_SHOWN]
    return None


def factor_of(quantity: Quantity, unit: str) -> float | None:
    """How many of a unit are one of the column's; None for an unknown one."""
    return quantity.known.get(_BLANKS.sub("", unit))


def apparent(record: Mapping[str, Any]) -> float | None:
    """The apparent K_D of a record or of a row's `extra`, as it came (service-shapes, Results)."""
    found = record.get("kd_app")
    value = found.get("value") if isinstance(found, Mapping) else found
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _said(quantity: Quantity, unit: str | None) -> str:
    if unit is None:
        return f"without a unit, and the numbers of the experiment are not all in {quantity.shown[0]}"
    return f"in {unit!a}, and only {' and '.join(quantity.shown)} {'is' if len(quantity.shown) == 1 else 'are'} known here"


def _field(quantity: Quantity, record: Mapping[str, Any]) -> str:
    return next((name for name in quantity.fields if record.get(name) is not None), quantity.fields[0])


def _value(quantity: Quantity, record: Mapping[str, Any]) -> float | None:
    value = record.get(_field(quantity, record))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def parts_of(entry: ResultEntry) -> tuple[ResultEntry | Replicate, ...]:
    """The records of an entry that have numbers: itself, then its replicates."""
    return (entry, *entry.replicates)


def places_of(
    result: Result, entry: ResultEntry, part: ResultEntry | Replicate
) -> tuple[Mapping[str, Any], ...]:
    """Where a unit of a record may be named, from the inside out."""
    return (
        {**(part.model_extra or {}), **{name: getattr(part, name) for name in type(part).model_fields}},
        entry.model_extra or {},
        result.model_extra or {},
        result.metadata,
    )


def _with_result(results: Iterable[Result]) -> Iterator[tuple[Result, tuple[Mapping[str, Any], ...]]]:
    for result in results:
        for entry in result.summary:
            for part in parts_of(entry):
                yield result, places_of(result, entry, part)


def _places(results: Iterable[Result]) -> Iterator[tuple[Mapping[str, Any], ...]]:
    return (places for _, places in _with_result(results))
