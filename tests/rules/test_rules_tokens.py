"""The rules of attenuation and of minting (contract 4.6), over HTTP and on both sides."""

from datetime import datetime, timedelta

import pytest

from lab_support.core import spec
from prefect_assay.errors import Conflict, Forbidden, Unauthorized
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.tokens import Attenuation, MintRequest, NewOrg
from support.lab.organisations import plain, refused
from support.rules.register import lab_holds

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def attenuate(http, token, *, parent=None, **attenuation):
    body = {"token": token, "name": "narrow", "attenuation": attenuation}
    return http.post(
        "/tokens/attenuate", json=body | ({"attenuated_parent_token_id": parent} if parent else {})
    )


def narrowed(http, token, **restrictions):
    answer = attenuate(http, token, **restrictions)
    assert answer.status_code == 201, answer.text
    assert set(answer.json()) == {"id", "token"}
    return answer.json()["token"]


def now(org):
    return datetime.fromisoformat(org.lab.clock()["now"])


@lab_holds("4.6.attenuate.capability")
def test_attenuating_takes_token_read(lab, org):
    no_tokens = narrowed(org.http, org.lab.token, allowed_resources=["experiment"])
    no_reading = narrowed(org.http, org.lab.token, allowed_actions=["list"])
    for token in (no_tokens, no_reading):
        with plain(lab, token) as http:
            refused(attenuate(http, org.lab.token, read_only=True), 403, "token:read")
        with AssayClient(lab.base_url, token) as client, pytest.raises(Forbidden):
            client.tokens.attenuate(org.lab.token, Attenuation(read_only=True), "x")
    # A viewer can hand out less than a viewer's rights.
    assert attenuate(org.viewer, org.lab.viewer_token, allowed_resources=["experiment"]).status_code == 201


LIST, READ, ESTIMATE, ORDER = ("GET", "/experiments"), ("GET", "/whoami"), "estimate", "order"


def tried(http, what):
    if what == ESTIMATE:
        return http.post("/experiments/cost-estimate", json={"experiment_spec": spec()})
    if what == ORDER:
        return http.post("/experiments", json={"experiment_spec": spec(), "name": "x"})
    return http.request(*what)


@lab_holds("4.6.attenuate.reduces")
@pytest.mark.parametrize(
    ("restriction", "allowed", "taken"),
    [
        ({"allowed_actions": ["list"]}, LIST, ESTIMATE),
        ({"allowed_resources": ["experiment"]}, LIST, ("GET", "/quotes")),
        ({"read_only": True}, ESTIMATE, ORDER),
        ({"non_destructive": True}, ORDER, ("DELETE", f"/webhooks/{UNKNOWN}")),
        ({"non_destructive": True}, LIST, ("POST", "/tokens/revoke")),
    ],
)
def test_a_restriction_takes_something_away(lab, org, restriction, allowed, taken):
    with plain(lab, narrowed(org.http, org.lab.token, **restriction)) as http:
        assert tried(http, allowed).is_success
        refused(tried(http, taken), 403)


@lab_holds("4.6.attenuate.reduces")
def test_organisations_expiry_and_payment_are_restricted_as_well(lab, org, stranger):
    with plain(lab, narrowed(org.http, org.lab.token, allowed_org_ids=[stranger.id])) as http:
        refused(http.get("/experiments"), 403)
    with plain(lab, narrowed(org.http, org.lab.token, allowed_org_ids=[org.id])) as http:
        assert http.get("/experiments").is_success
    with plain(lab, narrowed(org.http, org.lab.token, payment_policy=["x402-exact"])) as http:
        body = {"experiment_spec": spec(), "name": "x", "auto_accept_quote": True}
        refused(http.post("/experiments", json=body | {"payment": {"method": "mpp-spt"}}), 403)
        assert http.post("/experiments", json=body | {"payment": {"method": "x402-exact"}}).status_code == 200
    end = now(org) + timedelta(hours=1)
    short = narrowed(org.http, org.lab.token, expires_at=end.isoformat())
    with plain(lab, short) as http:
        assert http.get("/experiments").is_success
        org.advance(hours=2)
        refused(http.get("/experiments"), 401)
    assert org.http.get("/experiments").is_success
    with AssayClient(lab.base_url, short) as client, pytest.raises(Unauthorized):
        client.tokens.whoami()


