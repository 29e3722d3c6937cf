"""The server has the shipped settings, and its garbage is collected aside: a cursor among it keeps nobody from going on."""

import gc
import json
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from prefect_assay.cli.settings_files import SQLITE, settings_of
from support.command import printed

STALL = """
import gc, sqlite3, sys, threading, time
{aside}

path = sys.argv[1]
gc.collect()
holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
waiter = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=6)

holder.execute("BEGIN IMMEDIATE")  # one who writes, and waits for the main thread to commit

class Garbage:
    pass

left = Garbage()
left.me, left.cursor = left, waiter.execute("VALUES (1), (2)")  # not read to its end
failed = []

def write():
    try:
        waiter.execute("BEGIN IMMEDIATE")
        waiter.execute("COMMIT")
    except sqlite3.OperationalError as error:
        failed.append(str(error))

thread = threading.Thread(target=write)
thread.start()
time.sleep(0.5)  # it waits for its turn now, with its connection taken
del left
kept = []
end = time.monotonic() + 3
while time.monotonic() < end or len(kept) < 5000:  # an event loop at work
    kept.append([])
    time.sleep(0.0001)
holder.execute("COMMIT")
thread.join()
print(failed)
"""
ASIDE = "from prefect_assay.cli.server import collect_aside; collect_aside()"


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "stall.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (n)")
        connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(100)])
    return path


def told(aside, database):
    program = textwrap.dedent(STALL).format(aside=aside)
    return subprocess.run(
        [sys.executable, "-c", program, str(database)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def test_a_cursor_among_the_garbage_keeps_no_writer_waiting(database):
    assert told(ASIDE, database) == "[]\n"


@pytest.mark.skipif(gc.get_threshold()[2] == 0, reason="this Python collects in small steps")
def test_without_it_the_writer_would_wait_until_sqlite_gives_up(database):
    assert told("", database) == "['database is locked']\n"


def test_all_generations_are_collected(database):
    program = """
import gc, time
from prefect_assay.cli.server import collect_aside
gc.set_threshold(50, 2, 2)
collect_aside()
assert not gc.isenabled()
before = [generation["collections"] for generation in gc.get_stats()]
end = time.monotonic() + 30
while any(now["collections"] <= was for now, was in zip(gc.get_stats(), before)) and time.monotonic() < end:
    for _ in range(1000):
        loop = []
        loop.append(loop)
    time.sleep(0.01)
print([now["collections"] > was for now, was in zip(gc.get_stats(), before)])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[True, True, True]\n"


SETTINGS = """
import json
from prefect_assay.cli.server import use_shipped_settings
use_shipped_settings()
from prefect.settings import get_current_settings
print(json.dumps(get_current_settings().to_environment_variables()))
"""
LOOP = "PREFECT_SERVER_SERVICES_LATE_RUNS_LOOP_SECONDS"


def settings_in_effect(home, profile="", **environment):
    return json.loads(printed(SETTINGS, home, profile, **environment))


@pytest.fixture(scope="module")
def sourced(tmp_path_factory):
    """The shipped settings as Prefect understands them where the file is sourced."""
    settings = settings_in_effect(tmp_path_factory.mktemp("sourced"), **settings_of(SQLITE))
    return {name: settings[name] for name in settings_of(SQLITE)}


def shipped_in(settings, sourced):
    """The names of the shipped settings that are in effect."""
    return {name for name, value in sourced.items() if settings[name] == value}


def test_the_shipped_settings_hold_on_sqlite(tmp_path, sourced):
    assert shipped_in(settings_in_effect(tmp_path), sourced) == set(settings_of(SQLITE))


@pytest.mark.parametrize(
    "said",
    [
        {"profile": f'{LOOP} = "99"\n'},
        {LOOP: "99"},
        {"PREFECT_API_SERVICES_LATE_RUNS_LOOP_SECONDS": "99"},  # its earlier name
    ],
    ids=["in a profile", "in the environment", "by another name"],
)
def test_what_the_user_says_is_stronger(tmp_path, sourced, said):
    settings = settings_in_effect(tmp_path, **said)
    assert float(settings[LOOP]) == 99
    assert shipped_in(settings, sourced) == set(settings_of(SQLITE)) - {LOOP}


def test_a_server_on_postgresql_keeps_its_own_settings(tmp_path, sourced):
    address = "postgresql+asyncpg://user:password@db.example.org/prefect"
    settings = settings_in_effect(tmp_path, PREFECT_SERVER_DATABASE_CONNECTION_URL=address)
    assert shipped_in(settings, sourced) == set()
