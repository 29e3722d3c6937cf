"""The steps of an experiment that cost money: its price, its quote, its invoice. Over a cap, a person is asked.

Once the laboratory works on an experiment, no question is asked: a payment problem must not hold back its results.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeVar

from prefect.logging import get_run_logger
from prefect.runtime import flow_run as current_run

from prefect_assay.approvals.decision_form import request_decision
from prefect_assay.approvals.spending import Approval, approve_spending
from prefect_assay.approvals.uncertain_payment import ask_about_payment, payment_decision
from prefect_assay.approvals.which_order import which_order
from prefect_assay.books.log import Approved
from prefect_assay.errors import (
    BudgetExceeded,
    DecisionNeeded,
    InputError,
    NotReady,
    OrderMismatch,
    OrderOutcomeUnknown,
    PayByHand,
    PaymentOutcomeUnknown,
    UnexpectedAnswer,
)
from prefect_assay.flows.run_options import CAMPAIGN_CAP, ExperimentRun
from prefect_assay.models.billing import LOWEST_PERCENT, Quote, is_far_below, usd
from prefect_assay.models.job import Order, OrderRoute, Payment, PaymentState
from prefect_assay.models.vocabulary import AFTER_MATERIALS, MACHINE_RAILS, PaymentMethod
from prefect_assay.ordering import choose
from prefect_assay.payments.reconciliation import PaymentStatus, read_payment_status
from prefect_assay.reporting import artifacts, facts
from prefect_assay.runs import can_suspend
from prefect_assay.runs.block_references import require_blocks
from prefect_assay.runs.tags import own_label, set_labels
from prefect_assay.tasks.estimate import estimate_cost
from prefect_assay.tasks.order import order_experiment
from prefect_assay.tasks.pay import named_rail, pay_invoice, read_due, require_rail
from prefect_assay.ordering.billing import Billing, check_total, is_known
from prefect_assay.tasks.quote import confirm_quote

T = TypeVar("T")

_NOT_ACCEPTED: Final = "the quote was not accepted, and nothing is billed"
_EVERY_QUOTE: Final = "the policy leaves every quote to a person (accept_quotes is off)"
# A run is woken often: only a payment is called one in its timeline.
_read_invoice: Final = pay_invoice.with_options(
    name="read-invoice", task_run_name="read-invoice-{book.order_key}"
)
_UNPAID: Final = "nothing was paid; the order remains, and its invoice is open"


def approve_price(
    run: ExperimentRun,
    *,
    what: str,
    amount_cents: int,
    otherwise: str,
    because: str | None = None,
    may_ask: bool = True,
    quote: Quote | None = None,
    figures: Mapping[str, str] | None = None,
    exact: bool = False,
) -> int:
    """Return the amount, in US cents, once it is approved. See `approve_spending`.

    An earlier approval of the order is the limit: more is always a question, and so is less than `LOWEST_PERCENT` of it,
    or with `exact` any other amount. One by a person counts even above the cap, one by a rule only below it. Each
    approval is recorded in the order's log, with this amount.
    """
    before = run.book.read().approved
    cap_cents, cap_name = run.cap_cents, run.cap_name
    if before is not None:
        # An approval by a rule holds only within the present cap: a lowered cap asks again.
        allowed = before.amount_cents if before.by_person else min(before.amount_cents, cap_cents)
        differs = amount_cents != before.amount_cents
        if differs and (
            exact or (amount_cents < before.amount_cents and is_far_below(amount_cents, before.amount_cents))
        ):
            because = because or f"{usd(before.amount_cents)} was approved for this order before"
        if because is None and amount_cents <= allowed:
            _record_approval(run, Approval(amount_cents, before.approver, before.by_person))
            return amount_cents
        if before.amount_cents <= cap_cents:
            cap_cents, cap_name = before.amount_cents, "amount approved for this order before"
    asks = because is not None or amount_cents > cap_cents
    approval = approve_spending(
        run.options.policy,
        key=run.key,
        what=what,
        amount_cents=amount_cents,
        cap_cents=cap_cents,
        cap_name=cap_name,
        bought=run.bought(quote) if asks else None,
        figures=figures,
        because=because,
        may_ask=may_ask,
        otherwise=otherwise,
    )
    _record_approval(run, replace(approval, cents=amount_cents))
    return amount_cents


def _record_approval(run: ExperimentRun, approval: Approval) -> None:
    new = Approved(amount_cents=approval.cents, approver=approval.approver, by_person=approval.by_person)
    run.book.record(
        lambda state: (
            None
            if state.approved
            and (state.approved.amount_cents, state.approved.approver) == (new.amount_cents, new.approver)
            else new
        )
    )


def place_order(run: ExperimentRun, total_cents: int | None) -> Order:
    """Order once, at the estimated price, or by quote without one.

    A person is asked over the campaign's cap, and before an order whose answer was lost is sent again, if the order
    itself commits money or the policy requires it. Nothing is ordered meanwhile.
    """
    commits = total_cents is not None
    try:
        return _order(run, total_cents, repeats=0 if run.options.policy.ask_before_reordering else None)
    except OrderOutcomeUnknown:
        state = run.book.read()
        # An earlier run may have used another route.
        commits = commits or any(sent.commits for sent in state.open_attempts)
        asks = commits or run.options.policy.ask_before_reordering
        if not (asks and can_suspend() and state.open_attempts):
            raise
        approve_spending(
            run.options.policy,
            key=f"{run.key}-again-{state.attempts}",
            what=f"Ordering {run.name} again, although the laboratory may have an earlier order whose answer was lost,",
            amount_cents=total_cents or 0,
            cap_cents=run.cap_cents,
            cap_name=run.cap_name,
            figures={"earlier orders without an answer": str(len(state.open_attempts))},
            bought=run.bought(),
            because="the order may exist already, and would be billed twice",
            otherwise="nothing was ordered again",
        )
    return _order(run, total_cents, repeats=state.attempts)


def _order(run: ExperimentRun, total_cents: int | None, *, repeats: int | None) -> Order:
    return _within_campaign(
        run,
        lambda cap_cents: order_experiment(
            run.options.credentials,
            run.spec,
            book=run.book,
            name=run.name,
            route=OrderRoute.QUOTED if total_cents is None else OrderRoute.SELF_SERVICE,
            payment_method=run.options.payment_method,
            webhook=run.options.webhook,
            amount_cents=total_cents or 0,
            campaign_cap_cents=cap_cents,
            repeats=repeats,
        ),
        otherwise="nothing was ordered",
    )


def decide_which(run: ExperimentRun, error: OrderMismatch) -> None:
    """Have a person say which experiment is the order, and record it; raise the error in a run that cannot ask."""
    if not (can_suspend() and error.candidates):
        raise error
    chosen = which_order(run.options.policy, key=run.key, what=run.name, error=error)
    choose(run.book, chosen.experiment_id if chosen else None, error.candidates)


def accept_ledger(run: ExperimentRun, error: DecisionNeeded) -> None:
    """Ask whether an order whose records contradict each other continues, and make its budget again if it does."""
    request_decision(error.question, key=run.key, hours=run.options.policy.approval_hours)
    run.book.accept_records()


def accept_quote(run: ExperimentRun, order: Order, quote: Quote) -> Billing:
    """Accept the quote if its total is within the budget, or a person approved it; the stage after that.

    Raises:
        NotReady: the quote's total has changed meanwhile; it is approved again.
        PaymentRefused: the quote is not in US dollars.
        DecisionNeeded: a person has to look at the quote, and this run cannot ask.
        ApprovalRejected, ApprovalExpired: nothing is accepted, and the quote stays open until it expires.
    """
    total = check_total(quote, order.experiment_id)
    amount, reasons, figures = _judge_quote(run, quote, total)
    if not (reasons or run.options.policy.accept_quotes):
        reasons.append(_EVERY_QUOTE)
    approved = approve_price(
        run,
        what=f"Quote for {run.name}",
        amount_cents=amount,
        because=", and ".join(reasons) or None,
        otherwise=_NOT_ACCEPTED,
        quote=quote,
        figures=figures,
    )
    try:
        return _within_campaign(
            run,
            lambda cap_cents: confirm_quote(
                run.options.credentials,
                order.experiment_id,
                book=run.book,
                approved_cents=approved,
                campaign_cap_cents=cap_cents,
                untotaled=total is None,
            ),
            otherwise=_NOT_ACCEPTED,
        )
    except BudgetExceeded as over:
        if over.cap is not None:
            raise
        raise NotReady(over.message) from over


def _judge_quote(
    run: ExperimentRun, quote: Quote, total: int | None
) -> tuple[int, list[str], dict[str, str]]:
    """The amount to approve for a quote, why a person has to look at it, and what the form shows of it.

    Without a readable total the amount is what was approved for the order, else the estimate, else the cap.
    """
    expected, source = _expected_price(run)
    figures = {source: usd(expected)} if expected is not None else {}
    reasons = []
    if total is None:
        stated = "; ".join(f"{name} {text}" for name, text in quote.money.stated)
        figures |= {
            "read from the quote": stated or "no amount",
            "quote": quote.provider_quote_url or "without a page",
        }
        cause = quote.money.unreadable or "it shows none"
        amount = f"the amount here is {source if expected is not None else 'the cap'}"
        reasons.append(f"its total cannot be read ({cause}); {amount}: read the quote before you approve")
    elif is_far_below(total, expected or 0):
        reasons.append(
            f"it is less than {LOWEST_PERCENT} % of {source}" if total else "it is a quote of nothing"
        )
    if not is_known(quote):
        reasons.append(f"its status is {quote.status!a}, a word that this version does not know")
    fallback = run.cap_cents if expected is None else expected
    return fallback if total is None else total, reasons, figures


def _expected_price(run: ExperimentRun) -> tuple[int | None, str]:
    """What an order is expected to cost, and who says so; None where there is neither an approval nor an estimate."""
    approved = run.book.read().approved
    if approved is not None:
        return approved.amount_cents, "the amount approved before"
    with suppress(
        InputError, UnexpectedAnswer
    ):  # what cannot be estimated is quoted, and then the cap is the limit
        return estimate_cost(run.options.credentials, run.spec).total_cents, "the estimate"
    return None, "the estimate"


def on_named_rail(run: ExperimentRun) -> ExperimentRun:
    """The run, with the payment method by which its order is paid; PaymentsDisabled where it cannot be used."""
    options = run.options
    method = named_rail(run.book, options.payment_method, options.policy, options.wallet)
    return (
        run
        if method == options.payment_method
        else replace(run, options=replace(options, payment_method=method))
    )


def pay(run: ExperimentRun, order: Order, *, canceled: bool = False) -> Payment:
    """Pay the approved amount. An earlier approval of the same amount is not asked for again.

    For a `canceled` experiment, a question about a payment in doubt does not offer to pay again.

    Raises:
        PaymentError: nothing was paid.
        PaymentOutcomeUnknown: money may have moved, and this run cannot ask a person.
        Stopped: a person refused, or the question expired.
    """
    chosen = run.options.payment_method
    run = on_named_rail(run)
    if run.options.payment_method in MACHINE_RAILS:
        payment = _by_machine(run, order, canceled=canceled)
    elif chosen in MACHINE_RAILS:
        payment = _by_hand_instead(run, order, chosen)
    else:
        payment = _invoice(run, order, 0, pays=False)
    show_payment(run, order, payment)
    return payment


def _by_hand_instead(run: ExperimentRun, order: Order, chosen: PaymentMethod) -> Payment:
    """The hosted invoice of an order that a machine was to pay: nobody expects it, so a deployed run asks until it is paid."""
    asks = can_suspend() and order.status not in AFTER_MATERIALS
    if asks:
        payment_decision(run.key, run.name, lambda: _status(run, order))
    payment = _invoice(run, order, 0, pays=False)
    if payment.state is PaymentState.INTENDED:
        why = (
            f"{chosen} was chosen, and the service has accepted the order for payment by a person. Pay it at its page: "
            f"{payment.hosted_invoice_url or order.experiment_url}"
        )
        get_run_logger().warning("%s", why)
        if asks:
            show_payment(run, order, payment)
            _ask_about_payment(run, order, why, repeatable=False)
    return payment


def show_payment(run: ExperimentRun, order: Order, payment: Payment) -> None:
    """Show how the order is paid: artifact, event, then labels, with which an earlier execution has shown it."""
    notes = artifacts.payment_labels(payment)
    changed = {name: value for name, value in notes.items() if own_label(name) != value}
    if changed:
        artifacts.show_payment(run.label, payment)
    facts.payment(run.book, order, payment)
    if changed and can_suspend():
        set_labels(current_run.id, changed)


def _by_machine(run: ExperimentRun, order: Order, *, canceled: bool) -> Payment:
    asks = can_suspend() and order.status not in AFTER_MATERIALS
    answer = payment_decision(run.key, run.name, lambda: _status(run, order)) if asks else None
    try:
        return _pay_due(run, order, asks=asks, answered_paid=answer == "paid")
    except (PaymentOutcomeUnknown, PayByHand) as error:
        if not asks:
            raise
        get_run_logger().warning("Asking a person: %s", error)
        # Without a record of it, nothing is known that would exclude a second settlement.
        known = isinstance(error, PaymentOutcomeUnknown) and run.book.state.payment is not None
        _ask_about_payment(run, order, str(error), repeatable=not canceled and known)
        raise


def _pay_due(run: ExperimentRun, order: Order, *, asks: bool, answered_paid: bool) -> Payment:
    due = None
    if run.book.read().settled is None:
        due = read_due(
            run.options.credentials,
            order,
            book=run.book,
            policy=run.options.policy,
            wallet=run.options.wallet,
            method=run.options.payment_method,
        )
    if answered_paid and due is not None:
        raise PaymentOutcomeUnknown("A person answered that it was paid. The invoice does not show it.")
    limit = run.cap_cents
    if due is not None:
        facts.invoiced(run.book, order, run.options.payment_method, due)
        require_blocks("wallet")
        require_rail(run.options.payment_method, run.options.policy, run.options.wallet)
        limit = approve_price(
            run, what=f"Invoice of {run.name}", amount_cents=due, otherwise=_UNPAID, may_ask=asks, exact=True
        )
    return _within_sums(run, order, limit, asks=asks, pays=due is not None)


def _within_campaign(run: ExperimentRun, step: Callable[[int], T], *, otherwise: str) -> T:
    """Run a step that commits money, under the campaign's cap or under what a person approved instead."""
    while True:
        try:
            return step(run.campaign_cap_cents)
        except BudgetExceeded as over:
            what = f"All orders of campaign {run.campaign_id}, with {run.name},"
            approval = _approve_sum(run, over, cap="campaign", what=what, otherwise=otherwise)
            run.book.books.budget.raise_cap(run.campaign_id, approval.cents, approval.approver)


