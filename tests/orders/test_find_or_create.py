"""Find, else create; after a lost answer look first. One log, and a service in memory that counts."""

import pytest

from prefect_assay.errors import (
    Conflict,
    Forbidden,
    NotFound,
    OrderMismatch,
    OrderOutcomeUnknown,
    OrderPending,
    PartialOrder,
    RequestRefused,
    ServiceUnavailable,
    UnexpectedAnswer,
)
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.find import find_order, recheck_order
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger.log import Confirming, Sending, Withdrawn
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.services.order_service import HOSTED, KEY, MACHINE, REQUEST, SPEC, OrderService, ledgers

OTHER = ExperimentSpec.model_validate(
    {"experiment_type": "expression", "sequences": {"b": {"aa_string": "WYV"}}}
)
LOST = OrderOutcomeUnknown("read timed out", request_id="req_9")
NEVER = 10_000


@pytest.fixture
def ledger(tmp_path):
    return new_order_ledger(tmp_path)


def new_order_ledger(folder):
    return ledgers(folder).open_order("camp", KEY)


def ordered(service, ledger, request=REQUEST, **options):
    slept = []
    order = find_or_create(service, request, ledger, **{"sleep": slept.append, **options})
    return order, slept


def kinds(ledger):
    return [record.kind for record in ledger.records()]


def test_creates_when_nothing_is_found(ledger):
    service = OrderService()
    order, _ = ordered(service, ledger)
    assert (order.experiment_id, order.adopted, service.creates) == ("id-1", False, 1)
    assert order.hosted_invoice_url == "https://pay.example/inv"
    assert kinds(ledger) == ["planned", "sending", "named", "ordered"]


def test_what_stands_in_another_log_of_the_archive_is_not_ordered_again(tmp_path):
    """The address in the block was replaced: its log is empty, and the service there has no experiment."""
    ordered(OrderService(), new_order_ledger(tmp_path))
    other = OrderService()
    changed = ledgers(tmp_path, account="another organisation").open_order("camp", KEY)
    for _ in range(2):
        with pytest.raises(OrderOutcomeUnknown, match="is in another log") as refused:
            ordered(other, changed, reserve=lambda: pytest.fail("reserved"))
        assert str(tmp_path) in str(refused.value)
    assert (other.creates, changed.read().attempts) == (0, 0)
    under_another_id = ledgers(tmp_path, account="another organisation").open_order("camp-2", KEY)
    assert ordered(other, under_another_id)[0].experiment_id == "id-1"


def test_what_is_withdrawn_in_another_log_can_be_ordered(tmp_path):
    before = new_order_ledger(tmp_path)
    ordered(OrderService(), before)
    before.record(lambda _: Withdrawn(reason="its quote was rejected"))
    service = OrderService()
    ordered(service, ledgers(tmp_path, account="another organisation").open_order("camp", KEY))
    assert service.creates == 1


def test_a_create_that_the_service_refuses_for_its_state_is_a_refusal(ledger):
    service = OrderService(trouble=Conflict("409: no", code="x"), refuses=True)
    with pytest.raises(RequestRefused, match="409: no") as refused:
        ordered(service, ledger)
    assert refused.value.code == "x"
    assert kinds(ledger) == ["planned", "sending", "refused"]


def test_a_second_time_the_log_knows_it(ledger):
    service = OrderService(lag=NEVER)
    first, _ = ordered(service, ledger)
    second, _ = ordered(service, ledger)
    assert second.experiment_id == first.experiment_id
    assert (second.adopted, service.creates) == (True, 1)


def test_an_order_that_was_renamed_and_is_not_listed_any_more_is_still_the_order(ledger):
    service = OrderService()
    ordered(service, ledger)
    service.change("id-1", name="lysozyme, second try")
    assert ordered(service, ledger)[0].experiment_id == "id-1"
    assert service.creates == 1


