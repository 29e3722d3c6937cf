"""An address that is not that of a Prefect API is named before any command acts on what it answers."""

import pytest
from prefect.settings import PREFECT_UI_URL, temporary_settings

from prefect_assay.cli.prefect_api import hide_credentials, run_url
from support.archive.foreign_server import foreign_server
from support.command import command

COMMANDS = [
    ("status",),
    ("status", "--problems"),
    ("register",),
    ("deploy",),
    ("deploy", "--check"),
    ("deploy", "--serve"),
    ("check",),
    ("results", "--archive", "main"),
    ("archive", "verify", "--archive", "main"),
    ("drift", "--account", "main"),
]
PAGE = b"<!doctype html><html><body>Prefect</body></html>"


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_an_address_of_the_user_interface_is_named(tmp_path, arguments):
    with foreign_server(200, {"Content-Type": "text/html"}, PAGE) as address:
        done = command(*arguments, cwd=tmp_path, PREFECT_HOME=str(tmp_path / "p"), PREFECT_API_URL=address)
    assert done.code == 1, done.err
    named = done.err + done.out  # `check` prints its findings
    assert f"PREFECT_API_URL is {address}, which is not the address of a Prefect API" in named
    assert f"write {address}/api" in named
    assert "Traceback" not in done.err + done.out


@pytest.mark.parametrize(
    ("status", "headers", "body", "reason"),
    [
        (404, {}, b'{"detail":"Not Found"}', "HTTP 404"),
        (200, {"Content-Type": "application/json"}, b'{"status":"ok"}', "another program"),
        (302, {"Location": "/login"}, b"", "another program"),
    ],
)
def test_another_program_is_named(tmp_path, status, headers, body, reason):
    with foreign_server(status, headers, body) as address:
        done = command(
            "deploy",
            "--check",
            cwd=tmp_path,
            PREFECT_HOME=str(tmp_path / "p"),
            PREFECT_API_URL=f"{address}/api",
        )
    assert done.code == 1
    assert reason in done.err
    assert "correct host, port and path" in done.err


@pytest.mark.parametrize("address", ["127.0.0.1:4200/api", "http:///api", "https://api.prefect.cloud/api"])
def test_an_address_that_can_be_none_is_named(tmp_path, address):
    done = command("status", cwd=tmp_path, PREFECT_HOME=str(tmp_path / "p"), PREFECT_API_URL=address)
    assert done.code != 0
    assert "PREFECT_API_URL" in done.err
    assert "Traceback" not in done.err + done.out


@pytest.mark.parametrize(
    "arguments",
    [("status", "--json"), ("check", "--json"), ("register",), ("up", "--port", "1")],
    ids=" ".join,
)
@pytest.mark.parametrize("path", ["", "/api"])
def test_no_password_of_the_address_is_shown(tmp_path, arguments, path):
    with foreign_server(404, {}) as address:
        place = address.removeprefix("http://") + path
        url = f"http://lab:s3cr3t@{place}"
        done = command(*arguments, cwd=tmp_path, PREFECT_HOME=str(tmp_path / "p"), PREFECT_API_URL=url)
    assert done.code != 0
    assert f"http://{place}" in done.out + done.err
    assert "s3cr3t" not in done.out + done.err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://lab:s3/c@r#t@127.0.0.1:4200/api", "http://127.0.0.1:4200/api"),
        ("lab:s3cr3t@127.0.0.1:4200/api", "127.0.0.1:4200/api"),
        (
            "'404 Not Found' for url 'https://lab:s3cr3t@[::1]/api/x'",
            "'404 Not Found' for url 'https://[::1]/api/x'",
        ),
        ("https://prefect.example.org/api", "https://prefect.example.org/api"),
        ("(none is set)", "(none is set)"),
    ],
)
def test_user_and_password_are_cut_out_of_every_form(text, shown):
    assert hide_credentials(text) == shown


def test_the_page_of_a_run_has_no_password():
    with temporary_settings({PREFECT_UI_URL: "http://lab:s3cr3t@127.0.0.1:4200"}):
        assert run_url("r") == "http://127.0.0.1:4200/runs/flow-run/r"


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"PREFECT_SERVER_API_BASE_PATH": "/prefect/api"}, "PREFECT_SERVER_API_BASE_PATH is /prefect/api"),
        ({"PREFECT_API_URL": "http://127.0.0.1:9"}, "has its API at http://127.0.0.1:9/api"),
        (
            {"PREFECT_SERVER_API_AUTH_STRING": "lab:schlüssel"},
            "PREFECT_SERVER_API_AUTH_STRING has a letter outside",
        ),
    ],
)
def test_up_refuses_at_once_what_its_server_would_not_answer(tmp_path, variables, text):
    done = command("up", cwd=tmp_path, PREFECT_HOME=str(tmp_path / "p"), **variables)
    assert done.code == 1
    assert text in done.err
    assert "Traceback" not in done.err + done.out
    assert not (tmp_path / "p" / "profiles.toml").exists()


def test_a_password_that_prefect_cannot_compare_is_named_by_each_side(tmp_path):
    home = str(tmp_path / "p")
    done = command(
        "server", "--port", "1", cwd=tmp_path, PREFECT_HOME=home, PREFECT_SERVER_API_AUTH_STRING="a:ü"
    )
    assert done.code == 1
    assert "PREFECT_SERVER_API_AUTH_STRING has a letter outside of ASCII" in done.err
    done = command(
        "status",
        cwd=tmp_path,
        PREFECT_HOME=home,
        PREFECT_API_URL="http://127.0.0.1:9/api",
        PREFECT_API_AUTH_STRING="a:ü",
    )
    assert done.code == 1
    assert "PREFECT_API_AUTH_STRING has a letter outside of ASCII" in done.err
    assert "ü" not in done.err
