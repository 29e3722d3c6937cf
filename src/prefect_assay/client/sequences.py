"""Operations on the sequences of experiments (contract 4.3)."""

from collections.abc import Sequence
from typing import Final

from prefect_assay.client.experiments import entry
from prefect_assay.client.read import model, page
from prefect_assay.client.request import Operation, Request, query, segment
from prefect_assay.client.walking import Pager
from prefect_assay.errors import OutcomeUnknown
from prefect_assay.models.page import Page
from prefect_assay.models.sequences import Sequence as Design
from prefect_assay.models.stored import AddedSequences, StoredSequence

_READ_AGAIN: Final = "Read the experiment's sequences before anything else"


def add_sequences(experiment_code: str, designs: Sequence[Design]) -> Operation[AddedSequences]:
    """POST /sequences, once: add designs to a draft.

    Raises:
        Conflict: the experiment is no draft any more.
        OutcomeUnknown: the answer was lost: read the experiment's sequences.
    """
    return Operation(
        request=Request(
            method="POST",
            path="/sequences",
            json={"experiment_code": experiment_code, "sequences": [entry(d) for d in designs]},
            lost=OutcomeUnknown,
            after_loss=_READ_AGAIN,
        ),
        read=model(AddedSequences),
    )


def sequence(sequence_id: str) -> Operation[StoredSequence]:
    """GET /sequences/{id}: one sequence in full."""
    return Operation(
        request=Request(method="GET", path=f"/sequences/{segment(sequence_id)}", repeatable=True),
        read=model(StoredSequence),
    )


def experiment_sequences(
    experiment_id: str, *, limit: int | None = None, offset: int | None = None
) -> Operation[Page[StoredSequence]]:
    """GET /experiments/{id}/sequences: one page."""
    return Operation(
        request=Request(
            method="GET",
            path=f"/experiments/{segment(experiment_id)}/sequences",
            params=query(limit=limit, offset=offset),
            repeatable=True,
        ),
        read=page(StoredSequence),
    )


def iter_sequences(experiment_id: str) -> Pager[StoredSequence]:
    """All sequences of one experiment."""
    return Pager(
        lambda limit, offset: experiment_sequences(experiment_id, limit=limit, offset=offset),
        lambda row: row.id,
    )
