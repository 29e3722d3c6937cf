"""Signing a tool client in (contract 5.7): the whole flow, and everything that must not work."""

import base64
import hashlib
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from assay_lab.account import oauth, oauth_provider
from assay_lab.service.seeding import make_email
from assay_lab.tokens import sessions
from lab_support.core import lab_core
from lab_support.tool_client import BASE_URL, Tools, browser

CALLBACK = "http://127.0.0.1:5555/callback"
VERIFIER = "v" * 43


@pytest.fixture(scope="module")
def core(shared):
    return shared


@pytest.fixture
def http(core, client):
    client.cookies.clear()
    client.post(sessions.sign_in_link(core.lab.settings, make_email("member")))
    return client


def registered(http, **changes):
    metadata = {
        "client_name": "Bench <b>tool</b>",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
    }
    return http.post("/register", json=metadata | changes)


def challenge(verifier=VERIFIER):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def authorize(http, client_id, **changes):
    query = {
        "client_id": client_id,
        "response_type": "code",
        "redirect_uri": CALLBACK,
        "code_challenge": challenge(),
        "code_challenge_method": "S256",
        "state": "st&te",
        "resource": f"{BASE_URL}/mcp",
    }
    return http.get("/authorize", params={name: value for name, value in (query | changes).items() if value})


def decided(http, page, decision="allow"):
    mark = re.search(r'name="csrf" value="([^"]+)"', http.get(page).text)[1]
    answer = http.post(page, data={"csrf": mark, "decision": decision})
    assert answer.status_code == 303
    target = answer.headers["location"]
    assert target.startswith(CALLBACK + "?")
    return {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}


def exchange(http, client_id, code, /, **changes):
    form = {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
    }
    return http.post("/token", data=form | changes)


@pytest.fixture
def client_id(http):
    return registered(http).json()["client_id"]


@pytest.fixture
def code(http, client_id):
    return decided(http, authorize(http, client_id).headers["location"])["code"]


def status(http, token):
    return http.get("/api/v1/whoami", headers={"Authorization": f"Bearer {token}"}).status_code


