"""Write `database/schema.sql` again: the tables that Prefect's migrations make, as `pg_dump` writes them.

Run by `make schema` when the oldest supported Prefect changes. A newer one migrates what it has added.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import prefect

from prefect_assay.database import EmbeddedDatabase, find_programs
from prefect_assay.database.cluster import NAME
from prefect_assay.database.host import FOLDER_SETTING

TARGET = Path(__file__).parents[3] / "src" / "prefect_assay" / "database" / "schema.sql"
HEAD = "-- Prefect's tables as of {version}, for a new database; `make schema` writes this file again.\n"
# Lines that change from one dump to the next, that only newer versions of PostgreSQL know, or that are comments.
_LEFT_OUT = re.compile(r"^(\\(un)?restrict .*|SET transaction_timeout = .*|--.*|)\n", re.MULTILINE)


def migrate(database: EmbeddedDatabase, home: Path) -> None:
    """Bring a database to the installed Prefect's tables, by Prefect's own command."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    env |= {"PREFECT_HOME": str(home), "PREFECT_SERVER_DATABASE_CONNECTION_URL": database.url}
    upgrade = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
    subprocess.run(upgrade, env=env, check=True, capture_output=True)


def sql(database: EmbeddedDatabase, text: str) -> str:
    """The answer of `psql`, connected as this user."""
    programs = database.programs
    base = [programs["psql"], "-X", "-A", "-t", "-h", str(database.place.sockets), "-U", NAME, "-d", NAME]
    return subprocess.run([*base, "-c", text], capture_output=True, text=True, check=True).stdout.strip()


def dumped(database: EmbeddedDatabase) -> str:
    """Its tables and rows as statements, the same for the same contents."""
    dump = ["--no-owner", "--no-privileges", "--no-comments", "--inserts"]
    sockets = str(database.place.sockets)
    version = int((database.data / "PG_VERSION").read_text())
    done = database.place.run([find_programs(version)["pg_dump"], "-h", sockets, "-U", NAME, *dump, NAME])
    assert done.returncode == 0, done.stdout
    return _LEFT_OUT.sub("", done.stdout)


def migrated_schema(folder: Path) -> str:
    """What Prefect's own migrations make in an empty database, with the rows that they put in."""
    os.environ[FOLDER_SETTING] = str(folder / "database")
    database = EmbeddedDatabase.of(folder)
    database.start(empty=True)
    try:
        migrate(database, folder / "home")
        return dumped(database)
    finally:
        database.remove()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # an unprivileged account enters it where root runs this
        TARGET.write_text(HEAD.format(version=prefect.__version__) + migrated_schema(Path(name)))
