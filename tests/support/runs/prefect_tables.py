"""A database with Prefect's tables, made once for all test processes: the migrations take seconds, a copy a moment."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from prefect_assay.local.postgres import NAME, EmbeddedDatabase
from prefect_assay.local.postgres_host import FOLDER_SETTING, find_programs


def migrate(database: EmbeddedDatabase, home: Path) -> None:
    """Make or update Prefect's tables, by Prefect's own command."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    env |= {"PREFECT_HOME": str(home), "PREFECT_SERVER_DATABASE_CONNECTION_URL": database.url}
    upgrade = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
    subprocess.run(upgrade, env=env, check=True, capture_output=True)


def sql(database: EmbeddedDatabase, text: str) -> str:
    """The answer of `psql`, connected as this user."""
    programs = database.programs
    base = [
        programs["psql"],
        "-X",
        "-A",
        "-t",
        "-h",
        str(database.place.socket_folder),
        "-U",
        NAME,
        "-d",
        NAME,
    ]
    return subprocess.run([*base, "-c", text], capture_output=True, text=True, check=True).stdout.strip()


def dumped(database: EmbeddedDatabase) -> str:
    """Its tables and rows as statements, the same for the same contents."""
    dump = ["--no-owner", "--no-privileges", "--no-comments", "--inserts", NAME]
    version = int((database.data / "PG_VERSION").read_text())
    program = find_programs(version)["pg_dump"]
    done = database.place.run([program, "-h", str(database.place.socket_folder), "-U", NAME, *dump])
    assert done.returncode == 0, done.stdout
    return done.stdout


def fill(database: EmbeddedDatabase, shared: Path) -> None:
    """Give a new database Prefect's tables, from a template that the first test process makes in `shared`."""
    statements = database.place.folder / "tables.sql"
    template = _template(shared)
    with database:
        shutil.copyfile(template, statements)
        database.place.give(statements)
        load = database.client("psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-d", NAME, "-f", str(statements))
        database.must(load, "could not be filled")
        statements.unlink()


def _template(shared: Path) -> Path:
    made = shared / "prefect-tables.sql"
    with (shared / "prefect-tables.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                folder.chmod(0o755)  # an unprivileged account enters it where root runs this
                database = EmbeddedDatabase.of(folder, {FOLDER_SETTING: str(folder / "database")})
                try:
                    with database:
                        migrate(database, folder / "home")
                        made.write_text(dumped(database))
                finally:
                    database.remove()
    return made