def test_the_whole_flow_from_the_401(core, http):
    tools = Tools(core, http)
    refused = tools.post("tools/list", {}, "")
    resource = http.get(
        re.search(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])[1]
    ).json()
    assert resource == http.get("/.well-known/oauth-protected-resource").json()
    server = http.get(f"{resource['authorization_servers'][0]}/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == BASE_URL
    assert server["grant_types_supported"] == ["authorization_code"]
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert "none" in server["token_endpoint_auth_methods_supported"]
    made = registered(http)
    assert made.status_code == 201
    client_id = made.json()["client_id"]
    page = authorize(http, client_id).headers["location"]
    text = http.get(page).text
    assert "Bench &lt;b&gt;tool&lt;/b&gt;" in text
    assert "127.0.0.1:5555" in text
    answer = decided(http, page)
    assert answer["state"] == "st&te"
    token = exchange(http, client_id, answer["code"])
    assert token.headers["cache-control"] == "no-store"
    body = token.json()
    assert (body["token_type"], "refresh_token" in body) == ("Bearer", False)
    assert 11 * 3600 < body["expires_in"] <= 12 * 3600
    assert tools.call("identity_whoami", body["access_token"])["body"]["organizations"][0]["role"] == "member"
    assert status(http, body["access_token"]) == 200
    row = tools.rest("GET", "/tokens").json()["items"][0]
    assert (row["kind"], row["name"]) == ("oauth", "Bench <b>tool</b>")


def test_the_page_lets_the_form_lead_to_the_client_only(http, client_id):
    page = authorize(http, client_id).headers["location"]
    policy = http.get(page).headers["content-security-policy"]
    assert "form-action 'self' http://127.0.0.1:5555;" in policy


def test_strangers_sign_in_first(core, http, client_id):
    page = authorize(http, client_id).headers["location"]
    http.cookies.clear()
    text = http.get(page).text
    follow = re.search(r'name="follow" value="([^"]+)"', text)[1]
    link = sessions.sign_in_link(core.lab.settings, make_email("viewer"))
    answer = http.post("/portal/sign-in/", data={"link": link, "follow": follow})
    assert page.endswith(answer.headers["location"])
    code = decided(http, page)["code"]
    token = exchange(http, client_id, code).json()["access_token"]
    assert core.lab.tokens.authenticate(f"Bearer {token}").role == "viewer"


def test_no_is_an_answer(http, client_id):
    page = authorize(http, client_id).headers["location"]
    assert decided(http, page, "deny") == {"error": "access_denied", "state": "st&te"}
    assert http.get(page).status_code == 404


def test_a_decision_is_made_once(http, client_id):
    page = authorize(http, client_id).headers["location"]
    mark = re.search(r'name="csrf" value="([^"]+)"', http.get(page).text)[1]
    answers = [http.post(page, data={"csrf": mark, "decision": "allow"}).status_code for _ in range(2)]
    assert answers == [303, 404]


def refused(answer, error, code=400):
    assert answer.status_code == code, answer.text
    assert answer.json()["error"] == error
    assert "access_token" not in answer.text


@pytest.mark.parametrize("verifier", ["w" * 43, "", challenge()])
def test_a_wrong_verifier_gets_nothing(http, client_id, code, verifier):
    refused(exchange(http, client_id, code, code_verifier=verifier), "invalid_grant")


def test_a_code_works_once_and_the_second_use_kills_the_token(http, client_id, code):
    token = exchange(http, client_id, code).json()["access_token"]
    assert status(http, token) == 200
    refused(exchange(http, client_id, code), "invalid_grant")
    assert status(http, token) == 401


def test_a_code_belongs_to_its_client_and_address(http, client_id, code):
    other = registered(http).json()["client_id"]
    refused(exchange(http, other, code), "invalid_grant")
    refused(exchange(http, client_id, code, redirect_uri=CALLBACK + "/x"), "invalid_request")
    refused(exchange(http, "nobody", code), "invalid_client", 401)
    assert exchange(http, client_id, code).status_code == 200


def test_a_code_gets_old(core, http, client_id, code):
    with core.lab.store.transaction() as db:
        db.run("UPDATE oauth_grants SET expires_at = 1")
    refused(exchange(http, client_id, code), "invalid_grant")


def test_a_client_with_a_secret_must_send_it(http):
    made = registered(http, token_endpoint_auth_method="client_secret_post").json()
    code = decided(http, authorize(http, made["client_id"]).headers["location"])["code"]
    refused(exchange(http, made["client_id"], code), "invalid_client", 401)
    refused(exchange(http, made["client_id"], code, client_secret="x"), "invalid_client", 401)
    assert exchange(http, made["client_id"], code, client_secret=made["client_secret"]).status_code == 200


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:5556/callback",
        "http://127.0.0.1:5555/callback/",
        "http://127.0.0.1:5555/callback?x=1",
        "https://evil.example/callback",
    ],
)
def test_an_unregistered_redirect_address_gets_no_redirect(http, client_id, uri):
    answer = authorize(http, client_id, redirect_uri=uri)
    assert answer.status_code == 400
    assert "location" not in answer.headers


@pytest.mark.parametrize(
    "uri",
    [
        "http://evil.example/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///x",
        "https://a.example/#x",
    ],
)
def test_odd_redirect_addresses_cannot_be_registered(http, uri):
    answer = registered(http, redirect_uris=[CALLBACK, uri])
    assert answer.status_code == 400
    assert answer.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")


@pytest.mark.parametrize("uri", ["https://app.example/cb", "http://localhost:1/cb", "cursor://x/cb"])
def test_usual_redirect_addresses_can(http, uri):
    assert registered(http, redirect_uris=[uri]).status_code == 201


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"scope": "everything"}, "invalid_scope"),
    ],
)
def test_a_bad_request_goes_back_to_the_client(http, client_id, changes, error):
    answer = authorize(http, client_id, **changes)
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    assert (query["error"], query["state"]) == ([error], ["st&te"])


