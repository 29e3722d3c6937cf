"""What befalls a campaign in two weeks, played with real processes and real kills.

Each story is a function that reads as its own description. The lab's journal and the archive judge every one: each design
is ordered once, each invoice paid once, every result archived, and the ledgers agree (`support/stories/judge.py`).
"""

import pytest
from prefect.states import Failed

from assay_lab.testing import LocalLab
from support.archive.s3_proxy import LOST, Refused
from support.stories.stack import apply_deployments
from support.stories.told import Stories
from support.stories.world import Story, another_home

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

CREATE = "lab POST /api/v1/experiments$"
PAY = r"lab POST /api/v1/invoices/\*/pay"

STORIES = Stories()
story = STORIES.of


@story()
def two_experiments_woken_by_webhooks(campaign: Story) -> None:
    """Nothing befalls it: one run orders both, waits, is woken, and reports."""
    run = campaign.start_and_wait()
    assert campaign.finish().id == run.id


# Killed


@story()
def killed_while_it_orders(campaign: Story) -> None:
    """The order is at the service when the process dies; its successor dies right before the second order is sent.

    The first is found. Whether the second has arrived can't be known, so it is sent again only after an answer.
    """
    campaign.kill_at(f"after {CREATE}")
    campaign.in_state(campaign.start(), "Crashed")
    assert len(campaign.orders()) == 1
    campaign.kill_at(f"before {CREATE}")
    campaign.sweep()
    assert len(campaign.runs("Crashed")) == 2
    campaign.sweep()
    assert len(campaign.runs()) == 2  # the pause before the next run grows
    campaign.sweep(later_minutes=6)
    assert len(campaign.orders()) == 1
    campaign.answer("approve")
    campaign.finish()
    assert len(campaign.runs()) == 3


@story(rail="mpp-spt", storage="s3")
def killed_between_order_and_payment(campaign: Story) -> None:
    """Both orders stand and nothing is paid."""
    campaign.kill_at(f"before {PAY}")
    campaign.in_state(campaign.start(), "Crashed")
    assert campaign.settlements() == []
    campaign.sweep()
    campaign.finish(sweeps=True)


@story(storage="s3")
def killed_while_it_archives(campaign: Story) -> None:
    """Results are written, and the process dies before the manifest that completes their version."""
    campaign.start_and_wait()
    campaign.kill_at("before s3 PUT .*manifest.json")
    campaign.pass_days(21)
    campaign.in_state(campaign.runs()[-1], "Crashed")
    campaign.finish(sweeps=True)


@story()
def its_worker_is_killed(campaign: Story) -> None:
    """The machine that executes it is gone: its run stays Running until its silence is noticed."""
    stack = campaign.world.stack
    with campaign.held_at(f"after {CREATE}") as reached:
        run = campaign.start()
        reached()
        stack.kill_runner()
    stack.start_runner()
    campaign.world.sweep()
    assert campaign.world.read(run).state.name == "Running"
    campaign.world.sweep(later_minutes=1)  # the last one may be long ago, and then silence tells nothing
    campaign.sweep(later_minutes=15)
    campaign.finish(sweeps=True)
    assert campaign.world.read(run).state.name == "Crashed"


@story()
def the_prefect_server_is_killed(campaign: Story) -> None:
    """While it orders: the execution goes on as soon as the server is back, or another run takes over."""
    stack = campaign.world.stack
    with campaign.held_at(f"after {CREATE}") as reached:
        campaign.start()
        reached()
        stack.kill_server()
    stack.start_server()
    campaign.rest()
    campaign.finish(sweeps=True)


# By hand


@story()
def its_run_is_deleted(campaign: Story) -> None:
    """The sweep starts another one, which orders nothing again."""
    campaign.world.api.delete_flow_run(campaign.start_and_wait().id)
    assert campaign.runs() == []
    campaign.sweep()
    campaign.finish()


@story(storage="s3")
def its_run_is_set_to_failed_by_hand(campaign: Story) -> None:
    """That does not stop the campaign: Cancel does."""
    run = campaign.start_and_wait()
    campaign.world.api.set_flow_run_state(run.id, Failed(message="by hand"), force=True)
    campaign.sweep()
    assert campaign.finish().id != run.id


@story()
def its_deployment_is_deleted_and_made_again(campaign: Story) -> None:
    """The run that waits for the old one is canceled when another one starts; that is no cancellation."""
    old = campaign.start_and_wait()
    deployment = campaign.world.api.read_deployment_by_name("campaign/assay-campaign")
    campaign.world.api.delete_deployment(deployment.id)
    campaign.world.sweep()  # a run that it wakes stays scheduled, and nobody executes it
    with campaign.world.here():
        apply_deployments()
    campaign.sweep()
    assert campaign.world.read(old).state.name == "Cancelled"
    assert campaign.state.stopped is None
    campaign.finish(sweeps=True)


@story()
def its_account_is_deleted_and_saved_again(campaign: Story) -> None:
    """The run that is woken meanwhile fails, and the sweep says why; with the account it starts another one."""
    campaign.start_and_wait()
    campaign.delete_block(campaign.account)
    campaign.pass_days(16)
    assert campaign.runs("Suspended") == []
    campaign.sweep()
    assert not campaign.is_over
    campaign.save_account()
    campaign.finish(sweeps=True)


