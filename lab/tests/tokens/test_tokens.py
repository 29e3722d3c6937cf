"""Tokens of the lab: roles, what is refused, families, fixed tokens, and what the database keeps (contract 5)."""

import json
import string
from datetime import timedelta

import pytest
from biscuit_auth import KeyPair
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from assay_lab.account import handlers as access
from assay_lab.api import ROUTES
from assay_lab.kernel.refusals import Refusal
from assay_lab.requests.core import Call
from assay_lab.service import seeding
from assay_lab.tokens import permissions
from assay_lab.tokens.encoding import Claims, Seal
from assay_lab.tokens.registry import EXPIRY_DAYS
from lab_support.core import EPOCH, advance, lab_core, refusal
from lab_support.tokens import join, offline, online, split

UNAUTHORIZED = (401, "missing or invalid token")
EXPIRED = (401, "missing or invalid token: expired")


def told(core, token, method="GET", path="/whoami", **request):
    headers = {"authorization": f"Bearer {token}"}
    refused = refusal(core, method, path, headers=headers, **request)
    return refused.status, refused.message


def outcome(core, method, path, token):
    try:
        return core.request(method, path, headers={"authorization": f"Bearer {token}"}).status
    except Refusal as error:
        return error.status


def minted(core, **details):
    with core.lab.store.transaction() as db:
        details = {"org_id": core.seeded.organization_id, "role": "member", "name": "x", **details}
        return core.lab.tokens.mint(db, **details)


def test_a_token_names_its_organisation_outside_and_its_owner_inside(shared):
    assert shared.seeded.member_token.startswith("assay_labE")
    body = shared.request("GET", "/whoami").body
    assert body["organizations"] == [
        {"id": shared.seeded.organization_id, "name": "Local lab", "role": "member", "active": True}
    ]
    assert body["active_organization_id"] == shared.seeded.organization_id
    assert body["token_expires_at"] == "2027-03-02T09:00:00.000000Z"
    with shared.lab.store.transaction() as db:
        user = db.one("SELECT * FROM users WHERE id = ?", body["user_id"])
    assert (user["email"], user["role"]) == ("member@lab.example", "member")


def test_every_route_requires_a_capability_that_whoami_lists():
    asked = {(route.resource, route.action) for route in ROUTES if not route.open}
    known = set(permissions.of_role("partner"))
    assert asked <= known
    assert known - asked <= {("token", "issue")}  # the portal's
    assert all(route.partner == (route.resource == permissions.PARTNER_ONLY) for route in ROUTES)


def test_the_three_roles_have_their_capabilities(shared):
    seeded = shared.seeded
    owned = {
        role: set(shared.request("GET", "/whoami", token=token).body["permissions"])
        for role, token in (
            ("member", seeded.member_token),
            ("viewer", seeded.viewer_token),
            ("partner", seeded.partner_token),
        )
    }
    assert {"experiment:create", "token:read", "quote:update", "webhook:delete"} < owned["member"]
    assert {"experiment:read", "token:read"} < owned["viewer"]
    assert {name.partition(":")[2] for name in owned["viewer"]} == {"list", "read"}
    assert owned["partner"] - owned["member"] == {"partner:mint_token"}


@pytest.mark.parametrize("route", [route for route in ROUTES if not route.open], ids=lambda route: route.path)
def test_a_missing_capability_is_a_403_that_names_it(shared, route):
    path = route.path.replace("{", "").replace("}", "")
    if route.partner:
        for token in (shared.seeded.member_token, shared.seeded.viewer_token):
            status, message = told(shared, token, route.method, path)
            assert (status, "partner:mint_token" in message) == (403, True)
    elif route.writes:
        status, message = told(shared, shared.seeded.viewer_token, route.method, path)
        assert (status, f"{route.resource}:{route.action}" in message) == (403, True)
    else:
        assert outcome(shared, route.method, path, shared.seeded.viewer_token) != 403


