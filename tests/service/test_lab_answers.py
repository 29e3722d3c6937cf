"""Every call of the description, played over HTTP against the lab with each of its answers and refusals."""

import json

import pytest

from assay_lab.words import WireWords
from lab_support.core import advance, lab_core, order
from lab_support.described import find_places, find_strict_problems
from lab_support.hook_server import hook_server
from lab_support.sim_client import served
from prefect_assay.service.description import load_description
from support.description import find_problems, list_operations
from support.tour import Tour

EACH = pytest.mark.parametrize("operation", list_operations(), ids=lambda operation: operation.operation_id)
# A new experiment has no quote yet, and what fails in part is a refusal of the lab.
NEVER_ANSWERED = {"experiments.create": {"costs.expires_at", "costs.provider_quote_url", "error"}}


@pytest.fixture(scope="module", params=[WireWords(), WireWords("stripe", "Acme")], ids=["neutral", "foreign"])
def tour(request):
    """Once in the neutral words, and once in those of a deployment."""
    with served(words=request.param) as lab:
        played = Tour(lab)
        played.play()
        yield played


def test_the_lab_takes_and_answers_what_is_described_and_nothing_else(tour):
    assert sorted(set(tour.problems)) == []


@EACH
def test_every_answer_and_every_parameter_was_played(tour, operation):
    assert tour.statuses[operation.operation_id] == operation.statuses
    parameters = {part["name"] for part in operation.parameters if part["in"] == "query"}
    assert parameters <= tour.query[operation.operation_id]


@EACH
def test_every_field_was_sent_and_answered(tour, operation):
    name = operation.operation_id
    if operation.body_schema is not None:
        assert set(find_places(operation.body_schema)) - tour.sent[name] == set()
    described = set()
    for status in operation.statuses:
        schema = operation.answer_schema(status) if status < 400 else None
        described |= set(find_places(schema)) if schema is not None else set()
    assert described - tour.answered[name] == NEVER_ANSWERED.get(name, set())


def test_a_delivery_is_as_described():
    delivery = load_description()["webhooks"]["experiment_update"]["post"]
    schema = delivery["requestBody"]["content"]["application/json"]["schema"]
    with hook_server() as hook:
        core = lab_core(allow_http_webhooks=True)
        order(core, auto_accept_quote=True, webhook_url=hook.url)
        advance(core, days=16)
        core.close()
    assert len(hook.received) > 3
    for headers, body in hook.received:
        assert find_strict_problems(json.loads(body), schema) == []
        for header in delivery["parameters"]:
            assert find_problems(headers[header["name"]], header["schema"]) == ()
