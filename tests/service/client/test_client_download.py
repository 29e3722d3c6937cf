"""Files: where the token goes, and what a broken file means."""

import httpx
import pytest

from prefect_assay import errors
from prefect_assay.service.client.http.exchange import Download, RetryPolicy, open_file
from prefect_assay.service.client.http.request import Answer
from support.client import CANARY, Caller
from support.services.fault_server import fault_server, reply, reset, truncated

DATA = bytes(range(256)) * 1000


@pytest.fixture
def elsewhere():
    with fault_server() as running:
        yield running


def file(content=DATA):
    return reply(200, content, content_type="application/zip")


def opening(base_url, url, *answers):
    """The attempts to open a file, which the answers redirect; the last one opens it."""
    attempts, left = [], [*answers, "an open response"]

    def send(attempt):
        attempts.append(attempt)
        return left.pop(0)

    open_file(Download(url=url), base_url, RetryPolicy(), (), send, lambda seconds: None)
    return attempts


def test_a_file_of_the_service_is_fetched_with_the_token(call, server):
    server.will(file())
    pieces = call("documents.download", f"{server.base_url}/files/package.zip?v=1", chunk_size=1000)
    assert b"".join(pieces) == DATA
    assert max(map(len, pieces)) <= 1000
    assert server.seen[0].target == "/files/package.zip?v=1"
    assert server.seen[0].headers["authorization"] == f"Bearer {CANARY}"
    assert server.seen[0].headers["accept-encoding"] == "identity"


def test_a_relative_address_belongs_to_the_service(call, server):
    server.will(file())
    assert b"".join(call("documents.download", "/files/package.zip")) == DATA
    assert server.seen[0].target == "/files/package.zip"


def test_a_file_elsewhere_is_fetched_without_the_token(call, server, elsewhere):
    elsewhere.will(file())
    assert b"".join(call("documents.download", f"{elsewhere.base_url}/package.zip?sig=abc")) == DATA
    assert "authorization" not in elsewhere.seen[0].headers


def test_a_redirect_is_followed_without_the_token(call, server, elsewhere):
    server.will(reply(307, location=f"{elsewhere.base_url}/x.pdf?sig=abc"))
    elsewhere.will(reply(302, location="/y.pdf"), file())
    assert b"".join(call("documents.download", f"{server.base_url}/api/v1/invoices/i/pdf")) == DATA
    assert "authorization" in server.seen[0].headers
    assert [r.target for r in elsewhere.seen] == ["/x.pdf?sig=abc", "/y.pdf"]
    assert not any("authorization" in r.headers for r in elsewhere.seen)


def test_a_redirect_back_to_the_service_carries_no_token_either(call, server):
    server.will(reply(302, location="/other"), file())
    call("documents.download", "/file")
    assert "authorization" not in server.seen[1].headers


def test_a_file_that_breaks_off_is_an_error(call, server):
    server.will(reply(200, DATA, content_length=len(DATA) + 1))
    with pytest.raises(errors.ServiceUnavailable, match="broke"):
        call("documents.download", "/file")


def test_opening_a_file_is_repeated(call, server):
    server.will(reply(503), reset(), truncated(503), file(b"x"))
    assert call("documents.download", "/file") == [b"x"]
    assert len(call.waits) == 3


@pytest.mark.parametrize(("status", "kind"), [(404, errors.NotFound), (403, errors.Forbidden)])
def test_a_refused_file_is_an_error_without_the_permission_in_its_address(call, server, status, kind):
    server.will(reply(status, {"error": "no"}))
    with pytest.raises(kind) as caught:
        call("documents.download", f"{server.base_url}/files/permission/x.zip?sig=permission")
    assert "permission" not in str(caught.value)
    assert f"GET {server.base_url} (a file)" in str(caught.value)
    with pytest.raises(errors.AccessError) as caught:
        call("documents.download", "https://10.0.0.1/permission")
    assert str(caught.value).startswith("https://10.0.0.1 (a file) is not fetched")


def test_a_file_of_the_api_is_named_by_its_path(call, server):
    server.will(reply(404, {"error": "no"}), reply(404, {"error": "no"}))
    with pytest.raises(errors.NotFound) as caught:
        call("invoices.download_pdf", "i1")
    assert f"GET {server.base_url}/api/v1/invoices/i1/pdf" in str(caught.value)
    with pytest.raises(errors.NotFound) as caught:
        call("documents.download", f"{server.base_url}/api/v1x/permission")
    assert "permission" not in str(caught.value)


def test_redirects_are_bounded(call, server):
    server.will(*[reply(302, location="/again")] * 20)
    with pytest.raises(errors.AccessError, match="without end"):
        call("documents.download", "/file")
    assert len(server.seen) == 5


MALFORMED = [
    "https://[::1/x", "https://xn--/x", "https://a..b/x", "https://ex\x01.example/x", "https://files.example/\x01",
    "https://a b/x", "https://files.example:99999/x", "https://files.example:port/x",
    "https://" + "a" * 64 + ".example/x", "https://files.example/" + "a" * 70_000, "https://127。0。0。1/x",
    "https://\uff11\uff12\uff17.0.0.1/x", "https://☃.example/x", "https://127%2e0.0.1/x", "https://[v1.a]/x",
]  # fmt: skip


