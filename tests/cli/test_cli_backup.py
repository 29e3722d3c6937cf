"""Backup and restore: the copy is private and complete, and is not restored under a running server.

A slot of the sweep that no lease holds, such as one of a copy, is free when the server starts.
"""

import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from prefect_assay.local.postgres import EmbeddedDatabase
from prefect_assay.local.postgres_host import FOLDER_SETTING
from support.command import command

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def home():
    folder = Path(tempfile.mkdtemp(prefix="pa-test-"))
    folder.chmod(0o755)  # root's database belongs to another account
    env = {"PREFECT_HOME": str(folder / "home"), FOLDER_SETTING: str(folder / "database")}
    yield env
    EmbeddedDatabase.of(folder, env).remove()
    shutil.rmtree(folder)


@pytest.fixture
def running(home):
    with EmbeddedDatabase.of(Path(home["PREFECT_HOME"]), home) as database:
        yield database


def test_a_home_without_a_database_cannot_be_copied(tmp_path):
    env = {"PREFECT_HOME": str(tmp_path), FOLDER_SETTING: str(tmp_path / "database")}
    done = command("backup", str(tmp_path / "copy"), **env)
    assert done.code == 1
    assert "has no PostgreSQL of its own" in " ".join(done.err.split())
    assert not (tmp_path / "copy").exists()


def test_backup_works_while_the_server_runs_and_restore_when_it_does_not(home, running, tmp_path):
    copy = tmp_path / "copy"
    made = command("backup", str(copy), **home)
    assert made.code == 0, made.err
    assert "It holds secrets" in made.out
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    again = command("backup", str(copy), **home)
    assert (again.code, "cannot be made: File exists" in again.err) == (1, True)

    refused = command("restore", str(copy), **home)
    assert refused.code == 1
    assert "a server uses the database" in " ".join(refused.err.split())
    running.stop()
    done = command("restore", str(copy), **home)
    assert done.code == 0, done.err
    assert "what was ordered and paid" in done.out


def test_a_file_that_is_no_copy_is_refused_and_changes_nothing(home, running, tmp_path):
    running.stop()
    (tmp_path / "text").write_text("no copy")
    done = command("restore", str(tmp_path / "text"), **home)
    assert done.code == 1
    assert "was not replaced" in done.err
    missing = command("restore", str(tmp_path / "missing"), **home)
    assert "cannot be read: No such file" in missing.err


@pytest.fixture
def new_home():
    """A home without a database, in folders that the account of root's PostgreSQL can enter."""
    folder = Path(tempfile.mkdtemp(prefix="pa-test-"))
    folder.chmod(0o755)
    env = {"PREFECT_HOME": str(folder / "home"), FOLDER_SETTING: str(folder / "database")}
    (folder / "home").mkdir()
    (folder / "text").write_text("no copy")
    yield folder, env
    EmbeddedDatabase.of(folder, env).remove()
    shutil.rmtree(folder)


def test_a_restore_that_fails_leaves_no_database_behind(new_home):
    """The next server would take it for this home's, and not look at what the home had before."""
    folder, env = new_home
    done = command("restore", str(folder / "text"), **env)
    assert done.code == 1
    assert "was not replaced" in done.err
    database = EmbeddedDatabase.of(folder, env)
    assert not database.exists
    assert not database.running()
    assert not database.data.exists()


def test_a_home_with_runs_on_sqlite_is_not_restored_over(new_home):
    folder, env = new_home
    (folder / "home" / "prefect.db").touch()
    done = command("restore", str(folder / "text"), **env)
    assert done.code == 1
    assert "prefect.db holds this Prefect home's runs" in " ".join(done.err.split())
    assert not (folder / "database").exists()


@pytest.mark.parametrize("verb", ["backup", "restore"])
@pytest.mark.parametrize(
    "setting",
    [
        {"PREFECT_SERVER_DATABASE_CONNECTION_URL": "postgresql+asyncpg://user:hidden@db.example.org/prefect"},
        {"PREFECT_SERVER_DATABASE_HOST": "db.example.org"},
    ],
    ids=["address", "parts"],
)
def test_a_configured_database_is_not_copied_or_replaced(tmp_path, verb, setting):
    home = {"PREFECT_HOME": str(tmp_path), FOLDER_SETTING: str(tmp_path / "database")}
    file = tmp_path / "copy"
    if verb == "restore":
        file.write_text("no copy")
    done = command(verb, str(file), **home, **setting)
    assert done.code == 1
    assert "configured to use another database" in " ".join(done.err.split())
    assert "hidden" not in done.err
    assert file.exists() == (verb == "restore")
    assert not (tmp_path / "database").exists()
