"""`prefect-assay server` keeps its home private, and its UI calls the server that it comes from."""

import json
import os
import stat

import prefect.context
import prefect.settings
import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings

from prefect_assay.cli.services.server import keep_home_private, set_ui_api_url
from support.command import printed

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


@pytest.fixture
def asked(monkeypatch):
    """The API address that the UI gets, if any, with these options and settings."""
    monkeypatch.setattr(prefect.context, "refresh_global_settings_context", lambda: None)  # of this process

    def asked(*arguments, **settings):
        monkeypatch.delenv("PREFECT_SERVER_UI_API_URL", raising=False)
        with temporary_settings(
            {getattr(prefect.settings, name): value for name, value in settings.items()},
            restore_defaults={PREFECT_API_URL},
        ):
            set_ui_api_url(arguments)
        return os.environ.get("PREFECT_SERVER_UI_API_URL")

    return asked


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ([], "http://127.0.0.1:4200/api"),
        (["--port", "4301"], "http://127.0.0.1:4301/api"),
        (["--port=4301", "--host=localhost", "--no-services"], "http://localhost:4301/api"),
        (["--host", "0.0.0.0", "--port", "4301"], "http://127.0.0.1:4301/api"),
        (["--host", "::1"], "http://[::1]:4200/api"),
        (["--port"], "http://127.0.0.1:4200/api"),
    ],
    ids=["default", "port", "both", "everywhere", "ipv6", "a slip"],
)
def test_the_ui_calls_the_server_that_it_comes_from(asked, arguments, address):
    assert asked(*arguments) == address


def test_prefects_server_settings_count_where_no_option_is_given(asked):
    said = {"PREFECT_SERVER_API_PORT": 4400, "PREFECT_SERVER_API_BASE_PATH": "/v2/api"}
    assert asked(**said) == "http://127.0.0.1:4400/v2/api"
    assert asked("--port", "4301", **said) == "http://127.0.0.1:4301/v2/api"


@pytest.mark.parametrize("setting", ["PREFECT_SERVER_UI_API_URL", "PREFECT_API_URL"])
def test_an_address_that_the_user_has_chosen_stays(asked, setting):
    """The pages ask PREFECT_API_URL by themselves where it is set."""
    assert asked("--port", "4301", **{setting: "https://prefect.example.org/api"}) is None


def test_an_api_url_on_this_machine_stays_without_another_port(asked):
    proxy = {"PREFECT_API_URL": "http://localhost:9000/api"}
    assert asked(**proxy) is None
    assert asked("--port", "4301", **proxy) == "http://127.0.0.1:4301/api"


START = """
import json, os, sys
import prefect.cli
from prefect_assay.cli.services import server

def app():
    from prefect.settings import PREFECT_HOME, PREFECT_UI_API_URL
    mode = oct(os.stat(PREFECT_HOME.value()).st_mode & 0o777)
    print(json.dumps([PREFECT_UI_API_URL.value(), mode, sys.argv]))

prefect.cli.app = app
server.collect_garbage_on_a_thread = lambda: None
server.run_server(["--port", "4301"])
"""


@pytest.mark.parametrize(
    ("earlier_name", "address"),
    [({}, "http://127.0.0.1:4301/api"), ({"PREFECT_UI_API_URL": "http://its/api"}, "http://its/api")],
    ids=["shipped", "chosen"],
)
def test_both_hold_when_prefects_server_starts(tmp_path, earlier_name, address):
    """On a machine whose profile names the usual server, as in docs/deploying.md."""
    tmp_path.chmod(0o755)
    found = json.loads(
        printed(
            START,
            tmp_path,
            'PREFECT_API_URL = "http://127.0.0.1:4200/api"\n',
            PREFECT_SERVER_DATABASE_CONNECTION_URL=f"sqlite+aiosqlite:///{tmp_path}/prefect.db",
            **earlier_name,
        )
    )
    assert found == [address, oct(PRIVATE), ["prefect", "server", "start", "--port", "4301"]]