@pytest.mark.parametrize(
    "url",
    [
        "http://files.example/x", "ftp://files.example/x", "file:///etc/passwd", "https://127.0.0.1/x",
        "http://localhost/x", "https://localhost./x", "https://a.localhost./x", "https://2130706433/x",
        "https://0x7f.1/x", "https://0177.0.0.1/x", "https://127.1./x", "https://[::ffff:127.0.0.1]/x",
        "https://[64:ff9b::a9fe:a9fe]/x", "https://[2002:a00:1::]/x", "https://[::127.0.0.1]/x",
        "https://0.0.0.0/x", "https://0/x", "https://[::]/x", "https://169.254.169.254/latest/meta-data",
        "https://[fe80::1%25eth0]/x", "https://[fd00:ec2::254]/x", "https://10.0.0.1/x", "https://172.16.0.1/x",
        "https://192.168.1.1/x", "https://100.64.0.1/x", "https://224.0.0.1/x", "https://[ff02::1]/x",
        "https://255.255.255.255/x",
    ],
)  # fmt: skip
def test_addresses_in_the_open_or_in_private_networks_are_not_fetched(url):
    with pytest.raises(errors.AccessError, match="not fetched"):
        opening("https://lab.example.org", url)
    with pytest.raises(errors.AccessError, match="not fetched"):
        opening("https://lab.example.org", "/x", Answer(status=302, headers={"location": url}))


@pytest.mark.parametrize("url", MALFORMED, ids=lambda url: ascii(url)[:40])
def test_a_malformed_address_or_redirect_is_an_access_error(call, server, url):
    with pytest.raises(errors.AccessError, match="not fetched"):
        call("documents.download", url)
    server.will(*[reply(302, location=url)] * 10)
    with pytest.raises(errors.AccessError, match="not fetched"):
        call("documents.download", "/x")


def test_a_service_in_a_private_network_keeps_its_files_on_its_own_host():
    def goes(url):
        return opening("https://10.1.2.3", url)[0].url

    assert goes("https://10.1.2.3:9000/x") == "https://10.1.2.3:9000/x"
    assert goes("https://files.example/x") == "https://files.example/x"
    for url in ("https://10.1.2.4/x", "https://127.0.0.1/x"):
        with pytest.raises(errors.AccessError, match="not fetched"):
            goes(url)


@pytest.mark.parametrize("host", ["169.254.169.254", "10.0.0.1", "0.0.0.0", "2130706433"])
def test_a_local_lab_leads_to_this_machine_only(host):
    assert opening("http://127.0.0.1:8000", "http://localhost:9000/x")
    with pytest.raises(errors.AccessError, match="not fetched"):
        opening("http://127.0.0.1:8000", f"https://{host}/x")


def test_only_the_very_origin_gets_the_token():
    def with_token(url):
        return opening("https://lab.example.org", url)[0].with_token

    assert with_token("https://lab.example.org:443/x")
    assert with_token("x")
    assert not with_token("https://lab.example.org:8443/x")
    assert not with_token("https://lab.example.org.evil.example/x")
    assert not with_token("//evil.example/x")
    assert not with_token("https://lab.example.org@evil.example/x")


def test_an_invoice_stored_elsewhere_is_fetched_without_the_token(call, server, elsewhere):
    pdf = b"%PDF-1.7\n..."
    server.will(reply(307, location=f"{elsewhere.base_url}/invoice?key=abc"))
    elsewhere.will(reply(200, pdf, content_type="application/pdf"))
    assert call("invoices.download_pdf", "in_1/2") == pdf
    assert server.seen[0].target == "/api/v1/invoices/in_1%2F2/pdf"
    assert "authorization" in server.seen[0].headers
    assert "authorization" not in elsewhere.seen[0].headers


@pytest.mark.parametrize("name", ["experiments.download_quote_pdf", "invoices.download_pdf"])
def test_a_page_of_a_proxy_is_no_pdf(call, server, name):
    server.will(reply(200, b"<html>please log in</html>", content_type="application/pdf"))
    with pytest.raises(errors.UnexpectedAnswer, match="not a PDF"):
        call(name, "e1")


def test_a_quote_that_is_not_there_yet_is_not_ready(call, server):
    server.will(reply(404, {"error": "not yet"}), reply(404, {"error": "unknown"}))
    with pytest.raises(errors.NotReady):
        call("experiments.download_quote_pdf", "e1")
    with pytest.raises(errors.NotFound):
        call("invoices.download_pdf", "i1")


def test_signed_addresses_stay_out_of_the_log_of_httpx(call, server, elsewhere, caplog):
    caplog.set_level("INFO", "httpx")
    server.will(reply(307, location=f"{elsewhere.base_url}/x.pdf?sig=permission"))
    elsewhere.will(reply(302, location="/y.pdf?sig=permission"), file())
    call("documents.download", f"{server.base_url}/permission/file?sig=permission")
    server.will(file())
    call("documents.download", f"{server.base_url}/api/v1/file?sig=permission")
    asked = [record.getMessage() for record in caplog.records if record.name == "httpx"]
    assert [line.partition(' "')[0] for line in asked] == [
        f"HTTP Request: GET {server.base_url}/",
        f"HTTP Request: GET {elsewhere.base_url}/",
        f"HTTP Request: GET {elsewhere.base_url}/",
        f"HTTP Request: GET {server.base_url}/api/v1/file",
    ]


def test_other_requests_are_logged_by_httpx_unchanged(server, caplog):
    caplog.set_level("INFO", "httpx")
    server.will(reply(200, {"items": [], "total": 0}), reply())
    Caller(server.base_url)("tokens.list", limit=7)
    httpx.get(f"{server.base_url}/mine?sig=permission")
    asked = [record.getMessage() for record in caplog.records if record.name == "httpx"]
    assert "/tokens?limit=7" in asked[0]
    assert "/mine?sig=permission" in asked[1]
