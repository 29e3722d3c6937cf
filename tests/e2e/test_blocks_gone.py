"""Blocks that are deleted while a run waits: what it needs no more does not stop it, what it needs is asked for by name."""

import pytest
from prefect.client.schemas.actions import BlockDocumentUpdate

from prefect_assay.blocks import AssayCredentials, SpendingPolicy, WebhookEndpoint
from support.runs.sweeps import swept

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture
def blocks(world):
    """Copies of the installation's blocks, under names of their own, that a test may delete and save again."""

    def make(name):
        made = {
            "credentials": world.credentials.model_copy(),
            "policy": world.policy.model_copy(),
            "archive": world.archive.model_copy(),
            "wallet": world.wallet.model_copy(),
            "webhook": WebhookEndpoint(url="https://hooks.invalid/assay", signing_key="k" * 40),
        }
        for parameter, block in made.items():
            block.save(f"{name}-{parameter}", overwrite=True)
        return made

    return make


def delete(world, *blocks):
    for block in blocks:
        world.api.delete_block_document(block._block_document_id)


def attention(world, run):
    return [line for line in swept().attention if f"run {world.run(run).name} " in line]


def test_a_run_that_has_paid_needs_neither_wallet_nor_webhook(world, held, blocks):
    mine = blocks("paid")
    run = held.experiment("paid-blocks", **mine)
    assert held.execute(run).name == "Suspended"
    delete(world, mine["wallet"], mine["webhook"])
    world.advance(days=16)
    assert held.wake(run).is_completed(), held.state(run).message
    assert len(world.settlements("paid-blocks")) == 1


@pytest.mark.parametrize("parameter", ["credentials", "policy", "archive"])
def test_a_run_waits_for_a_block_that_it_needs_until_it_is_saved_again(world, held, blocks, parameter):
    name = f"needs-{parameter}"
    mine = blocks(name)
    run = held.experiment(name, **mine)
    assert held.execute(run).name == "Suspended"
    block = f"{mine[parameter].get_block_type_slug()}/{name}-{parameter}"
    delete(world, mine[parameter])
    world.advance(days=16)
    assert held.wake(run).name == "Suspended"
    (line,) = attention(world, run)
    assert f"waits for the block {block} of its parameter {parameter}" in line
    (artifact,) = world.artifacts(run, f"assay-block-{parameter}")
    assert block in artifact.data
    # Nothing wakes it meanwhile; a person's Resume changes nothing.
    assert held.wake(run).name == "Suspended"
    assert len(world.artifacts(run, "assay-block-")) == 1
    assert str(run.id) not in swept().woken

    mine[parameter].save(f"{name}-{parameter}", overwrite=True)
    assert str(run.id) in swept().woken
    assert held.execute(run).is_completed(), held.state(run).message
    assert len(world.orders(name)) == len(world.settlements(name)) == 1


def test_a_run_waits_for_a_block_that_was_saved_with_fields_that_are_refused(world, held, blocks):
    mine = blocks("refused")
    run = held.experiment("refused-fields", **mine)
    assert held.execute(run).name == "Suspended"
    policy = mine["policy"]
    document = world.api.read_block_document(policy._block_document_id)
    refused = {
        **document.data,
        "machine_payments": True,
        "rolling_cents": None,
    }  # as a form of the UI saves it
    change = BlockDocumentUpdate(
        data=refused, block_schema_id=document.block_schema_id, merge_existing_data=False
    )
    world.api.update_block_document(document.id, change)
    world.advance(days=16)
    assert held.wake(run).name == "Suspended"
    (artifact,) = world.artifacts(run, "assay-block-policy")
    assert "machine_payments needs rolling_cents" in artifact.data
    assert str(run.id) not in swept().woken

    policy.save("refused-policy", overwrite=True)
    assert str(run.id) in swept().woken
    assert held.execute(run).is_completed(), held.state(run).message
    assert len(world.orders("refused-fields")) == len(world.settlements("refused-fields")) == 1


def test_a_run_that_has_not_ordered_waits_for_its_wallet(world, held, blocks):
    mine = blocks("unpaid")
    mine["policy"] = SpendingPolicy(
        per_experiment_cents=1, per_campaign_cents=5_000_000, machine_payments=True, rolling_cents=50_000_000
    )
    mine["policy"].save("unpaid-policy", overwrite=True)
    run = held.experiment("unpaid-blocks", **mine)
    held.execute(run)
    delete(world, mine["wallet"])
    assert held.answer(run, decision="approve") == "ACCEPT"
    (line,) = attention(world, run)
    assert "assay-x402-wallet/unpaid-wallet of its parameter wallet" in line
    assert world.orders("unpaid-blocks") == []
    mine["wallet"].save("unpaid-wallet", overwrite=True)
    assert str(run.id) in swept().woken
    assert held.execute(run).name == "Suspended"
    assert len(world.settlements("unpaid-blocks")) == 1


def test_a_waiting_run_is_looked_after_with_a_block_that_was_saved_again(world, held, blocks):
    mine = blocks("again")
    run = held.experiment("again-blocks", **mine)
    held.execute(run)
    swept()
    delete(world, mine["credentials"])
    (line,) = (line for line in swept().problems if "again-credentials" in line)
    assert world.run(run).name in line
    assert "save it again under this name" in line
    mine["credentials"].save("again-credentials", overwrite=True)
    assert not any("again-credentials" in line for line in swept().problems)
    # Only now: another block of the organisation would wake it as well.
    world.advance(days=16)
    assert str(run.id) in swept().woken
    assert held.execute(run).is_completed(), held.state(run).message


def test_a_first_execution_without_a_block_says_which(world, held, blocks):
    mine = blocks("first")
    run = held.experiment("first-blocks", **mine)
    delete(world, mine["archive"])
    state = held.execute(run)
    assert state.is_failed()
    assert "parameter archive" in state.message


def test_a_token_of_another_organisation_orders_nothing_again(world, held, blocks):
    """The run that has ordered waits for its block, and one that is started with it fails; with the right one, both go on."""
    mine = blocks("moved")
    run = held.experiment("moved", **mine)
    assert held.execute(run).name == "Suspended"
    created = world.creates()
    other = AssayCredentials(
        base_url=mine["credentials"].base_url, token=world.stack.lab.seed("another").token
    )
    other.save("moved-credentials", overwrite=True)
    world.advance(days=16)
    waits = held.wake(run)
    assert waits.name == "Suspended"
    assert "the credentials belong to organisation" in waits.message
    again = held.execute(held.experiment("moved", **mine))
    assert again.is_failed()
    assert "the credentials belong to organisation" in again.message
    assert world.creates() == created

    mine["credentials"].save("moved-credentials", overwrite=True)
    right = held.experiment("moved", **mine)
    world.api.resume_flow_run(run.id)
    for one in (right, run):
        assert held.execute(one).is_completed(), held.state(one).message
    assert world.creates() == created
    assert len(world.orders("moved")) == len(world.settlements("moved")) == 1