def test_signing_out_ends_the_token_and_what_was_made_of_it(core, http, client_id, code):
    token = exchange(http, client_id, code).json()["access_token"]
    tools = Tools(core, http)
    body = {"token": token, "name": "less", "attenuation": {"read_only": True}}
    child = tools.rest("POST", "/tokens/attenuate", token, json=body).json()["token"]
    mark = re.search(r'name="csrf" value="([^"]+)"', http.get("/portal/organization/settings/tokens/").text)[
        1
    ]
    http.post("/portal/sign-out", data={"csrf": mark})
    for dead in (token, child):
        assert status(http, dead) == 401
        assert tools.post("tools/list", {}, dead).status_code == 401
    assert status(http, core.seeded.member_token) == 200


def test_an_expired_session_ends_the_token(core, http, client_id, code):
    token = exchange(http, client_id, code).json()["access_token"]
    assert status(http, token) == 200
    headers = {"Authorization": f"Bearer {core.lab.settings.sim_token}"}
    assert http.delete("/_sim/sessions", headers=headers).json()["ended"] >= 1
    assert status(http, token) == 401


def test_no_token_for_a_session_that_ended_meanwhile(http, core, client_id, code):
    with core.lab.store.transaction() as db:
        db.run("UPDATE portal_sessions SET expires_at = 1")
    refused(exchange(http, client_id, code), "invalid_grant")


def test_a_client_gives_its_token_back(http):
    made = registered(http, token_endpoint_auth_method="client_secret_post").json()
    code = decided(http, authorize(http, made["client_id"]).headers["location"])["code"]
    secret = {"client_id": made["client_id"], "client_secret": made["client_secret"]}
    token = exchange(http, made["client_id"], code, **secret).json()["access_token"]
    assert http.post("/revoke", data={"token": "x", **secret}).status_code == 200
    assert status(http, token) == 200
    assert http.post("/revoke", data={"token": token, **secret}).status_code == 200
    assert status(http, token) == 401


def test_a_client_cannot_take_another_token_away(core, http):
    made = registered(http, token_endpoint_auth_method="client_secret_post").json()
    secret = {"client_id": made["client_id"], "client_secret": made["client_secret"]}
    assert http.post("/revoke", data={"token": core.seeded.member_token, **secret}).status_code == 200
    assert status(http, core.seeded.member_token) == 200


def test_there_is_no_refreshing(http, client_id):
    answer = http.post(
        "/token", data={"grant_type": "refresh_token", "refresh_token": "x", "client_id": client_id}
    )
    refused(answer, "invalid_grant")


def test_only_digests_are_kept(core, http, client_id, code):
    token = exchange(http, client_id, code).json()["access_token"]
    cookie = http.cookies["lab_session"]
    with core.lab.store.transaction() as db:
        kept = str(
            [db.all(f"SELECT * FROM {table}") for table in ("oauth_grants", "portal_sessions", "tokens")]
        )
    for secret in (code, token, cookie):
        assert secret not in kept


def test_sign_in_needs_https_or_loopback():
    core = lab_core(base_url="http://lab:8000")
    with browser(core) as http:
        assert http.get("/.well-known/oauth-authorization-server").status_code == 404
        challenge_header = Tools(core, http).post("tools/list", {}, "").headers["www-authenticate"]
    core.close()
    assert challenge_header == "Bearer"
    assert oauth.is_offered("https://lab.example")


@pytest.mark.parametrize(
    ("uri", "may"), [("https://a.example/x", True), ("ws://a.example", False), ("//x", False)]
)
def test_redirect_rules(uri, may):
    assert oauth_provider._may_redirect(uri) is may


def test_unanswered_requests_are_deleted(core):
    with core.lab.store.transaction() as db:
        oauth.request_access(db, "forgetful", "{}")
        db.run("UPDATE oauth_grants SET expires_at = 1")
        oauth.request_access(db, "forgetful", "{}")
        assert db.one("SELECT count(*) AS n FROM oauth_grants WHERE client_id = 'forgetful'")["n"] == 1
