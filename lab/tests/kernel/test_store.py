"""The lab's database: what is written stays, what fails leaves nothing, and a foreign file is refused."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from assay_lab.errors import ConfigurationError
from assay_lab.kernel.store import Store


def test_a_file_of_another_version_is_refused_with_the_next_step(tmp_path):
    path = tmp_path / "lab.sqlite3"
    Store(path).close()
    Store(path).close()  # its own file it opens again
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 7")
        database.commit()
    with pytest.raises(ConfigurationError, match="--database"):
        Store(path)
    started = subprocess.run(
        [sys.executable, "-m", "assay_lab", "--database", str(path)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (started.returncode, started.stdout) == (1, "")
    assert started.stderr.startswith("the local lab did not start: ")


def test_a_transaction_is_all_or_nothing_and_the_next_one_goes_on(tmp_path):
    store = Store(tmp_path / "lab.sqlite3")

    def count():
        with store.transaction() as db:
            return db.one("SELECT count(*) AS n FROM clocks")["n"]

    def insert(db, key):
        db.insert("clocks", {"id": key, "mode": "manual", "seconds_per_day": 1.0, "now": "2026"})

    def fail():
        with store.transaction() as db:
            insert(db, "first")
            with store.transaction() as inner:
                insert(inner, "second")
            assert count() == 2
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert count() == 0
    with store.transaction() as db:
        insert(db, "third")
    store.close()
    reopened = Store(tmp_path / "lab.sqlite3")
    with reopened.transaction() as db:
        assert [row["id"] for row in db.all("SELECT id FROM clocks")] == ["third"]
    reopened.close()


def test_a_read_that_fails_leaves_no_transaction_open(tmp_path):
    store = Store(None)
    with pytest.raises(sqlite3.OperationalError), store.transaction() as db:
        db.one("SELECT * FROM nowhere")
    with store.transaction() as db:
        db.insert("clocks", {"id": "a", "mode": "manual", "seconds_per_day": 1.0, "now": "2026"})
    with store.transaction() as db:
        assert db.one("SELECT id FROM clocks") == {"id": "a"}
    store.close()
