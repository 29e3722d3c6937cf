"""The service for commands that only read it: an account's, or the environment's, which needs no Prefect."""

import os
from typing import Final

from prefect_assay.cli.options import MAIN
from prefect_assay.errors import ConfigurationError
from prefect_assay.service.client import AssayClient
from prefect_assay.service.words import describe_mode

ADDRESS_VARIABLE: Final = "PREFECT_ASSAY_BASE_URL"
TOKEN_VARIABLE: Final = "PREFECT_ASSAY_TOKEN"  # noqa: S105 - its name, not its value


def open_service(account: str | None) -> AssayClient:
    """A client. Address and token come from the account that is named, else the environment, else the account main.

    Raises:
        ConfigurationError: none of them names a service with a token.
    """
    if account is None and is_in_environment():
        return AssayClient(os.environ[ADDRESS_VARIABLE], os.environ[TOKEN_VARIABLE])
    from prefect_assay.cli.prefect_api import saved_account

    try:
        return saved_account(account or MAIN).credentials.get_client()
    except ConfigurationError as error:
        if account is not None:
            raise
        raise ConfigurationError(
            f"no service is named: make the account {MAIN} with `prefect-assay init`, name another one with --account, or "
            f"set {ADDRESS_VARIABLE} and {TOKEN_VARIABLE} ({error})"
        ) from None


def describe_service(service: AssayClient, account: str | None) -> str:
    """Which service `open_service` took, live or simulated as its last answer said."""
    name = (
        "the environment's token" if account is None and is_in_environment() else f"account {account or MAIN}"
    )
    return f"{name} ({describe_mode(is_simulated=service.is_simulated)}), {service.base_url}"


def is_in_environment() -> bool:
    """Return True if the environment names a service and a token."""
    return bool(os.environ.get(ADDRESS_VARIABLE) and os.environ.get(TOKEN_VARIABLE))
