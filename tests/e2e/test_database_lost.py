"""A Prefect database that is restored to an earlier time or lost: the archive's log says what was ordered and paid.

The lab's books are the judge.
"""

import io

import pytest

from prefect_assay.blocks import SpendingPolicy
from prefect_assay.cli.archives.spending import show_spending
from prefect_assay.database import dump, load
from support.runs.world import _saved_blocks, a_world

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(500)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"
DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("restored")) as made:
        yield made


def away(world, change):
    """Stop everything that uses the database, change it, and start it all again."""
    world.stack.stop_runner()
    world.stack.stop_server()
    change(world.stack.database.embedded)
    world.stack.start_server()
    world.stack.start_runner()


def test_a_restored_and_a_lost_database_cost_no_second_order_and_no_cap(world, capsys):
    policy = SpendingPolicy(
        per_experiment_cents=2_000_000,
        per_campaign_cents=5_000_000,
        machine_payments=True,
        rolling_cents=30_000,
    )
    policy.save("test-tight", overwrite=True)
    before = io.BytesIO()
    dump(world.stack.database.embedded, before)

    run = world.experiment("restored", DESIGN, policy=policy)
    world.asleep(run, seconds=120)
    assert len(world.settlements("restored")) == 1
    creates = world.creates()

    # Restored to before the order: the server knows neither the run nor its payment.
    def put_back(database):
        before.seek(0)
        with database:
            load(database, before)

    away(world, put_back)
    again = world.experiment("restored", DESIGN, policy=policy)
    world.asleep(again, seconds=120)
    assert world.creates() == creates
    assert len(world.settlements("restored")) == 1

    # The rolling cap counts what was paid before the restore.
    other = world.experiment("after-restore", BINDER, policy=policy)
    world.asleep(other, seconds=120)
    asks = world.run(other).state.state_details.run_input_keyset
    assert asks, "the sum over the cap is a question to a person"
    assert world.settlements("after-restore") == []
    show_spending(world.folder / "archive", None, None, days=None, as_json=False)
    printed = capsys.readouterr().out
    assert "219.00 USD paid by machine in the last 30 days" in printed
    assert "after-restore" in printed

    # Lost during the wait: blocks are saved again, and the same campaign is started again.
    creates = world.creates()

    away(world, lambda database: database.remove())
    for name, block in _saved_blocks(world.stack, world.folder).items():
        setattr(world, name, block)
    third = world.experiment("restored", DESIGN)
    world.asleep(third, seconds=120)
    world.advance(days=16)
    world.until(third, "Completed", seconds=120)
    assert world.creates() == creates
    assert len(world.orders("restored")) == 1
    assert len(world.settlements("restored")) == 1
