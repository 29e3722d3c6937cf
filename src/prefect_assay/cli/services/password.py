"""`--password`: Prefect's own password for its API, in the active Prefect profile, where server and clients read it."""

import os
import sys
from typing import Final

import typer

from prefect_assay.errors import InputError

PASSWORD_VARIABLE: Final = "PREFECT_ASSAY_SERVER_PASSWORD"  # noqa: S105 - its name, not its value
_USER: Final = "admin"
_LEAST: Final = 8


def protect_api() -> None:
    """Save a password for server, worker, receiver and commands of this Prefect profile; a saved one stays.

    Raises:
        InputError: there is no password, or it cannot be one; nothing was saved.
    """
    from prefect.context import refresh_global_settings_context
    from prefect.settings import (
        PREFECT_API_AUTH_STRING,
        PREFECT_SERVER_API_AUTH_STRING,
        get_current_settings,
        update_current_profile,
    )

    settings = get_current_settings()
    saved = settings.server.api.auth_string
    password = os.environ.pop(PASSWORD_VARIABLE, "")  # no process below needs it
    if saved is None or password:
        auth = f"{_USER}:{_check_password(password or _ask_password())}"
    elif saved == settings.api.auth_string:
        return
    else:
        auth = saved.get_secret_value()
    settings.profiles_path.touch(mode=0o600)
    settings.profiles_path.chmod(0o600)
    update_current_profile({PREFECT_SERVER_API_AUTH_STRING: auth, PREFECT_API_AUTH_STRING: auth})
    refresh_global_settings_context()
    print(
        f"The password is saved in {settings.profiles_path}. In the user interface, sign in with {_USER}:PASSWORD.",
        file=sys.stderr,
        flush=True,
    )


def _ask_password() -> str:
    if sys.stdin.isatty():
        return str(
            typer.prompt("Password of the Prefect API (not shown)", hide_input=True, confirmation_prompt=True)
        )
    return sys.stdin.readline().rstrip("\r\n")


def _check_password(password: str) -> str:
    # Browsers encode other characters in another way than Prefect does.
    if len(password) < _LEAST or not password.isascii() or not password.isprintable():
        raise InputError(
            f"the password needs at least {_LEAST} printable ASCII characters: set {PASSWORD_VARIABLE}, or give it at the "
            "prompt or on the standard input"
        )
    return password