def test_nothing_is_ordered_again_where_the_recorded_experiment_cannot_be_seen(ledger):
    service = OrderService()
    ordered(service, ledger)
    service.orders.clear()
    with pytest.raises(OrderOutcomeUnknown, match="Check the token and the address"):
        ordered(service, ledger)
    assert service.creates == 1


def test_an_order_of_which_the_log_is_lost_is_found_by_its_name(tmp_path):
    service = OrderService()
    ordered(service, new_order_ledger(tmp_path / "a"))
    order, _ = ordered(service, new_order_ledger(tmp_path / "b"))
    assert (order.experiment_id, order.adopted, service.creates) == ("id-1", True, 1)


@pytest.mark.parametrize("answer", ["created", "accepted"])
def test_a_lost_answer_is_looked_for_with_patience_and_not_repeated(ledger, answer):
    service = OrderService(trouble=LOST, lag=3, answer=answer)
    order, slept = ordered(service, ledger, MACHINE)
    assert (order.adopted, service.creates, slept) == (True, 1, [1.0, 2.0, 4.0, 8.0])


def test_a_lost_answer_that_never_shows_up_is_said_to_be_unknown(ledger):
    service = OrderService(trouble=LOST, lag=NEVER)
    with pytest.raises(OrderOutcomeUnknown, match="Run the same flow again") as caught:
        ordered(service, ledger)
    assert (caught.value.request_id, service.creates) == ("req_9", 1)
    assert len(ledger.read().open_attempts) == 1


@pytest.mark.parametrize(("status", "lag"), [(400, NEVER), (404, NEVER), (403, 3)])
def test_a_refusal_in_foreign_words_is_one_if_the_service_lists_nothing_of_it(ledger, status, lag):
    refused = OrderOutcomeUnknown("400: bad request; whether it took effect is not known", status_code=status)
    service = OrderService(trouble=refused, lag=lag)
    if lag != NEVER:
        assert ordered(service, ledger)[0].experiment_id
        return
    with pytest.raises(
        RequestRefused, match=r"lists no experiment of it after .* s; nothing was ordered\. 400: bad request$"
    ):
        ordered(service, ledger)
    assert kinds(ledger)[-1] == "refused"
    assert not ledger.read().open_attempts


@pytest.mark.parametrize("status", [307, 408, 409, 425, 499, 500, 502, None])
def test_any_other_answer_leaves_open_whether_the_order_was_placed(ledger, status):
    lost = OrderOutcomeUnknown("no verdict", status_code=status)
    with pytest.raises(OrderOutcomeUnknown):
        ordered(OrderService(trouble=lost, lag=NEVER), ledger)
    assert ledger.read().open_attempts


def test_a_partial_failure_that_names_the_experiment_is_the_order(ledger):
    service = OrderService(trouble=PartialOrder("invoice failed", experiment_id="id-1"), lag=NEVER)
    assert ordered(service, ledger)[0].experiment_id == "id-1"
    assert ledger.read().ordered.experiment_id == "id-1"


@pytest.mark.parametrize(
    "trouble", [ServiceUnavailable("503"), NotFound("404"), UnexpectedAnswer("html"), Forbidden("403")]
)
@pytest.mark.parametrize("partial", [True, False])
def test_an_order_that_its_answer_names_stands_while_it_cannot_be_read(ledger, trouble, partial):
    """The next execution must not depend on a search that may not list it yet, and order again."""
    lost = PartialOrder("failed", experiment_id="id-1") if partial else None
    service = OrderService(unread=trouble, lag=NEVER, trouble=lost)
    for _ in range(2):
        with pytest.raises(
            OrderPending, match=r"experiment id-1 .* The order stands, nothing is sent again"
        ) as caught:
            ordered(service, ledger)
        assert caught.value.retriable
        assert (kinds(ledger), service.creates) == (["planned", "sending", "named"], 1)
    service.unread = service.trouble = None
    assert (ordered(service, ledger)[0].experiment_id, service.creates) == ("id-1", 1)
    assert (ledger.read().ordered.experiment_id, ledger.state.ordered.adopted) == ("id-1", False)