def claims(core, **changes):
    with core.lab.store.transaction() as db:
        row = db.one("SELECT * FROM tokens WHERE kind = 'start' AND role = 'member'")
    whole = {
        "token_id": row["id"],
        "org_id": row["org_id"],
        "slug": "lab",
        "role": "member",
        "user_id": row["user_id"],
        "session": None,
        "expires_at": EPOCH + timedelta(days=30),
    }
    return Claims(**(whole | changes))


def test_what_is_not_genuine_is_401_without_a_reason(core):
    genuine = core.seeded.member_token
    other = lab_core()
    second = seeding.add_organization(core.lab, "lab2", "Other")
    own_org, other_org = core.seeded.organization_id.encode(), second.organization_id.encode()
    seal = core.lab.tokens._seal
    before, body = split(genuine)
    refused = {
        "empty": " ",
        "words": "nonsense",
        "prefix": genuine.replace("assay_", "essay_"),
        "no prefix": genuine.removeprefix("assay_"),
        "slug": genuine.replace("_lab", "_lab2", 1),
        "no slug": genuine.replace("_lab", "_", 1),
        "cut": genuine[:-10],
        "doubled": genuine + genuine,
        "forged": join(before, body.replace(own_org, other_org)),
        "foreign key": Seal(str(KeyPair().private_key), "assay").write(claims(core)),
        "other lab": other.seeded.member_token,
        "no record": seal.write(claims(core, token_id="00000000-0000-4000-8000-000000000000")),
        "no ascii": genuine + "é",
        "surrogate": genuine + "\ud800",
        "too long": genuine + "A" * 40_000,
    }
    kept = genuine.rstrip("=")
    padding = genuine.removeprefix(kept)
    letters = set(string.ascii_letters + string.digits + "-_") - {kept[-1]}
    refused |= {f"last letter {letter}": kept[:-1] + letter + padding for letter in letters}
    refused |= {f"{tail!r} added": genuine + tail for tail in ("=", "==", "A", "AA==", "\0", ".")}
    assert core.request("GET", "/whoami", token=seal.write(claims(core))).status == 200
    assert {name: told(core, token) for name, token in refused.items()} == dict.fromkeys(
        refused, UNAUTHORIZED
    )
    for header in ("", "Bearer", "Bearer ", f"Basic {genuine}", genuine):
        refused = refusal(core, "GET", "/whoami", headers={"authorization": header})
        assert (refused.status, refused.message) == UNAUTHORIZED
    assert core.request("GET", "/whoami", headers={"authorization": f"bearer {genuine}"}).status == 200
    other.close()


# The group order of Ed25519: a signature with S + L verifies wherever S is not checked to be canonical.
L = 2**252 + 27742317777372353535851937790883648493


def test_a_signature_has_one_spelling(shared):
    """Otherwise a revoked token could be spelled anew, with another revocation id."""
    before, body = split(shared.seeded.member_token)
    opened = shared.lab.tokens._open(shared.seeded.member_token)
    signature = bytes.fromhex(opened.revocation_ids[-1])
    second = int.from_bytes(signature[32:], "little") + L
    twin = signature[:32] + second.to_bytes(32, "little")
    assert body.count(signature) == 1
    assert told(shared, join(before, body.replace(signature, twin))) == UNAUTHORIZED


