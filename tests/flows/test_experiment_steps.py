"""When a run sends an order a second time, when it asks a person first, and which experiment it goes on with."""

import contextlib
import functools
import logging
import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from prefect_assay.approvals import uncertain_payment
from prefect_assay.approvals.spending import Approval
from prefect_assay.blocks import LocalArchive, SpendingPolicy
from prefect_assay.books import OrderLedger
from prefect_assay.books.log import Approved, Confirming, Sending, Surplus
from prefect_assay.errors import (
    ApprovalExpired,
    ApprovalRejected,
    ArchiveError,
    BudgetExceeded,
    DecisionNeeded,
    ExperimentCanceled,
    NotFound,
    NotReady,
    OrderOutcomeUnknown,
    PaymentOutcomeUnknown,
    QuoteExpired,
    QuoteRejected,
)
from prefect_assay.flows import experiment_billing as billing_steps
from prefect_assay.flows import experiment_steps as steps
from prefect_assay.flows.experiment_billing import approve_price, place_order
from prefect_assay.flows.run_options import ExperimentRun, RunOptions
from prefect_assay.models.billing import CostEstimate, Quote
from prefect_assay.models.experiment import CreateRequest, Experiment
from prefect_assay.models.job import Order, OrderRoute, Payment, PaymentState
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import MACHINE_RAILS, PaymentMethod
from prefect_assay.ordering import find_or_create, order_key
from prefect_assay.payments.reconciliation import PaymentStatus
from prefect_assay.runs.tags import ARCHIVE_TAG, EXPERIMENT_TAG, ORDER_TAG
from prefect_assay.ordering.billing import Billing, BillingStage
from prefect_assay.tasks.report import ResultPlots
from support.archive.memory_store import a_book, an_attempt
from support.services.order_service import OrderService

SPEC = ExperimentSpec.model_validate(
    {"experiment_type": "expression", "sequences": {"a": {"aa_string": "ACD"}}}
)
KEY = order_key("c", 0, SPEC)
HAND, MACHINE = PaymentMethod.ASYNC_INVOICE, PaymentMethod.X402_EXACT
SELF_SERVICE, QUOTED = OrderRoute.SELF_SERVICE, OrderRoute.QUOTED

experiment_flow = sys.modules[
    "prefect_assay.flows.experiment"
]  # the package exports the flow under this name


def a_run(method=HAND, *, experiment=None, ask=False):
    """What the steps of a run share, as far as they look."""
    policy = SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1, ask_before_reordering=ask)
    options = RunOptions(
        credentials=None,
        policy=policy,
        archive=LocalArchive(root="no-such-folder"),
        payment_method=method,
        wallet=None,
        webhook=None,
        request_quote=False,
        deadline_days=1,
        poll_seconds=300.0,
    )
    run = ExperimentRun(options, spec=SPEC, campaign_id="c", batch_index=0, batch_count=1)
    vars(run)["book"] = a_book(key=KEY, experiment=experiment)  # the cached property, in memory
    return run


@pytest.fixture
def service(monkeypatch):
    """The task, without Prefect and on a service in memory."""
    made = OrderService()

    def order_experiment(_credentials, spec, *, book, name, route, payment_method, repeats, **_):
        request = CreateRequest(
            experiment_spec=spec,
            name=name,
            auto_accept_quote=route is SELF_SERVICE,
            payment_method=payment_method if payment_method in MACHINE_RAILS else None,
        )
        return find_or_create(made, request, book, repeats=repeats, sleep=lambda s: None, patience=())

    monkeypatch.setattr(billing_steps, "order_experiment", order_experiment)
    return made


@pytest.fixture
def asked(monkeypatch):
    """A deployed run; a person says yes to everything."""
    questions = []

    def approve(_policy, *, what, amount_cents, **_):
        questions.append(what)
        return Approval(amount_cents, "Ada")

    monkeypatch.setattr(billing_steps, "can_suspend", lambda: True)
    monkeypatch.setattr(billing_steps, "approve_spending", approve)
    return questions


def interrupted(order, route, rail):
    order.book.record(lambda _: Sending(attempt=1, route=route, rail=rail))
    return order


