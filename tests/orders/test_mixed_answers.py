"""A gateway answers the create of one order with that of another: no order becomes another one's experiment."""

import pytest

from prefect_assay.errors import (
    Conflict,
    NotFound,
    OrderMismatch,
    OrderOutcomeUnknown,
    OrderPending,
    OutcomeUnknown,
    PartialOrder,
    RequestRefused,
    TransientError,
)
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.find import adopt_listed, find_order, recheck_order, record_choice
from prefect_assay.orders.identity import experiment_name, order_key
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger.log import Ordered, Sending
from prefect_assay.service.models.experiment import Created, CreateRequest, QuoteAcceptance
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import ExperimentStatus, PaymentMethod
from support.services.order_service import OrderService, ledgers

MINE = ExperimentSpec.model_validate(
    {"experiment_type": "expression", "sequences": {"a": {"aa_string": "ACD"}}}
)
THEIRS = ExperimentSpec.model_validate(
    {"experiment_type": "expression", "sequences": {"b": {"aa_string": "WYV"}}}
)
KEY, OTHER_KEY = order_key("camp", 0, MINE), order_key("other", 0, THEIRS)
NAME, OTHER_NAME = experiment_name("camp", 0, 1, KEY), experiment_name("other", 0, 1, OTHER_KEY)
QUOTED = CreateRequest(experiment_spec=MINE, name=NAME, skip_draft=True)
HOSTED = QUOTED.model_copy(update={"auto_accept_quote": True})
MACHINE = HOSTED.model_copy(update={"payment_method": PaymentMethod.X402_EXACT})


class MixingService(OrderService):
    """Its creates are carried out, and answered with the experiment of another order, which exists already.

    Args:
        names: how the answer names that experiment: `created` (201), `partial` (create rule 6), `accepted` (200 with the
            experiment), or `invoice` (200 whose invoice names it).
        nameless: where no name is shown: `detail`, or `everywhere`.
    """

    def __init__(self, names="created", *, nameless=None, spec=THEIRS, **options):
        super().__init__(**options)
        self.names, self.nameless = names, nameless
        self.other = self.add(OTHER_NAME, spec)

    def _create(self, request):
        self.creates += 1
        made = self.add(request.name, request.experiment_spec)
        self.hidden[made.id] = self.looks + self.lag
        wrong = self.other.id
        self.billed |= {"inv-wrong": wrong}
        match self.names:
            case "created":
                return Created(experiment_id=wrong, provider_hosted_invoice_url="https://pay.example/wrong")
            case "partial":
                raise PartialOrder("failed", experiment_id=wrong, invoice_id="inv-wrong")
            case "accepted":
                self.billed = {}
                return QuoteAcceptance(status="accepted", invoice_id="inv-wrong", experiment_id=wrong)
            case _:
                return QuoteAcceptance(status="accepted", invoice_id="inv-wrong")

    def _read(self, experiment_id):
        experiment = super()._read(experiment_id)
        return experiment.model_copy(update={"name": None}) if self.nameless else experiment

    def _listed(self, search):
        rows = super()._listed(search)
        if self.nameless != "everywhere":
            return rows
        return (row.model_copy(update={"name": None}) for row in rows)


@pytest.fixture
def ledger(tmp_path):
    return ledgers(tmp_path).open_order("camp", KEY)


def order(service, ledger, request=HOSTED):
    return find_or_create(service, request, ledger, sleep=lambda seconds: None)


def kinds(ledger):
    return [record.kind for record in ledger.records()]


@pytest.mark.parametrize("nameless", [None, "detail"])
@pytest.mark.parametrize("names", ["created", "partial", "accepted", "invoice"])
def test_the_experiment_of_another_order_never_becomes_this_one(ledger, names, nameless):
    service = MixingService(names, nameless=nameless)
    if nameless:
        # Its record has no name, and a search for this order's key does not list it: it is waited for, and not ordered.
        with pytest.raises(OrderPending):
            order(service, ledger, MACHINE)
        assert ledger.read().ordered is None
        return
    made = order(service, ledger, MACHINE)
    state = ledger.read()
    assert (made.experiment_id, made.hosted_invoice_url, made.surplus) == ("id-2", None, ())
    assert (state.ordered.experiment_id, state.ordered.invoice_id) == ("id-2", None)
    assert (state.tied_invoice(), state.surplus, state.others) == (None, (), ())
    assert recheck_order(service, MINE, ledger) == "id-2"
    assert (ledger.state.surplus, service.creates) == ((), 1)


