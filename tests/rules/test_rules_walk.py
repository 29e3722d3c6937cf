"""Every call of the interface over HTTP: its parameters and fields are taken, its answers have every field, and it
refuses with every status that it is listed with. What the client sends and reads is held against the same data."""

import pytest

from prefect_assay.lab.api import ROUTES
from prefect_assay.lab.testing import LocalLab
from prefect_assay.service.client.drift.usage import USES
from prefect_assay.service.models.service import WireWords
from support.interface.calls import CALLS, Call
from support.interface.client import error_of, matches, method_of, reader_of, sent
from support.interface.walk import Walk
from support.lab.organisations import organisation

EACH = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.id)


FOREIGN = WireWords(provider="stripe", service="Acme")


@pytest.fixture(scope="module", params=["neutral words", "foreign words"])
def walk(lab, request):
    """Once in the neutral words, and once in those of a deployment."""
    if request.param == "neutral words":
        yield walked(lab)
        return
    options = ("--provider-word", FOREIGN.provider, "--service-word", FOREIGN.service)
    with LocalLab(options=options) as elsewhere:
        yield walked(elsewhere, FOREIGN)


def walked(lab, words=None):
    with organisation(lab) as org:
        made = Walk(org, lab, words)
        made.run()
        return made


@EACH
def test_the_lab_takes_every_parameter_and_field(walk: Walk, call: Call):
    seen = walk.seen[call.id]
    assert set(call.query.split()) <= seen.query
    assert walk.wire(call.sends) <= seen.sends


@EACH
def test_the_lab_answers_with_every_field(walk: Walk, call: Call):
    assert [status for status in walk.seen[call.id].statuses if status < 400]
    gets = walk.seen[call.id].gets
    assert walk.wire(call.gets) <= gets
    assert walk.words == WireWords() or not [name for name in gets if "provider" in name]


@EACH
def test_the_lab_refuses_with_every_status(walk: Walk, call: Call):
    assert set(map(int, call.refuses.split())) <= walk.seen[call.id].statuses


@EACH
def test_the_client_sends_every_parameter_and_field(call: Call):
    request = sent(call.id)
    assert matches(call.id, request.method, request.path)
    assert set(call.query.split()) <= request.query
    assert set(call.sends.split()) <= request.body


@EACH
def test_the_client_reads_every_field_and_every_refusal(call: Call):
    assert not [name for name in call.gets.split() if reader_of(call.id, name) is None]
    for status in map(int, call.refuses.split()):
        # The pay path's 402 and 409 are answers: who pays decides by them.
        assert error_of(call.id, status) or (call.path.endswith("/pay") and status in (402, 409))


def test_nothing_is_left_out():
    calls = {call.id for call in CALLS}
    assert [call for call in calls if method_of(call) is None] == []
    assert len({method_of(call) for call in calls}) == len(calls) == len(USES) + 1
    assert {f"{route.method} {route.path}" for route in ROUTES} == calls - {"GET /openapi.json"}
