"""Many credentials blocks in one request: the sweep needs one for each user."""

import json
from collections.abc import Iterable
from typing import Final

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import BlockDocument

from prefect_assay.blocks import AssayCredentials

_PAGE: Final = 200


def read_blocks(client: SyncPrefectClient, references: Iterable[str]) -> dict[str, AssayCredentials]:
    """The credentials blocks that can be read, by their reference as JSON text.

    Those that are missing in the answer are left out: loading them by themselves says why.
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


def _id_of(reference: str) -> str | None:
    value = json.loads(reference).get("block_document_id")
    return str(value) if value else None
