"""Poll an order's quote, and accept it once."""

from prefect import task

from prefect_assay.blocks import AssayCredentials
from prefect_assay.errors import BudgetExceeded, Conflict, OrderStopped, TransientError
from prefect_assay.orders.billing import (
    CONFIRMABLE,
    Billing,
    check_total,
    read_billing,
    require_order,
)
from prefect_assay.orders.create import acceptance_of
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.ledger.log import Confirming
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.billing import is_far_below, usd
from prefect_assay.tasks.retry_policies import ONCE, READ


@task(name="poll-quote", task_run_name="poll-quote-{experiment_id}", **READ)
def poll_quote(credentials: AssayCredentials, experiment_id: str) -> Billing:
    """Read once how far quote and invoice are. The flow suspends between two reads."""
    with credentials.get_client() as client:
        return read_billing(client, experiment_id)


@task(name="confirm-quote", task_run_name="confirm-quote-{experiment_id}", **ONCE)
def confirm_quote(
    credentials: AssayCredentials,
    experiment_id: str,
    *,
    ledger: OrderLedger,
    approved_cents: int,
    campaign_cap_cents: int | None = None,
    untotaled: bool = False,
) -> Billing:
    """Accept an open quote if its total is within the approved amount. Safe to run again.

    Args:
        credentials: the token that ordered.
        experiment_id: the order's experiment.
        ledger: the order's log.
        approved_cents: the approved amount, in US cents.
        campaign_cap_cents: the cap of all orders of the campaign; None sets no cap.
        untotaled: a person has approved the quote although it shows no total that can be read; then what was approved
            counts.

    Raises:
        BudgetExceeded: the quote's total is over the approved amount or far below it, or the campaign would exceed its
            cap (`cap`); nothing was accepted.
        DecisionNeeded: the order's log and the budget contradict each other; nothing was accepted.
        OrderOutcomeUnknown: the order is in another log of the archive; nothing was accepted.
        OrderStopped: a person has canceled the order; nothing was accepted.
        PaymentRefused: the quote is not in US dollars; nothing was accepted.
        TransientError: the order has another experiment by now, or the service did not accept an open quote; nothing was
            accepted.
    """
    with credentials.get_client() as client:
        billing = read_billing(client, experiment_id)
        if billing.stage not in CONFIRMABLE or billing.quote is None:
            return billing
        total = check_total(billing.quote, experiment_id)
        if total is None:
            if not untotaled:
                raise TransientError(f"the quote of experiment {experiment_id} shows no total any more")
            total = approved_cents
        if total > approved_cents or (total != approved_cents and is_far_below(total, approved_cents)):
            raise BudgetExceeded(
                f"the quote of experiment {experiment_id} is {usd(total)}, approved were {usd(approved_cents)}; "
                "nothing was accepted. Run the flow again to approve the new total"
            )
        ledger.require_only_log()
        ledger.require_agreement()
        ledger.require_not_stopped()
        budget = ledger.ledgers.budget
        before = budget.read().reservations.get(ledger.order_key)
        budget.reserve(ledger.order_key, ledger.campaign_id, total, campaign_cap_cents=campaign_cap_cents)
        try:
            ledger.record(
                lambda state: (
                    Confirming(amount_cents=total)
                    if state.ordered and state.ordered.experiment_id == experiment_id and not state.confirmed
                    else None
                )
            )
            ledger.require_not_stopped()  # an earlier execution may have recorded it, and not sent it
        except OrderStopped:
            if not ledger.state.committed:
                budget.reserve(ledger.order_key, ledger.campaign_id, before.cents if before else 0)
            raise
        require_order(ledger, experiment_id)
        try:
            answer = client.experiments.confirm_quote(experiment_id)
        except Conflict as refusal:
            return _read_after_refusal(client, experiment_id, refusal)
        ledger.record(lambda _: acceptance_of(client, answer, experiment_id))
        return read_billing(client, experiment_id)


def _read_after_refusal(client: AssayClient, experiment_id: str, refusal: Conflict) -> Billing:
    """The stage of an order whose quote was not accepted: the present state counts, which may lag behind the refusal."""
    billing = read_billing(client, experiment_id)
    if billing.stage not in CONFIRMABLE:
        return billing  # accepted meanwhile by someone else, rejected, or expired
    # A quote that has expired and one that is confirmed already are refused alike, so the words decide nothing.
    raise TransientError(
        f"{refusal.message}, and the quote of experiment {experiment_id} reads as open: it is read again later",
        request_id=refusal.request_id,
        status_code=refusal.status_code,
    ) from refusal