def test_an_acceptance_that_names_no_experiment_is_resolved_by_its_invoice(ledger):
    service = OrderService(answer="accepted", lag=NEVER)
    order, slept = ordered(service, ledger, MACHINE)
    assert (order.experiment_id, order.adopted, slept) == ("id-1", False, [])
    assert ledger.read().ordered.invoice_id == "inv-id-1"


def test_an_acceptance_whose_invoice_names_nothing_is_looked_up_with_patience(ledger):
    service = OrderService(answer="accepted", lag=2)
    service.billed = {"inv-id-1": None}
    order, slept = ordered(service, ledger, MACHINE)
    assert (order.experiment_id, slept, service.creates) == ("id-1", [0.0, 1.0, 2.0], 1)
    assert ledger.read().ordered.invoice_id is None


def test_the_invoice_of_another_experiment_is_dropped(ledger):
    """One run would pay it, and the next one the order's own."""
    service = OrderService(answer="accepted")
    service.add(REQUEST.name, SPEC)
    service.hidden["id-1"] = 1  # not listed before the create
    order, _ = ordered(service, ledger, MACHINE)
    assert (order.experiment_id, order.surplus) == ("id-1", ("id-2",))
    assert (ledger.read().ordered.experiment_id, ledger.state.ordered.invoice_id) == ("id-1", None)


@pytest.mark.parametrize("trouble", [RequestRefused("422"), ServiceUnavailable("connection refused")])
def test_a_create_that_made_nothing_for_certain_is_free_to_follow(ledger, trouble):
    service = OrderService(trouble=trouble, refuses=True)
    released = []
    with pytest.raises(type(trouble)):
        ordered(service, ledger, HOSTED, release=lambda: released.append(1))
    assert (kinds(ledger)[-1], released, service.orders) == ("refused", [1], [])
    service.trouble, service.refuses = None, False
    order, slept = ordered(service, ledger, HOSTED)
    assert (order.experiment_id, slept) == ("id-1", [])


def test_what_the_budget_refuses_is_neither_recorded_nor_sent(ledger):
    def reserve():
        raise RequestRefused("over the cap")

    service = OrderService()
    with pytest.raises(RequestRefused):
        ordered(service, ledger, reserve=reserve)
    assert (kinds(ledger), service.creates) == ([], 0)


def test_an_earlier_process_that_may_have_ordered_is_given_time_to_show(ledger):
    killed(ledger)
    service = OrderService()
    service.add(REQUEST.name, SPEC)
    service.hidden["id-1"] = 4
    order, slept = ordered(service, ledger)
    assert (order.experiment_id, service.creates, slept) == ("id-1", 0, [1.0, 2.0, 4.0, 8.0])


def test_a_create_that_commits_nothing_follows_one_that_never_shows(ledger):
    killed(ledger, REQUEST)
    service = OrderService()
    order, slept = ordered(service, ledger, REQUEST)
    assert (order.adopted, service.creates, sum(slept)) == (False, 1, 120.0)
    assert ledger.read().attempts == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (HOSTED, HOSTED),
        (HOSTED, REQUEST),
        (HOSTED, MACHINE),
        (REQUEST, HOSTED),
        (MACHINE, MACHINE),
        (REQUEST, MACHINE),
    ],
)
def test_a_create_that_is_billed_neither_follows_nor_precedes_another(ledger, first, second):
    """Whatever the next run asks for: a create that accepts its quote makes an invoice (contract 4.2, rules 3 and 4)."""
    killed(ledger, first)
    service = OrderService()
    with pytest.raises(OrderOutcomeUnknown, match="Ask the laboratory"):
        ordered(service, ledger, second)
    assert service.creates == 0
    order, _ = ordered(service, ledger, second, repeats=1)
    assert (order.experiment_id, service.creates) == ("id-1", 1)


