"""Every limit of contract 8 at its edge, on both sides."""

import re
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import httpx
import pytest

from lab_support.core import BY_LOT, PRICED, spec
from support.lab.organisations import plain
from support.rules.register import lab_holds
from support.rules.rows import LISTS, binning, many


@lab_holds("8.limit.default")
def test_a_page_has_fifty_rows(org):
    experiment_id = org.made(spec(sequences=many(101)))["experiment_id"]
    for path in ("/sequences", f"/experiments/{experiment_id}/sequences"):
        page = org.http.get(path).json()
        assert (page["count"], len(page["items"]), page["total"], page["offset"]) == (50, 50, 101, 0)
        assert org.http.get(path, params={"limit": 100}).json()["count"] == 100
        assert org.http.get(path, params={"limit": 100, "offset": 100}).json()["count"] == 1


@lab_holds("8.concentrations.default", "8.replicates.default")
def test_five_concentrations_and_three_replicates_are_the_default(org):
    def shown(specification):
        path = f"/experiments/{org.made(specification)['experiment_id']}"
        return org.http.get(path).json()["experiment_spec"]

    assert shown(spec())["antigen_concentrations"] == [1000.0, 316.2, 100.0, 31.6, 0.0]
    assert shown(spec())["n_replicates"] == 3
    assert "antigen_concentrations" not in shown(spec(experiment_type="screening"))
    assert "n_replicates" not in shown(binning(4))


def test_what_is_at_a_limit_is_taken(org):
    for name in LISTS:
        for page in ({"limit": 1}, {"limit": 100}, {"offset": 0}, {"sort": ",".join(["id"] * 8)}):
            attrgetter(name)(org.client)(**page)
    assert org.http.get("/experiments", params={"offset": 2**63 - 1}).status_code == 200
    org.made(webhook_url="https://example.org", webhook_secret="x" * 32)
    org.client.webhooks.create("https://example.org/x", secret="x" * 32)


@lab_holds("8.processing")
@pytest.mark.parametrize("attempt", range(3))
def test_the_laboratory_takes_five_to_fifteen_days(org, attempt):
    experiment_id = org.made(auto_accept_quote=True)["experiment_id"]

    def done():
        return org.http.get(f"/experiments/{experiment_id}").json()["status"] == "done"

    org.advance(days=4, hours=23)
    assert not done()
    org.advance(days=10, hours=2)
    assert done()


@lab_holds("8.cents")
@pytest.mark.parametrize("target", [PRICED, BY_LOT])
def test_money_is_whole_cents_without_tax(org, target):
    estimate = org.http.post(
        "/experiments/cost-estimate", json={"experiment_spec": spec(target_id=target["id"])}
    )
    breakdown = estimate.json()["breakdown"]
    cents = [
        breakdown["total_cents"],
        breakdown["assay"]["subtotal_cents"],
        breakdown["materials"]["subtotal_cents"],
    ]
    assert all(type(amount) is int for amount in cents)
    assert cents[0] == cents[1] + cents[2]
    org.quoted()
    quote = org.http.get(f"/quotes/{org.http.get('/quotes').json()['items'][0]['id']}").json()
    assert quote["total_cents"] == quote["subtotal_cents"] + quote["tax_cents"]
    assert quote["tax_cents"] == 0
    assert all(type(line["total_cents"]) is int for line in quote["line_items"])


@lab_holds("8.expiry.minted")
def test_a_minted_token_lives_for_ninety_days(lab, org):
    with plain(lab, org.lab.partner_token) as partner:
        body: dict = {"org": {"type": "new_org", "name": "Ninety"}, "user": {"email": f"a@{org.id}.example"}}
        answer = partner.post("/partners/mint-token", json=body)
        assert answer.status_code == 201
        now = datetime.fromisoformat(
            lab.sim("GET", "/clock", organization_id=answer.json()["organization_id"])["now"]
        )
        end = datetime.fromisoformat(answer.json()["expires_at"])
        assert timedelta(days=89, hours=23) < end - now <= timedelta(days=90)
        early = body | {
            "user": {"email": f"b@{org.id}-b.example"},
            "expires_at": (now + timedelta(days=3)).isoformat(),
        }
        assert (
            datetime.fromisoformat(partner.post("/partners/mint-token", json=early).json()["expires_at"])
            < end
        )
        assert now.tzinfo is UTC or now.utcoffset() == timedelta(0)


@lab_holds("8.expiry")
def test_the_portal_makes_tokens_for_four_spans(lab, org):
    with httpx.Client(
        base_url=lab.base_url, follow_redirects=True, transport=httpx.HTTPTransport(verify=False)
    ) as browser:
        browser.post(lab.sign_in_link(f"member@{org.lab.slug}.example"))
        page = browser.get("/portal/organization/settings/tokens/")
        csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)[1]

        def made(days):
            form = {"csrf": csrf, "name": f"for {days}", "role": "viewer", "days": days}
            return browser.post("/portal/organization/settings/tokens/create", data=form)

        for days in ("7", "30", "90", "365"):
            answer = made(days)
            assert answer.status_code == 200
            token = re.search(r"[A-Za-z0-9]+_[A-Za-z0-9_=-]{80,}", answer.text)[0]
            with plain(lab, token) as http:
                end = datetime.fromisoformat(http.get("/whoami").json()["token_expires_at"])
            lives = end - datetime.fromisoformat(org.lab.clock()["now"])
            assert timedelta(days=int(days)) - timedelta(minutes=1) < lives <= timedelta(days=int(days))
            assert token not in browser.get("/portal/organization/settings/tokens/").text  # shown once
        for days in ("", "0", "1", "8", "366", "-7", "week"):
            assert made(days).status_code == 400
