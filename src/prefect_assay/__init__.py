"""Prefect tasks, flows and blocks for a protein characterization service.

Importing this package costs next to nothing: the public names below are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prefect_assay.errors import AssayError
    from prefect_assay.service.client import AssayClient
    from prefect_assay.service.models.spec import Assay

__version__ = "0.1.0"

_PUBLIC = {
    "Assay": "prefect_assay.service.models.spec",
    "AssayClient": "prefect_assay.service.client",
    "AssayError": "prefect_assay.errors",
}

__all__ = ["Assay", "AssayClient", "AssayError", "__version__"]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it (PEP 562)."""
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