def test_an_approval_does_not_cover_a_create_that_another_run_has_sent_since(ledger):
    """Two runs were approved for the first lost create, and the second answer is lost as well: it was asked about by none."""
    killed(ledger, HOSTED)
    service = OrderService()

    def reserve():
        if ledger.read().attempts == 1:
            another = Sending(attempt=2, route=OrderRoute.SELF_SERVICE, rail=PaymentMethod.ASYNC_INVOICE)
            ledger.record(lambda _: another)

    with pytest.raises(OrderOutcomeUnknown, match="Ask the laboratory"):
        ordered(service, ledger, HOSTED, repeats=1, reserve=reserve)
    assert (service.creates, ledger.read().attempts) == (0, 2)


def test_a_policy_may_forbid_every_second_create(ledger):
    killed(ledger)
    service = OrderService()
    with pytest.raises(OrderOutcomeUnknown):
        ordered(service, ledger, repeats=0)
    assert service.creates == 0


@pytest.mark.parametrize("trouble", [ServiceUnavailable("503"), UnexpectedAnswer("html")])
def test_nothing_is_ordered_while_the_service_cannot_be_asked_for_an_earlier_order(ledger, trouble):
    killed(ledger)
    service = OrderService()

    def away(seconds):
        service.unlisted = trouble

    with pytest.raises(type(trouble)):
        ordered(service, ledger, sleep=away)
    assert service.creates == 0


def killed(ledger, request=REQUEST):
    """A process that died right after it recorded that it would send."""
    with pytest.raises(KeyboardInterrupt):
        ordered(_Dying(), ledger, request)
    assert kinds(ledger) == ["planned", "sending"]


class _Dying(OrderService):
    def _create(self, request):
        raise KeyboardInterrupt


def test_of_two_writers_the_second_to_record_sends_nothing(ledger):
    service = OrderService()
    other = ledger.ledgers.open_order("camp", KEY)
    order, _ = ordered(service, ledger, reserve=lambda: ordered(service, other))
    assert (order.experiment_id, order.adopted, service.creates) == ("id-1", True, 1)
    assert kinds(ledger) == ["planned", "sending", "named", "ordered"]


def test_a_create_that_is_answered_after_another_was_sent_is_the_order_if_nothing_is_committed(ledger):
    service, late = OrderService(lag=NEVER), []
    other = ledger.ledgers.open_order("camp", KEY)

    def answered_late(made):
        service.before_answer = lambda _: None
        late.append(ordered(service, other)[0].experiment_id)
        service.hidden.clear()

    service.before_answer = answered_late
    order, _ = ordered(service, ledger)
    assert (late, order.experiment_id, order.surplus) == (["id-2"], "id-1", ("id-2",))
    assert find_order(service, other).experiment_id == "id-1"
    assert kinds(ledger).count("ordered") == 1


def test_a_create_that_is_answered_after_another_is_committed_is_surplus(ledger):
    service = OrderService(lag=NEVER)
    other = ledger.ledgers.open_order("camp", KEY)

    def answered_late(made):
        service.before_answer = lambda _: None
        ordered(service, other)
        other.record(lambda state: Confirming(amount_cents=1))
        service.hidden.clear()

    service.before_answer = answered_late
    order, _ = ordered(service, ledger)
    assert (order.experiment_id, order.adopted, order.surplus) == ("id-2", True, ("id-1",))


def test_every_run_agrees_on_the_oldest_of_several(ledger):
    service = OrderService()
    for days in (3, 1, 2):
        service.add(REQUEST.name, SPEC, days=days)
    assert find_order(service, ledger, SPEC).experiment_id == "id-2"
    order, _ = ordered(service, ledger)
    assert (order.experiment_id, sorted(order.surplus), service.creates) == ("id-2", ["id-1", "id-3"], 0)


