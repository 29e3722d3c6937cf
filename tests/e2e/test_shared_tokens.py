"""A campaign paid by shared payment tokens, from the form to the report: real server, lab, issuer and processes."""

import pytest

from prefect_assay.blocks import SharedPaymentTokens, SpendingPolicy
from prefect_assay.models.report import CampaignReport
from support.runs.prefect_tables import dumped
from support.runs.world import UNPRICED, eventually
from support.services.issuer import ISSUER_KEY, issuer_server

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(420)]

DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"


@pytest.fixture
def issuer():
    with issuer_server() as running:
        yield running


def test_a_quoted_campaign_is_paid_once_by_a_token_for_exactly_its_invoice(world, issuer):
    tokens = SharedPaymentTokens(issuer_url=issuer.url, issuer_key=ISSUER_KEY)
    tokens.save("e2e-tokens", overwrite=True)
    receiver = world.stack.lab.mpp["network_id"]
    policy = SpendingPolicy(
        per_experiment_cents=2_000_000,
        per_campaign_cents=5_000_000,
        machine_payments=True,
        rolling_cents=50_000_000,
        network_ids=[receiver],
        accept_quotes=True,
    )
    policy.save("e2e-tokens", overwrite=True)
    run = world.campaign(
        world.designs("tokens", DESIGN),
        campaign_id="tokens",
        assay={"experiment_type": "affinity", "method": "bli", "target": UNPRICED},
        payment_method="mpp-spt",
        wallet=tokens,
        policy=policy,
    )
    world.suspended_children("tokens", seconds=120)
    assert issuer.asked == []  # there is no price yet

    world.advance(days=2)  # the quote comes, its webhook wakes the run, the run confirms and pays
    eventually(lambda: world.settlements("tokens"), seconds=120, what="the payment of the quoted order")
    world.suspended_children("tokens", seconds=60)
    world.advance(days=20)
    done = world.until(run, "Completed", seconds=120)

    (order,) = world.orders("tokens")
    (settled,) = world.settlements("tokens")
    invoice = world.service.find_invoice(order.id)
    assert (settled["payment_method"], settled["amount_cents"]) == ("mpp-spt", invoice.amount)
    (asked,) = issuer.asked
    assert (asked["max_amount"], asked["network_id"], asked["currency"]) == (invoice.amount, receiver, "usd")
    (child,) = world.children("tokens")
    receipts = world.artifacts(child, "assay-receipt-")
    assert "| rail | mpp-spt |" in receipts[-1].data
    assert world.result(done, CampaignReport).rows > 0
    assert holding(world, "spt_issued_", ISSUER_KEY) == []


def holding(world, *secrets):
    """Files of the installation, but for the lab's, that hold a secret: logs, Prefect's database, results, archive."""
    files = [p for p in world.folder.rglob("*") if p.is_file() and not p.name.startswith("lab.sqlite")]
    rows = dumped(world.stack.database.embedded).encode()
    assert b"tokens-0" in rows
    found = [(p.name, s) for p in files for s in secrets if s.encode() in p.read_bytes()]
    return found + [("the database", s) for s in secrets if s.encode() in rows]
