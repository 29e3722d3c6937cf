"""The tidy table of an experiment's raw answers, with a note on everything in them that is not read.

A run that archives, the report and `prefect-assay results --reread` make their tables here, so that all read alike.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from prefect_assay.analysis.results.mapping import ResultMapping
from prefect_assay.analysis.results.matching import match_results
from prefect_assay.analysis.results.reading import read_sequence_names
from prefect_assay.analysis.results.row import ResultRow
from prefect_assay.analysis.results.tidy import list_unread_values, read_rows
from prefect_assay.service.assays import ASSAY_TYPES
from prefect_assay.service.models.result import Result
from prefect_assay.service.models.spec import ExperimentSpec

_NM: Final = 1e-9


class AnswerTable(NamedTuple):
    """The rows of an experiment, and a line for each value or entry that is not read."""

    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...]


def make_table(
    results: tuple[Result, ...],
    spec: ExperimentSpec | None,
    *,
    experiment_code: str,
    sequences: Iterable[bytes] = (),
    complete: bool,
    has_unread_answers: bool,
    mapping: ResultMapping | None = None,
) -> AnswerTable:
    """Make the table of an experiment; nothing raises for odd content.

    Args:
        results: of `read_results`.
        spec: what was ordered.
        experiment_code: of the rows.
        sequences: raw answers with the names of sequence ids.
        complete: the service reports that all results are there.
        has_unread_answers: part of the answers has no known shape, so no design is `missing`.
        mapping: declared for fields without a published meaning.
    """
    designs = spec.designs if spec else ()
    matched = match_results(results, designs, read_sequence_names(sequences))
    table = read_rows(
        results,
        experiment_code=experiment_code,
        ordered=designs,
        complete=complete,
        matched=matched,
        unread=has_unread_answers,
        highest_molar=find_highest_concentration(spec),
        mapping=mapping,
    )
    return AnswerTable(table, (*matched.nameless, *list_unread_values(results, mapping)))


def find_highest_concentration(spec: ExperimentSpec | None) -> float | None:
    """The highest antigen concentration of an experiment in M (contract 2.2); None where the assay takes none."""
    default = ASSAY_TYPES[spec.experiment_type].concentrations_nM if spec else ()
    if spec is None or not default:
        return None
    return max(spec.antigen_concentrations or default) * _NM or None
