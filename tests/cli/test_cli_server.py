"""The server's database, and the settings that belong to it."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from prefect_assay.deployments.settings_files import EMBEDDED, SQLITE, read_shipped_settings
from prefect_assay.local.postgres_host import FOLDER_SETTING
from support.command import printed, program

SETTINGS = """
import json, sys
from prefect_assay.cli.services.server import server_database
with server_database():
    from prefect.settings import get_current_settings
    print(json.dumps(get_current_settings().to_environment_variables()))
"""
URL = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
ON_SQLITE = {URL: "sqlite+aiosqlite:////tmp/never-opened.db"}
LOOP = "PREFECT_SERVER_SERVICES_LATE_RUNS_LOOP_SECONDS"


def settings_in_effect(home, profile="", **environment):
    return json.loads(printed(SETTINGS, home, profile, **environment))


@pytest.fixture
def own_folder():
    """Where the account that runs PostgreSQL for root may go."""
    folder = Path(tempfile.mkdtemp(prefix="pa-test-"))
    folder.chmod(0o755)
    yield folder / "database"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """The settings of each shipped file, as Prefect understands them where the file is sourced."""
    home = tmp_path_factory.mktemp("sourced")
    settings_by_file = {}
    for file in (SQLITE, EMBEDDED):
        settings = settings_in_effect(home, **ON_SQLITE, **read_shipped_settings(file))
        settings_by_file[file] = {name: settings[name] for name in read_shipped_settings(file)}
    return settings_by_file


def in_effect(settings, shipped):
    """The names of the shipped settings that are in effect."""
    return {name for name, value in shipped.items() if settings.get(name) == value}


@pytest.mark.parametrize(
    ("file", "begins"),
    [(SQLITE, "sqlite"), (EMBEDDED, "postgresql+asyncpg://prefect@/prefect?host=")],
)
def test_the_shipped_settings_hold(tmp_path, shipped, own_folder, file, begins):
    database = ON_SQLITE if file == SQLITE else {FOLDER_SETTING: str(own_folder)}
    settings = settings_in_effect(tmp_path, **database)
    assert in_effect(settings, shipped[file]) == set(read_shipped_settings(file))
    assert settings[URL].startswith(begins)


@pytest.mark.parametrize(
    "user_settings",
    [
        {"profile": f'{LOOP} = "99"\n'},
        {LOOP: "99"},
        {"PREFECT_API_SERVICES_LATE_RUNS_LOOP_SECONDS": "99"},  # its earlier name
    ],
    ids=["in a profile", "in the environment", "by another name"],
)
def test_the_users_settings_take_precedence(tmp_path, user_settings):
    settings = settings_in_effect(tmp_path, **ON_SQLITE, **user_settings)
    assert float(settings[LOOP]) == 99
    others = {name: value for name, value in read_shipped_settings(SQLITE).items() if name != LOOP}
    assert "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE" in others
    assert settings["PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"].endswith("filesystem")


@pytest.mark.parametrize(
    "chosen",
    [
        {URL: "postgresql+asyncpg://user:password@db.example.org/prefect"},
        {"PREFECT_API_DATABASE_CONNECTION_URL": "postgresql+asyncpg://user:password@db.example.org/prefect"},
    ],
)
def test_a_server_on_a_configured_database_keeps_its_settings(tmp_path, shipped, chosen):
    settings = settings_in_effect(tmp_path, **chosen)
    for file in shipped.values():
        assert in_effect(settings, file) == set()
    assert "db.example.org" in settings[URL]


def tried(home, folder):
    """A server that is to be started with a database in this folder: its exit code and its messages."""
    done = program(SETTINGS, home, **{FOLDER_SETTING: str(folder)})
    return done.code, done.err


def test_without_postgresql_the_server_uses_sqlite_and_prints_the_reason(tmp_path):
    (tmp_path / "file").write_text("no folder can be made here")
    code, messages = tried(tmp_path, tmp_path / "file" / "database")
    assert code == 0, messages
    assert "the server uses SQLite, because the database's folder" in messages
    assert "docs/operating.md says how to change to PostgreSQL" in messages


def test_a_home_with_runs_on_sqlite_keeps_them(tmp_path, own_folder):
    (tmp_path / "prefect.db").touch()
    code, messages = tried(tmp_path, own_folder)
    assert code == 0, messages
    assert f"because {tmp_path / 'prefect.db'} holds this Prefect home's runs" in messages
    assert not own_folder.exists()


def test_an_existing_database_that_does_not_start_is_not_replaced(tmp_path, own_folder):
    assert tried(tmp_path, own_folder) == (0, "")
    (own_folder / "data" / "PG_VERSION").write_text("99\n")
    code, messages = tried(tmp_path, own_folder)
    assert code != 0
    assert "no PostgreSQL programs of version 99" in messages