CASES = [
    # the earlier create, the next one, the policy asks, a person is asked
    ((SELF_SERVICE, HAND), (21_900, HAND), False, True),
    ((SELF_SERVICE, HAND), (None, HAND), False, True),
    ((SELF_SERVICE, HAND), (21_900, MACHINE), False, True),
    ((QUOTED, HAND), (21_900, HAND), False, True),
    ((QUOTED, HAND), (None, HAND), False, False),
    ((SELF_SERVICE, MACHINE), (21_900, MACHINE), False, True),
    ((SELF_SERVICE, MACHINE), (None, MACHINE), False, True),
    ((QUOTED, MACHINE), (None, MACHINE), False, False),
    ((QUOTED, HAND), (None, HAND), True, True),
    ((SELF_SERVICE, MACHINE), (21_900, MACHINE), True, True),
]


@pytest.mark.parametrize(("earlier", "now", "policy", "person"), CASES)
def test_who_decides_about_a_second_create(service, asked, earlier, now, policy, person):
    total, method = now
    order = place_order(interrupted(a_run(method, ask=policy), *earlier), total)
    assert (order.experiment_id, service.creates) == ("id-1", 1)
    assert [("Ordering" in what, "again" in what) for what in asked] == [(True, True)] * person


@pytest.mark.parametrize(("earlier", "now", "policy", "person"), CASES)
def test_without_a_deployment_what_needs_a_person_is_not_sent(service, earlier, now, policy, person):
    total, method = now
    work = interrupted(a_run(method, ask=policy), *earlier)
    if person:
        with pytest.raises(OrderOutcomeUnknown):
            place_order(work, total)
    else:
        place_order(work, total)
    assert service.creates == (0 if person else 1)


def test_what_a_rule_approved_does_not_outlive_a_lowered_cap():
    work = a_run()
    vars(work.options)["policy"] = SpendingPolicy(per_experiment_cents=100_000, per_campaign_cents=900_000)
    price = functools.partial(approve_price, work, what="It", otherwise="nothing was ordered")
    work.book.record(lambda _: Approved(amount_cents=400_000, approver="within 5,000.00 USD"))
    with pytest.raises(BudgetExceeded, match=r"costs 4,000\.00 USD, the cap is 1,000\.00 USD"):
        price(amount_cents=400_000)
    with pytest.raises(DecisionNeeded, match=r"4,000\.00 USD was approved for this order before"):
        price(amount_cents=90_000)  # far below: another unit, or another order
    work.book.record(lambda _: Approved(amount_cents=100_000, approver="within 5,000.00 USD"))
    assert price(amount_cents=90_000) == 90_000
    assert work.book.read().approved.amount_cents == 90_000
    work.book.record(lambda _: Approved(amount_cents=400_000, approver="Ada", by_person=True))
    assert price(amount_cents=400_000) == 400_000


def test_a_payment_is_shown_once_and_again_when_it_has_changed(monkeypatch):
    """Looking for the artifact of an earlier execution costs Prefect more than all else that a wake-up reads."""
    labels, shown = {}, []
    page = "https://pay.example/1"
    open_ = Payment(invoice_id="i", method=HAND, state="intended", amount_cents=5, hosted_invoice_url=page)
    monkeypatch.setattr(billing_steps, "own_label", labels.get)
    monkeypatch.setattr(billing_steps, "set_labels", lambda _run, new: labels.update(new))
    monkeypatch.setattr(billing_steps, "can_suspend", lambda: True)
    monkeypatch.setattr(billing_steps, "current_run", SimpleNamespace(id="r"))
    monkeypatch.setattr(billing_steps.artifacts, "show_payment", lambda _label, made: shown.append(made))
    monkeypatch.setattr(billing_steps.facts, "payment", lambda *_: None)
    for made in (open_, open_, paid := open_.model_copy(update={"state": PaymentState.SETTLED}), paid):
        monkeypatch.setattr(billing_steps, "_invoice", lambda *_, made=made, **__: made)
        assert billing_steps.pay(a_run(), None) == made
    assert shown == [open_, paid]


