"""Every limit of contract 8 at its edge, on both sides."""

import re
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import httpx
import pytest

from lab_support.core import BY_LOT, PRICED, spec
from lab_support.hook_server import hook_server
from prefect_assay.service.client import filters
from prefect_assay.service.models.experiment import CreateRequest
from support.lab.organisations import plain, refused, typed
from support.rules.register import client_holds, lab_holds

LISTS = (
    "experiments.list", "targets.list", "quotes.list", "invoices.list", "updates.list", "results.list",
)  # fmt: skip
PATHS = ("/experiments", "/targets", "/quotes", "/invoices", "/updates", "/results", "/sequences")
AMINO = "ACDEFGHIKLMNPQRSTVWY"


def many(count):
    """That many different sequences."""
    return {f"s{n}": "MKV" + AMINO[n // 20] + AMINO[n % 20] for n in range(count)}


def binning(count):
    return spec(experiment_type="epitope_binning", method=None, sequences=many(count))


def request(specification, **fields):
    return CreateRequest(experiment_spec=typed(specification), name="limits", **fields)


@client_holds("8.limit", "8.offset", "7.400.parameter")
@pytest.mark.parametrize("name", LISTS)
def test_the_client_keeps_the_page_limits(org, name):
    for page in ({"limit": 0}, {"limit": 101}, {"limit": -1}, {"offset": -1}):
        org.refuses(lambda client, page=page: attrgetter(name)(client)(**page))
    for page in ({"limit": 1}, {"limit": 100}, {"offset": 0}):
        attrgetter(name)(org.client)(**page)


@lab_holds("8.limit", "8.offset", "7.400.parameter")
@pytest.mark.parametrize("path", PATHS)
def test_the_lab_keeps_the_page_limits(org, path):
    for page in (
        {"limit": 0},
        {"limit": 101},
        {"limit": -1},
        {"limit": "x"},
        {"limit": ""},
        {"limit": "1.0"},
    ):
        refused(org.http.get(path, params=page), 400, "limit")
    for page in ({"offset": -1}, {"offset": "x"}, {"offset": 2**63}):
        refused(org.http.get(path, params=page), 400, "offset")
    for page in ({"limit": 1}, {"limit": 100}, {"offset": 0}, {"offset": 2**63 - 1}):
        assert org.http.get(path, params=page).status_code == 200
    for query in ({"filter": "eq(nothing,1)"}, {"filter": "("}, {"sort": "desc("}, {"sort": "nothing"}):
        refused(org.http.get(path, params=query), 400, next(iter(query)))


@lab_holds("8.limit.default")
def test_a_page_has_fifty_rows(org):
    experiment_id = org.made(spec(sequences=many(101)))["experiment_id"]
    for path in ("/sequences", f"/experiments/{experiment_id}/sequences"):
        page = org.http.get(path).json()
        assert (page["count"], len(page["items"]), page["total"], page["offset"]) == (50, 50, 101, 0)
        assert org.http.get(path, params={"limit": 100}).json()["count"] == 100
        assert org.http.get(path, params={"limit": 100, "offset": 100}).json()["count"] == 1


@client_holds("8.replicates", "8.replicates.binning")
def test_the_client_keeps_the_replicates(org):
    for count in (0, 6, -1):
        org.refuses(lambda client, count=count: client.experiments.create(request(spec(n_replicates=count))))
    for count in (1, 5):
        org.client.experiments.create(request(spec(n_replicates=count)))
    org.refuses(lambda client: client.experiments.create(request(binning(4) | {"n_replicates": 3})))


@lab_holds("8.replicates", "8.replicates.binning", "8.replicates.default")
def test_the_lab_keeps_the_replicates(org):
    for count in (0, 6, -1):
        refused(org.post(spec(n_replicates=count)), 400, "n_replicates")
    for count in (1, 5):
        org.made(spec(n_replicates=count))
    refused(org.post(binning(4) | {"n_replicates": 3}), 400, "n_replicates")
    detail = org.http.get(f"/experiments/{org.made()['experiment_id']}").json()
    assert detail["experiment_spec"]["n_replicates"] == 3
    binned = org.http.get(f"/experiments/{org.made(binning(4))['experiment_id']}").json()
    assert "n_replicates" not in binned["experiment_spec"]


@client_holds("8.binning")
def test_the_client_keeps_the_binning_counts(org):
    for count in (1, 3, 5, 27, 29, 32):
        org.refuses(lambda client, count=count: client.experiments.create(request(binning(count))))
    for count in (4, 28):
        org.client.experiments.create(request(binning(count)))


@lab_holds("8.binning")
def test_the_lab_keeps_the_binning_counts(org):
    for count in (1, 3, 5, 27, 29, 32):
        refused(org.post(binning(count)), 400, "epitope_binning")
    for count in (4, 28):
        org.made(binning(count))


@lab_holds("8.concentrations.default")
def test_five_concentrations_are_the_default(org):
    detail = org.http.get(f"/experiments/{org.made()['experiment_id']}").json()
    assert detail["experiment_spec"]["antigen_concentrations"] == [1000.0, 316.2, 100.0, 31.6, 0.0]
    screening = org.made(spec(experiment_type="screening"))["experiment_id"]
    assert "antigen_concentrations" not in org.http.get(f"/experiments/{screening}").json()["experiment_spec"]


@client_holds("8.sort")
def test_the_client_sorts_by_eight_columns(org):
    org.refuses(lambda client: client.experiments.list(sort=",".join(["name"] * 9)))
    org.refuses(lambda _: filters.sorted_by(*[filters.asc("name")] * 9))
    org.client.experiments.list(sort=filters.sorted_by(*[filters.asc("name")] * 8))


@lab_holds("8.sort")
@pytest.mark.parametrize("form", ["name", "-name", "name:desc", "desc(text(name))"])
def test_the_lab_sorts_by_eight_columns(org, form):
    refused(org.http.get("/experiments", params={"sort": ",".join([form] * 9)}), 400, "8")
    assert org.http.get("/experiments", params={"sort": ",".join([form] * 8)}).status_code == 200


@client_holds("8.secret")
def test_the_client_takes_long_secrets(org):
    short = request(spec(), webhook_url="https://example.org", webhook_secret="x" * 31)
    assert "x" * 31 not in str(org.refuses(lambda client: client.experiments.create(short)))
    org.client.experiments.create(request(spec(), webhook_url="https://example.org", webhook_secret="x" * 32))


@lab_holds("8.secret")
def test_the_lab_takes_long_secrets(org):
    answer = org.post(webhook_url="https://example.org", webhook_secret="x" * 31)
    assert "x" * 31 not in refused(answer, 400, "webhook_secret")["error"]
    org.made(webhook_url="https://example.org", webhook_secret="x" * 32)
    refused(
        org.http.post("/webhooks", json={"url": "https://example.org/x", "secret": "x" * 31}), 400, "secret"
    )
    assert (
        org.http.post("/webhooks", json={"url": "https://example.org/x", "secret": "x" * 32}).status_code
        == 201
    )


@lab_holds("8.retries", "6.3.retried")
def test_a_delivery_is_tried_four_times_at_most(org):
    org.lab.plan(quote_minutes=30)  # no further update within the four minutes
    with hook_server() as hook:
        hook.statuses = [500, 503, 500, 502, 500]
        experiment_id = org.made(skip_draft=True, webhook_url=hook.url)["experiment_id"]
        org.advance(minutes=4)
        attempts = org.lab.deliveries(experiment_id=experiment_id)
        assert [row["attempt"] for row in attempts] == [1, 2, 3, 4]
        assert [row["outcome"] for row in attempts] == ["retry"] * 3 + ["failed"]
        assert len(hook.received) == 4
        assert len({headers["X-Service-Delivery-Id"] for headers, _ in hook.received}) == 4


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
