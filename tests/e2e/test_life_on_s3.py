"""The life of an experiment and of a campaign on a real S3 server, with each of its faults. The lab's books are the judge."""

import random
from uuid import uuid4

import boto3
import pytest
from prefect.client.schemas.objects import StateType

from prefect_assay.archive import verify
from prefect_assay.blocks import S3Archive
from prefect_assay.books import check_orders
from prefect_assay.runs.tags import RETRY_TAG, tag_values
from support.archive.metadata_service import metadata_service
from support.archive.s3_proxy import LOST, Refused, s3_proxy
from support.archive.swift_server import ACCESS_KEY, SECRET_KEY, s3_client
from support.runs.held import DESIGN
from support.runs.world import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture
def proxy(swift_endpoint):
    with s3_proxy(swift_endpoint) as proxy:
        yield proxy


def bucket_on(endpoint, *, keys=True):
    """A saved block with a bucket of its own."""
    name = f"life-{uuid4().hex[:8]}"
    s3_client(endpoint).create_bucket(Bucket=name)
    given = {"access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY} if keys else {}
    block = S3Archive(bucket=name, prefix="team", endpoint_url=endpoint, region="us-east-1", **given)
    block.save(name)
    return block


@pytest.fixture
def held(held, monkeypatch):
    """boto3 gives up early: the trouble outlives its retries."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    return held


def again(world, run):
    return tag_values(world.run(run).tags, RETRY_TAG)


def sound(archive):
    """Everything in it can be read again, and belongs together."""
    store = archive.get_store()
    damage = [finding for finding in verify(store, archive.prefix).findings if finding.is_damage]
    return damage + [finding for finding in check_orders(store, archive.prefix) if finding.is_damage]


EVERY = {
    "SlowDown": Refused(503, "SlowDown"),
    "ThrottlingException": Refused(400, "ThrottlingException"),
    "KMS": Refused(400, "KMS.ThrottlingException"),
    "TooManyRequests": Refused(429, "TooManyRequests"),
    "ExpiredToken": Refused(400, "ExpiredToken"),
    "RequestExpired": Refused(403, "RequestExpired"),
    "TokenRefreshRequired": Refused(400, "TokenRefreshRequired"),
    "InvalidAccessKeyId": Refused(403, "InvalidAccessKeyId"),
    "AccessDenied": Refused(403, "AccessDenied"),
    "NoSuchBucket": Refused(404, "NoSuchBucket"),
    "lost": LOST,
}


def test_every_fault_between_order_and_archive_is_waited_out(world, held, proxy):
    archive = bucket_on(proxy.address)
    name = archive.bucket
    run = held.experiment(name, archive=archive)
    assert held.execute(run).name == "Suspended"
    world.advance(days=16)
    for fault, decision in EVERY.items():
        proxy.decide = lambda _request, now=decision: now
        state = held.wake(run)
        assert state.name == "Suspended", (fault, state.message)
        assert again(world, run), fault
        assert SECRET_KEY not in state.message
        proxy.decide = lambda request, now=decision: now if request.uploads else None
        assert held.wake(run).name == "Suspended", fault
    proxy.decide = lambda _request: None
    assert held.wake(run).type == StateType.COMPLETED
    assert (len(world.orders(name)), len(world.settlements(name))) == (1, 1)
    assert sound(archive) == []


def test_a_metadata_service_that_fails_at_the_wake_ends_nothing(world, held, swift_endpoint, monkeypatch):
    with metadata_service(monkeypatch) as service:
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        archive = bucket_on(swift_endpoint, keys=False)
        name = archive.bucket
        run = held.experiment(name, archive=archive)
        service.failing = 99
        state = held.execute(run)
        assert state.type == StateType.FAILED  # they were never there
        assert "no S3 credentials now" in state.message
        assert world.orders(name) == []
        service.failing = 0
        run = held.experiment(name, archive=archive)
        assert held.execute(run).name == "Suspended"
        world.advance(days=16)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # another process
        service.failing = 4
        state = held.wake(run)
        assert (state.name, again(world, run)) == ("Suspended", ["1"])
        assert "no S3 credentials now" in state.message
        service.failing = 0
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        assert held.wake(run).type == StateType.COMPLETED
        assert (len(world.orders(name)), len(world.settlements(name))) == (1, 1)
        assert sound(archive) == []


def test_a_campaign_of_served_processes_lives_through_a_server_in_trouble(world, proxy):
    archive = bucket_on(proxy.address)
    name = archive.bucket
    draw = random.Random(36)

    def decide(_request):
        """One request in ten fails: boto3 repeats some, and runs wait for others.

        Drawn, because by a fixed period each execution would meet its failure at the same request, and never get further.
        """
        return draw.choice(list(EVERY.values())[:4]) if draw.random() < 0.1 else None

    designs = world.designs(name, DESIGN, DESIGN[:-1] + "A")
    run = world.campaign(designs, archive=archive, campaign_id=name, sequences_per_experiment=1)
    children = world.suspended_children(name, 2, seconds=300)
    proxy.decide = decide
    world.advance(days=16)

    def ended():
        for one in (*children, run):
            if again(world, one):
                world.api.resume_flow_run(one.id)  # as the sweep does, later
        state = world.run(run).state
        assert not state.is_failed(), state.message
        return state.is_completed() or None

    eventually(ended, seconds=600, what="a completed campaign")
    proxy.decide = lambda _request: None
    assert len(world.orders(name)) == 2
    assert sound(archive) == []
