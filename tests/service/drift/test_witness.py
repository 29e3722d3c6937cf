"""A `WitnessClient` sends reads and the cost estimate, and refuses every other call of the client before it is sent."""

from operator import attrgetter

import pytest

from prefect_assay.errors import AssayError, InvalidRequest
from prefect_assay.service.drift.witness import WitnessClient
from prefect_assay.service.models.service import WireWords
from support.client_calls import collect, list_client_calls
from support.services.fault_server import fault_server, reply


@pytest.fixture(scope="module")
def place():
    with fault_server() as server, WitnessClient(server.base_url, "token_x", words=WireWords()) as client:
        yield server, client


CALLS = [call for call in list_client_calls() if not call.method.endswith("_pdf")]  # a download reads


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.method)
def test_what_could_change_something_is_not_sent(call, place):
    server, client = place
    server.will(reply(404, {"error": "no"}))
    is_read = not call.operation.acts
    with pytest.raises(AssayError if is_read else InvalidRequest):
        collect(attrgetter(call.method)(client)(**call.arguments[0]))
    assert [request.method for request in server.seen] == ([call.operation.method] if is_read else [])


def test_an_answer_that_cannot_be_read_is_kept_and_a_refusal_is_not(place):
    server, client = place
    for answer in (reply(200, {"id": []}), reply(404, {"error": "no"})):
        server.will(answer)
        with pytest.raises(AssayError):
            client.experiments.get("11111111-2222-4333-8444-555555555555")
    (kept,) = client.exchanges
    assert (kept.operation, kept.body, kept.value) == ("GET /experiments/{}", {"id": []}, None)
