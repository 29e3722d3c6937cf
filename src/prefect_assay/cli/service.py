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
    """A client with the address and token of a named block, else of the environment, else of the block of `init`.

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
        raise ConfigurationError(
            "no service is named: give --credentials with the name of an AssayCredentials block, or set "
            f"{ADDRESS_VARIABLE} and {TOKEN_VARIABLE} ({error})"
        ) from None


def _block(name: str) -> "AssayCredentials":
    from prefect_assay.blocks import AssayCredentials
    from prefect_assay.cli.prefect_api import saved_block

    return saved_block(AssayCredentials, name)
