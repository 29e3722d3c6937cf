"""Webhooks are forged, refused and lost, and the sweep finds what they would have told. No wake-up is lost.

Many campaigns at once: a third of all deliveries is dropped, others are doubled, reordered or badly signed; executions are killed
at random, and the receiver and Prefect's server are away for a while. `STORY_CAMPAIGNS` and `STORY_SEED` choose how many, and which.
"""

import os
import time
from contextlib import ExitStack

import httpx
import pytest

from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG, ORDER_TAG, tag_values
from support.stories.judge import judge
from support.webhooks.deliveries import body_of, headers_of

CAMPAIGNS = int(os.environ.get("STORY_CAMPAIGNS", "12"))
SEED = int(os.environ.get("STORY_SEED") or time.time())

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600 + 60 * CAMPAIGNS)]


def forge_deliveries(campaign, run):
    """The receiver's answers to deliveries that only lack what the laboratory alone knows."""
    stack = campaign.world.stack
    key = tag_values(run.tags, ORDER_TAG)[0]
    body = body_of(data_experiment_id=tag_values(run.tags, EXPERIMENT_TAG)[0])
    genuine = headers_of(body, "a secret that nobody has given out, ever")
    forged = {
        "wrong secret": (genuine, body),
        "no signature": ({name: genuine[name] for name in genuine if not name.endswith("Signature")}, body),
        "the path as secret": (headers_of(body, key), body),
        "another body": (headers_of(body_of(), stack.signing_key), body),
    }
    return {
        how: httpx.post(f"{stack.receiver_url}/{key}", content=content, headers=headers).status_code
        for how, (headers, content) in forged.items()
    }


def test_the_receiver_has_another_key_and_forged_webhooks_come(world):
    with world.story("unheard") as campaign:
        run = campaign.start_and_wait()
        before = len(campaign.lab.deliveries())
        world.stack.replace_signing_key(keep_old=False)
        campaign.pass_days(16)
        assert {delivery["status"] for delivery in campaign.lab.deliveries()[before:]} == {401}
        assert "SIGNING_KEYS" in world.stack.logs["receiver"].read_text(), "the log says what to do"
        assert set(forge_deliveries(campaign, run).values()) == {401}
        assert world.read(run).state.id == run.state.id, "the run was woken by a forgery"
        campaign.sweep()
        assert campaign.finish(sweeps=True).id == run.id
        assert judge(campaign) == []


FAULTS = {"bad_signature": 0.01, "drop": 0.3, "double": 0.1, "reorder": 0.1}
PARTS = ("receiver", "server", "receiver", "worker")


@pytest.mark.parametrize(
    ("count", "seed"), [(2, 5), pytest.param(CAMPAIGNS, SEED, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_many_campaigns_lose_webhooks_executions_and_servers(world, count, seed):
    rails = ("x402-exact", "async_invoice")
    with ExitStack() as ends:
        campaigns = [
            ends.enter_context(world.story(f"lost-{count}-{number}", rail=rails[number % 2]))
            for number in range(count)
        ]
        world.stack.replace_worker("--seed", str(seed), "--kill-share", "0.2", "--declare-crashed")
        ends.callback(world.stack.replace_worker)
        for campaign in campaigns:
            for action, share in FAULTS.items():
                campaign.lab.webhook_fault(action, probability=share, seed=f"{seed}-{action}")
            campaign.start()
        for step in range(12):
            if all(campaign.is_over for campaign in campaigns):
                break
            part = PARTS[step] if step < len(PARTS) else None
            with part_away(world.stack, part):
                for campaign in campaigns:
                    campaign.lab.advance(days=4)
            for campaign in campaigns:
                campaign.carry_on()
                campaign.lab.release()
            world.sweep(later_minutes=30)
            for campaign in campaigns:
                campaign.rest()
        assert {campaign.name: judge(campaign) for campaign in campaigns if judge(campaign)} == {}, (
            f"seed {seed}"
        )
        assert all(campaign.is_over for campaign in campaigns), f"seed {seed}"


def part_away(stack, part):
    """A part of the installation is killed or stopped, and started again at the end."""
    ends = ExitStack()
    match part:
        case "receiver":
            stack.stop_receiver()
            ends.callback(stack.start_receiver)
        case "server":
            stack.kill_server()
            ends.callback(stack.start_server)
        case "worker":
            stack.kill_runner()
            ends.callback(stack.start_runner)
    return ends
