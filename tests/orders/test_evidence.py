"""Which experiment is the order, where the record shows little: what its log has sent counts, and else a person decides."""

from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.errors import OrderMismatch
from prefect_assay.orders.find import find_order, recheck_order, record_choice
from prefect_assay.orders.identity import experiment_name
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger.log import Accepted, Ordered, Refused, Sending, Surplus
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.services.order_service import KEY, SPEC, OrderService, ledgers

NAME = experiment_name("camp", 0, 1, KEY)
SENT = Sending(attempt=1, route=OrderRoute.SELF_SERVICE, rail=PaymentMethod.X402_EXACT)


class Terse(OrderService):
    """Its records have what the contract's list has, and the fields that a test adds."""

    def listed(self, code, *, age=timedelta(), **shown):
        number = len(self.orders) + 1
        made = Experiment(
            id=f"id-{number}",
            code=code,
            name=NAME,
            status="waiting_for_materials",
            created_at=datetime.now(UTC) - age,
            experiment_type="expression",
            **shown,
        )
        self.orders.append(made)
        return made


@pytest.fixture
def ledger(tmp_path):
    return ledgers(tmp_path).open_order("camp", KEY)


def find_experiment_id(service, ledger):
    order = find_order(service, ledger, SPEC)
    return order and order.experiment_id


def test_the_experiment_that_an_unanswered_create_has_made_is_the_order(ledger):
    service = Terse()
    service.listed("X-1")
    with pytest.raises(OrderMismatch):  # nothing was sent: where does it come from?
        find_experiment_id(service, ledger)
    ledger.record(lambda _: SENT)
    assert find_experiment_id(service, ledger) == "id-1"


@pytest.mark.parametrize(
    ("shown", "age"),
    [
        ({}, timedelta(hours=1)),  # older than the create
        ({"experiment_spec": {"sequences": 3}}, timedelta()),  # there, and not readable
        ({"experiment_spec": {"sequences": {"a": "WYV"}}}, timedelta()),  # another protein
    ],
)
def test_what_may_be_another_order_is_a_question(ledger, shown, age):
    service = Terse()
    service.listed("X-1", age=age, **shown)
    ledger.record(lambda _: SENT)
    with pytest.raises(OrderMismatch) as caught:
        find_experiment_id(service, ledger)
    assert [one.code for one in caught.value.candidates] == ["X-1"]
    assert not [advice for advice in ("ename", "another id", "again") if advice in str(caught.value)]


def test_an_accepted_create_is_not_in_doubt_for_a_part_that_cannot_be_read(ledger):
    service = Terse()
    service.listed("X-1", experiment_spec={"sequences": 3})
    ledger.record(lambda _: SENT)
    ledger.record(lambda _: Accepted(invoice_id="inv-1"))
    assert find_experiment_id(service, ledger) == "id-1"
    service.change("id-1", experiment_spec={"sequences": {"a": "WYV"}})
    with pytest.raises(OrderMismatch):
        find_experiment_id(service, ledger)


def test_of_several_that_nothing_proves_a_person_chooses_and_the_log_keeps_it(ledger):
    service = Terse()
    service.listed("X-1")
    service.listed("X-2")
    ledger.record(lambda _: SENT)
    with pytest.raises(OrderMismatch) as caught:
        find_experiment_id(service, ledger)
    record_choice(ledger, "id-2", caught.value.candidates)
    state = ledger.read()
    assert (state.ordered.experiment_id, state.others, state.surplus) == ("id-2", ("id-1",), ())
    assert recheck_order(service, SPEC, ledger) == "id-2"


def test_none_of_them_leaves_the_order_open_and_the_others_alone(ledger):
    service = Terse()
    service.listed("X-1")
    with pytest.raises(OrderMismatch) as caught:
        find_experiment_id(service, ledger)
    record_choice(ledger, None, caught.value.candidates)
    assert find_experiment_id(service, ledger) is None
    assert (ledger.read().others, ledger.state.surplus) == (("id-1",), ())


def test_before_money_is_committed_one_that_may_be_the_order_as_well_is_a_question(ledger):
    service = Terse()
    service.listed("X-1")
    ledger.record(lambda _: Ordered(experiment_id="id-1"))
    assert recheck_order(service, SPEC, ledger) == "id-1"
    service.listed("X-2")
    with pytest.raises(OrderMismatch):
        recheck_order(service, SPEC, ledger)


ANSWER = Accepted(invoice_id="inv-1", page="digest")


@pytest.mark.parametrize(
    ("records", "tied"),
    [
        ([SENT, ANSWER, Ordered(experiment_id="e")], True),
        ([SENT, Ordered(experiment_id="e"), ANSWER], True),
        ([SENT, Ordered(experiment_id="e")], False),
        ([SENT, ANSWER, Ordered(experiment_id="e"), Surplus(experiment_id="f", kept="e")], False),
        ([SENT, SENT.model_copy(update={"attempt": 2}), ANSWER, Ordered(experiment_id="e")], False),
        (
            [
                SENT,
                Refused(attempt=1, reason="422"),
                SENT.model_copy(update={"attempt": 2}),
                ANSWER,
                Ordered(experiment_id="e"),
            ],
            True,
        ),
        ([SENT, Accepted(invoice_id="inv-1", experiment_id="f"), Ordered(experiment_id="e")], False),
        ([Ordered(experiment_id="e"), Accepted(invoice_id="inv-1", experiment_id="e")], True),
    ],
)
def test_only_the_invoice_of_the_order_s_own_acceptance_is_tied_to_it(ledger, records, tied):
    for record in records:
        ledger.record(lambda _, one=record: one)
    state = ledger.read()
    assert (state.tied_invoice() == "inv-1") is tied
    assert (state.tied_invoice("digest") == "inv-1") is (tied or ANSWER in records)
    shows_page = state.accepted is not None and state.accepted.page is not None
    assert state.tied_invoice("another page") == (None if shows_page else state.tied_invoice())