def _within_sums(run: ExperimentRun, order: Order, limit: int, *, asks: bool, pays: bool) -> Payment:
    """Pay within the caps of the budget's sums. Over a cap, a person is asked, with the new sum."""
    sums = {"campaign": run.campaign_cap_cents}
    while True:
        try:
            return _invoice(run, order, limit, sums, pays=pays)
        except BudgetExceeded as over:
            if over.cap is None:
                raise
            days = run.options.policy.rolling_days
            which = f"of the last {days} days" if over.cap == "rolling" else f"of campaign {run.campaign_id}"
            what = f"All machine payments {which}, with the invoice of {run.name},"
            approval = _approve_sum(run, over, cap=over.cap, what=what, otherwise=_UNPAID, may_ask=asks)
            sums[over.cap] = approval.cents
            approver = f"{approval.approver}, over the {over.cap} cap"
            _record_approval(run, replace(approval, cents=limit, approver=approver))


def _approve_sum(
    run: ExperimentRun, over: BudgetExceeded, *, cap: str, what: str, otherwise: str, may_ask: bool = True
) -> Approval:
    """Ask a person about a sum that exceeds its cap; raise the error again if it is not about a sum."""
    if over.total_cents is None or over.cap_cents is None:
        raise over
    return approve_spending(
        run.options.policy,
        key=f"{run.key}-{cap}",
        what=what,
        amount_cents=over.total_cents,
        cap_cents=over.cap_cents,
        cap_name=CAMPAIGN_CAP if cap == "campaign" else run.rolling_cap_name,
        bought=run.bought(),
        may_ask=may_ask,
        otherwise=otherwise,
    )


def _invoice(
    run: ExperimentRun, order: Order, limit: int, sums: dict[str, int] | None = None, *, pays: bool
) -> Payment:
    """Pay the invoice, or read how it is paid."""
    step = pay_invoice if pays else _read_invoice
    return step(
        run.options.credentials,
        order,
        book=run.book,
        policy=run.options.policy,
        wallet=run.options.wallet,
        method=run.options.payment_method,
        limit_cents=limit,
        sums=sums,
    )


def _ask_about_payment(run: ExperimentRun, order: Order, why: str, *, repeatable: bool) -> None:
    ask_about_payment(
        run.options.policy,
        run.options.payment_method,
        key=run.key,
        what=run.name,
        why=why,
        status=_status(run, order),
        repeatable=repeatable,
    )


def _status(run: ExperimentRun, order: Order) -> PaymentStatus:
    with run.options.credentials.get_client() as client:
        return read_payment_status(client, run.book.read().payment, order.experiment_id)
