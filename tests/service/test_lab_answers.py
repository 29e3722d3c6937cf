"""Every call of the description, played over HTTP against the lab with each of its answers and refusals."""

import pytest

from assay_lab.words import WireWords
from lab_support.described import find_places
from lab_support.sim_client import served
from support.description import list_operations
from support.tour import Tour

EACH = pytest.mark.parametrize("operation", list_operations(), ids=lambda operation: operation.operation_id)
# A new experiment has no quote yet, and what fails in part is a refusal of the lab.
NEVER_ANSWERED = {"experiments.create": {"costs.expires_at", "costs.provider_quote_url", "error"}}


@pytest.fixture(scope="module")
def tour():
    """In the words of a deployment: the neutral words are those of the description."""
    with served(words=WireWords("stripe", "Acme")) as lab:
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
