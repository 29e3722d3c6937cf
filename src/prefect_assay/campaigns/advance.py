"""Takes one order as far as it goes now: performs what `next_action` says, through the public tasks.

Each task is visible on the run's page. Those that act have no retries: they are sent once, and the next look reads what
came of them. Whatever goes wrong here concerns this order alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, assert_never

from prefect.logging import get_run_logger

from prefect_assay.campaigns import artifacts
from prefect_assay.campaigns.approval.questions import Questions, question_id, report_budget
from prefect_assay.campaigns.events import describe_subject, facts
from prefect_assay.campaigns.orders import CAMPAIGN_CAP, PlannedOrder
from prefect_assay.campaigns.remains import reject_quote, reject_surplus
from prefect_assay.errors import (
    AssayError,
    BudgetExceeded,
    DecisionNeeded,
    ExperimentCanceled,
    InputError,
    NotReady,
    OrderMismatch,
    OrderOutcomeUnknown,
    OrderPending,
    OrderStopped,
    PayByHand,
    PaymentError,
    PaymentOutcomeUnknown,
    ServiceUnavailable,
)
from prefect_assay.orders.billing import CONFIRMABLE, check_total, is_hosted_invoice_paid, withdraw_order
from prefect_assay.orders.find import record_choice
from prefect_assay.orders.job import (
    Order,
    OrderRoute,
    Payment,
    PaymentState,
)
from prefect_assay.orders.ledger import OrderState
from prefect_assay.orders.ledger.log import Approved
from prefect_assay.orders.next_action import (
    APPROVE,
    Action,
    Approve,
    Ask,
    ConfirmQuote,
    Create,
    End,
    Estimate,
    FindOrder,
    NotePartial,
    Pay,
    PollQuote,
    ReadDue,
    ReadHosted,
    RejectQuote,
    Retrieve,
    SearchAgain,
    Seen,
    Wait,
    Withdraw,
    next_action,
    spending_question,
)
from prefect_assay.orders.payments.rails import can_pay_again
from prefect_assay.orders.payments.reconciliation import read_payment_status
from prefect_assay.orders.question import REJECT, Question, QuestionKind
from prefect_assay.orders.stages import Stage
from prefect_assay.service.models.status_questions import has_work_begun, is_invoice_dropped
from prefect_assay.service.models.vocabulary import (
    MACHINE_RAILS,
    ExperimentStatus,
    ResultsStatus,
)
from prefect_assay.service.words import many
from prefect_assay.tasks.archive import ResultsGone, archive_experiment, retrieve_results
from prefect_assay.tasks.estimate import estimate_cost
from prefect_assay.tasks.order import find_order, order_experiment, recheck_order
from prefect_assay.tasks.pay import pay_invoice, read_due, require_rail
from prefect_assay.tasks.quote import confirm_quote, poll_quote
from prefect_assay.tasks.report import plot_results

_STEPS_MAX: Final = 60  # an order needs about ten in one execution
_CAMPAIGN: Final = "campaign"
_ROLLING: Final = "rolling"
_PAY_AGAIN: Final = "pay_again"
_PAID: Final = "paid"
_NONE: Final = "none"
_SENT: Final = "A payment was sent, and the invoice does not show it."
_NOT_NAMED: Final = "Which invoice is the order's is not known for certain, so no machine pays it."
_ON_PAGE: Final = "A machine was to pay it, and the service has accepted the order for payment by a person: pay it at its page."
# A run is woken often: only a payment is called one in its timeline.
_read_invoice: Final = pay_invoice.with_options(
    name="read-invoice", task_run_name="read-invoice-{ledger.order_key}"
)


@dataclass(frozen=True)
class OrderLook:
    """Where an order is after one execution; `problem` is what keeps it there, if anything, and may pass."""

    stage: Stage
    problem: str | None = None
    retriable: bool = False
    error: AssayError | None = None  # that only a person can correct, such as a missing wallet


class _Held(Exception):
    def __init__(self, look: OrderLook, *, is_rejected: bool = False) -> None:
        self.look = look
        self.is_rejected = is_rejected  # a person has decided that a sum over its cap is not spent


def advance(
    order: PlannedOrder, seen: Seen, questions: Questions, *, is_patient: Callable[[], bool]
) -> OrderLook:
    """Take the order as far as it goes now. `is_patient`: what cannot be read of released results is looked for again.

    Raises:
        AssayError: something failed that concerns this order; the caller advances the others.
    """
    describe_subject(campaign_id=order.plan.campaign_id, order_key=order.key, account=order.account)
    _raise_campaign_cap(order)
    decisions, answerers = questions.decisions_for(order.key)
    seen = seen.add(decisions=decisions, answerers=answerers)
    actions = _OrderActions(order, questions, is_patient)
    try:
        for _ in range(_STEPS_MAX):
            state = order.ledger.read()
            action = next_action(state, seen, actions.current().limits())
            if isinstance(action, Wait | End):
                questions.close_moot(order.key)
                return OrderLook(action.stage)
            seen = actions.perform(action, seen)
    except _Held as held:
        return held.look
    except OrderStopped:
        return OrderLook(Stage.STOPPED)
    raise RuntimeError(f"order {order.key} did not come to rest after {_STEPS_MAX} steps")


def _raise_campaign_cap(order: PlannedOrder) -> None:
    """Record the cap of the campaign that a person has approved when this order would have exceeded it."""
    decisions = order.log.read().decisions
    raised = decisions.get(question_id(order.key, QuestionKind.SPENDING, _CAMPAIGN))
    if raised is not None and raised[1].decision == APPROVE and raised[1].amount_cents is not None:
        order.setup.ledgers.budget.raise_cap(
            order.plan.campaign_id, raised[1].amount_cents, raised[1].answerer
        )


def _record_approval(order: PlannedOrder, new: Approved) -> None:
    """Record an approval unless it stands already."""

    def approve_unless_same(state: OrderState) -> Approved | None:
        last = state.approved
        is_same = last is not None and (last.amount_cents, last.approver, last.by_person) == (
            new.amount_cents,
            new.approver,
            new.by_person,
        )
        return None if is_same else new

    order.ledger.record(approve_unless_same)


@dataclass
class _OrderActions:
    """Performs the actions of one order in one execution."""

    order: PlannedOrder
    questions: Questions
    is_patient: Callable[[], bool]
    has_paid: bool = False  # a payment was sent by this execution, or its outcome was read

    @property
    def credentials(self) -> Any:
        return self.order.setup.credentials

    def current(self) -> PlannedOrder:
        """The order with the rail that the service has named; the chosen one while that cannot be used."""
        try:
            return self.order.with_chosen_rail()
        except PaymentError:
            return self.order

    def perform(self, action: Action, seen: Seen) -> Seen:  # noqa: C901, PLR0911, PLR0912 - one branch per action
        match action:
            case FindOrder():
                return self.find(seen)
            case Estimate():
                return seen.add(estimate=estimate_cost(self.credentials, self.order.spec))
            case Create():
                return self.create(action, seen)
            case SearchAgain():
                return self.search_again(seen)
            case PollQuote():
                return self.poll_quote(seen)
            case ConfirmQuote():
                return self.confirm_quote(action, seen)
            case RejectQuote():
                return self.reject(seen)
            case Withdraw():
                withdraw_order(self.order.ledger, action.reason)
                get_run_logger().warning("%s: %s", self.order.name, action.reason)
                return seen
            case ReadDue():
                return self.read_due(seen)
            case ReadHosted():
                return self.read_hosted(seen)
            case Pay():
                return self.pay_unless_held(action, seen)
            case Retrieve():
                return self.retrieve(seen)
            case Approve():
                _record_approval(self.order, action.approval)
                return seen
            case Ask():
                return self.ask(action.question, seen)
            case NotePartial():
                self.order.ledger.see_partial(seen.now)
                return seen
            case Wait() | End():
                raise AssertionError("the caller returns these")
            case _:
                assert_never(action)

    def ask(self, question: Question, seen: Seen) -> Seen:
        """Ask a person; once the laboratory works on the order, or the question was rejected, results do not wait for it."""
        cap_cents = self.order.setup.policy.per_experiment_cents
        report_budget(self.order.key, question.subject, question.amount_cents, cap_cents)
        decision = self.questions.decide(question, order_key=self.order.key)
        if decision is not None:
            seen = seen.add(decisions={**seen.decisions, question.digest: decision})
        if decision not in {None, REJECT}:
            return seen
        if has_work_begun(seen.status) or decision == REJECT:
            return seen.add(payment_problem=True)
        raise _Held(OrderLook(Stage.ASKS, question.subject))

    def find(self, seen: Seen) -> Seen:
        try:
            order = find_order(self.credentials, self.order.ledger, self.order.spec)
        except OrderMismatch as error:
            self.which(error)
            return seen
        except OrderPending as pending:
            raise _Held(OrderLook(Stage.ORDERED, pending.message, retriable=True)) from None
        if order is not None:
            self.announce(order)
        return seen.add(searched=True, order=order)

    def which(self, error: OrderMismatch) -> None:
        """Have a person say which experiment is the order; raises if nobody can."""
        if not error.candidates:
            raise error
        has_order = self.order.ledger.state.ordered is not None
        question = which_question(self.order.name, error, has_order=has_order)
        decision = self.questions.decide(question, order_key=self.order.key)
        if decision is None:
            raise _Held(OrderLook(Stage.ASKS, error.message)) from None
        if decision == REJECT:
            raise _Held(OrderLook(Stage.ASKS, f"{error.message}; a person has left it undecided")) from None
        record_choice(self.order.ledger, None if decision == _NONE else decision, error.candidates)

    def create(self, action: Create, seen: Seen) -> Seen:
        setup, ledger = self.order.setup, self.order.ledger
        require_rail(setup.payment_method, setup.policy, setup.wallet)
        repeats = self.count_allowed_repeats(action, seen)
        try:
            order = self.spend(
                lambda cap_cents, _rolling: order_experiment(
                    self.credentials,
                    self.order.spec,
                    ledger=ledger,
                    name=self.order.name,
                    route=action.route,
                    payment_method=setup.payment_method,
                    webhook=setup.webhook,
                    amount_cents=action.amount_cents,
                    campaign_cap_cents=cap_cents,
                    repeats=repeats,
                ),
                seen,
            )
        except OrderMismatch as error:
            self.which(error)
            return seen
        except OrderPending as pending:
            raise _Held(OrderLook(Stage.ORDERED, pending.message, retriable=True)) from None
        except OrderOutcomeUnknown as error:
            if self.needs_person(action) and self.order.ledger.read().open_attempts:
                self.ask_to_repeat_order(action)
            raise _Held(OrderLook(Stage.ORDERED, error.message, retriable=True)) from error
        except InputError as error:
            message = f"{self.order.name}: {error}"
            raise _Held(self.end_unordered(f"the service refused it: {error}", message)) from error
        self.announce(order)
        artifacts.show_order(self.order.label, order, self.order.account)
        return seen.add(order=order, row=None, searched=True)

    def end_unordered(self, reason: str, message: str) -> OrderLook:
        """Record that the order is not sent; one of unknown outcome is still searched for at each look."""
        withdraw_order(self.order.ledger, reason)
        is_unknown = bool(self.order.ledger.state.open_attempts)
        return OrderLook(Stage.ORDERED if is_unknown else Stage.REFUSED, message, retriable=is_unknown)

    def needs_person(self, action: Create) -> bool:
        """Whether an order of unknown outcome may be billed twice if it is sent again, or the policy asks in any case."""
        commits = action.route is OrderRoute.SELF_SERVICE
        sent = any(attempt.commits for attempt in self.order.ledger.state.open_attempts)
        return commits or sent or self.order.setup.policy.ask_before_reordering

    def count_allowed_repeats(self, action: Create, seen: Seen) -> int | None:
        """Count the earlier orders of unknown outcome that a new one may follow; may ask a person.

        None is any number, for orders that commit nothing. While the question is open, the order is not searched for at length
        at each look: `find` has searched for it. One that `find` has seen is not sent again, whatever the answer is.
        """
        state = self.order.ledger.state
        if seen.order is not None:
            return 0
        if not self.needs_person(action):
            return None
        if not state.open_attempts:
            return 0
        key = question_id(self.order.key, QuestionKind.ORDER_AGAIN)
        log = self.order.log.read()
        if key in log.open_questions or key in log.decisions:
            return self.ask_to_repeat_order(action)
        return 0

    def ask_to_repeat_order(self, action: Create) -> int:
        """Ask a person whether to order again although an earlier order has an unknown outcome; returns the number accepted.

        Raises:
            _Held: there is no answer yet.
        """
        question = order_again_question(self.order, action.amount_cents)
        decision = self.questions.decide(question, order_key=self.order.key, may_expire=False)
        if decision == APPROVE:
            return self.order.ledger.state.attempts
        raise _Held(OrderLook(Stage.ASKS, question.subject))

    def announce(self, order: Order) -> None:
        """Show and report an order, and reject the quotes of others that carry its key."""
        facts.report_order(self.order.ledger, order, self.order.spec, self.order.setup.payment_method)
        artifacts.show_surplus(self.order.label, order, self.order.account)
        if order.surplus:
            with self.credentials.get_client() as client:
                reject_surplus(client, order.surplus)

    def search_again(self, seen: Seen) -> Seen:
        order_before = self.order.known_order(seen)
        try:
            order = recheck_order(self.credentials, self.order.spec, order_before, ledger=self.order.ledger)
        except OrderMismatch as error:
            self.which(error)
            return seen
        if order.experiment_id == order_before.experiment_id:
            artifacts.show_surplus(self.order.label, order, self.order.account)
            return seen.add(checked_again=True)
        self.announce(order)
        return seen.add(checked_again=True, order=order, row=None, billing=None)

    def poll_quote(self, seen: Seen) -> Seen:
        order = self.order.known_order(seen)
        billing = poll_quote(self.credentials, order.experiment_id)
        if billing.quote is not None:
            if billing.stage in CONFIRMABLE:
                check_total(billing.quote, order.experiment_id)  # no answer accepts another currency
            facts.report_quote(order, billing.quote)
        return seen.add(billing=billing)

    def confirm_quote(self, action: ConfirmQuote, seen: Seen) -> Seen:
        """Accept the order's quote at the service, within the caps, and add the new billing to what was seen."""
        order = self.order.known_order(seen)
        try:
            billing = self.spend(
                lambda cap_cents, _rolling: confirm_quote(
                    self.credentials,
                    order.experiment_id,
                    ledger=self.order.ledger,
                    approved_cents=action.amount_cents,
                    campaign_cap_cents=cap_cents,
                    untotaled=action.untotaled,
                ),
                seen,
            )
        except _Held as held:
            if held.is_rejected:
                return self.reject(seen)
            raise
        return seen.add(billing=billing, confirmed=True)

    def reject(self, seen: Seen) -> Seen:
        order = self.order.known_order(seen)
        with self.credentials.get_client() as client:
            rejected = reject_quote(client, order.experiment_id)
        if not rejected:
            raise ServiceUnavailable(
                f"the quote of {self.order.name} could not be rejected; it is tried again"
            )
        withdraw_order(self.order.ledger, "a person has rejected its quote")
        return seen

    def read_due(self, seen: Seen) -> Seen:
        order = self.order.known_order(seen)
        current = self.current()
        setup = current.setup
        try:
            due = read_due(
                self.credentials,
                order,
                ledger=self.order.ledger,
                wallet=setup.wallet,
                method=setup.payment_method,
            )
        except AssayError as error:
            return self.payment_failed(error, order, seen)
        if due is None:
            return seen.add(due_read=True)
        facts.report_invoice(self.order.ledger, order, setup.payment_method, due)
        seen = seen.add(due_read=True, due_cents=due)
        if self.is_payment_asked():  # a credential has left; nothing is sent again without a person
            return self.ask_about_payment(_SENT, order, seen)
        return seen

    def read_hosted(self, seen: Seen) -> Seen:
        """Whether the hosted invoice is paid: by a plain reading, because a waiting run looks often."""
        order = self.order.known_order(seen)
        with self.credentials.get_client() as client:
            is_paid = is_hosted_invoice_paid(client, order.experiment_id)
        if is_paid:
            return seen.add(due_read=True)
        if self.order.payment_method in MACHINE_RAILS:
            return self.ask_about_payment(_ON_PAGE, order, seen)
        return seen.add(payment_problem=True)

    def is_payment_asked(self) -> bool:
        """Whether a person was asked about the payment, and has not allowed another one."""
        state = self.order.ledger.state
        if state.payment is None or not state.payment.in_doubt:
            return False
        key = question_id(self.order.key, QuestionKind.PAYMENT_OUTCOME)
        log = self.order.log.read()
        return key in log.open_questions or key in log.decisions

    def pay_unless_held(self, action: Pay, seen: Seen) -> Seen:
        """Pay or read the invoice; once the laboratory works on the order, results do not wait for a person's answer."""
        try:
            return self.pay(action, seen)
        except _Held:
            if has_work_begun(seen.status):
                return seen.add(payment_problem=True)
            raise

    def pay(self, action: Pay, seen: Seen) -> Seen:
        order = self.order.known_order(seen)
        self.has_paid = self.has_paid or action.limit_cents > 0
        try:
            current = self.order.with_chosen_rail()
            setup = current.setup
            step = (
                pay_invoice
                if action.limit_cents and current.payment_method in MACHINE_RAILS
                else _read_invoice
            )
            payment = self.spend(
                lambda cap_cents, rolling: step(
                    self.credentials,
                    order,
                    ledger=self.order.ledger,
                    policy=setup.policy,
                    wallet=setup.wallet,
                    method=setup.payment_method,
                    limit_cents=action.limit_cents,
                    sums={_CAMPAIGN: cap_cents, **({} if rolling is None else {_ROLLING: rolling})},
                ),
                seen,
            )
        except AssayError as error:
            return self.payment_failed(error, order, seen)
        self.show_payment(order, payment)
        seen = seen.add(payment=payment)
        if payment.state is PaymentState.INTENDED and self.order.payment_method in MACHINE_RAILS:
            return self.ask_about_payment(_ON_PAGE, order, seen)
        return seen

    def show_payment(self, order: Order, payment: Payment) -> None:
        artifacts.show_payment(self.order.label, payment, self.order.account)
        facts.report_payment(self.order.ledger, order, payment)

    def payment_failed(self, error: AssayError, order: Order, seen: Seen) -> Seen:
        """What follows when an order could not be paid: a question, or another look. Results do not wait for it."""
        if isinstance(error, ExperimentCanceled):
            # The list's row decides: the next look archives what was measured, and ends the order.
            raise _Held(OrderLook(Stage.PAYMENT, error.message, retriable=True)) from error
        if isinstance(error, NotReady):
            return seen.add(payment_problem=True)  # its invoice is not made yet
        if isinstance(error, PaymentOutcomeUnknown | PayByHand):
            get_run_logger().warning("%s: %s", self.order.name, error)
            reason = _SENT if isinstance(error, PaymentOutcomeUnknown) else _NOT_NAMED
            after = self.ask_about_payment(reason, order, seen)
            # To pay again needs the amount, which could not be read.
            return after if seen.due_read else after.add(payment_problem=True)
        if isinstance(error, DecisionNeeded):
            return self.decide_ledger(error, seen)
        if not has_work_begun(seen.status):
            raise error
        get_run_logger().error("The invoice of %s needs a person: %s", order.experiment_code, error)
        return seen.add(payment_problem=True)

    def ask_about_payment(self, why: str, order: Order, seen: Seen) -> Seen:
        """Ask about a payment whose outcome is unknown. The invoice decides, whatever a person answers.

        An answer counts once: after another payment in this execution, it is asked anew.
        """
        with self.credentials.get_client() as client:
            status = read_payment_status(client, self.order.ledger.read().payment, order.experiment_id)
        is_repeatable = (
            status.entry is not None
            and seen.status != ExperimentStatus.CANCELED
            and not (status.invoice and is_invoice_dropped(status.invoice.status))
            and can_pay_again(self.order.payment_method)
        )
        lines = artifacts.payment_lines(status)
        question = payment_question(self.order, why, lines, is_repeatable=is_repeatable)
        decision = self.questions.decide(
            question, order_key=self.order.key, may_expire=False, anew=self.has_paid
        )
        if decision == _PAY_AGAIN:
            return seen
        if decision == _PAID:
            again = f"You have answered that it was paid, and the invoice does not show it. {why}"
            question = payment_question(self.order, again, lines, is_repeatable=is_repeatable)
            decision = self.questions.decide(question, order_key=self.order.key, may_expire=False)
            if decision == _PAY_AGAIN:
                return seen
        if has_work_begun(seen.status) or decision == REJECT:
            return seen.add(payment_problem=True)
        raise _Held(OrderLook(Stage.ASKS, question.subject))

    def decide_ledger(self, error: DecisionNeeded, seen: Seen) -> Seen:
        """Go on with contradicting records if a person has said that the ledgers are complete."""
        decision = self.questions.decide(error.question, order_key=self.order.key, may_expire=False)
        if decision is None or decision == REJECT:
            raise _Held(OrderLook(Stage.ASKS, error.question.subject)) from error
        self.order.ledger.accept_records()
        return seen

    def spend(self, step: Callable[[int, int | None], Any], seen: Seen) -> Any:
        """Run a step that commits money, within the caps of sums or within what a person has approved instead."""
        rolling: int | None = None
        ledger_accepted = False
        while True:
            try:
                return step(self.order.campaign_cap_cents, rolling)
            except DecisionNeeded as error:
                if ledger_accepted or error.question.kind is not QuestionKind.LEDGER:
                    raise
                self.decide_ledger(error, seen)
                ledger_accepted = True
            except BudgetExceeded as over:
                if over.cap is None or over.total_cents is None or over.cap_cents is None:
                    raise
                question = sum_question(self.order, over)
                key = f"{self.order.key}/{over.cap}"
                report_budget(key, question.subject, over.total_cents, over.cap_cents)
                decision = self.questions.decide(question, order_key=self.order.key, topic=over.cap)
                if decision != APPROVE:
                    if decision == REJECT and self.order.ledger.state.ordered is None:
                        reason = "a person did not approve it over the cap"
                        raise _Held(self.end_unordered(reason, over.message)) from over
                    look = OrderLook(Stage.ASKS, question.subject)
                    raise _Held(look, is_rejected=decision == REJECT) from over
                if over.cap == _ROLLING:
                    rolling = over.total_cents
                else:
                    _raise_campaign_cap(self.order)

    def retrieve(self, seen: Seen) -> Seen:
        """Archive everything that the service has; complete results are delivered."""
        order, row = self.order.known_order(seen), seen.row
        if row is None:
            raise ServiceUnavailable(
                f"{self.order.name} is not in the service's list; its results are read later"
            )
        with self.credentials.get_client() as client:
            experiment = client.experiments.get(order.experiment_id)
        # The contract shows the two words in the list's row only, so that row decides (2.1).
        experiment = experiment.model_copy(
            update={"status": row.status, "results_status": row.results_status, "code": row.code}
        )
        received = retrieve_results(self.credentials, order.experiment_id)
        try:
            kept = archive_experiment(
                self.credentials,
                self.order.setup.archive,
                experiment,
                campaign_id=self.order.plan.campaign_id,
                order=order,
                payment=seen.payment,
                spec=self.order.spec,
                received=received,
            )
        except ResultsGone as error:
            if self.is_patient():
                raise
            get_run_logger().error("%s", error)
            return seen.add(retrieved=True)
        facts.report_version(experiment, kept, news=not kept.record.unchanged)
        complete = experiment.reported == ResultsStatus.ALL
        if complete and (kept.deferred or kept.unread) and self.is_patient():
            missing = "its results" if kept.unread else f"the packages of {', '.join(kept.deferred)}"
            raise ServiceUnavailable(
                f"experiment {experiment.code}: {missing} cannot be read now; everything else is archived in "
                f"{kept.record.location}"
            )
        if not kept.record.unchanged or complete:
            plots = plot_results(
                self.order.setup.archive, self.order.plan.campaign_id, kept.record.experiment_code
            )
            artifacts.show_results(
                self.order.label,
                kept,
                self.order.account,
                designs=plots.designs,
                images=plots.images,
                notes=plots.notes,
            )
        if complete:
            self.order.ledger.deliver(kept.record.experiment_code)
        return seen.add(retrieved=True, unread=bool(kept.unread))


