"""Health, readiness and metrics: what they show, what they must not show, and at which paths."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from prefect_assay.campaigns.receiver import monitoring
from prefect_assay.campaigns.receiver.receiver import Receiver
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.errors import InputError
from prefect_assay.local.environment import free_ports
from prefect_assay.service.webhook_signature import derive_secret
from support.services.asgi import served
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, body_of, headers_of

OLD_KEY = "the-signing-key-before-the-rotation-01"
SECRET = derive_secret(SIGNING_KEY, ORDER_KEY)


class Prefect:
    """Replaces Prefect behind the receiver: present, away, or silent."""

    def __init__(self):
        self.asked = 0
        self.unreachable = self.silent = False
        self.resumes = 1

    async def wake(self, *_):
        if self.unreachable:
            raise ConnectionError
        return self.resumes

    async def ready(self):
        self.asked += 1
        while self.silent:  # noqa: ASYNC110 - set from another thread
            await asyncio.sleep(0.01)
        if self.unreachable:
            raise ConnectionError


@pytest.fixture
def prefect():
    return Prefect()


class Clock:
    """The time, for the module that looks at it; `ahead` seconds pass at once."""

    ahead = 0.0

    def monotonic(self):
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(monitoring, "time", clock)
    return clock


@contextlib.contextmanager
def running(prefect, **overrides):
    settings = ReceiverSettings(
        **{"signing_keys": (SIGNING_KEY, OLD_KEY), "ready_timeout_seconds": 0.3} | overrides
    )
    receiver = Receiver(settings, wake=prefect.wake, ready=prefect.ready)
    with (
        served(receiver.app) as url,
        httpx.Client(base_url=f"{url}/assay", trust_env=False, timeout=10) as client,
    ):
        yield client


def post(client, body, secret=SECRET, path=ORDER_KEY, **headers):
    return client.post(f"/{path}", content=body, headers=headers_of(body, secret) | headers).status_code


def samples(client):
    """Every sample, by name and labels."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def deliveries(client):
    """How many of which outcome, without those that never happened."""
    return {
        f"{labels['outcome']} {labels['reason']}".strip(): value
        for (name, *pairs), value in samples(client).items()
        if name == "assay_receiver_deliveries_total" and value
        for labels in [dict(pairs)]
    }


def test_ready_asks_prefect_and_health_does_not(prefect, clock):
    prefect.unreachable = True
    with running(prefect) as client:
        assert client.get("/ready").status_code == 503
        asked = prefect.asked
        assert client.get("/health").status_code == 200
        assert prefect.asked == asked == 1
        prefect.unreachable = False
        clock.ahead = 1.1
        assert client.get("/ready").status_code == 200


def test_ready_is_bounded_in_time_and_asks_no_second_question_meanwhile(prefect, clock):
    prefect.silent = True
    with running(prefect) as client:
        for _ in range(2):
            start = time.monotonic()
            assert client.get("/ready").status_code == 503
            assert time.monotonic() - start < 30
            clock.ahead += 1.1
        assert prefect.asked == 1
        prefect.silent = False


def test_readiness_is_asked_at_most_once_a_second_by_however_many(prefect):
    with running(prefect) as client:
        start = time.monotonic()
        answers = {client.get("/ready").status_code for _ in range(50)}
        assert answers == {200}
        assert prefect.asked <= 1 + (time.monotonic() - start)


