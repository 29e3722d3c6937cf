"""Processes are killed wherever it hurts: runs, worker, Prefect's server and its database. Another run takes over each time.

What was sent and not answered is looked for first. Where that can't show whether it has arrived, a person is asked.
"""

import re
import time

import pytest
from prefect.states import Failed

from assay_lab.testing import LocalLab
from support.crash.limits import END
from support.crash.story import points_between
from support.runs.world import EGFR, UNPRICED
from support.stories.judge import judge
from support.stories.world import AFFINITY, DESIGNS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CREATE = "lab POST /api/v1/experiments#"
PAY = r"lab POST /api/v1/invoices/\*/pay#"
MANIFEST = "before archive os.link .*manifest.json"


def test_runs_are_killed_while_they_order(world):
    """The first order is at the service when its run dies. The next run dies right before it sends the second order."""
    with world.story("killed-orders") as campaign:
        campaign.kill_at(f"after {CREATE}")
        campaign.in_state(campaign.start(), "Crashed")
        assert len(campaign.orders()) == 1
        campaign.kill_at(f"before {CREATE}")
        campaign.sweep()
        assert len(campaign.runs("Crashed")) == 2
        campaign.sweep()
        assert len(campaign.runs()) == 2, "the pause before the next run grows"
        campaign.sweep(later_minutes=6)
        assert len(campaign.orders()) == 1
        campaign.answer("approve")  # a person: the second order has not arrived
        campaign.finish()
        assert len(campaign.runs()) == 3
        assert judge(campaign) == []


def test_runs_are_killed_before_they_pay_and_before_they_have_archived(world):
    with world.story("killed-later", rail="mpp-spt") as campaign:
        campaign.kill_at(f"before {PAY}")
        campaign.in_state(campaign.start(), "Crashed")
        assert campaign.settlements() == []
        campaign.sweep()
        (run,) = campaign.runs("Suspended")
        assert len(campaign.settlements()) == campaign.experiments
        campaign.kill_at(MANIFEST)  # the results are written, and their version is not complete
        campaign.pass_days(21)
        campaign.in_state(run, "Crashed")
        campaign.finish(sweeps=True)
        assert judge(campaign) == []


def test_server_database_and_worker_are_killed(world):
    """A run whose worker is gone stays Running until its silence is noticed."""
    stack = world.stack
    with world.story("killed-machines") as campaign:
        with campaign.held_at(f"after {CREATE}") as reached:
            campaign.start()
            reached()
            stack.kill_server()
        stack.start_server()
        campaign.rest()
        campaign.sweep(later_minutes=6)
        (run,) = campaign.runs("Suspended")
        stack.kill_database()
        assert world.read(run).state.name == "Suspended"

        with campaign.held_at(MANIFEST) as reached:
            campaign.lab.advance(days=21)
            reached()
            stack.kill_runner()
        stack.start_runner()
        world.sweep()
        assert world.read(run).state.name == "Running"
        world.sweep(later_minutes=1)  # the last one may be long ago, and then silence tells nothing
        campaign.sweep(later_minutes=15)
        campaign.finish(sweeps=True)
        assert world.read(run).state.name == "Crashed"
        assert judge(campaign) == []


def test_runs_are_doubled_deleted_and_failed_by_hand(world):
    """None of it cancels the campaign; only Cancel does."""
    with world.story("by-hand") as campaign:
        for _ in range(2):
            campaign.start()
        campaign.rest()
        assert {run.state.name for run in campaign.runs()} == {"CarriedOn", "Suspended"}

        for run in campaign.runs():
            world.api.delete_flow_run(run.id)
        for sweep in [world.run_deployment("sweep") for _ in range(2)]:
            world.until_over(sweep)
        campaign.rest()
        (run,) = campaign.runs()

        world.api.set_flow_run_state(run.id, Failed(message="by hand"), force=True)
        campaign.sweep(later_minutes=6)
        assert campaign.finish().id != run.id
        assert world.until_over(campaign.start()).state.is_completed()
        assert judge(campaign) == []


def test_everything_it_needs_is_taken_away_for_a_while(world):
    """Another service, a revoked token, a deleted account, a silent service, a folder that is gone: nothing is concluded from it."""
    with world.story("taken-away") as campaign:
        campaign.start_and_wait()
        with (
            LocalLab() as elsewhere
        ):  # an account that is edited to another service, whose ledger would be empty
            campaign.save_credentials(base_url=elsewhere.base_url, token=elsewhere.token)
            campaign.pass_days(3)
            campaign.sweep(later_minutes=30)
            assert [entry for entry in elsewhere.journal() if entry["method"] != "GET"] == []
        campaign.save_credentials(token="assay_lab_revoked")
        campaign.pass_days(3)
        campaign.sweep(later_minutes=30)
        campaign.save_credentials()
        campaign.delete_block(campaign.account)
        campaign.pass_days(5)
        campaign.sweep(later_minutes=30)
        assert campaign.runs("Suspended") == []
        campaign.save_account()

        with campaign.lab.fault("status", status=503, count=100_000) as silent:
            campaign.pass_days(5)
            campaign.sweep(later_minutes=60)
            assert silent.used
        moved = campaign.folder.with_name("moved")
        campaign.folder.rename(moved)
        campaign.folder.write_text("a file in place of the folder")
        campaign.sweep(later_minutes=60)
        campaign.folder.unlink()
        moved.rename(campaign.folder)

        assert not campaign.is_over
        campaign.finish(sweeps=True)
        assert judge(campaign) == []


PARTS = 8


@pytest.fixture(scope="module")
def points(world):
    """What a campaign of one order reaches between its first request and the payment, by its target."""
    recorded = {}

    def record(target):
        if target not in recorded:
            with one_order(world, f"clean-{len(recorded)}", target) as campaign:
                run = campaign.start_and_wait()
                campaign.finish()
                traces = points_between(campaign.executions(run))
            recorded[target] = [(name.replace(campaign.name, "NAME"), before) for _, (name, before) in traces]
        return recorded[target]

    return record


def one_order(world, name, target):
    """A campaign of one design."""
    return world.story(
        name, designs={"one": DESIGNS["one"]}, options={"assay": {**AFFINITY, "target": target}}
    )


@pytest.mark.crash
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("target", [EGFR, UNPRICED], ids=["priced", "quoted"])
def test_a_run_is_killed_at_every_point_until_it_has_paid(world, points, target, part, record_property):
    """Every other time two runs of the campaign race, and the first of them that comes there dies."""
    asked = list(enumerate(points(target)))[part::PARTS]
    began, played, killed, missed = time.monotonic(), 0, 0, 0
    for number, (name, before) in asked:
        if time.time() > END:
            break
        with one_order(world, f"point-{number}-{target[6:9]}".lower(), target) as campaign:
            campaign.kill_at(f"^{re.escape(name.replace('NAME', campaign.name))}#{before}$")
            for _ in range(1 + number % 2):
                campaign.start()
            for _ in range(8):
                campaign.carry_on()
                if campaign.is_over:
                    break
                campaign.lab.advance(days=6)
                campaign.sweep(later_minutes=30)
            killed += len(campaign.runs("Crashed"))
            missed += campaign.remove_traps()  # Prefect's threads may take one request more or less
            assert judge(campaign) == [], f"killed at {name}, reached {before} times before"
        played += 1
    if not played:
        pytest.skip("the time is up")
    record_property("crash", (played, len(asked), killed, 0, 0, time.monotonic() - began))
    assert killed >= missed, f"{missed} points were not reached, and {killed} were"
