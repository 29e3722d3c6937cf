"""Operations on the target catalog (contract 4.4), and on requests for targets that it lacks (service-shapes, Targets)."""

import math
from collections.abc import Iterator
from typing import Final, Unpack

from prefect_assay.errors import InvalidRequest
from prefect_assay.service.client import checks
from prefect_assay.service.client.answers import about_record
from prefect_assay.service.client.decoding import get, once
from prefect_assay.service.client.http.pagination import Pager
from prefect_assay.service.client.http.request import Operation, given, segment
from prefect_assay.service.client.lists import Listing, PageOptions, WalkOptions
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.spec import (
    CustomTarget,
    CustomTargetStatus,
    SequenceValue,
    Target,
)
from prefect_assay.service.models.spec_rules import check_sequences

_TARGETS: Final = Listing("/targets", Target)
_CUSTOM: Final = Listing("/targets/request-custom", CustomTarget)


def targets(
    *,
    name: str | None = None,
    vendor_name: str | None = None,
    selfservice_only: bool | None = None,
    detailed: bool | None = None,
    show_conjugated: bool | None = None,
    **options: Unpack[PageOptions],
) -> Operation[Page[Target]]:
    """GET /targets: one page of the catalog; `search` looks into names and catalog numbers.

    `name` and `vendor_name` are whole names, `selfservice_only` means with a calibrated price (contract 2.11),
    `detailed` adds `details` to the rows, and `show_conjugated` adds conjugated forms.
    """
    return _TARGETS.page(
        options,
        name=name,
        vendor_name=vendor_name,
        selfservice_only=selfservice_only,
        detailed=detailed,
        show_conjugated=show_conjugated,
    )


def iter_targets(
    *,
    name: str | None = None,
    vendor_name: str | None = None,
    selfservice_only: bool | None = None,
    detailed: bool | None = None,
    show_conjugated: bool | None = None,
    **options: Unpack[WalkOptions],
) -> Pager[Target]:
    """All matching targets."""
    return _TARGETS.rows(
        options,
        name=name,
        vendor_name=vendor_name,
        selfservice_only=selfservice_only,
        detailed=detailed,
        show_conjugated=show_conjugated,
    )


def target(target_id: str) -> Operation[Target]:
    """GET /targets/{id}."""
    return about_record(get(f"/targets/{segment(target_id)}", Target), target_id)


def custom_targets(
    *, status: CustomTargetStatus | str | None = None, **options: Unpack[PageOptions]
) -> Operation[Page[CustomTarget]]:
    """GET /targets/request-custom: one page of the organization's requests."""
    return _CUSTOM.page(options, status=status)


def iter_custom_targets(
    *, status: CustomTargetStatus | str | None = None, **options: Unpack[WalkOptions]
) -> Pager[CustomTarget]:
    """All matching requests."""
    return _CUSTOM.rows(options, status=status)


def custom_target(request_id: str) -> Operation[CustomTarget]:
    """GET /targets/request-custom/{id}."""
    return about_record(get(f"{_CUSTOM.path}/{segment(request_id)}", CustomTarget), request_id)


def request_custom_target(
    name: str,
    product_id: str,
    sequence: str | None = None,
    pdb_id: str | None = None,
    *,
    vendor: str | None = None,
    note: str | None = None,
    product_url: str | None = None,
    molecular_weight: float | str | None = None,
) -> Operation[CustomTarget]:
    """POST /targets/request-custom, once: request an antigen, by its residues or by its structure.

    `product_id` is your own unique number for it. Chains of `sequence` are separated by a colon, `pdb_id` is an
    accession in the Protein Data Bank, and `molecular_weight` is in kDa, or text with its unit.

    Raises:
        InvalidRequest: with every finding; nothing was sent.
        Conflict: the product id is known already.
        OutcomeUnknown: the answer was lost: list the requests.
    """
    InvalidRequest.check(
        [
            *_identity(name, product_id, sequence, pdb_id),
            *_product(vendor, product_url, molecular_weight),
        ]
    )
    body = given(
        name=name,
        product_id=product_id,
        sequence=sequence,
        pdb_id=pdb_id,
        vendor=vendor,
        note=note,
        product_url=product_url,
        molecular_weight=molecular_weight,
    )
    return once(
        "POST", _CUSTOM.path, CustomTarget, "List the requests for custom targets before anything else", body
    )


def _identity(name: str, product_id: str, sequence: str | None, pdb_id: str | None) -> Iterator[str]:
    yield from checks.text("name", name)
    yield from checks.text("product_id", product_id)
    if sequence is None and pdb_id is None:
        yield "sequence: needed, unless there is a pdb_id"
    if sequence is not None:
        yield from check_sequences([(name or "target", SequenceValue(aa_string=sequence))])
    if pdb_id is not None:
        yield from checks.text("pdb_id", pdb_id)


def _product(vendor: str | None, url: str | None, weight: float | str | None) -> Iterator[str]:
    if vendor is not None:
        yield from checks.text("vendor", vendor)
    if url is not None:
        yield from checks.web_address("product_url", url)
    if isinstance(weight, str):
        yield from checks.text("molecular_weight", weight)
    elif weight is not None and not 0 < weight < math.inf:
        yield f"molecular_weight: {weight}; give a number of kDa above 0"