def test_every_outcome_is_counted(prefect):
    with running(prefect, max_body_bytes=2000) as client:
        body = body_of()
        assert [post(client, body) for _ in range(2)] == [200, 200]
        prefect.resumes = 0
        assert post(client, body_of(), derive_secret(OLD_KEY, ORDER_KEY)) == 200
        prefect.unreachable = True
        assert post(client, body_of()) == 503
        stamp = datetime.now(UTC)
        refusals = {
            "too_old": body_of(timestamp=(stamp - timedelta(hours=1)).isoformat()),
            "ahead": body_of(timestamp=(stamp + timedelta(hours=1)).isoformat()),
            "malformed": body_of(event=7),
            "too_large": body_of(data_description="x" * 3000),
        }
        assert [post(client, body) for body in refusals.values()] == [401, 503, 400, 413]
        assert post(client, body, "f" * 64) == 401
        assert post(client, body, path="short") == 404
        assert client.post(f"/{ORDER_KEY}", content=body).status_code == 401
        assert post(client, body, **{"X-Service-Delivery-Id": ""}) == 401
        assert deliveries(client) == {
            "woken": 1,
            "repeated": 1,
            "nothing_waiting": 1,
            "not_now prefect_unreachable": 1,
            "not_now ahead": 1,
            "refused too_old": 1,
            "refused malformed": 1,
            "refused too_large": 1,
            "refused signature": 1,
            "refused path": 1,
            "refused unsigned": 1,
            "refused label": 1,
        }
        metrics = samples(client)
        assert metrics["assay_receiver_key_deliveries_total", ("key", "1")] == 3
        assert metrics["assay_receiver_key_deliveries_total", ("key", "2")] == 1
        assert metrics["assay_receiver_wake_seconds_count",] == 2
        assert metrics["assay_receiver_delivery_age_seconds_count",] == 4
        assert metrics["assay_receiver_delivery_age_seconds_bucket", ("le", "10.0")] == 4
        assert metrics["assay_receiver_waiting",] == 0


def test_metrics_contain_no_id_and_no_secret(prefect):
    with running(prefect) as client:
        bodies = [
            body_of(),
            body_of(data_update_type="chosen_by_the_sender"),
            body_of(event="chosen_by_the_sender"),
        ]
        for body in bodies:
            post(client, body)
            post(client, body, "f" * 64, **{"X-Chosen": "by_the_sender"})
        before = len(samples(client))
        for number in range(20):
            post(client, body_of(), "f" * 64, path=f"{number:020x}")
        text = client.get("/metrics").text
        assert len(samples(client)) == before  # however many senders
    data = [json.loads(body) for body in bodies]
    for hidden in (
        *(SIGNING_KEY, OLD_KEY, SECRET, ORDER_KEY, "by_the_sender"),
        *(one["delivery_id"] for one in data),
        *(one["data"][name] for one in data for name in ("experiment_id", "update_id", "organization_id")),
    ):
        assert hidden not in text


def test_a_key_missing_after_a_rotation_is_seen_in_metrics_and_log(prefect, caplog):
    with running(prefect, signing_keys=(SIGNING_KEY,)) as client:
        body = body_of()
        assert post(client, body, derive_secret(OLD_KEY, ORDER_KEY)) == 401
        assert deliveries(client) == {"refused signature": 1}
    assert "its signing key is missing from SIGNING_KEYS" in caplog.text


def test_a_flood_is_logged_sparingly(prefect, caplog):
    with running(prefect) as client:
        body = body_of()
        for _ in range(100):
            post(client, body, "f" * 64)
    assert 1 <= len([r for r in caplog.records if "is refused" in r.getMessage()]) < 10


def test_readiness_and_metrics_can_be_kept_off_the_public_path(prefect):
    with running(prefect, status=False) as client:
        assert [client.get(path).status_code for path in ("/health", "/ready", "/metrics")] == [200, 405, 405]
    settings = ReceiverSettings(signing_keys=(SIGNING_KEY,), status=False)
    receiver = Receiver(settings, wake=prefect.wake, ready=prefect.ready)
    with served(receiver.status_app) as url:
        codes = [
            httpx.get(url + path, trust_env=False).status_code for path in ("/health", "/ready", "/metrics")
        ]
        assert codes == [200, 200, 200]
        assert httpx.post(f"{url}/{ORDER_KEY}", content=b"{}", trust_env=False).status_code == 404