@pytest.mark.parametrize("state", ["intended", "settled"])
def test_a_hosted_page_in_answer_to_an_order_by_machine_is_a_question_until_it_is_paid(monkeypatch, state):
    page = "https://pay.example/1"
    made = Payment(invoice_id="i", method=HAND, state=state, amount_cents=5, hosted_invoice_url=page)

    def ask(_run, _order, why, **_):
        raise BlockingIOError(why)

    for name, value in {
        "named_rail": lambda *_: HAND,
        "payment_decision": lambda *_: None,
        "show_payment": lambda *_: None,
        "_ask_about_payment": ask,
        "_invoice": lambda *_, **__: made,
        "can_suspend": lambda: True,
        "get_run_logger": lambda: logging.getLogger("test"),
    }.items():
        monkeypatch.setattr(billing_steps, name, value)
    if state == "settled":
        assert billing_steps.pay(a_run(MACHINE), order_of("only")) == made
    else:
        with pytest.raises(BlockingIOError, match=f"{MACHINE} was chosen, .* {page}"):
            billing_steps.pay(a_run(MACHINE), order_of("only"))


@pytest.mark.parametrize("answer", [None, "paid", "pay_again"])
@pytest.mark.parametrize("canceled", [False, True])
def test_a_payment_in_doubt_is_a_question_until_the_invoice_is_paid(asked, monkeypatch, answer, canceled):
    """Also of an experiment that was canceled: the money may have moved, and an ended run reads no invoice again."""

    def read_due(*_, **__):
        if canceled:
            raise PaymentOutcomeUnknown("the experiment was canceled, and a payment may still settle")
        return 5

    def settles(*_, **__):
        raise PaymentOutcomeUnknown("an earlier payment was sent, and the invoice does not show it")

    def ask(_run, _order, why, **_):
        raise BlockingIOError(why)

    monkeypatch.setattr(billing_steps, "payment_decision", lambda *_: answer)
    monkeypatch.setattr(billing_steps, "read_due", read_due)
    monkeypatch.setattr(billing_steps, "_within_sums", settles)
    monkeypatch.setattr(billing_steps, "_ask_about_payment", ask)
    monkeypatch.setattr(billing_steps, "get_run_logger", lambda: logging.getLogger("test"))
    monkeypatch.setattr(billing_steps.facts, "invoiced", lambda *_: None)
    for name in ("require_blocks", "require_rail"):
        monkeypatch.setattr(billing_steps, name, lambda *_: None)
    words = "may still settle" if canceled else "A person answered" if answer == "paid" else "earlier payment"
    with pytest.raises(BlockingIOError, match=words):
        billing_steps.pay(a_run(MACHINE), order_of("only"))


def test_an_experiment_that_cannot_be_seen_is_no_question(service, asked):
    with pytest.raises(OrderOutcomeUnknown, match="cannot see it"):
        place_order(a_run(experiment="gone"), 21_900)
    assert (asked, service.creates) == ([], 0)


@pytest.fixture
def billing(monkeypatch):
    """Where each experiment is, by its id."""
    stages = {}
    monkeypatch.setattr(
        steps, "_await_billing", lambda _job, order: Billing(stage=stages[order.experiment_id])
    )
    monkeypatch.setattr(
        steps,
        "confirm_order",
        lambda _credentials, _spec, _order, *, book: order_of(book.read().ordered.experiment_id),
    )
    return stages


@pytest.fixture
def tags(monkeypatch):
    """The tags of the run, as other processes find it."""
    given = [f"{EXPERIMENT_TAG}younger", "assay-archive:before"]

    def set_tag(_run_id, prefix, value, *, also):
        given[:] = [*(tag for tag in given if not tag.startswith(prefix)), *also, prefix + value]

    first = tuple(given)
    monkeypatch.setattr(steps, "current_run", SimpleNamespace(id="run"))
    monkeypatch.setattr(steps, "own_tags", lambda: first)
    monkeypatch.setattr(steps, "get_run_logger", lambda: logging.getLogger("test"))
    monkeypatch.setattr(steps.artifacts, "show_order", lambda label, order: None)
    monkeypatch.setattr(steps, "can_suspend", lambda: True)
    monkeypatch.setattr(steps, "set_tag", set_tag)
    return given


def order_of(experiment_id):
    return Order(order_key=KEY, experiment_id=experiment_id, status="quote_sent", adopted=True)


def test_a_surplus_experiment_whose_quote_was_rejected_does_not_end_the_order(billing, tags):
    """A run that waited for the younger one goes on with the older, which another run has found and confirmed.

    The older one's updates must wake it, and the younger one's must not.
    """
    work = a_run(experiment="younger")
    work.book.record(lambda _: Surplus(experiment_id="younger", kept="older"))
    work.book.record(lambda _: Confirming(amount_cents=1))
    billing |= {"younger": BillingStage.QUOTE_REJECTED, "older": BillingStage.INVOICED}
    assert steps._await_invoice(work, order_of("younger")).experiment_id == "older"
    assert work.book.read().confirmed
    assert [tag for tag in tags if tag.startswith(EXPERIMENT_TAG)] == [f"{EXPERIMENT_TAG}older"]


