"""Operations on the sequences of experiments (contract 4.3)."""

from collections.abc import Sequence
from typing import Final, Unpack

from prefect_assay.service.client.answers import about_record
from prefect_assay.service.client.checks import check_entries
from prefect_assay.service.client.decoding import get, once
from prefect_assay.service.client.http.pagination import Pager
from prefect_assay.service.client.http.request import Operation, given, segment
from prefect_assay.service.client.lists import Listing, PageOptions, WalkOptions
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.sequences import (
    AddedSequences,
    ProteinSequence,
    SequenceEntry,
    StoredSequence,
)

_READ_AGAIN: Final = "Read the experiment's sequences before anything else"


def entry(design: ProteinSequence | SequenceEntry) -> dict[str, object]:
    """A sequence as an entry of a list (contract 2.4)."""
    fields = given(name=design.name, aa_string=design.aa_string, control=design.control)
    is_empty = design.metadata is None or design.metadata == {}
    return fields | ({} if is_empty else {"metadata": design.metadata})


def add_sequences(
    experiment_code: str, designs: Sequence[ProteinSequence | SequenceEntry]
) -> Operation[AddedSequences]:
    """POST /sequences, once: add designs to a draft. A `SequenceEntry` takes any JSON value as its metadata.

    Raises:
        InvalidRequest: names, letters or duplicates, with every finding; nothing was sent.
        Conflict: the experiment is no draft any more.
        OutcomeUnknown: the answer was lost: read the experiment's sequences.
    """
    check_entries(experiment_code, designs)
    body = {"experiment_code": experiment_code, "sequences": [entry(d) for d in designs]}
    operation = once("POST", "/sequences", AddedSequences, _READ_AGAIN, body)
    return about_record(operation, experiment_code, fields=("experiment_code",))


def sequences(
    *, experiment_id: str | None = None, **options: Unpack[PageOptions]
) -> Operation[Page[StoredSequence]]:
    """GET /sequences: one page of the organization's sequences."""
    return _listed(experiment_id).page(options, experiment_id=experiment_id)


def iter_sequences(
    *, experiment_id: str | None = None, **options: Unpack[WalkOptions]
) -> Pager[StoredSequence]:
    """All matching sequences of the organization."""
    return _listed(experiment_id).rows(options, experiment_id=experiment_id)


def _listed(experiment_id: str | None) -> Listing[StoredSequence]:
    return Listing("/sequences", StoredSequence, experiment_id=experiment_id)


def sequence(sequence_id: str) -> Operation[StoredSequence]:
    """GET /sequences/{id}, in full."""
    return about_record(get(f"/sequences/{segment(sequence_id)}", StoredSequence), sequence_id)


def experiment_sequences(
    experiment_id: str, *, limit: int | None = None, offset: int | None = None
) -> Operation[Page[StoredSequence]]:
    """GET /experiments/{id}/sequences: one page."""
    return _of_experiment(experiment_id).page({"limit": limit, "offset": offset})


def iter_experiment_sequences(experiment_id: str) -> Pager[StoredSequence]:
    """All sequences of one experiment."""
    return _of_experiment(experiment_id).rows({})


def _of_experiment(experiment_id: str) -> Listing[StoredSequence]:
    path = f"/experiments/{segment(experiment_id)}/sequences"
    return Listing(path, StoredSequence, experiment_id=experiment_id)
