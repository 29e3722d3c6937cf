"""Operations on requests for targets that the catalog does not have (service-shapes, Targets)."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Final, Unpack

from prefect_assay.client import checks
from prefect_assay.client.decoding import get, once
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import Operation, given, segment
from prefect_assay.client.lists import PageOptions, WalkOptions, listed, walked
from prefect_assay.errors import InvalidRequest
from prefect_assay.models.custom_target import CustomTarget, CustomTargetStatus
from prefect_assay.models.page import Page
from prefect_assay.models.spec import SequenceValue
from prefect_assay.models.spec_rules import check_sequences

_PATH: Final = "/targets/request-custom"


def custom_targets(
    *,
    status: CustomTargetStatus | str | None = None,
    **chosen: Unpack[PageOptions],
) -> Operation[Page[CustomTarget]]:
    """GET /targets/request-custom: one page of the organization's requests."""
    return listed(_PATH, CustomTarget, {"status": status}, **chosen)


def iter_custom_targets(
    *,
    status: CustomTargetStatus | str | None = None,
    **chosen: Unpack[WalkOptions],
) -> Pager[CustomTarget]:
    """All matching requests, page by page as they are asked for."""
    return walked(partial(custom_targets, status=status), **chosen)


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
    """POST /targets/request-custom, once: ask for an antigen, by its residues or by its structure.

    Args:
        name: what to call it.
        product_id: your own number for it, unique.
        sequence: amino acids, chains separated by a colon.
        pdb_id: accession in the Protein Data Bank.
        vendor: who sells it.
        note: anything for the staff who decide.
        product_url: the vendor's page of it, http or https.
        molecular_weight: in kDa, or text with its unit.

    Raises:
        InvalidRequest: with every finding; nothing was sent.
        Conflict: the product id is known already.
        OutcomeUnknown: the answer was lost: list the requests.
    """
    findings = [
        *_findings(name, product_id, sequence, pdb_id),
        *_product(vendor, product_url, molecular_weight),
    ]
    InvalidRequest.check(findings)
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
        "POST", _PATH, CustomTarget, "List the requests for custom targets before anything else", body
    )


def custom_target(request_id: str) -> Operation[CustomTarget]:
    """GET /targets/request-custom/{id}."""
    return get(f"{_PATH}/{segment(request_id)}", CustomTarget)


def _findings(name: str, product_id: str, sequence: str | None, pdb_id: str | None) -> Iterator[str]:
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
