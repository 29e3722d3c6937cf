"""`prefect-assay server` keeps its home private, and starts Prefect's application with its options and settings."""

import json
import socket
import stat

import pytest
from prefect.settings import PREFECT_HOME, temporary_settings

from prefect_assay.cli.services.server import keep_home_private
from support.command import command, printed

PRIVATE = 0o700


def mode(folder):
    return stat.S_IMODE(folder.stat().st_mode)


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "above" / "home"
    with temporary_settings({PREFECT_HOME: folder}):
        yield folder


def test_a_new_home_is_for_its_user_alone(home, caplog):
    keep_home_private()
    assert mode(home) == PRIVATE
    assert caplog.records == []


@pytest.mark.parametrize("before", [0o755, 0o750, 0o777, 0o701])
def test_a_home_that_others_may_enter_is_narrowed_with_one_line(home, caplog, before):
    home.mkdir(parents=True)
    home.chmod(before)
    keep_home_private()
    assert mode(home) == PRIVATE
    assert [str(home) in line and "0700" in line for line in caplog.messages] == [True]
    keep_home_private()
    assert len(caplog.records) == 1


def test_a_folder_that_is_shared_on_purpose_is_named_and_not_changed(home, caplog):
    """PREFECT_HOME=/tmp, by root: a machine without /tmp does not work."""
    home.mkdir(parents=True)
    home.chmod(0o1777)
    keep_home_private()
    assert mode(home) == 0o1777
    assert "PREFECT_HOME" in caplog.text


def test_a_server_starts_without_a_writable_home(tmp_path, caplog):
    """With its database elsewhere a server needs none."""
    (tmp_path / "file").touch()
    with temporary_settings({PREFECT_HOME: tmp_path / "file" / "home"}):
        keep_home_private()
    assert "cannot be kept" in caplog.text


START = """
import json
import uvicorn
from prefect_assay.cli.services import server
from prefect_assay.cli.app import app

CONFIGURED = ("host", "port", "log_level", "timeout_keep_alive", "ws_ping_interval", "ws_ping_timeout")

def run(self):
    from prefect.settings import get_current_settings
    settings = get_current_settings().server
    options = {name: getattr(self.config, name) for name in CONFIGURED}
    options["names"] = sorted(self.config.app._names)
    options["ui"] = settings.ui.api_url
    options["analytics"] = settings.analytics_enabled
    options["leases"] = settings.concurrency.lease_storage
    options["scheduler"] = settings.services.scheduler.enabled
    options["cors"] = settings.api.cors_allowed_origins
    print(json.dumps(options))
    self.started = True

uvicorn.Server.run = run
app(["server", *ARGUMENTS], standalone_mode=False)
"""


def started(home, *arguments, **environment):
    """What uvicorn gets, on a machine whose profile names a server."""
    text = START.replace("ARGUMENTS", repr(list(arguments)))
    database = {"PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{home}/prefect.db"}
    profile = 'PREFECT_API_URL = "http://127.0.0.1:4999/api"\n'
    return json.loads(printed(text, home, profile, **{**database, **environment}))


def test_a_server_without_options_is_prefects_for_the_loopback(tmp_path):
    tmp_path.chmod(0o755)
    options = started(tmp_path)
    assert mode(tmp_path) == PRIVATE
    assert (options["host"], options["port"], options["log_level"], options["timeout_keep_alive"]) == (
        "127.0.0.1",
        4200,
        "warning",
        5,
    )
    assert (options["ws_ping_interval"], options["ws_ping_timeout"], options["scheduler"]) == (20, 20, True)
    assert options["names"] == ["127.0.0.1", "::1", "localhost"]
    # Relative, so that it is the page's own address, whatever the profile names.
    assert options["ui"] == "/api"
    assert options["analytics"] is False
    assert options["cors"] == "http://localhost:4200,http://127.0.0.1:4200,http://[::1]:4200"


def test_options_and_settings_reach_prefect_and_the_guard(tmp_path):
    arguments = (
        "--host 0.0.0.0 --port 4301 --allow-host Prefect.example.org --allow-host 192.168.7.5 --no-services"
    )
    options = started(
        tmp_path,
        *arguments.split(),
        PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED="false",
        PREFECT_SERVER_LOGGING_LEVEL="ERROR",
        PREFECT_SERVER_API_KEEPALIVE_TIMEOUT="75",
    )
    assert options["names"] == ["127.0.0.1", "192.168.7.5", "::1", "localhost", "prefect.example.org"]
    assert (options["host"], options["port"], options["log_level"], options["timeout_keep_alive"]) == (
        "0.0.0.0",
        4301,
        "error",
        75,
    )
    assert options["scheduler"] is False


def test_what_the_user_has_configured_stays(tmp_path):
    chosen = {
        "PREFECT_UI_API_URL": "https://prefect.example.org/below/api",  # its earlier name
        "PREFECT_SERVER_ANALYTICS_ENABLED": "true",
        "PREFECT_SERVER_API_HOST": "192.168.7.5",
        "PREFECT_SERVER_API_PORT": "4400",
        "PREFECT_SERVER_API_BASE_PATH": "/v9/api",
    }
    options = started(tmp_path, "--host", "127.0.0.1", **chosen)
    assert (options["ui"], options["analytics"], options["port"]) == (
        chosen["PREFECT_UI_API_URL"],
        True,
        4400,
    )
    del chosen["PREFECT_UI_API_URL"]
    assert started(tmp_path, "--host", "127.0.0.1", **chosen)["ui"] == "/v9/api"


def test_a_server_on_a_database_of_the_user_sends_nothing_and_keeps_leases_on_disk(tmp_path):
    """`check` advises to start it so; it takes no other setting of a shipped file."""
    url = "postgresql+asyncpg://user:password@db.example.org/prefect"
    options = started(tmp_path, PREFECT_SERVER_DATABASE_CONNECTION_URL=url)
    assert (options["analytics"], options["leases"]) == (
        False,
        "prefect.server.concurrency.lease_storage.filesystem",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--allow-host", "https://prefect.example.org"],
            "--allow-host 'https://prefect.example.org' is not a host name",
        ),
        (["--host", "nowhere.invalid"], "not an address of this machine"),
        (["--workers", "2"], "No such option"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_made(tmp_path, arguments, message):
    home = tmp_path / "home"
    done = command("server", *arguments, PREFECT_HOME=str(home))
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not (home / "assay-postgres").exists()


def test_a_taken_port_is_named_before_a_database_is_started(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = command("server", "--port", port, PREFECT_HOME=str(tmp_path / "home"))
    assert done.code == 1
    assert f"port {port} of 127.0.0.1 cannot be used" in done.err
    assert "--port" in done.err
