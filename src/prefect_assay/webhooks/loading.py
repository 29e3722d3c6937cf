"""Imports Prefect in a receiver, by one thread at a time.

Two threads that import it at the same moment end in Python's `deadlock detected by _ModuleLock`, and Prefect's plugins are
left out.
"""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prefect_assay.runs.wake import Waker

_importing = threading.Lock()


def load_prefect() -> "type[Waker]":
    """Import what the threads of a receiver need of Prefect; the first call takes seconds, and others wait for it."""
    with _importing:
        from prefect_assay.alerts import saved  # noqa: F401, PLC0415
        from prefect_assay.runs.wake import Waker  # noqa: PLC0415

        return Waker
