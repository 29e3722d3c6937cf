"""Checks a run's parameters before Prefect gets them: values that its database can keep, and a size that it accepts.

Prefect checks the size only when it makes the run, and its error quotes the whole request. Knows no flow.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from prefect.settings import get_current_settings

from prefect_assay.errors import InputError
from prefect_assay.service.bounds import unstorable

# Of a run: lists and mappings of a specification, of which the free-form settings are the deepest.
_LEVELS: Final = 12
# Names of blocks and what a deployment adds: a run's parameters grow a little after they were checked.
_MARGIN: Final = 16 * 1024
_SHOWN: Final = 10


def bytes_of(parameters: Any) -> int:
    """The size by which Prefect judges parameters."""
    return len(json.dumps(parameters, separators=(",", ":")))


def bytes_max() -> int | None:
    """What the parameters of one run may take; None without a limit."""
    limit = get_current_settings().server.api.max_parameter_size
    return max(limit - _MARGIN, 0) if limit > 0 else None


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Check a run's parameters, as JSON, before Prefect is asked for the run.

    Raises:
        InputError: a value is not kept as it is, or all together are too large; nothing was started.
    """
    findings = [
        finding
        for _, finding in zip(range(_SHOWN), unstorable(dict(parameters), levels=_LEVELS), strict=False)
    ]
    if findings:
        raise InputError(f"the run was not started, and nothing was ordered: {'; '.join(findings)}")
    size, limit = bytes_of(parameters), bytes_max()
    if limit is not None and size > limit:
        largest = max(parameters, key=lambda name: bytes_of(parameters[name]))
        raise InputError(
            f"the run was not started, and nothing was ordered: its parameters take {size:,} bytes, and Prefect stores at most "
            f"{limit:,} (PREFECT_SERVER_API_MAX_PARAMETER_SIZE, less a margin). The largest is {largest!r}. Put designs into "
            "a file that the worker sees, or into a bucket, and give its path; a campaign splits them into experiments"
        )
