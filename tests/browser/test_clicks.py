"""`make browser`: people click in both of Prefect's user interfaces while the machine is busy.

A campaign's four clicks: start the deployed run by its form, retry it after the service had refused everything, approve
its order by its form, resume it when the results are there. The lab's records are the judge.
"""

import os
import time
from collections import Counter
from contextlib import contextmanager
from threading import Event, Thread
from uuid import UUID

import pytest
from prefect.client.schemas.actions import DeploymentUpdate

from prefect_assay.blocks.block_references import as_parameter
from support.accounts import flow_parameters, save_account
from support.browser.load import loaded
from support.browser.screenshots import CHROMIUM
from support.browser.steps import asks, waits
from support.runs.world import EGFR, a_world, eventually

CLICKS = int(os.environ.get("ASSAY_BROWSER_CLICKS", "200"))
LOAD = int(os.environ.get("ASSAY_BROWSER_LOAD", "10"))
INTERFACES = ("v1", "v2")
DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
REFUSED = {"method": "POST", "path": "/api/v1/experiments/cost-estimate", "status": 403, "count": 100_000}

pytestmark = [pytest.mark.browser, pytest.mark.timeout(3600)]


@pytest.fixture
def world(tmp_path):
    with a_world(tmp_path) as made:
        yield made


@pytest.fixture
def deployment(world):
    """The deployed `campaign` with everything filled in but the campaign's name: each run asks for its price."""
    # Without a webhook nobody but the person wakes a run.
    account = flow_parameters(world.shared())["account"].model_copy(update={"webhook": None})
    filled = {
        "designs": f">design\n{DESIGN}\n",
        "assay": {"experiment_type": "affinity", "method": "bli", "target": EGFR},
        "account": as_parameter(save_account(account)),
    }
    served = world.api.read_deployment_by_name("campaign/assay-campaign")
    world.api.update_deployment(served.id, DeploymentUpdate(parameters=filled))
    return str(served.id)


@pytest.fixture
def tell(pytestconfig):
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    reporter = pytestconfig.pluginmanager.getplugin("terminalreporter")

    def say(line):
        with capture.global_and_fixture_disabled():
            reporter.write_line(line)

    return say


def test_nothing_that_a_person_clicks_fails(world, deployment, tell):
    from support.browser.people import Crowd

    per_interface = CLICKS // 4 // len(INTERFACES)
    campaigns = {
        f"{name}-{person}": [f"{name}-{n:03d}" for n in range(person, per_interface, 2)]
        for name in INTERFACES
        for person in (0, 1)
    }
    others: Counter[str] = Counter()
    loads: list[float] = []
    world.fault("status", **REFUSED)
    with (
        loaded(world.stack.api_url, LOAD, others),
        watched(loads),
        Crowd(CHROMIUM, world.stack.ui_url, campaigns) as crowd,
    ):
        eventually(lambda: os.getloadavg()[0] >= 0.9 * LOAD, seconds=300, what=f"a load of {LOAD}")
        loads.clear()
        began = time.monotonic()
        forms = {name: [(deployment, campaign) for campaign in mine] for name, mine in campaigns.items()}
        made = crowd.click("start", forms)
        runs = {name: [(run["id"],) for run in mine] for name, mine in made.items()}
        ids = [UUID(run) for mine in runs.values() for (run,) in mine]
        reached(world, ids, failed)
        tell(f"start: {len(ids)} clicks, and their runs are there after {time.monotonic() - began:.0f} s")
        world.stack.lab.clear_faults()
        replies = [crowd.click("retry", runs)]
        reached(world, ids, asks)
        tell(f"retry: {len(ids)} clicks, and their runs are there after {time.monotonic() - began:.0f} s")
        replies.append(crowd.click("approve", runs))
        reached(world, ids, waits)
        tell(f"approve: {len(ids)} clicks, and their runs are there after {time.monotonic() - began:.0f} s")
        world.advance(days=16)
        replies.append(crowd.click("resume", runs))
        reached(world, ids, completed)
        tell(f"resume: {len(ids)} clicks, and their runs are there after {time.monotonic() - began:.0f} s")
        seconds = time.monotonic() - began
    for line in figures(crowd.people, loads, others, seconds):
        tell(line)
    assert [f"{name}: {what}" for name, person in crowd.people.items() for what in person.wrong] == []
    assert {one["status"] for answers in replies for mine in answers.values() for one in mine} == {"ACCEPT"}
    assert sum(len(person.seconds) for person in crowd.people.values()) == per_interface * 4 * len(INTERFACES)
    for campaign in (campaign for mine in campaigns.values() for campaign in mine):
        assert (len(world.orders(campaign)), len(world.settlements(campaign))) == (1, 1), campaign
    assert set(others) == {"200"}
    assert sum(loads) / len(loads) >= 0.8 * LOAD


def failed(run):
    return run.state.name == "Failed"


def completed(run):
    return run.state.name == "Completed"


def reached(world, ids, check):
    """Wait until all of these runs have come that far."""

    def late():
        return [run for run in (world.api.read_flow_run(id_) for id_ in ids) if not check(run)]

    eventually(lambda: not late(), seconds=900, what=f"{len(ids)} runs after a click, by {check.__name__}")


@contextmanager
def watched(loads):
    """The machine's load, each second."""
    over = Event()

    def look():
        while not over.wait(1):
            loads.append(os.getloadavg()[0])

    thread = Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def figures(people, loads, others, seconds):
    yield f"load {min(loads):.1f} to {max(loads):.1f}, mean {sum(loads) / len(loads):.1f}; {seconds:.0f} s"
    yield f"API calls beside the clicks, by status: {dict(others)}"
    for name, person in people.items():
        if not person.seconds:  # below 16 clicks, the second user of an interface has none
            continue
        took = sorted(person.seconds)
        yield (
            f"{name}: {len(took)} clicks, median {took[len(took) // 2]:.1f} s, longest {took[-1]:.1f} s; "
            f"API answers by status: {dict(person.answers)}; errors within the page: {dict(person.page_errors)}"
        )
