"""The portal for people who sign in: links, sessions, forms that only their own page can send, and tokens."""

import re
from html import unescape

import pytest

from assay_lab.kernel.refusals import Refusal
from assay_lab.portal import pages
from assay_lab.portal.account_pages import TOKENS
from assay_lab.service.seeding import add_organization, make_email
from assay_lab.tokens import sessions
from assay_lab.tokens.registry import EXPIRY_DAYS
from lab_support.core import advance, lab_core, order, to_quote
from lab_support.tool_client import Tools, browser

EVIL = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def core(shared):
    return shared


@pytest.fixture
def http(client):
    client.cookies.clear()
    return client


@pytest.fixture
def fresh():
    """A lab of its own, and a browser."""
    made = lab_core()
    with browser(made) as client:
        yield made, client
    made.close()


def signed_in(core, http, role="member", slug="lab"):
    """Sign in by the printed link; the CSRF value of the session's forms."""
    link = sessions.sign_in_link(core.lab.settings, make_email(role, slug))
    assert http.post(link).headers["location"] == TOKENS
    return csrf(http)


def csrf(http):
    return re.search(r'name="csrf" value="([^"]+)"', http.get(TOKENS).text)[1]


def fields(value, **changes):
    return {"csrf": value, "name": "laptop", "role": "member", "days": "30", **changes}


def shown_token(http):
    match = re.search(r"<pre>([^<]+)</pre>", http.get(TOKENS).text)
    return match and unescape(match[1])


def test_a_link_shows_a_button_and_the_button_signs_in(core, http):
    link = sessions.sign_in_link(core.lab.settings, "member@lab.example")
    page = http.get(link)
    assert (page.status_code, "set-cookie" in page.headers) == (200, False)
    assert "Sign out" not in http.get(TOKENS).text
    cookie = http.post(link).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=lax", "Path=/portal"} <= {part.strip() for part in cookie.split(";")}
    assert "member@lab.example" in http.get(TOKENS).text


@pytest.mark.parametrize("changed", ["", "x", "bWVtYmVyQGxhYi5leGFtcGxl.", "bWVtYmVyQGxhYi5leGFtcGxl." + "0" * 64, "_w.aa", "é.é"])  # fmt: skip
def test_only_the_labs_own_links_sign_in(core, http, changed):
    for answer in (
        http.get(f"/portal/sign-in/{changed}/"),
        http.post(f"/portal/sign-in/{changed}/"),
        http.post("/portal/sign-in/", data={"link": changed}),
    ):
        assert answer.status_code in (404, 405)
        assert "set-cookie" not in answer.headers


def test_a_link_of_another_lab_or_user_is_no_key_here(core, http):
    other = lab_core()
    link = sessions.sign_in_link(other.lab.settings, "member@lab.example")
    other.close()
    assert http.post(link).status_code == 404
    viewer = sessions.sign_in_link(core.lab.settings, "viewer@lab.example")
    mine = sessions.sign_in_link(core.lab.settings, "member@lab.example")
    mixed = viewer[: viewer.rindex(".")] + mine[mine.rindex(".") :]
    assert http.post(mixed).status_code == 404


def test_a_pasted_link_returns_to_the_page_opened_first(core, http):
    link = sessions.sign_in_link(core.lab.settings, "viewer@lab.example")
    assert f'value="{TOKENS}"' in http.get(TOKENS).text
    for follow, target in ((TOKENS, TOKENS), ("//evil.example/", TOKENS), ("https://evil.example/", TOKENS), ("/portal//evil.example/", TOKENS)):  # fmt: skip
        answer = http.post("/portal/sign-in/", data={"link": f" {link}\n", "follow": follow})
        assert (answer.status_code, answer.headers["location"]) == (303, target)


@pytest.mark.parametrize(
    "path", ["/portal/sign-out", TOKENS + "create", TOKENS + "x/revoke", "/portal/connect/x/"]
)
def test_every_form_needs_the_sessions_own_mark(core, http, path):
    other = signed_in(core, http, "viewer")
    signed_in(core, http)
    for sent in ({}, {"csrf": ""}, {"csrf": "x"}, {"csrf": other}, {"csrf": "é"}):
        assert http.post(path, data=fields("") | sent).status_code == 403
    http.cookies.clear()
    assert http.post(path, data=fields(other)).status_code == 403
    assert shown_token(http) is None


def test_signing_out_ends_the_session(core, http):
    mark = signed_in(core, http)
    cookie = http.cookies["lab_session"]
    assert http.post("/portal/sign-out", data={"csrf": mark}).status_code == 303
    assert "lab_session" not in http.cookies
    http.cookies.set("lab_session", cookie, path="/portal")
    assert "Sign out" not in http.get(TOKENS).text


def test_a_session_expires(core, http):
    signed_in(core, http)
    with core.lab.store.transaction() as db:
        db.run("UPDATE portal_sessions SET expires_at = 1")
    assert "Sign out" not in http.get(TOKENS).text


def test_a_token_is_shown_once_and_works(core, http):
    mark = signed_in(core, http)
    assert http.post(TOKENS + "create", data=fields(mark)).headers["location"] == TOKENS
    token = shown_token(http)
    assert token.startswith("assay_lab")
    assert shown_token(http) is None
    assert token not in http.get(TOKENS).text
    answer = http.get("/api/v1/whoami", headers={"Authorization": f"Bearer {token}"}).json()
    assert answer["organizations"][0]["role"] == "member"


