"""Reads the sweep's credentials blocks, one per user: many in one request, or a single one.

A block that was deleted and saved again has another id; it is found by its name.
"""

import json
from collections.abc import Iterable
from typing import Final, cast

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import BlockDocument

from prefect_assay.blocks import AssayCredentials
from prefect_assay.errors import ConfigurationError
from prefect_assay.models.sweep import Watermark

_PAGE: Final = 200


def read_blocks(client: SyncPrefectClient, references: Iterable[str]) -> dict[str, AssayCredentials]:
    """Read credentials blocks in one request per page; returns them by their reference as JSON text.

    Blocks that cannot be read are left out: `read_block` raises the reason.
    """
    by_id = {_id_of(reference): reference for reference in references}
    by_id.pop(None, None)
    found: dict[str, AssayCredentials] = {}
    ids = sorted(by_id, key=str)
    for start in range(0, len(ids), _PAGE):
        body = {
            "block_documents": {"id": {"any_": ids[start : start + _PAGE]}},
            "include_secrets": True,
            "limit": _PAGE,
        }
        for row in client.request("POST", "/block_documents/filter", json=body).json():
            document = BlockDocument.model_validate(row)
            try:
                block = AssayCredentials._from_block_document(document)  # noqa: SLF001 - Prefect's only way
            except Exception:  # noqa: BLE001, S112 - another type's block, or one that cannot be read
                continue
            if isinstance(block, AssayCredentials):
                found[by_id[str(document.id)]] = block
    return found


def read_block(mark: Watermark) -> AssayCredentials:
    """Read the credentials block of a watermark.

    Raises:
        ConfigurationError: it was deleted.
    """
    try:
        return cast("AssayCredentials", AssayCredentials.load_from_ref(json.loads(mark.reference or "{}")))
    except ValueError as error:  # Prefect's error for a 404
        if mark.name is None:
            raise ConfigurationError(
                "the block was deleted, and its name is not known: start the campaigns of its runs again"
            ) from error
        try:
            return cast("AssayCredentials", AssayCredentials.load(mark.name))
        except ValueError:
            raise ConfigurationError(
                "the block was deleted: save it again under this name, and its runs are checked again"
            ) from error


def name_of(block: AssayCredentials) -> str | None:
    """Return the name under which a block is saved."""
    return block._block_document_name  # noqa: SLF001 - Prefect has no public name for it


def _id_of(reference: str) -> str | None:
    value = json.loads(reference).get("block_document_id")
    return str(value) if value else None