TEXT = st.text(st.characters(codec="utf-8"), max_size=80) | st.text("aEC_-=0A", max_size=80)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example("assay_lab", "E")
@example("assay_lab", "EgA=")
@given(st.sampled_from(["", "assay_", "assay_lab", "assay_labE", "_", "assay__lab"]), TEXT)
def test_any_text_is_401_at_most(shared, before, text):
    assert told(shared, before + text) == UNAUTHORIZED


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_changed_token_is_401_or_the_same_token(shared, data):
    before, body = split(shared.seeded.viewer_token)
    changed = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(changed) - 1))
        match data.draw(st.sampled_from(["set", "delete", "insert", "cut"])):
            case "set":
                changed[position] = data.draw(st.integers(0, 255))
            case "delete":
                del changed[position]
            case "insert":
                changed.insert(position, data.draw(st.integers(0, 255)))
            case _:
                del changed[position:]
        if not changed:
            break
    token = join(before, bytes(changed))
    if outcome(shared, "GET", "/whoami", token) == 200:
        who = shared.lab.tokens.authenticate(f"Bearer {token}")
        assert who == shared.lab.tokens.authenticate(f"Bearer {shared.seeded.viewer_token}")
    else:
        assert told(shared, token) == UNAUTHORIZED


def test_tokens_expire_on_the_labs_clock(core):
    assert EXPIRY_DAYS == (7, 30, 90, 365)
    week, quarter = minted(core, days=7), minted(core)
    advance(core, days=6.9)
    assert core.request("GET", "/whoami", token=week.token).status == 200
    advance(core, days=0.2)
    assert told(core, week.token) == EXPIRED
    advance(core, days=82)
    assert core.request("GET", "/whoami", token=quarter.token).status == 200
    advance(core, days=1)
    assert told(core, quarter.token) == EXPIRED


@pytest.mark.parametrize("fixed_token", [None, "a-fixed-text"])
def test_the_tokens_of_a_scaled_lab_outlive_its_years(fixed_token):
    core = lab_core(clock_mode="scaled", seconds_per_day=60, member_token=fixed_token)
    advance(core, days=2000)
    assert core.request("GET", "/whoami", token=core.seeded.member_token).status == 200
    core.close()


def test_a_lab_that_starts_again_keeps_its_clock_and_its_tokens_last_by_it(tmp_path):
    lab_core(database=tmp_path / "lab.sqlite3", clock_mode="scaled", seconds_per_day=60).close()
    core = lab_core(database=tmp_path / "lab.sqlite3", clock_mode="manual")
    advance(core, days=2000)
    assert core.lab.clock.row(core.seeded.organization_id)["mode"] == "scaled"
    assert core.request("GET", "/whoami", token=core.seeded.member_token).status == 200
    core.close()


def test_the_database_keeps_a_revocation_id_and_never_a_token(core):
    child = online(core, core.seeded.member_token, read_only=True)
    opened = core.lab.tokens._open(child["token"])
    with core.lab.store.transaction() as db:
        rows = json.dumps([db.all(f"SELECT * FROM {table}") for table in ("tokens", "users")])
        row = db.one("SELECT revocation_id FROM tokens WHERE id = ?", child["id"])
    assert row["revocation_id"] == opened.revocation_ids[-1]
    for token in (core.seeded.member_token, core.seeded.viewer_token, child["token"]):
        assert token not in rows
        assert split(token)[1].hex() not in rows
        assert token.removeprefix("assay_lab")[:200] not in rows
    assert child["token"] not in repr(core.lab.tokens.authenticate(f"Bearer {child['token']}"))


def test_the_list_is_flat_and_has_what_is_published(core):
    child = online(core, core.seeded.member_token, allowed_resources=["experiments"], read_only=True)
    page = core.request("GET", "/tokens", query={"sort": "created_at"}).body
    assert (page["total"], page["count"], page["offset"]) == (4, 4, 0)
    first, last = page["items"][0], page["items"][-1]
    names = {"id", "name", "kind", "parent_token_id", "root_token_id", "attenuation_spec", "created_at"}
    assert set(first) == set(last) == names | {"expires_at"}
    assert (first["kind"], first["parent_token_id"], first["attenuation_spec"]) == ("start", None, None)
    assert (last["id"], last["kind"], last["name"]) == (child["id"], "attenuated", "less")
    assert last["parent_token_id"] == last["root_token_id"] == first["id"]
    assert last["attenuation_spec"] == {"allowed_resources": ["experiment"], "read_only": True}
    only = core.request("GET", "/tokens", query={"filter": "eq(kind,attenuated)"}).body
    assert [item["id"] for item in only["items"]] == [child["id"]]
    other = seeding.add_organization(core.lab, "other", "Other")
    assert core.request("GET", "/tokens", token=other.viewer_token).body["total"] == 3


