"""What an assay type is: the rules of its request, its result fields with their units, and its words. Knows no type.

Numbers of the contract (`contract 2.2`) are sections of the service's description.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from prefect_assay.service.assays.objective import Objective
from prefect_assay.service.models.vocabulary import REPLICATES_DEFAULT, ExperimentType, Method


@dataclass(frozen=True)
class QuantityKind:
    """A kind of number: its column, its fields, its units, and the values that are physically possible.

    `units` says how many of a unit are one of the column's, which comes first in `shown`. `least` and `most` bound a value in
    the column's unit; `is_positive` excludes zero. `column` names the quantity and its unit (`tm_C`); `description`,
    `unit_text` and `unit_term` describe it to readers of an archive, `title` is its column in tables for people.
    """

    word: str
    column: str
    fields: tuple[str, ...]
    units: Mapping[str, float] = field(hash=False)
    shown: tuple[str, ...]
    least: float
    most: float
    is_positive: bool = False
    most_without_unit: float = math.inf  # a number above it is in another unit than the column's
    lower_is_better: bool = False
    has_log_mean: bool = False  # its mean over replicates is the geometric one
    title: str = ""
    number_format: str = ".3g"
    description: str = ""
    unit_text: str = ""
    unit_term: str | None = None

    def unit_names(self) -> frozenset[str]:
        """The fields that may hold its unit and that of no other quantity."""
        stems = (self.fields[-1], *self.fields)
        return frozenset(f"{stem}_{word}" for stem in stems for word in ("unit", "units"))

    def is_possible(self, value: float) -> bool:
        """Whether a measurement may give this value, in the column's unit."""
        return self.least <= value <= self.most and not (self.is_positive and value <= 0)


@dataclass(frozen=True)
class ObjectiveValue:
    """The value that an objective improves: its name, its unit, and how two of them are compared."""

    objective: Objective
    quantity: QuantityKind
    name: str
    unit: str
    by_factors: bool  # compared by their ratio, and not by their difference

    @property
    def lower_is_better(self) -> bool:
        """Whether a lower value is the better one."""
        return self.quantity.lower_is_better


@dataclass(frozen=True)
class SequenceCounts:
    """How many sequences an experiment takes: `least` to `most`, in multiples of `step`."""

    least: int
    most: int
    step: int

    def allow(self, count: int) -> bool:
        """Whether an experiment may have this number of sequences."""
        return self.least <= count <= self.most and count % self.step == 0


@dataclass(frozen=True, kw_only=True)
class AssayType:
    """One assay type. Everything that differs between types is asked of it.

    Of the request (contract 2.2): `takes_target` needs a target, others reject one; `methods` needs one of them;
    `takes` has the fields that some types refuse and this one takes, each with the service's default, or None where it has
    none; `sequence_counts` limits the sequences.

    Of the result: `columns` are the quantities with a column of their own, `measured` those of them that are a measurement of
    the type, `main` the one that ranks designs. `other_fields` are measured fields without a column. `measured_by_call` is a
    call that counts as a measurement. `is_call`: its result is a call, which no number replaces. `is_published`: its result
    has a published shape, so that a result without a type may be read as one.

    `improves` is the value that a loop improves, `hits_by` what decides whether a design is a hit.
    """

    experiment_type: ExperimentType
    title: str
    measures: str = ""  # for the help of a form
    value_title: str = "Result"  # over the values of a table in which no quantity was measured

    takes_target: bool = False
    methods: tuple[Method, ...] = ()
    takes: Mapping[str, Any] = field(default_factory=lambda: {"n_replicates": REPLICATES_DEFAULT}, hash=False)
    sequence_counts: SequenceCounts | None = None

    columns: tuple[QuantityKind, ...] = ()
    measured: tuple[QuantityKind, ...] = ()
    main: QuantityKind | None = None
    other_fields: tuple[str, ...] = ()
    measured_by_call: Literal["binding", "expression"] | None = None
    is_call: bool = False
    is_published: bool = False

    improves: ObjectiveValue | None = None
    hits_by: Objective | None = None

    @property
    def concentrations_nM(self) -> tuple[float, ...]:  # noqa: N802  units are spelled as scientists spell them
        """The default antigen concentrations; empty for a type that takes none."""
        return tuple(self.takes.get("antigen_concentrations", ()))

    def fill_defaults(self, fields: dict[str, Any]) -> None:
        """Add what the service takes for the fields that a request leaves out, as JSON."""
        for name, default in self.takes.items():
            if default is not None:
                fields.setdefault(name, list(default) if isinstance(default, tuple) else default)

    @property
    def objective(self) -> Objective | None:
        """What a loop of this type improves; None where its results have no such value."""
        return self.improves.objective if self.improves else None