@pytest.mark.parametrize("names", ["created", "partial", "invoice"])
def test_two_orders_whose_answers_are_swapped_each_keep_their_own(tmp_path, names):
    service, logs = MixingService(names), ledgers(tmp_path)
    mine, third_key = logs.open_order("camp", KEY), order_key("third", 0, THEIRS)
    third = logs.open_order("third", third_key)
    request = CreateRequest(
        experiment_spec=THEIRS, name=experiment_name("third", 0, 1, third_key), skip_draft=True
    )
    assert order(service, mine).experiment_id == "id-2"
    service.other = service.orders[1]  # this order's experiment answers the create of the third
    assert order(service, third, request).experiment_id == "id-3"
    assert [recheck_order(service, MINE, mine), recheck_order(service, THEIRS, third)] == ["id-2", "id-3"]
    assert (mine.state.surplus, third.state.surplus, service.creates) == ((), (), 2)


def test_an_answer_for_the_same_designs_of_another_campaign_is_told_by_its_key(ledger):
    service = MixingService(spec=MINE)
    assert order(service, ledger).experiment_id == "id-2"


def test_one_with_the_right_key_and_another_protein_is_a_question(ledger):
    service = OrderService()
    service.before_answer = lambda made: service.change(made.id, experiment_spec=THEIRS.wire())
    with pytest.raises(OrderMismatch) as caught:
        order(service, ledger)
    assert ledger.read().ordered is None
    assert "sequences: " in caught.value.candidates[0].why
    record_choice(ledger, "id-1", caught.value.candidates)
    assert order(service, ledger).experiment_id == "id-1"
    assert recheck_order(service, MINE, ledger) == "id-1"  # a person has said so, and is not asked again
    assert service.creates == 1


@pytest.mark.parametrize("request_", [QUOTED, HOSTED])
def test_a_mismatch_is_a_lost_answer_where_the_own_experiment_is_not_listed(ledger, request_):
    service = MixingService(lag=10_000)
    with pytest.raises(OrderOutcomeUnknown, match="names experiment id-1, which is not this order") as caught:
        order(service, ledger, request_)
    assert not isinstance(caught.value, PartialOrder)
    assert kinds(ledger) == ["planned", "sending", "named"]
    service.hidden.clear()
    assert order(service, ledger, request_).experiment_id == "id-2"
    assert service.creates == 1


class SlowService(OrderService):
    """A record is not found for some readings after its create (eventual consistency)."""

    readings = 3

    def _read(self, experiment_id):
        self.readings -= 1
        if self.readings >= 0:
            raise NotFound(experiment_id)
        return super()._read(experiment_id)


def test_a_record_that_is_not_found_right_after_the_create_is_waited_for(ledger):
    service, slept = SlowService(lag=10_000), []
    made = find_or_create(service, HOSTED, ledger, sleep=slept.append)
    assert (made.experiment_id, slept, service.creates) == ("id-1", [1.0, 2.0, 4.0], 1)


def test_a_service_that_shows_the_name_in_its_list_alone_is_enough(ledger):
    service = OrderService()
    read = service._read
    service._read = lambda experiment_id: read(experiment_id).model_copy(update={"name": None})
    assert order(service, ledger).experiment_id == "id-1"


def test_a_service_that_shows_no_name_is_a_question(ledger):
    service = OrderService()
    read, listed = service._read, service._listed
    service._read = lambda experiment_id: read(experiment_id).model_copy(update={"name": None})
    service._listed = lambda search: (row.model_copy(update={"name": None}) for row in listed(search))
    with pytest.raises(OrderMismatch) as caught:
        order(service, ledger)
    record_choice(ledger, "id-1", caught.value.candidates)
    assert (order(service, ledger).experiment_id, service.creates) == ("id-1", 1)


@pytest.mark.parametrize("change", [{"name": OTHER_NAME}, {"experiment_spec": THEIRS.wire()}])
def test_a_recorded_order_that_does_not_agree_is_neither_confirmed_nor_paid(ledger, change):
    service = OrderService()
    service.add(NAME, MINE)
    ledger.record(lambda _: Ordered(experiment_id="id-1"))
    service.change("id-1", name="renamed in the portal")
    assert recheck_order(service, MINE, ledger) == "id-1"
    service.change("id-1", **change)
    with pytest.raises(OrderMismatch, match="Nothing is confirmed or paid"):
        recheck_order(service, MINE, ledger)


