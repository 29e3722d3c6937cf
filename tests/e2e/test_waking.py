"""How a suspended run comes back: by webhook, by the sweep, by itself. Real server, lab, receiver, processes."""

import pytest

from support.world import a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"  # measured: K_D 9e-8 M
OTHER = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("waking")) as made:
        yield made


def test_a_signed_webhook_wakes_the_run_and_the_last_child_wakes_the_campaign(world):
    designs = world.designs("webhook", BINDER, OTHER)
    run = world.campaign(designs, campaign_id="by-webhook", sequences_per_experiment=1)
    world.suspended_children("by-webhook", count=2)
    world.until(run, "Suspended")
    assert len(world.orders("by-webhook")) == 2

    world.advance(days=16)

    done = world.until(run, "Completed", seconds=90)
    assert "2 of 2 experiments have results" in done.state.message
    report = done.state.result()
    table = (world.folder / "archive" / "by-webhook" / "TABLE" / "v001" / "results.csv").read_text()
    assert report.table.endswith("results.csv")
    assert "webhook-1" in table
    woken_by = [d for d in world.deliveries() if d["status"] == 200]
    assert woken_by


def test_a_lost_webhook_is_made_up_for_by_the_sweep(world):
    designs = world.designs("lost", BINDER)
    run = world.campaign(designs, campaign_id="by-sweep")
    world.suspended_children("by-sweep")
    world.until(run, "Suspended")
    world.until(world.start("sweep", full_check_minutes=10_000), "Completed")  # sets the watermark

    world.stack.stop_receiver()
    try:
        world.advance(days=16)
        assert world.run(run).state.name == "Suspended"
        sweep = world.until(world.start("sweep", full_check_minutes=10_000), "Completed")
    finally:
        world.stack.start_receiver()

    assert len(sweep.state.result().woken) == 1
    world.until(run, "Completed", seconds=90)


def test_the_full_check_finds_what_the_feed_no_longer_tells(world):
    designs = world.designs("full", BINDER)
    run = world.campaign(designs, campaign_id="by-full-check")
    world.suspended_children("by-full-check")

    world.stack.stop_receiver()
    try:
        world.advance(days=16)
        # The watermark of this sweep is set behind everything that happened: only the full check can find it.
        sweep = world.until(world.start("sweep", full_check_minutes=0), "Completed")
    finally:
        world.stack.start_receiver()

    assert sweep.state.result().woken
    world.until(run, "Completed", seconds=90)


def test_results_that_come_between_the_check_and_the_suspension_are_not_missed(world):
    """The look is answered before the results exist, and its answer arrives after their webhook."""
    designs = world.designs("race", BINDER)
    # Holding back the terms of payment gives the time to aim at the look that follows it.
    world.fault("delay", method="POST", path="/api/v1/invoices/*/pay", seconds=5)
    world.stack.stop_receiver()  # nobody may wake the run but the run itself
    try:
        run = world.campaign(designs, campaign_id="race")
        (order,) = eventually(lambda: world.orders("race"), seconds=60, what="the order")
        look = f"/api/v1/experiments/{order.id}"
        world.fault("late_answer", method="GET", path=look, seconds=8)
        eventually(
            lambda: any(r["path"] == look and r["fault"] == "late_answer" for r in world.journal()),
            seconds=60,
            what="the slow look",
        )
        world.advance(days=16)
        done = world.until(run, "Completed", seconds=90)
    finally:
        world.stack.start_receiver()
    (child,) = world.children("race")
    history = world.history(child)
    assert history.index("Suspended") < history.index("Resuming") < history.index("Completed")
    assert done.state.result().rows > 0
