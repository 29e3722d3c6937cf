"""Scripts without a deployment: each process has a Prefect home and server of its own, and polls.

One is killed, and another one goes on with its campaign; two processes order at the same moment; a loop runs in two of them.
"""

import threading
from contextlib import contextmanager

import pytest

from support.runs import here
from support.stories.judge import judge
from support.stories.world import AFFINITY, fasta

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory):
    return here.template(tmp_path_factory.mktemp("homes") / "empty")


@pytest.fixture
def run_script(tmp_path, empty_home):
    """Starts a script of a story's campaign, or of its loop."""
    homes = iter(range(100))

    def start(campaign, **changes):
        job = {
            "base_url": campaign.lab.base_url,
            "token": campaign.lab.token,
            "archive": str(campaign.folder),
            "campaign_id": campaign.name,
            "wallet": campaign.script_wallet(),
            "looks": 60,  # a script waits longer for another one's create than that is held back
            "designs": fasta(campaign.designs),
            "assay": AFFINITY,
        }
        return here.start(tmp_path / f"home-{next(homes)}", empty_home, **job | changes)

    return start


@contextmanager
def days_pass(campaign):
    """The laboratory works while the scripts poll."""
    ended = threading.Event()

    def work():
        while not ended.wait(1.0):
            campaign.lab.advance(days=0.5)

    days = threading.Thread(target=work)
    days.start()
    try:
        yield
    finally:
        ended.set()
        days.join()


ONE_ORDER = {"options": {"designs_per_experiment": 2}}


def test_a_script_is_killed_and_another_one_goes_on(world, run_script):
    """Meanwhile the experiment is given another name, which is not how the order is known."""
    with world.story("script", **ONE_ORDER) as campaign:
        first = run_script(campaign)
        world.until(campaign.settlements, "the payment")
        (order,) = campaign.orders()
        campaign.lab.event("stall_review", order["id"])
        campaign.lab.advance(days=20)
        here.kill(first)
        renamed = {"name": f"{campaign.name} in the laboratory"}  # can be changed during the review
        campaign.http.patch(f"/experiments/{order['id']}", json=renamed).raise_for_status()
        second = run_script(campaign)
        campaign.lab.event("release_review", order["id"])
        with days_pass(campaign):
            assert here.read_answer(second).get("rows")
        assert campaign.runs() == [], "Prefect's server of the installation has not heard of it"
        assert judge(campaign) == []


@pytest.mark.long
def test_two_scripts_order_at_the_same_moment(world, run_script):
    """Both creates are held back, so that each script has searched before either order is listed."""
    with world.story("two-scripts", **ONE_ORDER) as campaign:
        for _ in range(2):
            campaign.lab.fault("delay", method="POST", path="/api/v1/experiments", seconds=6)
        scripts = [run_script(campaign) for _ in range(2)]
        with days_pass(campaign):
            assert all(here.read_answer(script).get("rows") for script in scripts)
        (paid,) = campaign.settlements()
        states = [ledger.read() for ledger in campaign.ledgers()]
        (ordered,) = {state.ordered.experiment_id for state in states}
        assert paid["experiment_id"] == ordered
        surplus = {order["id"] for order in campaign.orders()} - {ordered}
        assert surplus <= {one for state in states for one in state.surplus}


@pytest.mark.long
def test_a_loop_in_two_scripts_measures_each_file_once(world, run_script):
    with world.story("loop-script", rounds=2) as campaign:
        source = campaign.write_rounds()
        scripts = [run_script(campaign, loop_id=campaign.name, source=str(source)) for _ in range(2)]
        with days_pass(campaign):
            assert [len(here.read_answer(script)["rounds"]) for script in scripts] == [2, 2]
        assert judge(campaign) == []
