"""A folder that an unprivileged account can enter: where root runs the tests, PostgreSQL belongs to one."""

import shutil
import tempfile
from pathlib import Path

import pytest

from prefect_assay.local import postgres_host as host
from prefect_assay.local.postgres import EmbeddedDatabase


def _open_folder():
    folder = Path(tempfile.mkdtemp(prefix="pa-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def open_folder():
    yield from _open_folder()


@pytest.fixture
def database(open_folder, monkeypatch):
    """A new one, which is stopped and removed afterwards."""
    monkeypatch.setenv(host.FOLDER_SETTING, str(open_folder / "database"))
    made = EmbeddedDatabase.of(open_folder)
    yield made
    made.stop()
    made.remove()


@pytest.fixture(scope="module")
def _finished():
    for folder in _open_folder():
        environment = {host.FOLDER_SETTING: str(folder / "database")}
        made = EmbeddedDatabase.of(folder, environment)
        with made:
            pass
        yield environment
        made.remove()


@pytest.fixture
def finished(_finished, open_folder, monkeypatch):
    """One that was made before, for the tests of a module that make none and leave it as it was; stopped afterwards."""
    monkeypatch.setenv(host.FOLDER_SETTING, _finished[host.FOLDER_SETTING])
    made = EmbeddedDatabase.of(open_folder)
    yield made
    made.stop()
