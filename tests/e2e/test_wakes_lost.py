"""The soak in small, for every test run: no experiment is lost, whatever becomes of its webhooks. `make soak` is large.

Executed in the test's own process, on the installation that the other end-to-end tests of this process share.
"""

import httpx
import pytest

from prefect_assay.archive import verify
from prefect_assay.archive.read import versions
from prefect_assay.flows import sweep
from support.runs.world import eventually
from support.webhooks.deliveries import body_of, headers_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

FEED_ONLY = 10_000  # minutes until the next full check
TROUBLES = {
    "dropped": {"action": "drop", "probability": 1.0},
    "doubled": {"action": "double", "probability": 1.0},
    "reordered": {"action": "reorder", "count": 1},
    "forged": {"action": "bad_signature", "probability": 1.0},
}
DEAF = {"dropped", "forged"}


def test_every_experiment_is_archived_once_whatever_becomes_of_its_webhooks(world, held):
    runs = {}
    for trouble in TROUBLES:
        changes = {} if trouble == "doubled" else {"payment_method": "async_invoice", "wallet": None}
        runs[trouble] = held.experiment(f"soak-{trouble}", webhook=world.webhook, **changes)
        held.execute(runs[trouble])
    orders = {trouble: world.orders(f"soak-{trouble}")[0] for trouble in TROUBLES}
    for trouble, fault in TROUBLES.items():
        world.stack.lab.webhook_fault(experiment_id=orders[trouble].id, **fault)
        if trouble != "doubled":
            world.stack.lab.event("pay_invoice", orders[trouble].id)
    rest(world, held, runs)
    sweep(full_check_minutes=FEED_ONLY)  # sets the watermark
    rest(world, held, runs)
    world.stack.stop_receiver()
    world.stack.start_receiver()

    before = {trouble: world.run(run).state.id for trouble, run in runs.items()}
    assert [forge(world, order) for order in orders.values()] == [401] * len(orders)
    assert {trouble: world.run(run).state.id for trouble, run in runs.items()} == before

    world.advance(days=16)
    rest(world, held, runs)
    asleep = {trouble for trouble, run in runs.items() if world.run(run).state.name == "Suspended"}
    assert asleep == DEAF
    sweep(full_check_minutes=FEED_ONLY)
    rest(world, held, runs)

    store = world.archive.get_store()
    for trouble, run in runs.items():
        assert world.run(run).state.name == "Completed", trouble
        assert len(world.orders(f"soak-{trouble}")) == 1
        assert len(world.settlements(f"soak-{trouble}")) == 1
        found = versions(store, "", f"soak-{trouble}", orders[trouble].code)
        assert [version.complete for version in found] == [True]
        assert verify(store, f"soak-{trouble}").findings == ()
    told = [d for d in world.deliveries() if d["experiment_id"] == orders["forged"].id]
    assert {d["status"] for d in told if d["fault"] == "bad_signature"} == {401}


def rest(world, held, runs):
    """Execute what was woken, until all of it sleeps or has ended and nothing is on its way any more."""

    def quiet():
        woken = [run for run in runs.values() if world.run(run).state.is_scheduled()]
        for run in woken:
            held.execute(run)
        return not woken and not world.stack.lab.outbox()

    eventually(quiet, seconds=120, what="rest")


def forge(world, order):
    """What somebody sends who knows the address and the experiment, and not the secret."""
    body = body_of(data_experiment_id=order.id)
    address = f"{world.stack.receiver_url}/{order.name.rpartition('pa-')[2]}"
    return httpx.post(
        address, content=body, headers=headers_of(body, "no secret of ours"), timeout=30
    ).status_code
