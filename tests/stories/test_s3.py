"""The archive is a bucket of a real S3 server. It refuses every request when results are due, and loses answers to uploads after that.

The run that archives is killed before the manifest that completes a version. An archive that can't be read isn't an empty one.
"""

import pytest

from support.archive.s3_proxy import LOST, Refused, s3_proxy
from support.stories.judge import judge

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def front(world, bare_swift_endpoint):
    """In front of the server: passes one upload at a time, refuses requests, and loses answers."""
    with s3_proxy(bare_swift_endpoint, one_upload_at_a_time=True) as proxy:
        world.use_s3(proxy.address)
        yield proxy


def test_a_bucket_refuses_requests_and_loses_answers(world, front):
    with world.story("bucket", storage="s3") as campaign:
        campaign.start_and_wait()
        front.decide = lambda _request: Refused(503, "SlowDown")
        campaign.pass_days(16)
        world.sweep()
        front.times(5, LOST, lambda request: request.uploads)
        assert len(campaign.orders()) == campaign.experiments
        assert not campaign.is_over
        campaign.kill_at("before s3 PUT .*manifest.json")
        for _ in range(3):  # the pauses between the looks of a run that could not reach its archive grow
            campaign.sweep(later_minutes=30)
        campaign.finish(sweeps=True)
        assert campaign.runs("Crashed")
        assert campaign.runs()[-1].state.is_completed()
        assert judge(campaign) == []