def test_revoking_ends_the_whole_family_and_no_other(core):
    root = minted(core).token
    child = online(core, root, allowed_resources=["token", "experiment"])
    grandchild = online(core, child["token"], child["id"], expires_at="2026-04-01T00:00:00Z")["token"]
    unknown = offline(core, grandchild, allowed_actions=["revoke", "read", "list"])
    stranger = minted(core).token
    family = (root, child["token"], grandchild, unknown)
    for token in (*family, stranger):
        assert core.request("GET", "/experiments", token=token).status == 200
    answer = core.request("POST", "/tokens/revoke", token=unknown)
    assert answer.body == {
        "token_id": core.lab.tokens._open(root).claims.token_id,
        "revoked_at": "2026-03-02T09:00:00.000000Z",
        "children_revoked": 2,
    }
    for token in family:
        assert told(core, token, path="/experiments") == UNAUTHORIZED
        assert told(core, token, "POST", "/tokens/revoke") == UNAUTHORIZED
    assert core.request("GET", "/whoami", token=stranger).status == 200
    assert core.request("GET", "/tokens").body["total"] == 4  # the dead are not listed


def test_a_revoked_record_takes_its_descendants_along(core):
    """The portal may revoke one token of a family."""
    root = minted(core)
    child = online(core, root.token, non_destructive=True)
    below = [online(core, child["token"], child["id"], read_only=True)["token"]]
    below += [offline(core, text, allowed_resources=["experiment"]) for text in (child["token"], below[0])]
    with core.lab.store.transaction() as db:
        db.update("tokens", child["id"], revoked_at=EPOCH)
    assert [told(core, token) for token in (child["token"], *below)] == [UNAUTHORIZED] * 4
    assert core.request("GET", "/whoami", token=root.token).status == 200
    with core.lab.store.transaction() as db:
        db.update("tokens", child["id"], revoked_at=None)
        db.update("tokens", root.id, revoked_at=EPOCH)
    assert [told(core, token) for token in (root.token, *below)] == [UNAUTHORIZED] * 4


def test_two_revocations_at_the_same_time_are_one(core):
    who = core.lab.tokens.authenticate(f"Bearer {minted(core).token}")
    first = access.revoke_token(Call(core.lab, who)).body
    advance(core, hours=1)
    assert access.revoke_token(Call(core.lab, who)).body == first | {"children_revoked": 0}


def test_only_who_holds_a_token_attenuates_it(core):
    held, stranger = (
        core.seeded.member_token,
        seeding.add_organization(core.lab, "other", "Other").member_token,
    )
    record = core.request("GET", "/tokens").body["items"][0]["id"]
    foreign = (stranger, held, 403)
    malformed = [
        (held, text, 400)
        for text in ("", "nobody", held[:-4], held.replace("_", "-", 1), held + "AAAA", record)
    ]
    for caller, token, status in (foreign, *malformed):
        body = {"token": token, "name": "x", "attenuation": {"read_only": True}}
        assert refusal(core, "POST", "/tokens/attenuate", token=caller, json_body=body).status == status


def test_a_restricted_token_may_not_revoke_its_family(core):
    for restriction in (
        {"read_only": True},
        {"non_destructive": True},
        {"allowed_resources": ["experiment"]},
    ):
        token = online(core, core.seeded.member_token, **restriction)["token"]
        assert told(core, token, "POST", "/tokens/revoke")[0] == 403
    assert told(core, core.seeded.viewer_token, "POST", "/tokens/revoke")[0] == 403


