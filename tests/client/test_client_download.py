"""Files: where the token goes, and what a broken file means."""

import pytest

from prefect_assay import errors
from prefect_assay.client.downloading import Download
from prefect_assay.client.request import Answer
from prefect_assay.client.retry import RetryPolicy
from support.faces import CANARY
from support.fault_server import fault_server, reply, reset, truncated

DATA = bytes(range(256)) * 1000


@pytest.fixture
def elsewhere():
    with fault_server() as running:
        yield running


def file(content=DATA):
    return reply(200, content, content_type="application/zip")


def test_a_file_of_the_service_is_fetched_with_the_token(face, server):
    server.will(file())
    pieces = face("download", f"{server.base_url}/files/package.zip?v=1", chunk_size=1000)
    assert b"".join(pieces) == DATA
    assert max(map(len, pieces)) <= 1000
    assert server.seen[0].target == "/files/package.zip?v=1"
    assert server.seen[0].headers["authorization"] == f"Bearer {CANARY}"
    assert server.seen[0].headers["accept-encoding"] == "identity"


def test_a_relative_address_belongs_to_the_service(face, server):
    server.will(file())
    assert b"".join(face("download", "/files/package.zip")) == DATA
    assert server.seen[0].target == "/files/package.zip"


def test_a_file_elsewhere_is_fetched_without_the_token(face, server, elsewhere):
    elsewhere.will(file())
    assert b"".join(face("download", f"{elsewhere.base_url}/package.zip?sig=abc")) == DATA
    assert "authorization" not in elsewhere.seen[0].headers


def test_a_redirect_is_followed_without_the_token(face, server, elsewhere):
    server.will(reply(307, location=f"{elsewhere.base_url}/x.pdf?sig=abc"))
    elsewhere.will(reply(302, location="/y.pdf"), file())
    assert b"".join(face("download", f"{server.base_url}/api/v1/invoices/i/pdf")) == DATA
    assert "authorization" in server.seen[0].headers
    assert [r.target for r in elsewhere.seen] == ["/x.pdf?sig=abc", "/y.pdf"]
    assert not any("authorization" in r.headers for r in elsewhere.seen)


def test_a_redirect_back_to_the_service_carries_no_token_either(face, server):
    server.will(reply(302, location="/other"), file())
    face("download", "/file")
    assert "authorization" not in server.seen[1].headers


def test_a_file_that_breaks_off_is_an_error(face, server):
    server.will(reply(200, DATA, content_length=len(DATA) + 1))
    with pytest.raises(errors.ServiceUnavailable, match="broke"):
        face("download", "/file")


def test_opening_is_tried_again(face, server):
    server.will(reply(503), reset(), truncated(503), file(b"x"))
    assert face("download", "/file") == [b"x"]
    assert len(face.waits) == 3


@pytest.mark.parametrize(("status", "kind"), [(404, errors.NotFound), (403, errors.Forbidden)])
def test_a_refused_file_is_an_error_without_the_permission_in_its_address(face, server, status, kind):
    server.will(reply(status, {"error": "no"}))
    with pytest.raises(kind) as caught:
        face("download", f"{server.base_url}/file?sig=permission")
    assert "permission" not in str(caught.value)
    assert "/file" in str(caught.value)


def test_redirects_have_an_end(face, server):
    server.will(*[reply(302, location="/again")] * 20)
    with pytest.raises(errors.AccessError, match="without end"):
        face("download", "/file")
    assert len(server.seen) == 5


@pytest.mark.parametrize(
    "url",
    [
        "http://files.example/x",
        "ftp://files.example/x",
        "file:///etc/passwd",
        "https://127.0.0.1/x",
        "http://localhost/x",
        "https://[::1/x",
    ],
)
def test_addresses_in_the_open_or_on_this_machine_are_not_fetched(url):
    with pytest.raises(errors.AccessError, match="not fetched"):
        Download("https://lab.example.org", url, RetryPolicy())
    download = Download("https://lab.example.org", "/x", RetryPolicy())
    with pytest.raises(errors.AccessError, match="not fetched"):
        download.after(Answer(status=302, headers={"location": url}), ())


def test_only_the_very_origin_gets_the_token():
    def with_token(url):
        return Download("https://lab.example.org", url, RetryPolicy()).hop.with_token

    assert with_token("https://lab.example.org:443/x")
    assert with_token("x")
    assert not with_token("https://lab.example.org:8443/x")
    assert not with_token("https://lab.example.org.evil.example/x")
    assert not with_token("//evil.example/x")
    assert not with_token("https://lab.example.org@evil.example/x")


def test_an_invoice_is_fetched_where_it_lies_without_the_token(face, server, elsewhere):
    pdf = b"%PDF-1.7\n..."
    server.will(reply(307, location=f"{elsewhere.base_url}/invoice?key=abc"))
    elsewhere.will(reply(200, pdf, content_type="application/pdf"))
    assert face("invoice_pdf", "in_1/2") == pdf
    assert server.seen[0].target == "/api/v1/invoices/in_1%2F2/pdf"
    assert "authorization" in server.seen[0].headers
    assert "authorization" not in elsewhere.seen[0].headers


@pytest.mark.parametrize("name", ["quote_pdf", "invoice_pdf"])
def test_a_page_of_a_proxy_is_no_pdf(face, server, name):
    server.will(reply(200, b"<html>please log in</html>", content_type="application/pdf"))
    with pytest.raises(errors.UnexpectedAnswer, match="no PDF"):
        face(name, "e1")


def test_a_quote_that_is_not_there_yet_is_not_ready(face, server):
    server.will(reply(404, {"error": "not yet"}), reply(404, {"error": "unknown"}))
    with pytest.raises(errors.NotReady):
        face("quote_pdf", "e1")
    with pytest.raises(errors.NotFound):
        face("invoice_pdf", "i1")
