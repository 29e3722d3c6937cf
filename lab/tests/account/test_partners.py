"""Partner routes: new customers, new users, and tokens for them (contract 4.6, mint-token rules)."""

from assay_lab.service import seeding
from lab_support.core import advance, refusal
from lab_support.tokens import offline

PATH = "/partners/mint-token"


def new_org(email="ada@acme.example", name="Acme Bio, Inc.", **fields):
    return {"org": {"type": "new_org", "name": name}, "user": {"email": email, "name": "Ada"}, **fields}


def existing_org(org_id, email="bob@acme.example", **fields):
    return {"org": {"type": "existing_org", "id": org_id}, "user": {"email": email}, **fields}


def mint(core, body, token=None):
    return core.request("POST", PATH, token=token or core.seeded.partner_token, json_body=body).body


def refused(core, body, token=None):
    return refusal(core, "POST", PATH, token=token or core.seeded.partner_token, json_body=body).status


def test_a_new_customer_gets_an_organisation_a_user_and_a_token(core):
    minted = mint(core, new_org(name="Ångström Labs"))
    assert set(minted) == {"id", "token", "user_id", "organization_id", "role", "expires_at"}
    assert minted["expires_at"] == "2026-05-31T09:00:00.000000Z"  # 90 days
    assert minted["token"].startswith("assay_angstromlabsE")
    who = core.request("GET", "/whoami", token=minted["token"]).body
    assert (who["user_id"], who["active_organization_id"]) == (minted["user_id"], minted["organization_id"])
    assert who["organizations"][0] | {"id": 0} == {
        "id": 0,
        "name": "Ångström Labs",
        "role": "member",
        "active": True,
    }
    # Its own data, its own clock.
    assert core.request("GET", "/experiments", token=minted["token"]).body["total"] == 0
    advance(core, days=100)
    assert core.request("GET", "/experiments", token=minted["token"]).status == 200
    rows = core.request("GET", "/tokens", token=minted["token"]).body["items"]
    assert [(row["id"], row["kind"]) for row in rows] == [(minted["id"], "minted")]


def test_further_users_join_an_organisation_that_the_partner_brought(core):
    first = mint(core, new_org())
    second = mint(
        core,
        existing_org(
            first["organization_id"], role="viewer", name="Bob's", expires_at="2026-04-01T00:00:00Z"
        ),
    )
    assert second["organization_id"] == first["organization_id"]
    assert second["user_id"] != first["user_id"]
    assert (second["role"], second["expires_at"][:10]) == ("viewer", "2026-04-01")
    who = core.request("GET", "/whoami", token=second["token"]).body
    assert who["organizations"][0]["role"] == "viewer"
    assert refusal(core, "POST", "/experiments", token=second["token"], json_body={}).status == 403


def test_an_address_that_has_an_account_is_409(core):
    first = mint(core, new_org())
    for email in ("ada@acme.example", "ADA@Acme.Example"):
        assert refused(core, existing_org(first["organization_id"], email)) == 409
    assert refused(core, new_org("member@lab.example")) == 409


def test_a_customer_whose_domain_is_known_is_not_new(core):
    assert refused(core, new_org("new@LAB.example")) == 409
    mint(core, new_org())
    assert refused(core, new_org("eve@acme.example")) == 409
    again = mint(core, new_org("eve@sub.acme.example"))
    assert again["token"].startswith("assay_acmebioinc2E")  # the same name takes another slug


def test_only_organisations_that_this_partner_brought_are_open_to_it(core):
    mine = mint(core, new_org())
    other = seeding.add_organization(core.lab, "other", "Other")
    for org_id in (
        core.seeded.organization_id,
        other.organization_id,
        "00000000-0000-4000-8000-000000000000",
    ):
        assert refused(core, existing_org(org_id)) == 403
    assert refused(core, existing_org(mine["organization_id"]), other.partner_token) == 403
    assert (
        mint(core, existing_org(mine["organization_id"].upper()))["organization_id"]
        == mine["organization_id"]
    )


def test_a_refused_request_leaves_nothing_behind(core):
    def ledgers():
        with core.lab.store.transaction() as db:
            return [
                db.one(f"SELECT count(*) AS n FROM {table}")["n"]
                for table in ("organizations", "users", "tokens")
            ]

    before = ledgers()
    assert refused(core, new_org("member@lab.example")) == 409
    assert refused(core, new_org(expires_at="2026-03-02T08:59:59Z")) == 400
    assert ledgers() == before


def test_it_takes_the_partner_role_and_nothing_less(core):
    for token in (core.seeded.member_token, core.seeded.viewer_token):
        assert refused(core, new_org(), token) == 403
    partner = core.seeded.partner_token
    for restrictions in (
        {"read_only": True},
        {"allowed_resources": ["experiment"]},
        {"allowed_actions": ["create"]},
    ):
        assert refused(core, new_org(), offline(core, partner, **restrictions)) == 403
    assert mint(core, new_org(), offline(core, partner, allowed_actions=["mint_token"]))["token"]
    # A partner may also do a member's work in its own organization.
    assert core.request("GET", "/experiments", token=partner).status == 200
