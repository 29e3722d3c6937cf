"""Which requests wait for their turn where an operator has set a rate."""

import pytest

from prefect_assay import errors
from support.services.fault_server import fault_server, reply

EXPERIMENT = {"id": "e1", "code": "c-1", "status": "done", "created_at": "2026-11-21T12:00:00Z"}


@pytest.fixture
def turns(call):
    taken = []
    call.options["pace"] = lambda: taken.append("turn")
    return taken


def test_each_reading_request_waits_for_its_turn_and_so_do_its_repeats(call, server, turns):
    server.will(reply(503), reply(200, EXPERIMENT))
    call("experiments.get", "e1")
    assert len(turns) == len(server.seen) == 2


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("invoices.pay", ("i1", {"PAYMENT-SIGNATURE": "s"})), ("experiments.confirm_quote", ("e1",))],
)
def test_a_payment_and_an_acceptance_do_not_wait(call, server, turns, name, arguments):
    server.will(reply(503))
    with pytest.raises(errors.AssayError):
        call(name, *arguments)
    assert (turns, len(server.seen)) == ([], 1)


def test_a_file_waits_at_the_service_only(call, server, turns):
    with fault_server() as elsewhere:
        server.will(reply(307, location=f"{elsewhere.base_url}/package.zip"))
        elsewhere.will(reply(200, b"data", content_type="application/zip"))
        assert b"".join(call("documents.download", "/files/package.zip")) == b"data"
    assert turns == ["turn"]
