"""Backup and restore: the copy is private and complete, and is not restored under a running server."""

import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from prefect_assay.database import EmbeddedDatabase
from prefect_assay.database.host import FOLDER_SETTING
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