def test_four_lifetimes(fresh):
    core, http = fresh
    mark = signed_in(core, http)
    made = {}
    for days in EXPIRY_DAYS:
        http.post(TOKENS + "create", data=fields(mark, days=str(days), role="viewer"))
        made[days] = f"Bearer {shown_token(http)}"
        assert core.lab.tokens.authenticate(made[days]).role == "viewer"
    passed = 0
    for days in EXPIRY_DAYS:
        advance(core, days=days - passed - 1)
        core.lab.tokens.authenticate(made[days])
        advance(core, days=1)
        passed = days
        with pytest.raises(Refusal):
            core.lab.tokens.authenticate(made[days])
    assert "expired" in http.get(TOKENS).text


@pytest.mark.parametrize(
    "changes",
    [{"days": "1"}, {"days": "366"}, {"days": "030"}, {"days": ""}, {"role": "partner"}, {"role": ""}, {"name": " "}, {"name": "n" * 201}],
)  # fmt: skip
def test_nothing_else_can_be_chosen(core, http, changes):
    mark = signed_in(core, http)
    assert http.post(TOKENS + "create", data=fields(mark, **changes)).status_code == 400
    assert shown_token(http) is None


def test_revoking_works_at_once_for_rest_and_tools(core, http):
    mark = signed_in(core, http)
    http.post(TOKENS + "create", data=fields(mark))
    token = shown_token(http)
    tools = Tools(core, http)
    child = tools.rest(
        "POST",
        "/tokens/attenuate",
        token,
        json={"token": token, "name": "less", "attenuation": {"read_only": True}},
    ).json()["token"]
    assert "and 1 restricted" in http.get(TOKENS).text
    token_id = core.lab.tokens.authenticate(f"Bearer {token}").token_id
    assert http.post(f"{TOKENS}{token_id}/revoke", data={"csrf": mark}).status_code == 303
    for dead in (token, child):
        assert tools.rest("GET", "/whoami", dead).status_code == 401
        assert tools.post("tools/list", {}, dead).status_code == 401
    assert f"{token_id}/revoke" not in http.get(TOKENS).text


def test_viewers_look_and_do_not_touch(core, http):
    mark = signed_in(core, http, "viewer")
    page = http.get(TOKENS).text
    assert "Create token" not in page
    assert "Revoke" not in page
    assert http.post(TOKENS + "create", data=fields(mark, role="viewer")).status_code == 403
    token_id = core.lab.tokens.authenticate(f"Bearer {core.seeded.member_token}").token_id
    assert http.post(f"{TOKENS}{token_id}/revoke", data={"csrf": mark}).status_code == 403


def test_an_organisation_sees_and_revokes_only_its_own(core, http):
    order(core, name="secret of the first")
    other = add_organization(core.lab, "other", "Other")
    mark = signed_in(core, http, slug="other")
    assert "secret of the first" not in http.get(TOKENS).text
    token_id = core.lab.tokens.authenticate(f"Bearer {core.seeded.member_token}").token_id
    assert token_id not in http.get(TOKENS).text
    assert http.post(f"{TOKENS}{token_id}/revoke", data={"csrf": mark}).status_code == 404
    core.lab.tokens.authenticate(f"Bearer {core.seeded.member_token}")
    other_token_id = core.lab.tokens.authenticate(f"Bearer {other.member_token}").token_id
    assert other_token_id in http.get(TOKENS).text


def test_pages_run_nothing_and_load_nothing(core, http):
    to_quote(core, name=EVIL)
    mark = signed_in(core, http)
    http.post(TOKENS + "create", data=fields(mark, name=EVIL))
    keys = re.findall(r'href="(/portal/(?:experiments|quotes)/[^"]+)"', http.get(TOKENS).text)[:2]
    link = sessions.sign_in_link(core.lab.settings, "member@lab.example")
    for path in (TOKENS, *keys, link):
        page = http.get(path)
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert {"default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"} <= {
            part.strip() for part in policy.split(";")
        }
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["x-content-type-options"] == "nosniff"
        for wrong in ("<script", "<img", " style=", " onerror=alert(1)>"):
            assert wrong not in page.text.replace("onerror=alert(1)&gt;", "")
        style = re.search(r"<style>(.*?)</style>", page.text, re.DOTALL)[1]
        assert style == pages.STYLE


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("http://127.0.0.1:99/callback", " http://127.0.0.1:99;"),
        ("https://app.example/x", " https://app.example;"),
        ("cursor://anysphere/callback", " cursor:;"),
        ("https://a.example;script-src 'unsafe-inline'/", "'self';"),
        ("https://a.example 'unsafe-inline'/", "'self';"),
    ],
)
def test_forms_lead_to_the_named_place_and_nothing_slips_into_the_policy(target, allowed):
    policy = pages.headers([target])["Content-Security-Policy"]
    assert allowed in policy
    assert "unsafe" not in policy


def test_the_control_surface_knows_every_users_link(core):
    assert core.sign_in_link("Viewer@lab.example").endswith("/")
    with pytest.raises(Refusal) as caught:
        core.sign_in_link("nobody@lab.example")
    assert caught.value.status == 404


def test_links_stay_over_a_reset(fresh):
    core, http = fresh
    link = sessions.sign_in_link(core.lab.settings, "member@lab.example")
    signed_in(core, http)
    core.reset()
    assert "Sign out" not in http.get(TOKENS).text
    assert http.post(link).status_code == 303


def test_the_portal_offers_what_the_service_mints(core, http):
    signed_in(core, http)
    offered = re.findall(r'<option value="(\d+)">([^<]+)</option>', http.get(TOKENS).text)
    assert tuple(int(days) for days, _ in offered) == EXPIRY_DAYS
    assert [label for _, label in offered] == ["7 days", "30 days", "90 days", "1 year"]
