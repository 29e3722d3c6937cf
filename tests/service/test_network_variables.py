"""The environment's proxies and certificates: each client that cannot be made of them says which variable is wrong."""

import itertools
import os
import ssl
import string
import sys

import certifi
import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_SSL_CERT_FILE, PREFECT_API_URL, temporary_settings
from pydantic import SecretStr

from prefect_assay.archive.sources import open_source
from prefect_assay.blocks import S3Archive
from prefect_assay.cli.prefect_api import api_errors
from prefect_assay.errors import CertificatesUnreadable, ConfigurationError
from prefect_assay.orders.payments.rails.mpp_issuer import HttpTokenIssuer
from prefect_assay.service.client import AssayClient
from prefect_assay.service.network_variables import check_http_variables, drop_unreadable_exceptions
from support.command import command

REMOTE = "https://service.example"
SECRET = "CANARY-of-a-proxy"
NOT_PEM = __file__


def prefect():
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}), api_errors():
        get_client(sync_client=True)


def s3_source():
    with open_source("s3://bucket/key"):
        pass


HTTP = {
    "service": lambda: AssayClient(REMOTE, "t"),
    "issuer": lambda: HttpTokenIssuer(REMOTE, SecretStr("k" * 20))({}),
    "prefect": prefect,
}
S3 = {"archive": lambda: S3Archive(bucket="bucket").get_store(), "source": s3_source}
PROXIES = [
    ("HTTPS_PROXY", f"ftp://u:{SECRET}@h:1", "its scheme 'ftp'"),
    ("https_proxy", "http://h:99999", "not an address"),
    ("HTTP_PROXY", "http://", "not an address"),
    ("HTTP_PROXY", f"http://u:{SECRET}@[::1", "not an address"),
    ("HTTPS_PROXY", "http://ho st:1", "not an address"),
    ("HTTPS_PROXY", "http:", "names a scheme and no host"),
]
FOR_HTTP = [
    ("ALL_PROXY", "socks5:", "names a scheme and no host"),
    ("ALL_PROXY", "socks4://h:1", "its scheme 'socks4'"),
    ("all_proxy", f"://{SECRET}", "its scheme ''"),
    ("NO_PROXY", "localhost,fd00::/8", "'fd00::/8' cannot be read"),
    ("no_proxy", "[::1]", r"'\[::1\]' cannot be read"),
    ("SSL_CERT_FILE", "/nowhere", "No such file"),
    ("SSL_CERT_FILE", "/", "Is a directory"),
    ("SSL_CERT_FILE", NOT_PEM, "no certificate"),
    ("SSL_CERT_DIR", "/nowhere:/neither", "no such folder"),
]
FOR_S3 = [
    ("HTTPS_PROXY", "socks5://h:1", "its scheme 'socks5'"),
    ("AWS_CA_BUNDLE", "/nowhere", "No such file"),
    ("AWS_CA_BUNDLE", NOT_PEM, "no certificate"),
    ("REQUESTS_CA_BUNDLE", "/nowhere", "No such file"),
]
TABLE = [
    *((client, *case) for client in HTTP for case in (*PROXIES, *FOR_HTTP)),
    *((client, *case) for client in S3 for case in (*PROXIES, *FOR_S3)),
]


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in [*os.environ]:
        if name.lower().endswith("_proxy") or name in {
            *("SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"),
        }:
            monkeypatch.delenv(name)
    # conftest.py reads certificates once for all tests; here the environment decides each time.
    monkeypatch.setattr(ssl, "create_default_context", ssl.create_default_context.__wrapped__)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")


@pytest.mark.parametrize(("client", "name", "value", "why"), TABLE)
def test_each_client_names_the_variable(monkeypatch, client, name, value, why):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=f"^{name}: .*{why}") as raised:
        (HTTP | S3)[client]()
    assert SECRET not in str(raised.value)
    # A proxy was never right; certificates may come back, and a run that has ordered waits for them.
    assert raised.value.retriable is isinstance(raised.value, CertificatesUnreadable)
    assert raised.value.retriable is ("PROXY" not in name.upper())


