"""The steps of an experiment that cost money: its price, its quote, its invoice. Where a policy stops, a person is asked.

Once the laboratory works on an experiment, nobody is asked any more: no trouble with money stands before its results.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from prefect.logging import get_run_logger

from prefect_assay.errors import BudgetExceeded, PaymentOutcomeUnknown, QuoteExpired
from prefect_assay.flows import artifacts
from prefect_assay.flows.approval import approve_spending
from prefect_assay.flows.doubt import answered_doubt, ask_about_payment
from prefect_assay.flows.job import Job
from prefect_assay.flows.money import usd
from prefect_assay.models.job import Order, OrderRoute, Payment
from prefect_assay.models.vocabulary import AFTER_MATERIALS, MACHINE_RAILS
from prefect_assay.tasks.facts import MoneyFacts, money_facts
from prefect_assay.tasks.intent import CampaignIntents
from prefect_assay.tasks.ledger import PrefectLedger
from prefect_assay.tasks.order import order_experiment
from prefect_assay.tasks.pay import pay_invoice, read_due, require_rail
from prefect_assay.tasks.quote import Billing, BillingStage, confirm_quote
from prefect_assay.waiting import can_suspend

T = TypeVar("T")

_NOT_ACCEPTED: Final = "the quote was not accepted, and nothing is billed"
_UNPAID: Final = "nothing was paid; the order stands, and its invoice is open"


def approve_price(
    job: Job, *, what: str, amount_cents: int, otherwise: str, always: bool = False, may_ask: bool = True
) -> int:
    """What this experiment may cost, in US cents; asks a person over the cap. See `approve_spending`."""
    return approve_spending(
        job.policy,
        key=job.key,
        what=what,
        amount_cents=amount_cents,
        cap_cents=job.cap_cents,
        figures=_figures(job) if amount_cents > job.cap_cents or always else None,
        always=always,
        may_ask=may_ask,
        otherwise=otherwise,
    )


def place_order(job: Job, total_cents: int | None) -> Order:
    """Order it, once: at the estimated price, or by a quote to come when there is none.

    Over the campaign's cap a person is asked, and nothing is ordered meanwhile.
    """
    return _within_campaign(
        job,
        lambda cap_cents: order_experiment(
            job.credentials,
            job.spec,
            order_key=job.key,
            name=job.name,
            route=OrderRoute.QUOTED if total_cents is None else OrderRoute.SELF_SERVICE,
            payment_method=job.payment_method,
            webhook=job.webhook,
            campaign_id=job.campaign_id,
            amount_cents=total_cents or 0,
            campaign_cap_cents=cap_cents,
        ),
        otherwise="nothing was ordered",
    )


def accept_quote(job: Job, order: Order, billing: Billing) -> None:
    """The quote's real total is the price; it is checked against the budget, and shown to a person first.

    Raises:
        QuoteExpired: it names no total.
        ApprovalRejected, ApprovalExpired: nothing is accepted, and the quote stays open until it expires.
    """
    quote = billing.quote
    total = quote.amount_total if quote else None
    if total is None:
        raise QuoteExpired(
            f"the quote of experiment {order.experiment_code} names no total; ask the laboratory"
        )
    approved = approve_price(
        job,
        what=f"Quote for {job.name}",
        amount_cents=total,
        always=not job.policy.accept_quotes,
        otherwise=_NOT_ACCEPTED,
    )
    intents = _intents(job)
    _within_campaign(
        job, lambda cap_cents: intents.commit(job.key, total, cap_cents), otherwise=_NOT_ACCEPTED
    )
    after = confirm_quote(job.credentials, order.experiment_id, approved_cents=approved)
    if after.stage is not BillingStage.INVOICED:
        intents.withdraw(job.key)


def pay(job: Job, order: Order) -> Payment:
    """Pay what has been approved. A person's earlier approval of the same amount is found, not asked again.

    Raises:
        PaymentError: nothing was paid; the message says why.
        PaymentOutcomeUnknown: money may have moved, and this run cannot ask a person.
        Stopped: a person was asked, and said no or nothing.
    """
    payment = _by_machine(job, order) if job.payment_method in MACHINE_RAILS else _invoice(job, order, 0)
    artifacts.show_payment(job.label, payment)
    return payment


def _by_machine(job: Job, order: Order) -> Payment:
    asks = can_suspend() and order.status not in AFTER_MATERIALS
    what = f"{job.name}"
    answer = answered_doubt(job.key, what, lambda: _facts(job, order)) if asks else None
    due = read_due(job.credentials, order)
    if answer == "paid" and due is not None:
        _ask_about_payment(job, order, "A person has said that it was paid. The invoice does not say so.")
    limit = job.cap_cents
    if due is not None:
        require_rail(job.payment_method, job.policy, job.wallet)
        limit = approve_price(
            job, what=f"Invoice of {job.name}", amount_cents=due, otherwise=_UNPAID, may_ask=asks
        )
    try:
        return _within_sums(job, order, limit, due=due is not None, asks=asks)
    except PaymentOutcomeUnknown as error:
        if not asks:
            raise
        get_run_logger().warning("Asking a person: %s", error)
        _ask_about_payment(job, order, str(error))
        raise


def _within_campaign(job: Job, step: Callable[[int], T], *, otherwise: str) -> T:
    """Take a step that commits money, under the campaign's cap or what a person has approved in its place."""
    cap_cents = job.campaign_cap_cents
    while True:
        try:
            return step(cap_cents)
        except BudgetExceeded as over:
            if over.total_cents is None:
                raise
            cap_cents = approve_spending(
                job.policy,
                key=f"{job.key}-campaign",
                what=f"All orders of campaign {job.campaign_id}, with {job.name},",
                amount_cents=over.total_cents,
                cap_cents=cap_cents,
                figures=_figures(job),
                otherwise=otherwise,
            )


