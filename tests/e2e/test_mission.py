"""The mission, from designs in a folder to two measured rounds in a bucket, as one story on Prefect's own worker.

A schedule starts the loop. A person approves each round by clicks in Prefect's interface. The order is paid by machine,
the run is suspended without a process, and a signed delivery wakes it: no sweep runs here. The bucket is on a real S3 server.
"""

import os
import time
from uuid import uuid4

import pytest

from prefect_assay.archive import verify
from prefect_assay.blocks import S3Archive
from prefect_assay.books import check_orders
from prefect_assay.looping import LoopBook
from prefect_assay.runs.queries import read_runs, suspended_filter
from prefect_assay.runs.states import waits_for_input
from support.archive.swift_server import ACCESS_KEY, SECRET_KEY, s3_client
from support.browser.screenshots import CHROMIUM, reason_not_to_click
from support.command import command
from support.runs.world import EGFR, a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1800)]

LOOP = "mission"
BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"  # measured: K_D 9e-8 M
NEXT = BINDER[:-1] + "K"
PATIENCE = 300


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("mission"), stack_options={"runner": "worker"}) as made:
        yield made


@pytest.fixture
def archive(world, swift_endpoint):
    bucket = f"mission-{uuid4().hex[:8]}"
    s3_client(swift_endpoint).create_bucket(Bucket=bucket)
    block = S3Archive(
        bucket=bucket,
        prefix="team",
        endpoint_url=swift_endpoint,
        region="us-east-1",
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
    )
    block.save("mission", overwrite=True)
    return block


@pytest.fixture
def person(world, archive):  # a browser's loop would keep blocks from being saved
    if reason := reason_not_to_click():
        pytest.skip(reason)
    from support.browser.people import INTERFACES, Person

    someone = Person(CHROMIUM, world.stack.ui_url, INTERFACES["v2"])
    yield someone
    someone.close()


def start_loop(world, folder):
    """On a schedule, a start each minute; nothing is ordered before a person has approved it."""
    blocks = [
        "--credentials",
        "test-credentials",
        "--policy",
        "test-policy",
        "--archive",
        "assay-s3-archive/mission",
    ]
    paying = ["--payment", "x402-exact", "--wallet", "test-wallet", "--webhook", "test-webhook"]
    options = ["--target", EGFR, "--ask", "--cron", "* * * * *", "--timezone", "UTC"]
    done = command("loop", LOOP, str(folder), *options, *blocks, *paying, seconds=120, **world.stack.env)
    assert done.code == 0, done.out + done.err


def put(folder, name, residues):
    """A file that was complete a while ago, as one that is copied with its times."""
    path = folder / f"{name}.fasta"
    path.write_text(f">{name}\n{residues}\n")
    os.utime(path, (time.time() - 600, time.time() - 600))


def question(world):
    """The run that asks a person about the next round."""

    def asking():
        waiting = read_runs(world.api, suspended_filter(tags=[f"assay-loop:{LOOP}"]))
        return next((run for run in waiting if waits_for_input(run)), None)

    return eventually(asking, seconds=PATIENCE, what="the question about a round")


def test_two_rounds_from_a_schedule_to_the_bucket(world, archive, person):
    folder = world.folder / "designs"
    folder.mkdir()
    start_loop(world, folder)
    (first,) = [run for run in world.api.read_flow_runs() if run.name == f"loop {LOOP}"]
    world.until(first, "Completed", seconds=PATIENCE)  # there is nothing to measure yet

    for number, residues in enumerate((BINDER, NEXT), start=1):
        campaign = f"{LOOP}-round-{number}"
        put(folder, f"round-{number}", residues)

        asks = question(world)
        assert asks.auto_scheduled
        assert world.orders(campaign) == []
        assert person.click("approve", str(asks.id))["status"] == "ACCEPT"

        (experiment,) = world.suspended_children(
            campaign, seconds=PATIENCE
        )  # and no process of a flow is left
        (order,) = world.orders(campaign)
        (payment,) = world.settlements(campaign)
        assert payment["experiment_id"] == order.id

        world.advance(days=16)
        world.until(experiment, "Completed", seconds=PATIENCE)
        world.until(asks, "Completed", seconds=PATIENCE)  # woken by its last child
        delivered = [d["status"] for d in world.deliveries() if d["experiment_id"] == order.id]
        assert delivered
        assert set(delivered) == {200}

    done = command("cancel", LOOP, "--yes", seconds=120, **world.stack.env)
    assert done.code == 0, done.out + done.err
    store = archive.get_store()
    rounds = LoopBook(store, archive.prefix, LOOP).read().rounds
    assert [(r.fixed.name, r.ended.rows > 0) for r in rounds] == [("round-1", True), ("round-2", True)]
    assert rounds[0].ended.best_kd_M == pytest.approx(9e-8, rel=0.5)
    assert [finding for finding in verify(store, archive.prefix).findings if finding.is_damage] == []
    assert list(check_orders(store, archive.prefix)) == []
    assert person.wrong == []
