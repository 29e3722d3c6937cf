"""The shipped settings files of `deployments/`: one source for users who source them and for the local stack."""

from importlib.resources import files
from typing import Final

EMBEDDED: Final = "embedded.env"
SQLITE: Final = "sqlite.env"
POSTGRES: Final = "postgres.env"
RUNNER: Final = "runner.env"


def settings_of(name: str) -> dict[str, str]:
    """The variables of a shipped settings file; lines of `NAME=value`, as shells and container engines read them."""
    text = (files("prefect_assay.deployments") / name).read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {variable: value for variable, _, value in pairs}
