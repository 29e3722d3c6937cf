"""What an assay type of the lab is: the rules of its request, its price, and what it measures. Knows no type."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay_lab.measure.files import File
from assay_lab.measure.request import AssayRequest
from assay_lab.vocabulary import REPLICATES_DEFAULT, ExperimentType


@dataclass(frozen=True, kw_only=True)
class AssayType:
    """One assay type.

    The price is in US cents per sequence: `unit_cents` for one replicate, `replicate_cents` for each further one.

    Of the request (contract 2.2): `sequence_counts` are the least, the most and the step of a limited number of sequences.
    `takes` has the fields that some types refuse and this one takes, each with its default, or None where it has none.
    `concentrations_nm` are measured where a request has none.

    Of the result: `list_entries` makes the entries of the record, `make_files` those of the data package. `columns` are title,
    field and format of its numbers on the page of an experiment.

    Of a landscape: `landscape_facts` are those that it measures from, for types without a target; `facts_if_missing` stand for
    a design that the table does not have, by the choice of `--landscape-missing`.
    """

    experiment_type: ExperimentType
    title: str
    unit_cents: int
    replicate_cents: int = 0

    takes_target: bool = False
    takes_method: bool = False
    takes: Mapping[str, Any] = field(default_factory=lambda: {"n_replicates": REPLICATES_DEFAULT})
    concentrations_nm: tuple[float, ...] = ()
    sequence_counts: tuple[int, int, int] | None = None

    list_entries: Callable[[AssayRequest], list[dict[str, Any]]]
    make_files: Callable[[AssayRequest], Iterator[File]]
    columns: tuple[tuple[str, str, str], ...] = ()

    landscape_facts: frozenset[str] = frozenset()
    facts_if_missing: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