def test_the_command_serves_them_on_a_port_of_their_own(tmp_path):
    """And without an address of Prefect it is not ready, instead of waking in an ephemeral server without runs."""
    public, private = free_ports(2)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "prefect_assay.cli", "receiver", "--port", str(public)],
        env=env
        | {
            "PREFECT_ASSAY_RECEIVER_SIGNING_KEYS": SIGNING_KEY,
            "PREFECT_ASSAY_RECEIVER_STATUS_PORT": str(private),
            "PREFECT_ASSAY_RECEIVER_READY_TIMEOUT_SECONDS": "30",
            "PREFECT_HOME": str(tmp_path),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        with httpx.Client(transport=httpx.HTTPTransport(retries=12), timeout=60, trust_env=False) as client:
            paths = ("/health", "/metrics", "/ready")
            assert [client.get(f"http://127.0.0.1:{private}{p}").status_code for p in paths] == [
                200,
                200,
                503,
            ]
            codes = [client.get(f"http://127.0.0.1:{public}/assay{p}").status_code for p in paths]
            assert codes == [200, 405, 405]
            body = body_of()
            answer = client.post(
                f"http://127.0.0.1:{public}/assay/{ORDER_KEY}", content=body, headers=headers_of(body, SECRET)
            )
            assert answer.status_code == 503
    finally:
        process.send_signal(signal.SIGTERM)
        killer = threading.Timer(30, process.kill)
        killer.start()
        output, _ = process.communicate()
        killer.cancel()
    assert process.returncode == -signal.SIGTERM
    assert "Traceback" not in output
    assert not list(tmp_path.glob("*.db"))


FOREIGN = [
    ({"Origin": "http://127.0.0.1:8888"}, 403),
    ({"Origin": "null"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, 403),
    ({"Host": "evil.example:8100"}, 421),
]


@pytest.mark.parametrize(("foreign", "status"), FOREIGN)
def test_a_foreign_page_reads_neither_readiness_nor_metrics(foreign, status):
    settings = ReceiverSettings(signing_keys=(SIGNING_KEY,))
    with served(Receiver(settings, wake=Prefect().wake).app) as url:
        for path in ("ready", "metrics"):
            answer = httpx.get(f"{url}/assay/{path}", headers=foreign)
            assert answer.status_code == status
            assert "assay_receiver" not in answer.text


@pytest.mark.parametrize("host", ["10.1.2.3:8100", "[fd00::1]:8100", "localhost", "metrics.example:8100"])
def test_probes_and_scrapers_read_them(host):
    settings = ReceiverSettings(signing_keys=(SIGNING_KEY,), allowed_hosts=("metrics.example",))
    with served(Receiver(settings, wake=Prefect().wake).app) as url:
        for path in ("ready", "metrics", "health"):
            assert httpx.get(f"{url}/assay/{path}", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("headers", [{"Host": "hooks.example.org"}, {"Origin": "https://lab.example.org"}])
def test_a_signed_delivery_is_taken_under_any_name_and_an_unsigned_one_under_none(headers):
    settings = ReceiverSettings(signing_keys=(SIGNING_KEY,))
    with served(Receiver(settings, wake=Prefect().wake).app) as url:
        body = body_of()
        address = f"{url}/assay/{ORDER_KEY}"
        signed = httpx.post(address, content=body, headers={**headers_of(body, SECRET), **headers})
        assert (signed.status_code, signed.json()) == (200, {"resumed": 1})
        assert httpx.post(address, content=body, headers=headers).status_code == 401


def test_allowed_hosts_come_from_the_environment_and_are_checked(monkeypatch):
    monkeypatch.setenv("PREFECT_ASSAY_RECEIVER_SIGNING_KEYS", SIGNING_KEY)
    monkeypatch.setenv("PREFECT_ASSAY_RECEIVER_ALLOWED_HOSTS", "a.example, b.example")
    settings = ReceiverSettings.from_environment()
    assert settings.allowed_hosts == ("a.example", "b.example")
    with pytest.raises(InputError, match="not a host name"):
        Receiver(settings.model_copy(update={"allowed_hosts": ("https://a.example",)}))