def which_question(name: str, error: OrderMismatch, *, has_order: bool) -> Question:
    """Which of several experiments is the order: each candidate is a choice by its id.

    If the log `has_order`, one of them is recorded as the order, and stays it until a person names another.
    """
    another = {} if has_order else {_NONE: "each of them is another order's, and this order may be sent"}
    effects = {one.experiment_id: f"experiment {one.code} is this order" for one in error.candidates}
    return Question.of(
        QuestionKind.WHICH_EXPERIMENT,
        subject=f"Which experiment is {name}?",
        reason="The name of each has the order's key, and what the service shows does not prove that it is the order. "
        "Choose the one that is: to order again would be billed twice. Ask the laboratory if you are not certain.",
        facts={
            one.experiment_id: f"{one.code}: {one.why} {one.url or ''}".rstrip() for one in error.candidates
        },
        choices={
            **effects,
            **another,
            REJECT: "it stays undecided, and nothing is ordered",
        },
    )


def order_again_question(order: PlannedOrder, amount_cents: int) -> Question:
    """Whether an order whose answer was lost is sent again."""
    state = order.ledger.state
    last = state.open_attempts[-1].at
    return Question.of(
        QuestionKind.ORDER_AGAIN,
        subject=f"The order {order.name} was sent, its answer was lost, and the service does not list it.",
        reason="The laboratory may have it, and would bill it twice if it were sent again. Ask the laboratory first.",
        facts={
            **order.bought(),
            "orders without an answer": str(len(state.open_attempts)),
            "last sent": f"{last:%Y-%m-%d %H:%M} UTC",
        },
        choices={
            APPROVE: "the order is sent once more",
            REJECT: "it is not sent, and is searched for at each look",
        },
        amount_cents=amount_cents,
    )