def test_a_run_can_be_found_by_its_experiment_and_its_order(tags):
    """A delivery to the address of another order must not wake it."""
    steps.announce(a_run(experiment="younger"), order_of("younger"))
    assert f"{ORDER_TAG}{KEY}" in tags


def test_the_code_of_the_experiment_is_a_label_of_the_run(tags, monkeypatch):
    work = a_run(experiment="younger")
    labels = {}
    monkeypatch.setattr(steps, "own_label", labels.get)
    monkeypatch.setattr(steps, "set_labels", lambda _run_id, new: labels.update(new))
    complete = (EXPERIMENT_TAG + "younger", ARCHIVE_TAG + work.book.books.archive_id, ORDER_TAG + KEY)
    monkeypatch.setattr(steps, "own_tags", lambda: complete)
    steps.announce(work, order_of("younger").model_copy(update={"experiment_code": "LAB-001-001"}))
    assert labels == {"assay.experiment-code": "LAB-001-001"}


def test_a_run_that_lost_its_order_tag_gets_it_in_its_next_execution(tags, monkeypatch):
    work = a_run(experiment="younger")
    before = (f"{EXPERIMENT_TAG}younger", f"{ARCHIVE_TAG}{work.book.books.archive_id}")
    monkeypatch.setattr(steps, "own_tags", lambda: before)
    steps.announce(work, order_of("younger"))
    assert f"{ORDER_TAG}{KEY}" in tags


def test_an_order_whose_quote_was_rejected_is_withdrawn_and_frees_its_share(billing):
    work = a_run(experiment="only")
    work.book.books.budget.reserve(KEY, "c", 500, campaign_cap_cents=500)
    billing["only"] = BillingStage.QUOTE_REJECTED
    with pytest.raises(QuoteRejected):
        steps._await_invoice(work, order_of("only"))
    assert [record.kind for record in work.book.records()][-1] == "withdrawn"
    assert work.book.books.budget.read().campaign_cents("c") == 0


@pytest.mark.parametrize(
    ("stage", "error"),
    [
        (BillingStage.NOT_SUBMITTED, QuoteRejected),
        (BillingStage.QUOTE_PENDING, NotReady),
        (BillingStage.QUOTE_OPEN, NotReady),
        (BillingStage.QUOTE_UNKNOWN, NotReady),
        (BillingStage.INVOICED, None),
        (BillingStage.QUOTE_REJECTED, QuoteRejected),
        (BillingStage.QUOTE_EXPIRED, QuoteExpired),
        (BillingStage.CANCELED, ExperimentCanceled),
    ],
)
def test_each_stage_of_billing_has_its_own_end(monkeypatch, stage, error):
    monkeypatch.setattr(steps, "_end_canceled", lambda *_: None)
    given = a_run(experiment="only"), order_of("only"), Billing(stage=stage)
    if error is None:
        assert steps._is_invoiced(*given)
        return
    with pytest.raises(error):
        steps._is_invoiced(*given)


@pytest.mark.parametrize(
    ("status", "results", "sealed"),
    [
        ("in_production", "partial", "partial"),
        ("in_review", "all", "partial"),
        ("canceled", "all", "partial"),
        ("done", "all", "all"),
        ("done", "new_word", "new_word"),
    ],
)
def test_results_are_sealed_as_complete_only_once_they_are_released(monkeypatch, status, results, sealed):
    """Contract 3: `all` before Done is preliminary; a design without a row is `pending` there and not `missing`."""
    given = []

    def archive_experiment(_credentials, _archive, experiment, **_):
        given.append(experiment.reported)
        return SimpleNamespace(record=SimpleNamespace(unchanged=True, experiment_code="E-1"))

    monkeypatch.setattr(steps, "archive_experiment", archive_experiment)
    monkeypatch.setattr(steps.facts, "archived", lambda *_, **__: None)
    monkeypatch.setattr(steps, "_is_own", lambda _order: True)
    monkeypatch.setattr(steps, "plot_results", lambda *_: ResultPlots())
    monkeypatch.setattr(steps.artifacts, "show_results", lambda *_, **__: None)
    found = Experiment(
        id="e", code="E-1", status=status, results_status=results, created_at="2026-01-01T00:00:00Z"
    )
    steps._archive(a_run(experiment="e"), order_of("e"), None, found)
    assert given == [sealed]


