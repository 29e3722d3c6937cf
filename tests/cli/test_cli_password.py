"""`--password`: where it comes from, where it is kept, and that nothing of value answers without it."""

import asyncio
import json
import stat

import pytest
import websockets

from support.command import command, program
from support.services.prefect_http import open_prefect_http
from support.services.prefect_server import prefect_server

PASSWORD = "correct horse"
VARIABLE = "PREFECT_ASSAY_SERVER_PASSWORD"
PROTECT = """
import io, json, os, sys
from prefect.settings import get_current_settings
from prefect_assay.cli.failures import report_errors
from prefect_assay.cli.services.password import protect_api
sys.stdin = io.StringIO(GIVEN)
with report_errors():
    protect_api()
settings = get_current_settings()
found = [settings.server.api.auth_string, settings.api.auth_string]
print(json.dumps([[one and one.get_secret_value() for one in found], "PREFECT_ASSAY_SERVER_PASSWORD" in os.environ]))
"""


def protected(home, stdin_text="", profile="", **env):
    # A fresh interpreter, which has read no profile yet.
    done = program(PROTECT.replace("GIVEN", repr(stdin_text)), home, profile, PYTHONUNBUFFERED="1", **env)
    return done.code, (json.loads(done.out) if done.code == 0 else done.err), done.out + done.err


@pytest.mark.parametrize("source", ["variable", "input"])
def test_the_password_is_kept_for_server_and_clients_in_a_file_of_the_user_alone(tmp_path, source):
    stdin_text, env = (PASSWORD + "\n", {}) if source == "input" else ("", {VARIABLE: PASSWORD})
    code, settings, printed = protected(tmp_path, stdin_text, **env)
    assert code == 0, printed
    assert settings == [[f"admin:{PASSWORD}"] * 2, False]  # and no process below gets the variable
    file = tmp_path / "profiles.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().count(f"admin:{PASSWORD}") == 2
    assert str(file) in printed


def test_a_saved_password_stays_without_a_question_and_the_variable_replaces_it(tmp_path):
    names = ("PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING")
    saved = "".join(f'{name} = "me:the saved one"\n' for name in names)
    assert protected(tmp_path, profile=saved)[1] == [["me:the saved one"] * 2, False]
    assert protected(tmp_path, profile=saved, **{VARIABLE: PASSWORD})[1] == [[f"admin:{PASSWORD}"] * 2, False]
    servers_only = saved.splitlines()[0] + "\n"
    assert protected(tmp_path, profile=servers_only)[1] == [["me:the saved one"] * 2, False]


@pytest.mark.parametrize("password", ["", "\n", "short\n", "pässwort-lang\n", "with\ttab-inside\n"])
def test_what_cannot_be_a_password_is_refused_and_not_shown(tmp_path, password):
    code, message, _ = protected(tmp_path, password)
    assert code == 2
    assert VARIABLE in message
    assert not password.strip() or password.strip() not in message
    assert "AUTH_STRING" not in (tmp_path / "profiles.toml").read_text()


def test_it_is_no_argument_which_other_users_see():
    done = command("server", "--password", PASSWORD)
    assert done.code == 2
    assert "unexpected extra argument" in done.err


def test_a_password_for_a_server_that_is_not_started_here_is_refused(tmp_path):
    env = {"PREFECT_HOME": str(tmp_path / "home"), "PREFECT_API_URL": "https://prefect.example.org/api"}
    done = command("up", "--password", **env)
    assert (done.code, "--password would be ignored" in done.err) == (2, True), done.err


def test_nothing_of_value_answers_without_it(tmp_path):
    with prefect_server(tmp_path, "--password", **{VARIABLE: PASSWORD}) as url:
        unknown = open_prefect_http()
        refused = unknown.post(f"{url}/api/block_documents/filter", json={"include_secrets": True})
        assert refused.status_code == 401
        assert unknown.get(f"{url}/ui-settings").json()["auth"] == "BASIC"
        known = open_prefect_http(f"{url}/api", auth=("admin", PASSWORD))
        assert known.post("/block_documents/filter", json={}).status_code == 200
        document = unknown.get(f"{url}/openapi.json").json()
        open_paths = [
            (method, path)
            for path, methods in document["paths"].items()
            for method in methods
            if unknown.request(method, f"{url}/api{path}", json={}).status_code != 401
        ]
        assert sorted(open_paths) == [("get", "/health"), ("get", "/ready")]
        for path in ("events/out", "events/in", "logs/out", "task_runs/subscriptions/scheduled"):
            assert not asyncio.run(_speaks(f"{url.replace('http', 'ws')}/api/{path}", "wrong"))
        assert asyncio.run(_speaks(f"{url.replace('http', 'ws')}/api/events/out", f"admin:{PASSWORD}"))
        env = {"PREFECT_API_URL": f"{url}/api"}
        assert "refuses this user" in command("status", PREFECT_HOME=str(tmp_path / "other"), **env).err
        done = command("status", PREFECT_HOME=str(tmp_path), **env)  # its profile has the password
        # Nothing is saved on this server, and only a server that answers tells that.
        assert "there is no archive to look into" in done.err


async def _speaks(url, token):
    """Whether a WebSocket takes this password."""
    try:
        async with websockets.connect(url, subprotocols=["prefect"], proxy=None) as socket:
            await socket.send(json.dumps({"type": "auth", "token": token}))
            return json.loads(await socket.recv())["type"] == "auth_success"
    except websockets.WebSocketException:
        return False