@lab_holds("4.6.attenuate.inherits", "4.6.attenuate.readonly", "4.6.attenuate.parent")
def test_a_child_keeps_what_its_source_may_not(lab, org):
    first = attenuate(org.http, org.lab.token, read_only=True).json()
    widening = {"read_only": False, "allowed_actions": ["create", "list", "read"]}
    refused(attenuate(org.http, first["token"], **widening), 400, "attenuated_parent_token_id")
    refused(
        attenuate(org.http, first["token"], parent=UNKNOWN, **widening), 400, "attenuated_parent_token_id"
    )
    refused(
        attenuate(org.http, org.lab.token, parent=first["id"], **widening), 400, "attenuated_parent_token_id"
    )
    second = attenuate(org.http, first["token"], parent=first["id"], **widening).json()
    with plain(lab, second["token"]) as http:
        assert http.get("/experiments").is_success
        refused(tried(http, ORDER), 403)
        refused(http.post("/tokens/revoke"), 403)
    rows = {row["id"]: row for row in org.http.get("/tokens", params={"limit": 100}).json()["items"]}
    assert rows[second["id"]]["parent_token_id"] == first["id"]
    assert rows[second["id"]]["root_token_id"] == rows[first["id"]]["root_token_id"]
    assert not any(first["token"] in str(row) or second["token"] in str(row) for row in rows.values())


@lab_holds("4.6.attenuate.inherits")
def test_revoking_ends_the_family_at_once(lab, org):
    child = narrowed(org.http, org.lab.token, allowed_resources=["experiment"])
    grandchild_of_viewer = narrowed(org.viewer, org.lab.viewer_token, read_only=True)
    answer = org.http.post("/tokens/revoke")
    assert answer.json()["children_revoked"] == 1
    for token in (org.lab.token, child):
        with plain(lab, token) as http:
            refused(http.get("/experiments"), 401)
    with plain(lab, grandchild_of_viewer) as http:
        assert http.get("/experiments").is_success


@lab_holds("4.6.attenuate.holder")
def test_only_who_holds_a_token_attenuates_it(org, stranger):
    refused(attenuate(stranger.http, org.lab.token, read_only=True), 403)
    for token in (
        "",
        "nobody",
        org.lab.token[:-4],
        org.lab.token.replace("_", "-", 1),
        org.lab.token + "AAAA",
    ):
        refused(attenuate(org.http, token, read_only=True), 400, "token")
    record = org.http.get("/tokens").json()["items"][0]["id"]
    refused(attenuate(org.http, record, read_only=True), 400, "token")


def new_org(email, **fields):
    return {"org": {"type": "new_org", "name": "Customer"}, "user": {"email": email}, **fields}


@lab_holds("4.6.mint.role")
def test_minting_takes_the_partner_role(org):
    for http in (org.http, org.viewer):
        refused(http.post("/partners/mint-token", json=new_org(f"a@{org.id}.example")), 403)
    request = MintRequest(org=NewOrg(name="Customer"), email=f"a@{org.id}.example")
    org.reads(Forbidden, lambda client: client.tokens.mint(request))


@lab_holds("4.6.mint.new", "4.6.mint.existing", "4.6.mint.email", "7.409.email")
def test_a_partner_brings_organisations_and_users(lab, org, stranger):
    domain = f"{org.id}.example"
    with plain(lab, org.lab.partner_token) as partner, plain(lab, stranger.lab.partner_token) as rival:
        first = partner.post("/partners/mint-token", json=new_org(f"a@{domain}"))
        assert first.status_code == 201
        with plain(lab, first.json()["token"]) as customer:
            who = customer.get("/whoami").json()
        assert who["active_organization_id"] == first.json()["organization_id"] not in (org.id, stranger.id)
        assert who["user_id"]
        refused(partner.post("/partners/mint-token", json=new_org(f"a@{domain}")), 409, "a@")
        # A domain that has an organisation already cannot have another.
        refused(partner.post("/partners/mint-token", json=new_org(f"b@{domain}")), 409)
        there = {"type": "existing_org", "id": who["active_organization_id"]}
        more = partner.post("/partners/mint-token", json={"org": there, "user": {"email": f"b@{domain}"}})
        with plain(lab, more.json()["token"]) as colleague:
            assert colleague.get("/whoami").json()["active_organization_id"] == who["active_organization_id"]
        refused(
            partner.post("/partners/mint-token", json={"org": there, "user": {"email": f"b@{domain}"}}), 409
        )
        foreign = rival.post("/partners/mint-token", json={"org": there, "user": {"email": f"c@{domain}"}})
        assert foreign.status_code in (403, 404)
    with AssayClient(lab.base_url, org.lab.partner_token) as client, pytest.raises(Conflict):
        client.tokens.mint(MintRequest(org=NewOrg(name="Customer"), email=f"a@{domain}"))
