"""Settings of ours for a process of Prefect's, weaker than whatever its user says."""

import os
from collections.abc import Mapping

from prefect.context import refresh_global_settings_context
from prefect.settings import get_current_settings


def set_unless_chosen(settings: Mapping[str, str]) -> None:
    """Let these settings hold wherever the user says nothing else, in the environment, a profile or a file.

    Args:
        settings: environment variables of Prefect, as in the shipped settings files.
    """
    chosen = get_current_settings().to_environment_variables(exclude_unset=True, include_aliases=True)
    os.environ.update({name: value for name, value in settings.items() if name not in chosen})
    refresh_global_settings_context()
