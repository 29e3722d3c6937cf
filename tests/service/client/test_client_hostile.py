"""Answers that never end, or that are made to break a client, over real connections."""

import json
import threading

import pytest

from prefect_assay import errors
from prefect_assay.service.client.http.deadline import BYTES_PER_SECOND_MIN, Pace
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import ExperimentSpec
from support.services.fault_server import gzip_bomb, hang, raw, reply

HEAD = b"HTTP/1.1 200 X\r\n"
JSON = HEAD + b"content-type: application/json\r\n"
CHUNKED = JSON + b"transfer-encoding: chunked\r\n\r\n"
ORDER = CreateRequest(
    experiment_spec=ExperimentSpec.model_validate(
        {"experiment_type": "expression", "sequences": {"a": "MKT"}}
    ),
    name="pa-1",
)
SLOW = {
    "nothing": hang(30),
    "head": raw(HEAD, then=b"x", pause=0.05),
    "first line": raw(then=b"H", pause=0.05),
    "header lines": raw(HEAD, then=b"x: y\r\n", pause=0.05),
    "informational answers": raw(then=b"HTTP/1.1 103 X\r\n\r\n", pause=0.05),
    "body": raw(JSON + b"\r\n", then=b" ", pause=0.05),
    "chunks": raw(CHUNKED, then=b"1\r\n \r\n", pause=0.05),
    "promised length": raw(JSON + b"content-length: 1000000\r\n\r\n", then=b" ", pause=0.05),
}
BROKEN = {
    "giant header": raw(HEAD, then=b"x" * 65536),
    "header lines without end": raw(HEAD, then=b"x: y\r\n" * 1000),
    "informational answers without end": raw(then=b"HTTP/1.1 103 X\r\n\r\n" * 1000),
    "trailers without end": raw(CHUNKED, b"0\r\n", then=b"x: y\r\n" * 1000),
    "body without end": raw(JSON + b"\r\n", then=b" " * 65536),
    "chunks without end": raw(CHUNKED, then=b"10000\r\n" + b" " * 65536 + b"\r\n"),
    "too short": raw(JSON + b'content-length: 2000\r\n\r\n{"id": "e1"}'),
    "impossible length": raw(JSON + b"content-length: -5\r\n\r\n{}"),
    "two lengths": raw(JSON + b"content-length: 2\r\ncontent-length: 9\r\n\r\n{}"),
    "chunk of no size": raw(CHUNKED, b"zz\r\n{}\r\n"),
    "gzip bomb": reply(200, gzip_bomb(256), content_encoding="gzip"),
    "packed twice": reply(200, gzip_bomb(2), content_encoding="gzip, gzip"),
    "no gzip": reply(200, b"{}", content_encoding="gzip"),
    "deep lists": reply(200, b"[" * 200_000),
    "deep and closed": reply(200, b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "redirect to itself": reply(302, b"", location="/api/v1/experiments/e1"),
    "redirect to nowhere": reply(302, b"", location="https://[::1"),
    "a giant integer": reply(200, b'{"id": ' + b"9" * 1_000_000 + b"}"),
}


@pytest.fixture
def bounded(call):
    """A limit of two seconds for a whole answer."""
    call.options |= {"timeout": 0.2, "retries": 0}
    return call


def in_time(call):
    """The error of a call that must end by itself; a wall clock is not asked, a call without an end is."""
    outcomes = []

    def go():
        try:
            outcomes.append(call())
        except Exception as error:  # noqa: BLE001 - any error is looked at
            outcomes.append(error)

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    thread.join(60)
    assert outcomes, "the call did not end"
    return outcomes[0]


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_answer_ends_at_the_limit_of_the_whole(bounded, server, name):
    server.will(SLOW[name])
    error = in_time(lambda: bounded("experiments.get", "e1"))
    assert isinstance(error, errors.ServiceUnavailable), error
    assert "time limit" in str(error)


@pytest.mark.parametrize("name", SLOW)
def test_an_order_whose_answer_is_slow_has_an_unknown_outcome(bounded, server, name):
    server.will(SLOW[name])
    assert isinstance(in_time(lambda: bounded("experiments.create", ORDER)), errors.OrderOutcomeUnknown)
    assert server.methods == ["POST"]


@pytest.mark.parametrize("name", BROKEN)
def test_a_hostile_answer_is_an_error_of_the_tree(bounded, server, name):
    server.will(BROKEN[name])
    error = in_time(lambda: bounded("experiments.get", "e1"))
    assert isinstance(error, errors.ServiceUnavailable | errors.UnexpectedAnswer | errors.AccessError), error
    assert len(str(error)) <= errors.MESSAGE_MAX


@pytest.mark.parametrize("name", BROKEN)
def test_an_order_with_a_hostile_answer_has_an_unknown_outcome(bounded, server, name):
    server.will(BROKEN[name])
    error = in_time(lambda: bounded("experiments.create", ORDER))
    assert isinstance(error, errors.OrderOutcomeUnknown), repr(error)
    assert server.methods == ["POST"]


def test_a_file_that_trickles_is_broken_off(bounded, server):
    server.will(raw(HEAD + b"\r\n", then=b"x", pause=0.05))
    error = in_time(lambda: bounded("documents.download", f"{server.base_url}/file"))
    assert isinstance(error, errors.ServiceUnavailable)
    assert "time limit" in str(error)


def test_a_file_whose_redirects_do_not_end_is_not_fetched(bounded, server):
    server.will(*[reply(302, b"", location=f"/file{n}") for n in range(50)])
    error = in_time(lambda: bounded("documents.download", f"{server.base_url}/file"))
    assert isinstance(error, errors.AccessError)
    assert len(server.seen) < 10


def test_a_large_file_has_more_time_than_a_small_one():
    now = [0.0]
    pace = Pace(10.0, clock=lambda: now[0])
    assert pace.left(0) == 10.0
    now[0] = 100.0
    assert pace.left(0) < 0
    assert pace.left(BYTES_PER_SECOND_MIN * 95) == 5.0


def test_an_answer_in_time_is_read(bounded, server):
    body = {"id": "e1", "code": "c-1", "status": "done", "created_at": "2026-11-21T12:00:00Z"}
    server.will(raw(JSON + b"\r\n" + json.dumps(body).encode()))
    assert bounded("experiments.get", "e1").id == "e1"
