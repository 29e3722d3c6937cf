"""Which requests of browsers pass: hosts, origins, methods and protocols, in tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from prefect_assay.errors import InputError
from prefect_assay.service.web_origin import OwnPagesOnly, own_names

OWN = "localhost:4200"
METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
FOLLOWED = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})
    else:
        headers = {"access-control-allow-origin": "*"}
        await PlainTextResponse("secret", headers=headers)(scope, receive, send)


def guarded(*allowed, listening="127.0.0.1", **options):
    app = OwnPagesOnly(application, own_names(listening, allowed), **options)
    return TestClient(app, base_url="http://localhost:4200")


def status(client, headers, method="GET", path="/api/variables/"):
    answer = client.request(method, path, headers=headers)
    if answer.status_code != 200:
        assert "secret" not in answer.text
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    return answer.status_code


@pytest.mark.parametrize(
    "host",
    [
        "localhost:4200",
        "LOCALHOST:4200",
        "localhost.:4200",
        "localhost",
        "localhost:",
        "localhost:9000",  # a forwarded port
        "127.0.0.1:4200",
        "[::1]:4200",
        "[0:0:0:0:0:0:0:1]:4200",
        "[::1]",
        "prefect.example.org",
        "Prefect.Example.ORG.:443",
        "prefect_server:4200",
        "192.168.7.5:4200",
        "[fd00::5]:4200",
    ],
)
def test_own_hosts_are_answered(host):
    allowed = ("prefect.example.org", "prefect_server", "192.168.7.5", "fd00:0::5")
    assert status(guarded(*allowed), {"Host": host}) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:4200", "localhost.evil.example:4200", "evil.localhost:4200",
        "xlocalhost:4200", "localhost..:4200", "localhost:4200:4200", "localhost:x", "localhost:123456",
        "localhost@evil.example", "localhost,evil.example", "localhost evil.example", "http://localhost:4200",
        "127.0.0.2:4200", "0.0.0.0:4200", "127.1:4200", "2130706433:4200", "192.168.7.5:4200", "::1", "[::1",
        "[::1%25lo]:4200", "[::ffff:127.0.0.1]:4200", "*", "", ".",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/health", "/docs", "/api/block_documents/filter"])
def test_foreign_hosts_are_misdirected(host, path):
    assert status(guarded(), {"Host": host, "X-Forwarded-Host": "localhost:4200"}, "POST", path) == 421


def test_the_answer_says_which_option_helps():
    answer = guarded().get("/", headers={"Host": "prefect.example.org"})
    assert "--allow-host" in answer.json()["error"]
    assert "prefect.example.org" in answer.json()["error"]


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:4200", "http://localhost:4200"),
        ("localhost:4200", "HTTP://LocalHost:4200"),
        ("localhost:4200", "http://127.0.0.1:4200"),
        ("127.0.0.1:4200", "http://[::1]:4200"),
        ("localhost:9000", "http://localhost:9000"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
        ("prefect.example.org", "https://prefect.example.org"),
        ("prefect.example.org:443", "https://prefect.example.org."),
        ("prefect.example.org", "https://prefect.example.org:443"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_own_pages_are_answered(host, origin, method):
    assert status(guarded("prefect.example.org"), {"Host": host, "Origin": origin}, method) == 200


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        (OWN, "null"),
        (OWN, ""),
        (OWN, "http://evil.example"),
        (OWN, "http://evil.example:4200"),
        (OWN, "http://localhost"),
        (OWN, "http://localhost:8888"),
        (OWN, "http://127.0.0.1:4201"),
        (OWN, "https://localhost"),
        (OWN, "http://localhost:4200.evil.example"),
        (OWN, "http://localhost:4200@evil.example"),
        (OWN, "http://localhost:4200/"),
        (OWN, "http://localhost:4200 http://evil.example"),
        (OWN, "localhost:4200"),
        (OWN, "//localhost:4200"),
        (OWN, "file://"),
        (OWN, "chrome-extension://localhost:4200"),
        (OWN, "http://app.localhost:4200"),
        (OWN, "http://user@localhost:4200"),
        ("prefect.example.org", "https://www.prefect.example.org"),
        ("prefect.example.org", "https://prefect.example.org:8443"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_foreign_pages_are_refused(host, origin, method):
    assert status(guarded("prefect.example.org"), {"Host": host, "Origin": origin}, method) == 403


@pytest.mark.parametrize(
    ("more", "answer"),
    [
        ([("Host", OWN)], 421),
        ([("Host", "evil.example")], 421),
        ([("Origin", "http://localhost:4200"), ("Origin", "http://localhost:4200")], 403),
        ([("Origin", "http://localhost:4200"), ("Origin", "http://evil.example")], 403),
    ],
)
def test_doubled_headers_are_refused(more, answer):
    assert status(guarded(), [("Host", OWN), *more]) == answer


def test_a_request_without_host_is_refused():
    client = guarded()
    request = client.build_request("GET", "/")
    del request.headers["Host"]

    async def headless(scope, receive, send):
        scope["headers"] = [(name, value) for name, value in scope["headers"] if name != b"host"]
        await app(scope, receive, send)

    app = client.app
    assert TestClient(headless).get("/").status_code == 421


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("mode", "destination"),
    [
        ("no-cors", "image"),
        ("no-cors", "script"),
        ("navigate", "iframe"),
        ("cors", "empty"),
        ("no-cors", "empty"),
    ],
)
def test_what_another_page_loads_is_refused(site, mode, destination):
    """Such a GET carries no Origin."""
    sent = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}
    assert status(guarded(), sent) == 403


def test_a_link_on_another_page_can_be_followed():
    assert status(guarded(), FOLLOWED) == 200
    assert status(guarded(), FOLLOWED, "HEAD") == 200
    assert status(guarded(), FOLLOWED, "POST") == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_what_the_own_page_loads_is_answered(site):
    assert (
        status(guarded(), {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"})
        == 200
    )


def test_the_plain_http_page_of_an_https_server_is_foreign():
    """Whoever is in the network can write it; name and port do not tell behind a proxy."""
    sent = {
        "Host": "prefect.example.org",
        "Origin": "http://prefect.example.org",
        "Sec-Fetch-Site": "cross-site",
    }
    assert status(guarded("prefect.example.org"), sent, "POST") == 403


@pytest.mark.parametrize("method", METHODS)
def test_programs_send_no_origin(method):
    assert status(guarded(), {}, method) == 200


@pytest.mark.parametrize(
    ("headers", "opened"),
    [
        ({}, True),
        ({"Origin": "http://localhost:4200"}, True),
        ({"Origin": "http://localhost:8888"}, False),
        ({"Origin": "null"}, False),
        ({"Host": "evil.example:4200", "Origin": "http://evil.example:4200"}, False),
        ({"Host": "evil.example:4200"}, False),
    ],
)
def test_websockets_follow_the_same_rules(headers, opened):
    def connect():
        with guarded().websocket_connect("ws://localhost:4200/api/events/out", headers=headers):
            return True

    if opened:
        assert connect()
    else:
        with pytest.raises(WebSocketDisconnect) as refused:
            connect()
        assert refused.value.code == 1008


def test_no_page_of_another_origin_shows_an_answer_in_a_frame():
    assert guarded().get("/").headers["content-security-policy"] == "frame-ancestors 'self'"


def test_the_address_that_it_listens_on_is_an_own_name_and_all_interfaces_are_none():
    assert status(guarded(listening="192.168.7.5"), {"Host": "192.168.7.5:4200"}) == 200
    assert status(guarded(listening="Lab.Internal"), {"Host": "lab.internal:4200"}) == 200
    for everywhere in ("0.0.0.0", "::", ""):
        assert status(guarded(listening=everywhere), {"Host": "0.0.0.0:4200"}) == 421
        assert status(guarded(listening=everywhere), {"Host": "[::]:4200"}) == 421


def test_probes_may_name_any_address_and_no_other_name():
    probed = guarded(any_address=True)
    assert status(probed, {"Host": "10.1.2.3:8100"}) == 200
    assert status(probed, {"Host": "[fd00::1]:8100"}) == 200
    assert status(probed, {"Host": "evil.example:8100"}) == 421
    assert status(probed, {"Host": "10.1.2.3:8100", "Origin": "http://10.1.2.4:8100"}) == 403


@pytest.mark.parametrize(
    "name", ["", "*", "https://x.example", "x.example:4200", "x y", "*.example", "x/", "é.example"]
)
def test_what_is_no_host_name_is_refused_before_anything_starts(name):
    with pytest.raises(InputError, match="--allow-host"):
        own_names("127.0.0.1", [name])


HEADER = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=40)


@given(HEADER, st.lists(HEADER, max_size=2))
def test_no_header_breaks_the_guard(host, origins):
    """And it answers only where the host is an own one and no origin names another page."""
    names = own_names("127.0.0.1")
    sent = [("Host", host), *(("Origin", origin) for origin in origins)]
    got = status(TestClient(OwnPagesOnly(application, names)), sent)
    assert got in {200, 403, 421}
    if got == 200:
        assert "localhost" in host.lower() or "127.0.0.1" in host or ":" in host
