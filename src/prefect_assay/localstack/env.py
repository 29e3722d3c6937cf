"""The environment of a stack's processes: the user's without the user's Prefect settings, and the shipped ones."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from prefect_assay.localstack.settings_files import RUNNER, settings_of

_QUIET: Final = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_COLORS": "false",
    "PYTHONUNBUFFERED": "1",
    "NO_COLOR": "1",
}


def stack_environment(folder: Path, api_url: str, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment for processes that work on a stack's Prefect; `extra` is stronger than everything else."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    own = {
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": api_url,
        "TMPDIR": str(temporary),  # Prefect leaves folders there
    }
    return {**inherited, **settings_of(RUNNER), **_QUIET, **own, **extra}
