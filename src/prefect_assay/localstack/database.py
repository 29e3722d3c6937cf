"""The database of a stack's Prefect server, which the server starts itself: where it lies, and that it ends.

It must not know what is in it.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prefect_assay.errors import ConfigurationError

if TYPE_CHECKING:
    from prefect_assay.database import EmbeddedDatabase

_FOLDER: Final = "PREFECT_ASSAY_DATABASE_FOLDER"


class StackDatabase:
    """What is left to do for a database whose server may be killed."""

    def __init__(self, env: dict[str, str]) -> None:
        """Choose a folder for it where the stack's own would not do; `env` gets its name."""
        self._own_folder = hasattr(os, "geteuid") and os.geteuid() == 0 and _FOLDER not in env
        if self._own_folder:  # the account that PostgreSQL runs under may not enter root's folders
            env[_FOLDER] = str(Path(tempfile.gettempdir()) / f"prefect-assay-{os.urandom(6).hex()}")
        self._env = env

    def stop(self) -> None:
        """Stop it, where its server was killed and nobody else uses it."""
        if self.embedded and self.embedded.exists:
            self.embedded.stop()

    def discard(self) -> None:
        """At the stack's end: delete it where it does not lie in the stack's folder."""
        if self.embedded and self._own_folder:
            self.embedded.remove()

    @property
    def embedded(self) -> "EmbeddedDatabase | None":
        """The PostgreSQL of the Prefect server; None where there can be none."""
        with suppress(ImportError, ConfigurationError):  # then the server has used SQLite
            from prefect_assay.database import EmbeddedDatabase

            return EmbeddedDatabase.of(Path(self._env["PREFECT_HOME"]), self._env)
        return None