@pytest.fixture
def canceled(monkeypatch):
    """What a canceled experiment has, and what is archived and reported of it."""
    said = SimpleNamespace(results="none", archived=[], reported=[])

    def found(experiment_id):
        return Experiment(
            id=experiment_id,
            code="E-1",
            status="canceled",
            results_status=said.results,
            created_at="2026-01-01T00:00:00Z",
        )

    said.credentials = SimpleNamespace(
        get_client=lambda: contextlib.nullcontext(SimpleNamespace(experiment=found))
    )
    monkeypatch.setattr(steps, "_archive", lambda _run, order, *_: said.archived.append(order.experiment_id))
    monkeypatch.setattr(steps.facts, "canceled", lambda *about: said.reported.append(about))
    return said


@pytest.mark.parametrize(("results", "archived"), [("none", []), ("partial", ["only"]), ("all", ["only"])])
@pytest.mark.parametrize("invoiced", [True, False])
def test_an_order_that_was_canceled_before_it_was_paid_ends_and_keeps_its_results(
    monkeypatch, canceled, billing, results, archived, invoiced
):
    """The laboratory may have measured some of it, whatever became of the invoice."""
    canceled.results = results
    work, order = a_run(experiment="only"), order_of("only")
    vars(work.options)["credentials"] = canceled.credentials
    billing["only"] = BillingStage.INVOICED if invoiced else BillingStage.CANCELED

    def refuse(*_, **__):
        raise ExperimentCanceled("its invoice is open: it must not be paid")

    monkeypatch.setattr(steps, "pay", refuse)
    with pytest.raises(ExperimentCanceled, match="must not be paid" if invoiced else "was canceled"):
        steps.complete_order(work, order)
    assert canceled.archived == archived
    assert canceled.reported == [("only", order.experiment_code)]


@pytest.fixture
def in_doubt(monkeypatch, canceled, billing):
    """A run whose machine payment was sent, and whose experiment was canceled after partial results."""
    canceled.results = "partial"
    billing["only"] = BillingStage.INVOICED
    work = a_run(MACHINE, experiment="only")
    vars(work.options)["credentials"] = canceled.credentials
    sent = an_attempt(experiment_id="only", rail=MACHINE, amount_cents=5)
    assert OrderLedger(work.book).begin(sent, previous=None)

    def refuse(*_, **__):
        raise PaymentOutcomeUnknown("the experiment was canceled, and a payment may still settle")

    monkeypatch.setattr(billing_steps, "read_due", refuse)
    monkeypatch.setattr(billing_steps, "payment_decision", lambda *_: None)
    monkeypatch.setattr(billing_steps, "_status", lambda *_: PaymentStatus())
    monkeypatch.setattr(billing_steps, "get_run_logger", lambda: logging.getLogger("test"))
    return work


@pytest.mark.parametrize("status", ["quote_sent", "canceled"])
def test_a_canceled_experiment_with_a_payment_in_doubt_is_archived_before_a_person_is_asked(
    monkeypatch, canceled, in_doubt, asked, status
):
    def ask(form, **_):
        assert canceled.archived == ["only"]
        raise BlockingIOError(form.model_json_schema()["properties"]["decision"]["enum"])

    monkeypatch.setattr(uncertain_payment, "ask", ask)
    with pytest.raises(BlockingIOError, match=r"\['paid', 'stop'\]"):
        steps.complete_order(in_doubt, order_of("only").model_copy(update={"status": status}))
    assert len(canceled.reported) == 1


@pytest.mark.parametrize("error", [ApprovalRejected, ApprovalExpired, None])
def test_a_canceled_experiment_with_a_payment_in_doubt_is_archived_whatever_ends_the_run(
    monkeypatch, canceled, in_doubt, error
):
    """A person stopped it, the question expired, or the run cannot ask."""

    def end(*_):
        raise error("the answer")

    monkeypatch.setattr(billing_steps, "can_suspend", lambda: error is not None)
    monkeypatch.setattr(billing_steps, "payment_decision", end)
    with pytest.raises(error or PaymentOutcomeUnknown):
        steps.complete_order(in_doubt, order_of("only"))
    assert canceled.archived == ["only"]
    assert len(canceled.reported) == 1