@pytest.mark.parametrize("status", [ExperimentStatus.CANCELED, ExperimentStatus.DRAFT])
def test_of_two_lost_experiments_the_live_one_is_the_order(ledger, status):
    service = OrderService()
    service.add(NAME, MINE, status=status)
    service.add(NAME, MINE)
    ledger.record(lambda _: Sending(attempt=1, route=OrderRoute.QUOTED, rail=PaymentMethod.ASYNC_INVOICE))
    adopt_listed(service, ledger, MINE)
    assert (ledger.state.ordered.experiment_id, ledger.state.surplus) == ("id-2", ("id-1",))


def test_a_submitted_draft_that_still_reads_as_one_is_read_again(ledger):
    service = OrderService()
    service.before_answer = lambda made: service.change(made.id, status=ExperimentStatus.DRAFT)
    service.experiments.submit = lambda _: None
    with pytest.raises(TransientError, match="does not show it yet"):
        order(service, ledger, QUOTED)
    service.change("id-1", status=ExperimentStatus.WAITING_FOR_CONFIRMATION)
    assert order(service, ledger, QUOTED).experiment_id == "id-1"
    assert service.creates == 1


def test_what_the_service_leaves_a_draft_is_submitted(ledger):
    service = OrderService()
    service.before_answer = lambda made: service.change(made.id, status=ExperimentStatus.DRAFT)
    service.experiments.submit = lambda experiment_id: service.change(
        experiment_id, status=ExperimentStatus.WAITING_FOR_CONFIRMATION
    )
    assert order(service, ledger, QUOTED).status == ExperimentStatus.WAITING_FOR_CONFIRMATION


@pytest.mark.parametrize("trouble", [None, OrderOutcomeUnknown("the answer was lost")])
@pytest.mark.parametrize(
    "refusal", [Conflict("409: wait", code="rate_limited"), OutcomeUnknown("submit: no answer")]
)
def test_a_draft_whose_submission_failed_is_submitted_by_the_next_execution(ledger, trouble, refusal):
    service = OrderService(trouble=trouble)
    service.before_answer = lambda made: service.change(made.id, status=ExperimentStatus.DRAFT)

    def refuse_submission(_):
        raise refusal

    service.experiments.submit = refuse_submission
    with pytest.raises((TransientError, OrderOutcomeUnknown), match="is still a draft"):
        order(service, ledger, QUOTED)
    assert ledger.read().ordered is None
    service.experiments.submit = lambda experiment_id: service.change(
        experiment_id, status=ExperimentStatus.WAITING_FOR_CONFIRMATION
    )
    assert order(service, ledger, QUOTED).status == ExperimentStatus.WAITING_FOR_CONFIRMATION
    assert service.creates == 1


@pytest.mark.parametrize("trouble", [None, OrderOutcomeUnknown("the answer was lost")])
@pytest.mark.parametrize(
    "refusal", [Conflict("409: no", code="missing_customer"), RequestRefused("422: no", status_code=422)]
)
@pytest.mark.parametrize("status", [ExperimentStatus.DRAFT, ExperimentStatus.IN_REVIEW])
def test_a_draft_that_the_service_does_not_submit_is_the_order_nevertheless(ledger, status, refusal, trouble):
    """The refusal is not the create's: its order stands, and stays reserved."""
    service = OrderService(trouble=trouble)
    service.before_answer = lambda made: service.change(made.id, status=ExperimentStatus.DRAFT)

    def refuse_submission(experiment_id):
        service.change(experiment_id, status=status)
        raise refusal

    service.experiments.submit = refuse_submission
    assert order(service, ledger, QUOTED).status == status
    assert (ledger.state.ordered.experiment_id, ledger.state.refused) == ("id-1", 0)


def test_a_draft_of_an_order_that_was_canceled_meanwhile_stays_one(ledger):
    service = OrderService()

    def cancel(made):
        service.change(made.id, status=ExperimentStatus.DRAFT)
        ledger.stop("a person", "canceled")

    service.before_answer = cancel
    service.experiments.submit = lambda _: pytest.fail("submitted")
    assert order(service, ledger, QUOTED).status == ExperimentStatus.DRAFT
    assert ledger.state.ordered.experiment_id == "id-1"


def test_find_order_by_the_key_finds_what_an_answer_has_named_and_no_list_shows(ledger):
    service = OrderService(unread=NotFound("404"), lag=10_000)
    with pytest.raises(OrderPending):
        order(service, ledger)
    service.unread = None
    assert find_order(service, ledger, MINE).experiment_id == "id-1"
