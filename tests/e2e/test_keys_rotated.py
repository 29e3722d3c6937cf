"""Signing keys that are rotated while a run waits. The laboratory's books are the judge.

The token's rotation is one of the stories (`tests/stories`), that of Prefect's own password is in `test_password`.
"""

import secrets

import httpx
import pytest

from prefect_assay.blocks import WebhookEndpoint
from support.runs.held import DESIGN
from support.runs.sweeps import swept
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(500)]

# Anvil's second published test key: worthless, too.
_NEXT_WALLET_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
_SIGNING_KEYS = "PREFECT_ASSAY_RECEIVER_SIGNING_KEYS"


def books(world, campaign):
    return len(world.orders(campaign)), len(world.settlements(campaign))


@pytest.fixture
def receiver_with(world):
    """Start the receiver again with these keys; the world's own at the end."""

    def restart(*keys):
        world.stack.stop_receiver()
        world.stack.env[_SIGNING_KEYS] = ",".join(keys)
        world.stack.start_receiver()

    yield restart
    restart(world.stack.signing_key)


def test_deliveries_of_orders_before_and_after_a_new_signing_key_wake_their_runs(world, receiver_with):
    old, new = world.stack.signing_key, secrets.token_urlsafe(32)
    block = world.webhook.model_copy()
    block.save("rotated-webhook", overwrite=True)
    before = world.experiment("signed-before", DESIGN, webhook=block)
    world.asleep(before, seconds=180)
    receiver_with(new, old)
    block = WebhookEndpoint(url=block.url, signing_key=new)
    block.save("rotated-webhook", overwrite=True)
    after = world.experiment("signed-after", DESIGN, webhook=block)
    world.asleep(after, seconds=180)
    world.advance(days=16)
    for run in (before, after):
        world.until(run, "Completed", seconds=180)
    for campaign in ("signed-before", "signed-after"):
        assert books(world, campaign) == (1, 1)


def test_a_run_whose_signing_key_the_receiver_does_not_have_any_more_is_woken_by_the_sweep(
    world, receiver_with
):
    run = world.experiment("signed-once", DESIGN)
    world.asleep(run, seconds=180)
    receiver_with(secrets.token_urlsafe(32))
    world.advance(days=16)

    def refused():
        metrics = httpx.get(f"{world.stack.receiver_url}/metrics").text
        return any(
            'reason="signature"' in line and not line.endswith(" 0.0") for line in metrics.splitlines()
        )

    eventually(refused, seconds=60, what="a refused delivery")
    assert "SIGNING_KEYS" in world.stack.logs["receiver"].read_text()
    assert world.run(run).state.name == "Suspended"
    assert str(run.id) in swept().woken
    world.until(run, "Completed", seconds=180)
    assert books(world, "signed-once") == (1, 1)
