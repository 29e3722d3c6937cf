"""Find, else create; after a lost answer look, never create again. The service here is a list that counts."""

from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.errors import (
    NotFound,
    OrderOutcomeUnknown,
    PartialOrder,
    ServiceUnavailable,
    UnexpectedAnswer,
)
from prefect_assay.models.experiment import Created, CreateRequest, Experiment, QuoteAcceptance
from prefect_assay.models.page import Page
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.ordering import experiment_name, find_or_create, find_order, order_key

SPEC = ExperimentSpec.model_validate(
    {"experiment_type": "expression", "sequences": {"a": {"aa_string": "ACD"}}}
)
KEY = order_key("camp", 0, SPEC)
REQUEST = CreateRequest(experiment_spec=SPEC, name=experiment_name("camp", 0, 1, KEY), skip_draft=True)
START = datetime(2026, 1, 1, tzinfo=UTC)


class Service:
    """Orders, with a lag before they are listed, and answers that can be lost."""

    def __init__(self, *, lose=None, listed_after=0, answer="created", unread=None):
        self.orders = []
        self.creates = 0
        self.lookups = 0
        self.lose = lose
        self.listed_after = listed_after
        self.answer = answer
        self.unread = unread

    def add(self, name, days=0):
        number = len(self.orders) + 1
        self.orders.append(
            Experiment(
                id=f"id-{number}",
                code=f"ORG-001-{number:03d}",
                name=name,
                status="waiting_for_confirmation",
                created_at=START + timedelta(days=days),
            )
        )
        return self.orders[-1]

    def experiments(self, *, search=None, limit=None):
        self.lookups += 1
        if isinstance(self.listed_after, Exception):
            raise self.listed_after
        visible = self.orders if self.lookups > self.listed_after else []
        found = tuple(e for e in visible if search in e.name)[:limit]
        return Page(items=found, total=len(found), count=len(found), offset=0)

    def experiment(self, experiment_id):
        if self.unread:
            raise self.unread
        return next(e for e in self.orders if e.id == experiment_id)

    def create(self, request):
        self.creates += 1
        if isinstance(self.lose, ServiceUnavailable):
            raise self.lose
        made = self.add(request.name)
        if self.lose:
            raise self.lose
        if self.answer == "accepted":
            return QuoteAcceptance(id="q-1", status="accepted", invoice_id="inv-1")
        return Created(experiment_id=made.id, provider_hosted_invoice_url="https://pay.example/inv-1")


def ordered(service, **options):
    slept = []
    order = find_or_create(service, REQUEST, KEY, sleep=slept.append, **options)
    return order, slept


def test_creates_when_nothing_is_found():
    service = Service()
    order, _ = ordered(service)
    assert (order.experiment_id, order.adopted, service.creates) == ("id-1", False, 1)
    assert order.hosted_invoice_url == "https://pay.example/inv-1"


def test_a_second_time_finds_the_first():
    service = Service()
    first, _ = ordered(service)
    second, _ = ordered(service)
    assert second.experiment_id == first.experiment_id
    assert second.adopted
    assert service.creates == 1


def test_an_acceptance_that_names_no_experiment_is_looked_up():
    service = Service(answer="accepted")
    order, _ = ordered(service)
    assert (order.experiment_id, order.invoice_id, order.adopted) == ("id-1", "inv-1", False)


def test_a_lost_answer_is_looked_for_with_patience_and_never_repeated():
    service = Service(lose=OrderOutcomeUnknown("read timed out"), listed_after=4)
    order, slept = ordered(service)
    assert order.adopted
    assert service.creates == 1
    assert slept == [1.0, 2.0, 4.0, 8.0]


def test_a_lost_answer_that_never_shows_up_is_said_to_be_unknown():
    service = Service(lose=OrderOutcomeUnknown("read timed out", request_id="req_9"), listed_after=10_000)
    with pytest.raises(OrderOutcomeUnknown, match="run the same flow again") as caught:
        ordered(service)
    assert caught.value.request_id == "req_9"
    assert service.creates == 1


def test_a_partial_failure_that_names_the_experiment_is_adopted():
    service = Service(lose=PartialOrder("invoice failed", experiment_id="id-1"))
    order, _ = ordered(service)
    assert (order.experiment_id, order.adopted, service.creates) == ("id-1", True, 1)


@pytest.mark.parametrize("trouble", [ServiceUnavailable("503"), NotFound("404"), UnexpectedAnswer("html")])
def test_an_order_that_its_answer_names_is_the_order_even_if_it_cannot_be_read(trouble):
    """Else the next execution would depend on a search that may not list it yet, and order again."""
    service = Service(unread=trouble, listed_after=10_000)
    order, _ = ordered(service)
    assert (order.experiment_id, order.adopted) == ("id-1", False)
    adopted, _ = ordered(Service(unread=trouble, lose=PartialOrder("failed", experiment_id="id-1")))
    assert (adopted.experiment_id, adopted.adopted) == ("id-1", True)


def test_an_acceptance_is_looked_up_with_patience():
    service = Service(answer="accepted", listed_after=3)
    order, slept = ordered(service)
    assert (order.experiment_id, slept, service.creates) == ("id-1", [0.0, 1.0, 2.0], 1)


def test_an_earlier_process_that_may_have_ordered_is_given_time_to_show():
    service = Service(listed_after=4)
    service.add(REQUEST.name)
    order, slept = ordered(service, intend=lambda: True)
    assert (order.experiment_id, service.creates, slept) == ("id-1", 0, [1.0, 2.0, 4.0, 8.0])


def test_an_earlier_process_that_did_not_get_so_far_is_not_waited_for_forever():
    service = Service()
    order, slept = ordered(service, intend=lambda: True)
    assert (order.adopted, service.creates, sum(slept)) == (False, 1, 120.0)


def test_nothing_is_ordered_while_nobody_can_look_for_an_earlier_order():
    service = Service()

    def intend():
        service.listed_after = ServiceUnavailable("503")
        return True

    with pytest.raises(ServiceUnavailable):
        ordered(service, intend=intend)
    assert service.creates == 0


def test_a_request_that_never_left_is_a_transient_error():
    service = Service(lose=ServiceUnavailable("connection refused"))
    with pytest.raises(ServiceUnavailable):
        ordered(service)
    assert service.orders == []


def test_every_run_agrees_on_the_oldest_of_two():
    service = Service()
    service.add(REQUEST.name, days=2)
    service.add(REQUEST.name, days=1)
    assert find_order(service, KEY).experiment_id == "id-2"


def test_a_name_that_only_contains_the_token_inside_a_word_is_not_the_order():
    service = Service()
    service.add(f"x{REQUEST.name.split()[-1]}x")
    assert find_order(service, KEY) is None