def sum_question(order: PlannedOrder, over: BudgetExceeded) -> Question:
    """Whether a sum over its cap may be spent."""
    days = order.setup.policy.rolling_days
    total, cap = over.total_cents or 0, over.cap_cents or 0
    if over.cap == _ROLLING:
        what = f"All machine payments of the last {many(days, 'day')}, with the invoice of {order.name},"
        return spending_question(
            what, total, cap, f"cap of machine payments in {many(days, 'day')}", [], order.bought()
        )
    what = f"All orders of campaign {order.plan.campaign_id}, with {order.name},"
    needs_two = order.limits().needs_second_person(total)
    return spending_question(what, total, cap, CAMPAIGN_CAP, [], order.bought(), second_person=needs_two)


def payment_question(
    order: PlannedOrder, why: str, lines: dict[str, str], *, is_repeatable: bool
) -> Question:
    """Whether a payment has moved money. Paying again is offered only where one invoice can be paid only once."""
    again = {_PAY_AGAIN: "it is signed again with the same nonce, so that only one payment can settle"}
    return Question.of(
        QuestionKind.PAYMENT_OUTCOME,
        subject=f"The payment of {order.name} may or may not have been made.",
        reason=f"Nothing is paid again before you decide. {why}",
        facts=lines,
        choices={
            _PAID: "the invoice is read again, and must say so",
            **(again if is_repeatable else {}),
            REJECT: "no machine pays it; the order stands, and you settle its invoice",
        },
    )
