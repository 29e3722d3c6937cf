"""Operations on requests for targets that the catalog does not have (service-shapes, Targets)."""

from collections.abc import Iterator, Sequence
from typing import Final

from prefect_assay.client import checks
from prefect_assay.client.listing import Condition, Sorting, listed
from prefect_assay.client.parameters import FieldTest
from prefect_assay.client.read import model
from prefect_assay.client.request import Operation, Request, segment
from prefect_assay.client.walking import Pager
from prefect_assay.errors import InvalidRequest, OutcomeUnknown
from prefect_assay.models.custom_target import CustomTarget, CustomTargetStatus
from prefect_assay.models.page import Page
from prefect_assay.models.spec import SequenceValue
from prefect_assay.models.spec_rules import check_sequences
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX

_PATH: Final = "/targets/request-custom"


def custom_targets(
    *,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    status: CustomTargetStatus | str | None = None,
    where: Sequence[FieldTest] = (),
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[CustomTarget]]:
    """GET /targets/request-custom: one page of the organization's requests."""
    return listed(
        _PATH,
        CustomTarget,
        filter=filter,
        search=search,
        sort=sort,
        where=where,
        limit=limit,
        offset=offset,
        status=status,
    )


def iter_custom_targets(
    *,
    filter: Condition | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Sorting | None = None,
    status: CustomTargetStatus | str | None = None,
    where: Sequence[FieldTest] = (),
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[CustomTarget]:
    """All matching requests, page by page as they are asked for."""
    return Pager(
        lambda limit, offset: custom_targets(
            filter=filter, search=search, sort=sort, status=status, where=where, limit=limit, offset=offset
        ),
        lambda row: row.id,
        limit=page_size,
    )


def request_custom_target(
    name: str, product_id: str, sequence: str | None = None, pdb_id: str | None = None
) -> Operation[CustomTarget]:
    """POST /targets/request-custom, once: ask for an antigen, by its residues or by its structure.

    Args:
        name: what to call it.
        product_id: your own number for it, unique.
        sequence: amino acids, chains separated by a colon.
        pdb_id: accession in the Protein Data Bank.

    Raises:
        InvalidRequest: with every finding; nothing was sent.
        Conflict: the product id is known already.
        OutcomeUnknown: the answer was lost: list the requests.
    """
    InvalidRequest.check(list(_findings(name, product_id, sequence, pdb_id)))
    body = {"name": name, "product_id": product_id, "sequence": sequence, "pdb_id": pdb_id}
    return Operation(
        request=Request(
            method="POST",
            path=_PATH,
            json={field: value for field, value in body.items() if value is not None},
            lost=OutcomeUnknown,
            after_loss="List the requests for custom targets before anything else",
        ),
        read=model(CustomTarget),
    )


def custom_target(request_id: str) -> Operation[CustomTarget]:
    """GET /targets/request-custom/{id}."""
    return Operation(
        request=Request(method="GET", path=f"{_PATH}/{segment(request_id)}", repeatable=True),
        read=model(CustomTarget),
    )


def _findings(name: str, product_id: str, sequence: str | None, pdb_id: str | None) -> Iterator[str]:
    yield from checks.text("name", name)
    yield from checks.text("product_id", product_id)
    if sequence is None and pdb_id is None:
        yield "sequence: needed, unless there is a pdb_id"
    if sequence is not None:
        yield from check_sequences([(name or "target", SequenceValue(aa_string=sequence))])
    if pdb_id is not None:
        yield from checks.text("pdb_id", pdb_id)
