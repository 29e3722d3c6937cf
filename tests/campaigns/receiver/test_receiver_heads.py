"""Request heads that do not come: they cost their connection, and keep no delivery out. Real sockets, a real process."""

import contextlib
import resource
import socket
import time

import httpx
import pytest

from prefect_assay.service.webhook_signature import derive_secret
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, body_of, headers_of
from support.webhooks.receiver_process import Process

SECRET = derive_secret(SIGNING_KEY, ORDER_KEY)
HALF = f"POST /assay/{ORDER_KEY} HTTP/1.1\r\nHost: receiver\r\n".encode()
WHOLE = b"GET /assay/health HTTP/1.1\r\nHost: receiver\r\n\r\n"
CONNECTIONS = 2000  # as many as the receiver takes


@contextlib.contextmanager
def running(folder, head_seconds):
    made = Process(folder, PREFECT_ASSAY_RECEIVER_HEAD_TIMEOUT_SECONDS=str(head_seconds))
    try:
        made.start()
        yield made
    finally:
        made.end()


@pytest.fixture
def many_files():
    """This process and the receiver may have all the connections open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"this machine allows {hard} open files")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connected(receiver, sent=b""):
    connection = socket.create_connection(("127.0.0.1", receiver.port), timeout=20)
    connection.sendall(sent)
    return connection


def is_closed(connection):
    """Whether the receiver closes it while the socket's time-out runs."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def deliver(receiver):
    body = body_of(data_experiment_id="e-1")
    url = f"{receiver.url}/{ORDER_KEY}"
    return httpx.post(url, content=body, headers=headers_of(body, SECRET), timeout=30, trust_env=False)


def test_half_sent_heads_keep_no_delivery_out_for_ever(tmp_path, many_files):
    with running(tmp_path, head_seconds=10) as receiver, contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(receiver, HALF)) for _ in range(CONNECTIONS)]
        assert deliver(receiver).status_code == 503  # which the service repeats

        def delivered():
            return deliver(receiver).is_success

        receiver.until(delivered, seconds=60)
        assert receiver.woken() == ["e-1"]
        assert all(is_closed(connection) for connection in held)


def test_a_connection_without_a_byte_and_one_that_drips_are_closed_as_well(tmp_path):
    with (
        running(tmp_path, head_seconds=1) as receiver,
        connected(receiver) as silent,
        connected(receiver, HALF) as dripping,
    ):
        dripping.settimeout(0.1)
        end = time.monotonic() + 20
        while not is_closed(dripping):
            assert time.monotonic() < end, "more bytes of the head have prolonged its time"
            with contextlib.suppress(ConnectionError):
                dripping.sendall(b"X")
        assert is_closed(silent)


def answered(connection):
    """Ask for the health on a connection that is kept."""
    connection.sendall(WHOLE)
    answer = b""
    while not answer.endswith(b"}"):
        more = connection.recv(1000)
        assert more, "the connection was closed"
        answer += more
    return answer.startswith(b"HTTP/1.1 200")


def test_between_two_requests_uvicorns_own_time_counts(tmp_path):
    with running(tmp_path, head_seconds=1.5) as receiver, connected(receiver) as kept:
        assert answered(kept)
        kept.settimeout(3)
        assert not is_closed(kept)  # twice as long as a head may take
        kept.settimeout(20)
        assert answered(kept)
        assert is_closed(kept)  # uvicorn closes it, after five seconds by default


def test_the_head_of_a_later_request_has_its_time_too(tmp_path):
    with running(tmp_path, head_seconds=1.5) as receiver, connected(receiver) as kept:
        assert answered(kept)
        kept.sendall(HALF)  # uvicorn would wait for the rest for ever
        assert is_closed(kept)


def test_a_body_may_take_longer_than_a_head(tmp_path):
    body = body_of(data_experiment_id="e-1")
    lines = [f"{name}: {value}" for name, value in headers_of(body, SECRET).items()]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode()
    with running(tmp_path, head_seconds=1.5) as receiver, connected(receiver, HALF + head) as slow:
        slow.sendall(body[:100])
        slow.settimeout(3)
        assert not is_closed(slow)
        slow.settimeout(20)
        slow.sendall(body[100:])
        assert slow.recv(1000).startswith(b"HTTP/1.1 200")
