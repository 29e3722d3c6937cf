"""Operations on the sequences of experiments (contract 4.3)."""

from collections.abc import Sequence
from typing import Final

from prefect_assay.client.checks import check_entries
from prefect_assay.client.entries import entry
from prefect_assay.client.listing import Condition, Sorting, listed
from prefect_assay.client.parameters import FieldTest
from prefect_assay.client.read import model
from prefect_assay.client.request import Operation, Request, segment
from prefect_assay.client.walking import Pager
from prefect_assay.errors import OutcomeUnknown
from prefect_assay.models.page import Page
from prefect_assay.models.sequences import Sequence as Design
from prefect_assay.models.stored import AddedSequences, StoredSequence
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX

_READ_AGAIN: Final = "Read the experiment's sequences before anything else"


def add_sequences(experiment_code: str, designs: Sequence[Design]) -> Operation[AddedSequences]:
    """POST /sequences, once: add designs to a draft.

    Raises:
        InvalidRequest: names, letters or duplicates, with every finding; nothing was sent.
        Conflict: the experiment is no draft any more.
        OutcomeUnknown: the answer was lost: read the experiment's sequences.
    """
    check_entries(experiment_code, designs)
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


def sequences(
    *,
    experiment_id: str | None = None,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    where: Sequence[FieldTest] = (),
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[StoredSequence]]:
    """GET /sequences: one page of all sequences of the organization."""
    return listed(
        "/sequences",
        StoredSequence,
        filter=filter,
        search=search,
        sort=sort,
        where=where,
        limit=limit,
        offset=offset,
        experiment_id=experiment_id,
    )


def iter_sequences(
    *,
    experiment_id: str | None = None,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    where: Sequence[FieldTest] = (),
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[StoredSequence]:
    """All matching sequences of the organization, page by page as they are asked for."""
    return Pager(
        lambda limit, offset: sequences(
            experiment_id=experiment_id,
            filter=filter,
            search=search,
            sort=sort,
            where=where,
            limit=limit,
            offset=offset,
        ),
        lambda row: row.id,
        limit=page_size,
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
    path = f"/experiments/{segment(experiment_id)}/sequences"
    return listed(path, StoredSequence, limit=limit, offset=offset)


def iter_experiment_sequences(experiment_id: str) -> Pager[StoredSequence]:
    """All sequences of one experiment."""
    return Pager(
        lambda limit, offset: experiment_sequences(experiment_id, limit=limit, offset=offset),
        lambda row: row.id,
    )
