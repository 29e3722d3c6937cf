"""A receiver that ends in the middle of a delivery: nothing is lost, because the service sends again (contract 6)."""

import contextlib
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from assay_lab.control import deliveries as sim_deliveries
from assay_lab.kernel.settings import LabSettings
from assay_lab.service.core import LabCore
from lab_support.core import advance, order
from prefect_assay.local.environment import free_ports
from prefect_assay.service.webhook_signature import delivery_url, derive_secret
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, body_of, headers_of
from support.webhooks.receiver_process import Process

SECRET = derive_secret(SIGNING_KEY, ORDER_KEY)


@pytest.fixture
def receiver(tmp_path, request):
    made = Process(tmp_path, **getattr(request, "param", {}))
    yield made
    made.end()


@pytest.fixture
def core():
    made = LabCore(LabSettings(allow_http_webhooks=True))
    yield made
    made.close()


def ordered(core, receiver):
    """An experiment whose first update is on its way to the receiver; its id."""
    url = delivery_url(receiver.url, ORDER_KEY)
    return order(core, skip_draft=True, webhook_url=url, webhook_secret=SECRET).body["experiment_id"]


def statuses(core):
    return [row["status"] for row in sim_deliveries.list_attempts(core, 0)]


@pytest.fixture
def status_port(receiver):
    """The receiver with its second server, on a port of its own."""
    (port,) = free_ports(1)
    receiver.env["PREFECT_ASSAY_RECEIVER_STATUS_PORT"] = str(port)
    return port


def test_killed_between_the_delivery_and_its_answer_it_loses_nothing(core, receiver):
    receiver.start()
    receiver.hold()
    experiment_id = ordered(core, receiver)
    with ThreadPoolExecutor(1) as service:
        sending = service.submit(core.sender.deliver, core.seeded.organization_id)
        receiver.until(receiver.begun)
        receiver.process.send_signal(signal.SIGKILL)
        receiver.process.wait(10)
        sending.result(timeout=20)
    assert statuses(core) == [None]  # no answer: a network error, which the service repeats
    assert receiver.woken() == []

    receiver.release()
    receiver.start()  # it remembers nothing, and needs nothing
    advance(core, seconds=30)
    assert statuses(core) == [None, 200]
    assert receiver.woken() == [experiment_id]
    assert sim_deliveries.list_waiting(core) == []


def post(receiver):
    body = body_of(data_experiment_id="e-1")
    url = f"{receiver.url}/{ORDER_KEY}"
    return httpx.post(url, content=body, headers=headers_of(body, SECRET), timeout=30, trust_env=False)


def takes_connections(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 0)])
def test_one_signal_ends_both_servers_once_the_wake_up_is_over(receiver, status_port, sent, code):
    receiver.start()
    status = f"http://127.0.0.1:{status_port}/health"
    receiver.hold()
    with ThreadPoolExecutor(1) as service, httpx.Client(trust_env=False) as scraper:
        assert scraper.get(status).is_success  # and keeps its connection open, as Prometheus does
        sending = service.submit(post, receiver)
        receiver.until(receiver.begun)
        receiver.process.send_signal(sent)
        receiver.until(lambda: not takes_connections(receiver.port))
        assert httpx.get(status, trust_env=False).is_success  # it tells how the other one ends
        receiver.release()
        assert sending.result(timeout=20).json() == {"resumed": 1}
        assert receiver.process.wait(20) == code
    assert not takes_connections(status_port)
    assert "Traceback" not in receiver.read_output()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_ends_both_servers_at_once_where_nothing_is_in_progress(receiver, status_port, sent):
    receiver.start()
    receiver.until(lambda: takes_connections(status_port))
    receiver.process.send_signal(sent)
    receiver.process.wait(20)
    assert not takes_connections(receiver.port)
    assert not takes_connections(status_port)
    assert "Traceback" not in receiver.read_output()


@pytest.mark.parametrize(
    "receiver", [{"PREFECT_ASSAY_RECEIVER_WAKE_TIMEOUT_SECONDS": "1"}], indirect=True, ids=["short"]
)
def test_asked_to_end_it_never_acknowledges_what_it_could_not_wake(receiver):
    receiver.start()
    receiver.hold()
    with ThreadPoolExecutor(1) as service:
        sending = service.submit(post, receiver)
        receiver.until(receiver.begun)
        receiver.process.terminate()
        assert sending.result(timeout=20).status_code == 503
    receiver.process.wait(20)
    assert receiver.woken() == []


@pytest.mark.parametrize(
    "receiver", [{"PREFECT_ASSAY_RECEIVER_WAKE_TIMEOUT_SECONDS": "3"}], indirect=True, ids=["short"]
)
def test_ended_by_force_it_never_acknowledges(receiver):
    """A second SIGINT ends uvicorn at once, without an answer; from Python 3.12 on it waits for the connection."""
    receiver.start()
    receiver.hold()
    with ThreadPoolExecutor(1) as service:
        sending = service.submit(post, receiver)
        receiver.until(receiver.begun)
        receiver.process.send_signal(signal.SIGINT)
        receiver.until(lambda: "Shutting down" in receiver.read_output())
        receiver.process.send_signal(signal.SIGINT)
        with contextlib.suppress(
            httpx.TransportError
        ):  # a network error to the service, which it repeats as well
            assert sending.result(timeout=20).is_server_error
    receiver.process.wait(20)
    assert receiver.woken() == []
