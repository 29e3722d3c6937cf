"""The server's garbage is collected aside: a cursor among it keeps nobody from going on."""

import gc
import sqlite3
import subprocess
import sys
import textwrap

import pytest

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