def test_a_younger_one_that_is_paid_is_the_order(ledger):
    """Somebody has paid it: in a portal, or another server at a moment when the older was not to be seen."""
    service = OrderService()
    service.add(REQUEST.name, SPEC, days=1)
    service.add(REQUEST.name, SPEC, days=2)
    service.change("id-2", status="waiting_for_materials")
    order, _ = ordered(service, ledger)
    assert (order.experiment_id, order.surplus) == ("id-2", ("id-1",))


@pytest.mark.parametrize("with_log", [True, False])
def test_the_order_is_found_among_a_hundred_others_that_carry_its_key_later(tmp_path, with_log):
    """All pages are read: the newest come first, and the order is the oldest."""
    service, ledger = OrderService(), new_order_ledger(tmp_path)
    ordered(service, ledger)
    for _ in range(101):
        service.add(f"notes {REQUEST.name}", SPEC)
    order, _ = ordered(service, ledger if with_log else new_order_ledger(tmp_path / "other"))
    assert (order.experiment_id, service.creates) == ("id-1", 1)


@pytest.mark.parametrize("forged", [OTHER, SPEC.model_copy(update={"n_replicates": 5})])
def test_an_experiment_that_carries_the_key_and_is_another_one_stops_the_order(ledger, forged):
    service = OrderService()
    service.add(f"notes {REQUEST.name}", forged)
    for _ in range(101):
        service.add(REQUEST.name, SPEC)
    with pytest.raises(OrderMismatch) as caught:
        ordered(service, ledger)
    assert (service.creates, kinds(ledger)) == (0, [])
    message = str(caught.value)
    assert "ORG-001-001" in message
    assert not [
        advice for advice in ("ename", "another id") if advice in message
    ]  # which could order it twice
    assert "id-1" in {one.experiment_id for one in caught.value.candidates}


def test_a_name_that_only_contains_the_token_inside_a_word_is_not_the_order(ledger):
    service = OrderService()
    service.add(f"x{REQUEST.name.split()[-1]}x", SPEC)
    assert find_order(service, ledger, SPEC) is None


def test_the_reservation_stays_while_an_earlier_create_may_be_carried_out(ledger):
    killed(ledger)
    released = []
    with pytest.raises(RequestRefused):
        ordered(
            OrderService(trouble=RequestRefused("422"), refuses=True),
            ledger,
            release=lambda: released.append(1),
        )
    assert (kinds(ledger)[-1], len(ledger.state.open_attempts), released) == ("refused", 1, [])


def test_an_acceptance_that_names_the_invoice_of_another_experiment_ties_none_to_the_order(ledger):
    service = OrderService(answer="accepted")
    create = service.experiments.create
    service.experiments.create = lambda request: create(request).model_copy(update={"experiment_id": "id-1"})
    service.billed = {"inv-id-1": "id-2"}
    order, _ = ordered(service, ledger, MACHINE)
    assert (order.experiment_id, ledger.read().ordered.invoice_id) == ("id-1", None)


@pytest.mark.parametrize("status", ["canceled", "draft"])
def test_an_older_experiment_that_commits_nothing_any_more_is_not_the_order(ledger, status):
    service = OrderService()
    ordered(service, ledger)
    service.add(REQUEST.name, SPEC, days=-1, status=status)
    assert recheck_order(service, SPEC, ledger) == "id-1"
    assert ledger.state.surplus == ()


def test_an_order_with_a_commitment_is_not_in_question_any_more(ledger):
    service = OrderService()
    ordered(service, ledger)
    service.add(REQUEST.name, SPEC, days=-1)
    service.change("id-2", experiment_spec=None)  # its record does not say whether it is the order
    with pytest.raises(OrderMismatch):
        recheck_order(service, SPEC, ledger)
    ledger.record(lambda _: Confirming(amount_cents=1))
    assert recheck_order(service, SPEC, ledger) == "id-1"