def test_a_restarted_lab_accepts_and_refuses_the_same_tokens(tmp_path):
    first = lab_core(database=tmp_path / "lab.sqlite3")
    known = online(first, first.seeded.member_token, read_only=True)["token"]
    unknown = offline(first, known, allowed_resources=["experiment"])
    dead = minted(first).token
    first.request("POST", "/tokens/revoke", token=dead)
    key = first.lab.tokens.public_key
    first.close()
    second = lab_core(database=tmp_path / "lab.sqlite3")
    assert second.lab.tokens.public_key == key
    for token in (first.seeded.member_token, known, unknown):
        assert second.request("GET", "/experiments", token=token).status == 200
    assert told(second, dead) == UNAUTHORIZED
    with second.lab.store.transaction() as db:
        assert db.one("SELECT count(*) AS n FROM users")["n"] == 3
    second.close()


def test_a_fixed_token_represents_the_same_one_over_restarts(tmp_path):
    settings = {
        "database": tmp_path / "lab.sqlite3",
        "member_token": "my fixed token",
        "viewer_token": "lookér",
    }
    first = lab_core(**settings)
    assert first.seeded.member_token == "my fixed token"
    child = online(first, "my fixed token", read_only=True)["token"]
    assert child.startswith("assay_labE")
    before = first.request("GET", "/whoami").body
    first.close()
    second = lab_core(**settings)
    advance(second, days=300)
    assert second.request("GET", "/whoami").body["user_id"] == before["user_id"]
    assert second.request("GET", "/whoami", token="lookér").body["organizations"][0]["role"] == "viewer"
    assert second.request("GET", "/experiments", token=child).status == 200
    assert second.request("GET", "/tokens").body["total"] == 5  # two partners: theirs are random
    second.close()
    third = lab_core(**settings)
    advance(third, days=2000)  # it never expires, nor does what was made of it without an end of its own
    assert third.request("GET", "/whoami").status == 200
    assert third.request("GET", "/experiments", token=child).status == 200
    third.request("POST", "/tokens/revoke")
    assert told(third, "my fixed token") == UNAUTHORIZED
    third.close()
    last = lab_core(**settings)
    assert told(last, "my fixed token") == UNAUTHORIZED  # revoked is revoked, until the lab is emptied
    last.reset()
    assert last.request("GET", "/whoami", token="my fixed token").status == 200
    assert told(last, child) == UNAUTHORIZED
    last.close()


def test_a_fixed_token_outlives_a_reset():
    core = lab_core(member_token="fixed")
    child = online(core, "fixed", read_only=True)["token"]
    core.reset()
    assert told(core, child) == UNAUTHORIZED
    assert core.request("GET", "/experiments", token="fixed").status == 200
    core.close()


def test_a_reset_ends_all_random_tokens_and_keeps_the_key(core):
    old, key = core.seeded, core.lab.tokens.public_key
    child = offline(core, old.member_token, read_only=True)
    core.reset()
    assert core.lab.tokens.public_key == key
    for token in (old.member_token, old.viewer_token, old.partner_token, child):
        assert told(core, token) == UNAUTHORIZED
    assert core.request("GET", "/whoami").status == 200


def test_a_token_of_a_session_ends_with_it(core):
    end = EPOCH + timedelta(hours=8)
    with core.lab.store.transaction() as db:
        user = db.one("SELECT id FROM users")["id"]
        db.insert("portal_sessions", {"id": "s1", "user_id": user, "csrf": "x", "expires_at": 2.0**40})
    token = offline(core, minted(core, kind="oauth", session="s1", expires_at=end).token, read_only=True)
    who = core.lab.tokens.authenticate(f"Bearer {token}")
    assert who.expires_at == "2026-03-02T17:00:00.000000Z"
    with core.lab.store.transaction() as db:
        db.run("DELETE FROM portal_sessions")
    assert told(core, token) == UNAUTHORIZED
