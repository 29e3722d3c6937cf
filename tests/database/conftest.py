"""A folder that an unprivileged account can enter: where root runs the tests, PostgreSQL belongs to one."""

import shutil
import tempfile
from pathlib import Path

import pytest

from prefect_assay.database import EmbeddedDatabase, host


@pytest.fixture
def open_folder():
    folder = Path(tempfile.mkdtemp(prefix="pa-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def database(open_folder, monkeypatch):
    """One that is stopped and removed afterwards."""
    monkeypatch.setenv(host.FOLDER_SETTING, str(open_folder / "database"))
    made = EmbeddedDatabase.of(open_folder)
    yield made
    made.stop()
    made.remove()