@story()
def its_token_is_refused_and_replaced(campaign: Story) -> None:
    """Nothing can be read with a token that was revoked; the same organisation's next token goes on."""
    campaign.start_and_wait()
    campaign.save_credentials(token="assay_lab_revoked")
    campaign.pass_days(16)
    assert not campaign.is_over
    campaign.save_credentials()
    campaign.finish(sweeps=True)


@story(rounds=2)
def its_signing_key_is_replaced(campaign: Story) -> None:
    """What was ordered with the old key still wakes the run, and the next round is ordered with the new one."""
    run = campaign.start_and_wait()
    campaign.world.stack.replace_signing_key()
    campaign.save_webhook()
    assert campaign.finish(days=40).id == run.id
    assert {delivery["status"] for delivery in campaign.lab.deliveries()} == {200}


@story()
def its_account_is_edited_to_another_service(campaign: Story) -> None:
    """A campaign that was started at one service sends nothing to another one, whose ledger would be empty."""
    campaign.start_and_wait()
    with LocalLab() as elsewhere:
        campaign.save_credentials(base_url=elsewhere.base_url, token=elsewhere.token)
        campaign.pass_days(3)
        campaign.sweep()
        acting = [entry for entry in elsewhere.journal() if entry["method"] != "GET"]
        assert acting == []
        assert not campaign.is_over
        campaign.save_credentials()
    campaign.finish(sweeps=True)


@story()
def its_archive_is_unreachable_when_results_are_due(campaign: Story) -> None:
    """An archive that cannot be read is not an empty one: nothing is concluded before it is back."""
    campaign.start_and_wait()
    moved = campaign.folder.with_name("moved")
    campaign.folder.rename(moved)
    campaign.folder.write_text("a file in place of the folder")
    campaign.pass_days(16)
    campaign.sweep()
    assert len(campaign.orders()) == len(campaign.designs)
    campaign.folder.unlink()
    moved.rename(campaign.folder)
    campaign.finish(sweeps=True)


@story(storage="s3")
def its_bucket_is_unreachable_when_results_are_due(campaign: Story) -> None:
    """Every request is refused for a while; then the answers to some uploads are lost, which the bucket has kept."""
    bucket = campaign.put_proxy_before_bucket()
    campaign.start_and_wait()
    bucket.decide = lambda _request: Refused(503, "SlowDown")
    campaign.pass_days(16)
    campaign.sweep()
    assert len(campaign.orders()) == len(campaign.designs)
    bucket.times(5, LOST, lambda request: request.uploads)
    campaign.finish(sweeps=True)
    assert campaign.runs()[-1].state.is_completed()


@story()
def the_service_is_unreachable_when_results_are_due(campaign: Story) -> None:
    """Each look fails, and nothing is concluded from that."""
    campaign.start_and_wait()
    with campaign.lab.fault("status", status=503, count=100_000):
        campaign.pass_days(16)
        campaign.sweep(later_minutes=5)
        assert not campaign.is_over
    campaign.finish(sweeps=True)


@story()
def everything_is_switched_off_for_twenty_days(campaign: Story) -> None:
    """The laboratory works on, and its webhooks find nobody."""
    campaign.start_and_wait()
    stack = campaign.world.stack
    stack.stop_runner()
    stack.stop_receiver()
    stack.stop_server()
    campaign.lab.advance(days=20)
    stack.start_server()
    stack.start_receiver()
    stack.start_runner()
    campaign.sweep(later_minutes=25)
    campaign.finish(days=3, sweeps=True)


# Twice


@story()
def started_twice_at_once(campaign: Story) -> None:
    """Two runs of one campaign order side by side; the later one carries it on. Started once more, it orders nothing."""
    for _ in range(2):
        campaign.start()
    campaign.rest()
    assert {run.state.name for run in campaign.runs()} == {"CarriedOn", "Suspended"}
    campaign.finish()
    assert campaign.world.until_over(campaign.start()).state.is_completed()


@story()
def two_sweeps_at_once(campaign: Story) -> None:
    """Together they start one run for a campaign that has none."""
    campaign.world.api.delete_flow_run(campaign.start_and_wait().id)
    sweeps = [campaign.world.run_deployment("sweep") for _ in range(2)]
    for sweep in sweeps:
        campaign.world.until_over(sweep)
    campaign.rest()
    assert len(campaign.runs()) == 1
    campaign.finish()


@story()
def two_homes_and_one_is_lost(campaign: Story) -> None:
    """Another Prefect home on the same archive leaves the campaign alone, until a person has it adopted."""
    run = campaign.start_and_wait()
    with another_home(campaign.world, campaign.folder.with_name("other-home")) as other:
        there = campaign.at(other)
        other.sweep()
        assert there.runs() == []
        campaign.world.api.delete_flow_run(run.id)  # all that the first home knows of it
        other.command("adopt", "--archive", campaign.block_name, "--yes")
        other.sweep()
        assert len(there.runs()) == 1
        campaign.sweep()
        assert campaign.runs() == []
        there.finish(sweeps=True)


@pytest.mark.parametrize("name", STORIES)
def test_story(world, name):
    STORIES.play(world, name)
