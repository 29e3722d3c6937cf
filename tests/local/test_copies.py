"""Copies of a real PostgreSQL: put back whole, by programs that can read them, and nothing is left of one that was killed."""

import fcntl
import io
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from prefect_assay.errors import ConfigurationError
from prefect_assay.local import postgres_copies as copies
from prefect_assay.local import postgres_host as host
from prefect_assay.local.postgres_copies import dump_database, load_database
from prefect_assay.local.postgres_host import Place, find_programs
from support.command import program
from support.runs.prefect_tables import sql

pytestmark = pytest.mark.timeout(180)


def test_a_copy_is_put_back_whole(finished):
    """Tables of a newer Prefect go, also one that refers to a table of the copy."""
    copy = io.BytesIO()
    with finished:
        sql(finished, "CREATE EXTENSION pg_trgm; CREATE TABLE kept (n int PRIMARY KEY)")
        sql(finished, "INSERT INTO kept VALUES (1)")
        dump_database(finished, copy)
        sql(finished, "UPDATE kept SET n = 2; CREATE TABLE later (n int)")
        sql(finished, "CREATE TABLE refers (n int REFERENCES kept (n)); INSERT INTO refers VALUES (2)")
        copy.seek(0)
        load_database(finished, copy)
        assert sql(finished, "SELECT n FROM kept") == "1"
        assert sql(finished, "SELECT count(*) FROM pg_tables WHERE tablename IN ('later', 'refers')") == "0"
        assert sql(finished, "SELECT extname FROM pg_extension WHERE extname = 'pg_trgm'") == "pg_trgm"
        with pytest.raises(ConfigurationError, match="was not replaced"):
            load_database(finished, io.BytesIO(b"something else"))
        half = io.BytesIO(copy.getvalue()[:-200])  # all or nothing
        with pytest.raises(ConfigurationError, match="was not replaced"):
            load_database(finished, half)
        assert sql(finished, "SELECT n FROM kept") == "1"
        again = io.BytesIO()
        dump_database(finished, again)  # of what was put back
        again.seek(0)
        load_database(finished, again)
        assert sql(finished, "SELECT n FROM kept") == "1"


def test_a_copy_may_take_its_time_and_leaves_no_file_behind(finished, monkeypatch):
    limits = {}
    run = Place.run

    def noted(self, arguments, *, seconds=120):
        limits[Path(arguments[0]).name] = seconds
        return run(self, arguments, seconds=seconds)

    with finished:
        monkeypatch.setattr(Place, "run", noted)
        before = {path.name for path in finished.place.folder.iterdir()}
        copy = io.BytesIO()
        dump_database(finished, copy)
        copy.seek(0)
        load_database(finished, copy)
        with pytest.raises(ConfigurationError, match="was not replaced"):
            load_database(finished, io.BytesIO(b"something else"))
        with pytest.raises(ZeroDivisionError):
            dump_database(finished, SimpleNamespace(write=lambda _: 1 / 0))
        assert {path.name for path in finished.place.folder.iterdir()} <= before
    assert limits["pg_dump"] is limits["pg_restore"] is limits["psql"] is None


def test_what_killed_processes_have_left_is_deleted_and_nothing_else(finished):
    with finished:
        folder = finished.place.folder
        for name in ("backup-left", "backup-used"):
            (folder / name).mkdir()
            (folder / name / "copy").write_text("half")
        used = os.open(folder / "backup-used", os.O_RDONLY)
        fcntl.flock(used, fcntl.LOCK_EX)
        dump_database(finished, io.BytesIO())
        assert {path.name for path in folder.glob("backup-*")} == {"backup-used"}
        os.close(used)
        dump_database(finished, io.BytesIO())
        assert not list(folder.glob("backup-*"))


def test_a_copy_of_a_newer_postgresql_names_the_version(finished):
    with finished:
        copy = io.BytesIO()
        dump_database(finished, copy)
        copy.seek(0)
        assert copies.version_of(copy) == finished.version
        newer = copy.getvalue().replace(f"\0{finished.version}.".encode(), b"\x0099.", 1)
        with pytest.raises(
            ConfigurationError,
            match=r"of PostgreSQL 99.*PREFECT_HOME.*in a checkout with: pip install '\.\[server\]'",
        ):
            load_database(finished, io.BytesIO(newer))


def test_a_new_database_for_a_copy_is_made_by_programs_that_can_read_it(database, monkeypatch):
    newer = host.Programs(Path("/newer"), 18)
    monkeypatch.setattr(host, "_of_the_system", lambda: iter([Path("/older")]))
    monkeypatch.setattr(host, "_of_the_wheel", lambda: iter([newer.folder]))
    monkeypatch.setattr(
        host, "_find_programs", lambda folder: newer if folder == newer.folder else host.Programs(folder, 15)
    )
    assert find_programs().version == 15
    database.oldest = 18
    assert database.programs == newer
    database.oldest = 19
    with pytest.raises(ConfigurationError, match="of version 19 or newer"):
        _ = database.programs


@pytest.mark.parametrize("verb", ["backup", "restore"])
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGHUP"])
def test_a_signal_leaves_nothing_behind(finished, open_folder, verb, ending):
    file = open_folder / "file"
    if verb == "restore":
        file.write_text("no copy")
    killed = (
        "import os, pathlib, signal\n"
        "from prefect_assay.cli.services import server\n"
        "from prefect_assay.local.postgres import EmbeddedDatabase\n"
        "def killed(*_, **__):\n"
        f"    os.kill(os.getpid(), signal.{ending}); signal.pause()\n"
        "EmbeddedDatabase.must = killed\n"
        f"server.run_{verb}(pathlib.Path({str(file)!r}))"
    )
    done = program(killed, open_folder, **{host.FOLDER_SETTING: str(finished.place.folder)})
    assert done.code == 128 + signal.Signals[ending], done.err
    assert file.exists() == (verb == "restore")
    assert not list(finished.place.folder.glob("backup-*"))
    assert not finished.running()