def test_a_socks_proxy_needs_a_package(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://h:1")
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(ConfigurationError, match=r"^ALL_PROXY: .*pip install 'httpx\[socks\]'"):
        HTTP["service"]()


def test_prefects_own_variable_for_certificates_is_named():
    with (
        temporary_settings({PREFECT_API_SSL_CERT_FILE: "/nowhere"}),
        pytest.raises(CertificatesUnreadable, match=r"^PREFECT_API_SSL_CERT_FILE: "),
    ):
        prefect()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "proxy.example"),
        ("HTTPS_PROXY", "proxy.example:3128"),
        ("HTTPS_PROXY", "http://u:p@proxy.example:3128/"),
        ("HTTPS_PROXY", "http://[fd00::1]:3128"),
        ("HTTPS_PROXY", ""),
        ("ftp_proxy", "ftp://h:1"),  # read by none of our clients
        ("NO_PROXY", "localhost, 127.0.0.1,::1,.example.com,*.x.example,10.0.0.0/8,h:80,all://[::1]:80,"),
        ("SSL_CERT_FILE", certifi.where()),
        ("SSL_CERT_DIR", "/nowhere:/"),
        ("REQUESTS_CA_BUNDLE", certifi.where()),
        ("AWS_CA_BUNDLE", certifi.where()),
    ],
)
@pytest.mark.parametrize(
    "client", [client for client in (*HTTP, *S3) if client in {"service", "archive", "prefect"}]
)
def test_what_is_right_stays_right(monkeypatch, client, name, value):
    monkeypatch.setenv(name, value)
    (HTTP | S3)[client]()


def test_no_proxy_for_anything_makes_the_proxies_irrelevant(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "ftp://h")
    monkeypatch.setenv("NO_PROXY", "fd00::/8,*")
    HTTP["service"]()


def test_a_service_on_this_machine_needs_none_of_them(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "ftp://h")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    AssayClient("http://127.0.0.1:9", "t")


ENTRY = st.text(string.ascii_lowercase + string.digits + ":.[]/*-@ %é", max_size=12)


@given(st.lists(ENTRY, max_size=3).map(",".join))
@example("fd00::/8,[::1],[::1]:80,localhost")
@example("http://[::1")
@example("all://é")
@example("::1%eth0")
def test_httpx_reads_whatever_is_left_of_no_proxy(value):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", value)
        left_out = drop_unreadable_exceptions()
        check_http_variables()
        httpx.Client(verify=False).close()
        assert not any(entry in os.environ["NO_PROXY"].split(",") for entry in left_out)
        assert drop_unreadable_exceptions() == ()


@pytest.mark.parametrize(
    ("value", "then", "left_out"),
    [
        ("localhost,fd00::/8", "localhost", ["fd00::/8"]),
        ("[::1],[fd00::2]:80", "::1,all://[fd00::2]:80", []),
        ("a.example, b.example", "a.example, b.example", []),
    ],
)
def test_a_command_and_its_children_go_on_without_what_httpx_cannot_read(monkeypatch, value, then, left_out):
    monkeypatch.setenv("NO_PROXY", value)
    assert list(drop_unreadable_exceptions()) == left_out
    assert os.environ["NO_PROXY"] == then


WRONG = [("HTTPS_PROXY", "ftp://h:1"), ("ALL_PROXY", "socks5:"), ("SSL_CERT_FILE", "/nowhere")]
COMMANDS = [
    ("status",),
    ("check",),
    ("estimate", "designs.csv", "--type", "thermostability"),
    (
        "init", "--base-url", REMOTE, "--per-experiment", "1", "--per-campaign", "2", "--archive", "a",
        "--receiver", "none",
    ),
    ("run", "designs.csv", "--type", "thermostability"),
    ("receiver",),
    ("up",),
    ("server",),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "variable"), [*zip(COMMANDS, itertools.cycle(WRONG))], ids=lambda value: value[0]
)
def test_a_command_ends_with_the_variable_and_no_traceback(tmp_path, arguments, variable):
    name, value = variable
    (tmp_path / "designs.csv").write_text("name,sequence\na,MKTAYIAKQR\n")
    env = {
        "PREFECT_API_URL": "http://127.0.0.1:9/api",
        "PREFECT_HOME": str(tmp_path),
        "PREFECT_ASSAY_TOKEN": "t",
        "PREFECT_ASSAY_RECEIVER_SIGNING_KEYS": "k" * 32,
        name: value,
    }
    done = command(*arguments, cwd=tmp_path, **env)
    assert done.code in {1, 5}, done
    assert f"{name}: " in done.out + done.err
    assert "Traceback" not in done.out + done.err
