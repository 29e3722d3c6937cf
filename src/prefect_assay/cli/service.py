"""The service for commands that only read it: a saved block's, or the environment's, which needs no Prefect."""

import os
from typing import TYPE_CHECKING, Final

from prefect_assay.cli.options import BLOCKS
from prefect_assay.client import AssayClient
from prefect_assay.errors import ConfigurationError

if TYPE_CHECKING:
    from prefect_assay.blocks import AssayCredentials

ADDRESS_VARIABLE: Final = "PREFECT_ASSAY_BASE_URL"
TOKEN_VARIABLE: Final = "PREFECT_ASSAY_TOKEN"  # noqa: S105 - its name, not its value


def open_service(credentials: str | None) -> AssayClient:
    """A client. Address and token come from the named block, else the environment, the block of `init`, or the only block.

    Raises:
        ConfigurationError: none of them names a service with a token.
    """
    address, token = os.environ.get(ADDRESS_VARIABLE), os.environ.get(TOKEN_VARIABLE)
    if credentials is None and address and token:
        return AssayClient(address, token)
    try:
        return _block(credentials or BLOCKS).get_client()
    except ConfigurationError as error:
        if credentials is not None:
            raise
        if only := _only_block():
            return only.get_client()
        raise ConfigurationError(
            "no service is named: give --credentials with the name of an AssayCredentials block, or set "
            f"{ADDRESS_VARIABLE} and {TOKEN_VARIABLE} ({error})"
        ) from None


def _block(name: str) -> "AssayCredentials":
    from prefect_assay.blocks import AssayCredentials
    from prefect_assay.cli.prefect_api import saved_block

    return saved_block(AssayCredentials, name)


def _only_block() -> "AssayCredentials | None":
    """The block, if exactly one is saved: then no other can be meant."""
    from prefect.client.orchestration import get_client
    from prefect.settings import get_current_settings

    from prefect_assay.blocks import AssayCredentials
    from prefect_assay.cli.prefect_api import api_errors

    if not get_current_settings().api.url:
        return None
    with api_errors(), get_client(sync_client=True) as client:
        saved = client.read_block_documents_by_type(
            AssayCredentials.get_block_type_slug(), include_secrets=False
        )
    return _block(str(saved[0].name)) if len(saved) == 1 else None
