"""Keys that are rotated while a run waits: it goes on with the new one, or waits and says what to do.

The laboratory's books are the judge: nothing is ordered or paid twice. The token's rotation is in `test_blocks_edited`, that
of Prefect's own password in `test_password`.
"""

import secrets

import httpx
import pytest

from prefect_assay.blocks import S3Archive, WebhookEndpoint, X402Wallet
from support.archive.s3_proxy import Refused, s3_proxy
from support.archive.swift_server import ACCESS_KEY, NEXT_ACCESS_KEY, NEXT_SECRET_KEY, SECRET_KEY, s3_client
from support.runs.held import DESIGN
from support.runs.sweeps import swept
from support.runs.world import WALLET_KEY, eventually

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


def test_an_s3_key_that_is_deleted_before_the_block_has_the_new_one(world, held, swift_endpoint):
    name = f"rotated-{secrets.token_hex(4)}"
    s3_client(swift_endpoint).create_bucket(Bucket=name)
    with s3_proxy(swift_endpoint) as proxy:

        def block(access, secret):
            made = S3Archive(
                bucket=name,
                endpoint_url=proxy.address,
                region="us-east-1",
                access_key_id=access,
                secret_access_key=secret,
            )
            made.save(name, overwrite=True)
            return made

        run = held.experiment(name, archive=block(ACCESS_KEY, SECRET_KEY))
        assert held.execute(run).name == "Suspended"
        proxy.decide = lambda request: (
            Refused(403, "InvalidAccessKeyId")
            if f"Credential={ACCESS_KEY}/" in request.headers["authorization"]
            else None
        )
        world.advance(days=16)
        state = held.wake(run)
        assert state.name == "Suspended", state.message
        (artifact,) = world.artifacts(run, "assay-block-archive")
        assert f"s3-archive/{name}" in artifact.data
        assert SECRET_KEY not in artifact.data
        assert books(world, name) == (1, 1)
        block(NEXT_ACCESS_KEY, NEXT_SECRET_KEY)
        assert str(run.id) in swept().woken
        assert held.execute(run).is_completed(), held.state(run).message
    assert books(world, name) == (1, 1)


class Wallet:
    """The wallet block of a run, with a key that is replaced."""

    def __init__(self, world, name):
        self.world, self.name = world, f"{name}-wallet"

    def save(self, key=WALLET_KEY):
        given = self.world.wallet.model_dump(include={"networks", "assets", "pay_to"})
        block = X402Wallet(private_key=key, **given)
        block.save(self.name, overwrite=True)
        return block


def test_a_wallets_key_that_is_replaced_before_the_payment_pays_once(world, held):
    """A person is asked about the sum of all payments when the key is replaced."""
    wallet = Wallet(world, "replaced")
    policy = world.policy.model_copy(update={"rolling_cents": 1})
    policy.save("replaced-policy", overwrite=True)
    run = held.experiment("replaced", policy=policy, wallet=wallet.save())
    assert held.execute(run).name == "Suspended"
    assert books(world, "replaced") == (1, 0)
    wallet.save(_NEXT_WALLET_KEY)
    assert held.answer(run, decision="approve") == "ACCEPT"
    assert books(world, "replaced") == (1, 1)
    world.advance(days=16)
    assert held.wake(run).is_completed(), held.state(run).message
    assert books(world, "replaced") == (1, 1)


def test_a_payment_in_doubt_is_not_sent_again_with_another_key(world, held):
    """The first one, signed by the earlier key, may still settle: another key has another nonce."""
    wallet = Wallet(world, "doubt-key")
    world.fault(
        "reset", method="POST", path="/api/v1/invoices/*/pay", after=1
    )  # the first call asks for the terms
    run = held.experiment("doubt-key", wallet=wallet.save())
    held.execute(run)
    assert "may or may not have been made" in held.form(run)[0]
    wallet.save(_NEXT_WALLET_KEY)
    assert held.answer(run, decision="pay_again") == "ACCEPT"
    assert books(world, "doubt-key") == (1, 0)
    assert "The wallet block has another key now" in held.form(run)[0]
    wallet.save()
    assert held.answer(run, decision="pay_again") == "ACCEPT"
    assert books(world, "doubt-key") == (1, 1)
    world.advance(days=16)
    assert held.wake(run).is_completed(), held.state(run).message
    assert books(world, "doubt-key") == (1, 1)
