"""The shipped settings files, and how a process uses their settings as defaults."""

import os
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

EMBEDDED: Final = "embedded.env"
SQLITE: Final = "sqlite.env"
POSTGRES: Final = "postgres.env"
RUNNER: Final = "runner.env"
ANALYTICS: Final = "PREFECT_SERVER_ANALYTICS_ENABLED"  # the same in all files of a server


def read_shipped_settings(name: str) -> dict[str, str]:
    """The variables of a shipped file: lines of `NAME=value`, as shells and container engines read them."""
    text = (files("prefect_assay.deployments") / name).read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {variable: value for variable, _, value in pairs}


def set_defaults(settings: Mapping[str, str]) -> None:
    """Default Prefect settings, as environment variables; anything the user has configured takes precedence."""
    # The local stack reads the files without the seconds that Prefect takes to import.
    from prefect.context import refresh_global_settings_context  # noqa: PLC0415 - as above
    from prefect.settings import get_current_settings  # noqa: PLC0415 - as above

    chosen = get_current_settings().to_environment_variables(exclude_unset=True, include_aliases=True)
    os.environ.update({name: value for name, value in settings.items() if name not in chosen})
    refresh_global_settings_context()