def _intents(job: Job) -> CampaignIntents:
    return CampaignIntents(job.credentials.base_url, job.campaign_id)


def _within_sums(job: Job, order: Order, limit: int, *, due: bool, asks: bool) -> Payment:
    """Pay within the sums that the ledger keeps. Over one of them a person is asked, with what it would come to."""
    intent = _intents(job).of(job.key) if due else None
    # What a person has allowed the campaign to come to when this was ordered is not asked about again.
    sums = {"campaign": max(job.campaign_cap_cents, intent.campaign_cap_cents if intent else 0)}
    while True:
        try:
            return _invoice(job, order, limit, sums)
        except BudgetExceeded as over:
            if over.cap is None or over.total_cents is None or over.cap_cents is None:
                raise
            window = f"of the last {job.policy.rolling_days} days"
            sums[over.cap] = approve_spending(
                job.policy,
                key=f"{job.key}-{over.cap}",
                what=f"All machine payments {window if over.cap == 'rolling' else 'of campaign ' + job.campaign_id}, "
                f"with the invoice of {job.name},",
                amount_cents=over.total_cents,
                cap_cents=over.cap_cents,
                figures=_figures(job),
                may_ask=asks,
                otherwise=_UNPAID,
            )


def _invoice(job: Job, order: Order, limit: int, sums: dict[str, int] | None = None) -> Payment:
    return pay_invoice(
        job.credentials,
        order,
        policy=job.policy,
        wallet=job.wallet,
        method=job.payment_method,
        limit_cents=limit,
        campaign_id=job.campaign_id,
        sums=sums,
    )


def _ask_about_payment(job: Job, order: Order, why: str) -> None:
    ask_about_payment(
        job.policy, job.payment_method, key=job.key, what=job.name, why=why, facts=_facts(job, order)
    )


def _facts(job: Job, order: Order) -> MoneyFacts:
    with job.credentials.get_client() as client:
        return money_facts(client, PrefectLedger(), order.experiment_id)


def _figures(job: Job) -> dict[str, str]:
    """The caps, for the form."""
    lines = {
        "payment": job.payment_method.value,
        "cap per experiment, in the policy": usd(job.policy.per_experiment_cents),
        "cap of the campaign": usd(job.campaign_cap_cents),
    }
    if job.policy.rolling_cents is not None:
        since = datetime.now(UTC) - timedelta(days=job.policy.rolling_days)
        lines[f"machine payments of the last {job.policy.rolling_days} days"] = usd(
            PrefectLedger().spent_cents(since)
        )
        lines["their cap"] = usd(job.policy.rolling_cents)
    return lines