class Service:
    """Knows one experiment; the client of a credentials block."""

    service_time = None  # its answers have no date

    def experiment(self, experiment_id):
        if experiment_id != "mine":
            raise NotFound(experiment_id)
        return Experiment(
            id="mine",
            code="X-1",
            status="in_production",
            experiment_type="expression",
            created_at="2026-01-01T00:00:00Z",
        )


def woken(monkeypatch, experiment_id):
    """A run that has ordered, and whose log is empty: its token is now another organisation's, or has a new address."""
    work = a_run()
    options = replace(
        work.options,
        credentials=SimpleNamespace(get_client=lambda: nullcontext(Service()), base_url="https://s"),
    )
    work = replace(work, options=options)
    vars(work)["book"] = a_book(key=KEY, experiment=None)
    tags = [EXPERIMENT_TAG + experiment_id, ARCHIVE_TAG + work.book.books.archive_id]
    monkeypatch.setattr(experiment_flow, "own_tags", lambda: tags)
    return work


def test_a_run_that_has_ordered_does_not_order_again_with_the_token_of_another_organisation(monkeypatch):
    work = woken(monkeypatch, "of-another-organisation")
    monkeypatch.setattr(experiment_flow, "_place_order", lambda _: pytest.fail("ordered again"))
    with pytest.raises(
        OrderOutcomeUnknown, match="of-another-organisation was ordered, and these credentials cannot see"
    ):
        experiment_flow._find_or_place(work)
    assert work.book.read().ordered is None


def test_a_run_whose_archive_block_leads_to_another_archive_orders_and_pays_nothing(monkeypatch):
    work = woken(monkeypatch, "mine")
    monkeypatch.setattr(
        experiment_flow, "own_tags", lambda: [EXPERIMENT_TAG + "mine", ARCHIVE_TAG + "another"]
    )
    monkeypatch.setattr(experiment_flow, "_place_order", lambda _: pytest.fail("ordered again"))
    with pytest.raises(ArchiveError, match=r"has ordered in another archive .* nothing is ordered or paid"):
        experiment_flow._find_or_place(work)
    assert work.book.read().ordered is None


def test_a_run_that_has_ordered_finds_its_order_in_a_new_log(monkeypatch):
    work = woken(monkeypatch, "mine")
    experiment_flow._adopt_tagged(work)
    assert work.book.read().ordered.experiment_id == "mine"


def test_a_quote_that_expires_as_it_is_accepted_ends_the_order_although_it_reads_as_open(monkeypatch):
    work = a_run(experiment="mine")
    work.book.books.budget.reserve(KEY, "c", 5)
    expired = Billing(stage=BillingStage.QUOTE_EXPIRED, quote=Quote(status="open", amount_total=1))
    monkeypatch.setattr(steps.facts, "quoted", lambda *_: None)
    monkeypatch.setattr(billing_steps, "confirm_quote", lambda *_, **__: expired)
    monkeypatch.setattr(billing_steps, "approve_price", lambda *_, **__: 1)
    monkeypatch.setattr(billing_steps, "estimate_cost", lambda *_: CostEstimate())
    still_open = expired.model_copy(update={"stage": BillingStage.QUOTE_OPEN})
    with pytest.raises(QuoteExpired):
        steps._is_invoiced(work, order_of("mine"), still_open)
    assert work.book.read().withdrawn
    assert work.book.books.budget.read().campaign_cents("c") == 0


def test_a_quote_whose_total_has_changed_since_it_was_approved_is_read_again(monkeypatch):
    def more(*_, **__):
        raise BudgetExceeded("the quote is 2.00 USD, approved were 1.00 USD")

    monkeypatch.setattr(billing_steps, "confirm_quote", more)
    monkeypatch.setattr(billing_steps, "approve_price", lambda *_, **__: 1)
    monkeypatch.setattr(billing_steps, "estimate_cost", lambda *_: CostEstimate())
    with pytest.raises(NotReady, match="approved were"):
        billing_steps.accept_quote(a_run(), order_of("mine"), Quote(status="open", amount_total=1))
