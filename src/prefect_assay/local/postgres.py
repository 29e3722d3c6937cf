"""`EmbeddedDatabase`: one PostgreSQL server for one Prefect home, on a socket that only its owner reaches.

No network listener and no password: the operating system authenticates clients (`peer`). It runs while any process of
this machine uses it; after a process died without stopping it, the next one takes it over.
"""

import fcntl
import os
import pwd
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, Self
from urllib.parse import quote

from prefect_assay.errors import ConfigurationError
from prefect_assay.local.leash import leash
from prefect_assay.local.postgres_host import (
    COMMAND_SECONDS,
    FOLDER_SETTING,
    OLDEST,
    Place,
    Programs,
    find_programs,
    place_of,
)

NAME: Final = "prefect"
_START_SECONDS: Final = 60
_LOOK_SECONDS: Final = 2.0
_SETTINGS: Final = """
# What prefect-assay adds to PostgreSQL's own settings.
listen_addresses = ''
unix_socket_permissions = 0700
log_checkpoints = off
jit = off
"""


class EmbeddedDatabase:
    """The PostgreSQL server of a Prefect home, in use inside its context; `url` is for Prefect's setting."""

    def __init__(self, place: Place) -> None:
        """Set the place; create and start nothing. See `of` for the one of a Prefect home."""
        self.place = place
        self.data = place.folder / "data"
        self.url = f"postgresql+asyncpg://{NAME}@/{NAME}?host={quote(str(place.socket_folder), safe='/')}"
        self.oldest = OLDEST  # PostgreSQL for one that is made
        self._ready = place.folder / "ready"
        self._log = place.folder / "postgresql.log"
        self._users: IO[str] | None = None
        self._over = threading.Event()
        self._watch: threading.Thread | None = None

    @classmethod
    def of(cls, home: Path, environment: Mapping[str, str] = os.environ) -> Self:
        """The database of a Prefect home; ConfigurationError when this user cannot have one."""
        return cls(place_of(home, environment))

    @property
    def exists(self) -> bool:
        """Return True if it was created before."""
        return self._ready.is_file()

    def start(self) -> None:
        """Create it if missing, start it if stopped, use it until `stop`. Prefect's server makes its tables.

        Raises:
            ConfigurationError: it cannot be created or started; the message has the end of its log.
        """
        self._over.clear()
        self.place.make()
        with self.lock_start_and_stop():
            programs = self.programs
            if not self.exists:
                self._make(programs)
            try:
                self._admit(programs)
                self._run(programs)
                if not self.exists:
                    self._fill()
            except ConfigurationError:
                # One that exists may still recover, and the next start finds it further on.
                self._end_unfinished(programs)
                raise
            except BaseException:  # interrupted: it is in a session of its own, and would run on
                self._wait_for_socket()
                self._end_unfinished(programs)
                self._stop_if_unused()
                raise
            self._users = self._open("users")
            fcntl.flock(self._users, fcntl.LOCK_SH)
        leash.run_at_end(self._stop_command)

    @property
    def _stop_command(self) -> list[str]:
        """What a helper runs when this process is gone: a fast shutdown, unless another process uses the database."""
        program = (
            "from prefect_assay.local.postgres import EmbeddedDatabase as D; from pathlib import Path as P; "
            f"D.of(P('/'), {{{FOLDER_SETTING!r}: {str(self.place.folder)!r}}}).stop()"
        )
        return [sys.executable, "-P", "-c", program]

    def stop(self) -> None:
        """Release it, and stop it when no other process uses it. Safe to repeat, and from any process."""
        self._over.set()
        if self._watch:
            self._watch.join()
            self._watch = None
        if self._users:
            self._users.close()
            self._users = None
        leash.forget(self._stop_command)
        if not self.exists:
            return
        with self.lock_start_and_stop():
            self._stop_if_unused()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def keep_running(self) -> None:
        """Restart it in the background whenever it was killed, until `stop`."""
        self._watch = threading.Thread(target=self._keep_running, name="database", daemon=True)
        self._watch.start()

    def running(self) -> bool:
        """Return True if its socket accepts connections."""
        with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
            connection.connect(str(self.place.socket_folder / ".s.PGSQL.5432"))
            return True
        return False

    def remove(self) -> None:
        """Stop it, even while in use, and delete all its data."""
        with suppress(ConfigurationError):
            if self.running():
                self.place.run([self.programs["pg_ctl"], "-D", str(self.data), "-m", "immediate", "stop"])
        for folder in {self.place.folder, self.place.socket_folder}:
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self) -> None:
        """Delete its data, as if it had never been made; not while another process uses it."""
        with self.lock_start_and_stop():
            self._stop_if_unused(forget=True)

    @property
    def programs(self) -> Programs:
        """Those of its version; before it is made, the newest from `oldest`."""
        version = self.version
        return find_programs(version) if version else find_programs(oldest=self.oldest)

    @property
    def version(self) -> int:
        """Its major version; 0 before it is made."""
        version = self.data / "PG_VERSION"
        return int(version.read_text()) if self.exists and version.is_file() else 0

    def _make(self, programs: Programs) -> None:
        self._end_unfinished(programs)  # of a process that was killed before it was ready
        shutil.rmtree(self.data, ignore_errors=True)
        # Nothing is lost with an empty database, so nothing has to reach the disk at once.
        initdb = [programs["initdb"], "--no-sync", "--no-instructions", "--encoding=UTF8", "--no-locale"]
        access = ["--auth-local=peer", "--auth-host=reject", f"--username={NAME}"]
        self.must([*initdb, *access, "-D", str(self.data)], "could not be made")
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(f"{_SETTINGS}unix_socket_directories = '{self.place.socket_folder}'\n")
        (self.data / "pg_hba.conf").write_text("local all all peer map=prefect-assay\n")

    def _end_unfinished(self, programs: Programs) -> None:
        # Only one that answers: the number in the file of a dead one may be another process by now.
        if not self.exists and self.running() and (self.data / "postmaster.pid").is_file():
            self.place.run([programs["pg_ctl"], "-D", str(self.data), "-m", "immediate", "-w", "stop"])

    def _stop_if_unused(self, *, forget: bool = False) -> None:
        """Stop the server if no process uses it; `forget` also deletes its data."""
        with self._open("users") as users, suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.running():
                self.place.run([self.programs["pg_ctl"], "-D", str(self.data), "-m", "fast", "-w", "stop"])
            if forget and not self.running():
                self._ready.unlink(missing_ok=True)
                shutil.rmtree(self.data, ignore_errors=True)

    def _wait_for_socket(self) -> None:
        """For a moment: one that is just starting does not answer yet."""
        end = time.monotonic() + _LOOK_SECONDS
        while not self.running() and time.monotonic() < end:
            time.sleep(0.1)

    def _admit(self, programs: Programs) -> None:
        """Admit this user and the owner, by the names that the system gives; `su` can leave another in the environment."""
        try:
            user = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            raise ConfigurationError(
                f"PostgreSQL admits users by their names, and user {os.geteuid()} has no name on this machine"
            ) from None
        users = {user, *({self.place.owner.pw_name} if self.place.owner else ())}
        lines = [f"prefect-assay {user} {NAME}" for user in sorted(users)]
        ident = self.data / "pg_ident.conf"
        if ident.is_file() and set(lines) <= set(ident.read_text().splitlines()):
            return
        ident.write_text("".join(f"{line}\n" for line in lines))
        if self.running():  # it reads the file when it starts, or now
            self.must([programs["pg_ctl"], "-D", str(self.data), "reload"], "was not changed")

    def _run(self, programs: Programs) -> None:
        """Start it and wait until it answers. A killed one needs a moment, until its last process is gone."""
        ready = [programs["pg_isready"], "-q", "-h", str(self.place.socket_folder)]
        start = [programs["pg_ctl"], "-D", str(self.data), "-l", str(self._log), "-w", "start"]
        end = time.monotonic() + _START_SECONDS
        while self.place.run(ready).returncode:
            done = None if self.running() else self.place.run(start)
            if time.monotonic() > end:
                raise self._failure("does not start", done.stdout if done else "it does not answer")
            if done is None or done.returncode:
                time.sleep(0.2)

    def _fill(self) -> None:
        create = self.client("psql", "-q", "-X", "-d", "postgres", "-c", f"CREATE DATABASE {NAME}")
        self.must(create, "could not be made")
        self._ready.touch()

    def client(self, program: str, *arguments: str) -> list[str]:
        """The command of a program that connects to it."""
        return [self.programs[program], "-h", str(self.place.socket_folder), "-U", NAME, *arguments]

    def must(self, arguments: list[str], what: str, *, seconds: float | None = COMMAND_SECONDS) -> str:
        """The output of a command; ConfigurationError with it where it fails."""
        done = self.place.run(arguments, seconds=seconds)
        if done.returncode:
            raise self._failure(what, done.stdout)
        return done.stdout

    def _failure(self, what: str, output: str) -> ConfigurationError:
        log = self._log.read_text(errors="replace").splitlines()[-10:] if self._log.is_file() else []
        return ConfigurationError(
            f"the database in {self.place.folder} {what}. It said:\n" + "\n".join([output.strip(), *log])
        )

    def _keep_running(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            if not self.running():
                # The next look tries again, also when the disk is full; Prefect's server reports what it lacks.
                with suppress(ConfigurationError, OSError):
                    self._run(self.programs)

    @contextmanager
    def lock_start_and_stop(self) -> Iterator[None]:
        """Exclude others while one starts or stops it. The operating system frees the lock of a dead process."""
        with self._open("lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep others from using it; ConfigurationError while another process does."""
        if self._users is None:
            raise ConfigurationError(f"the database in {self.place.folder} is not started")
        # To change a lock gives it up for a moment, in which another could stop the database.
        with self.lock_start_and_stop():
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fcntl.flock(self._users, fcntl.LOCK_SH)
                raise ConfigurationError(
                    f"a server uses the database in {self.place.folder}; stop it, then run this again"
                ) from None
            try:
                yield
            finally:
                fcntl.flock(self._users, fcntl.LOCK_SH)

    def _open(self, name: str) -> IO[str]:
        return (self.place.folder / name).open("w")
