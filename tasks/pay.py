"""Pay an invoice once: by machine within the policy, or by a person at the hosted page."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from prefect import task
from prefect.logging import get_run_logger

from prefect_assay.blocks import AssayCredentials, SpendingPolicy, Wallet
from prefect_assay.errors import (
    AssayError,
    ConfigurationError,
    ExperimentCanceled,
    NotReady,
    PayByHand,
    PaymentError,
    PaymentFailed,
    PaymentOutcomeUnknown,
    PaymentsDisabled,
    TransientError,
    is_absent,
)
from prefect_assay.orders.billing import require_order
from prefect_assay.orders.job import Order, Payment, PaymentState
from prefect_assay.orders.ledger import OrderLedger, PaymentLedger
from prefect_assay.orders.payments import guard
from prefect_assay.orders.payments.due import DueInvoice, page_digest
from prefect_assay.orders.payments.guard import PaymentPolicy
from prefect_assay.orders.payments.rails import Rail, get_rail_kind
from prefect_assay.orders.payments.reconciliation import (
    Reconciliation,
    describe_hosted,
    find_listed_invoice,
    read_invoice,
    require_paid_again,
)
from prefect_assay.orders.payments.settle import settle, utc_now
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.billing import Invoice, PayAnswer, usd
from prefect_assay.service.models.status_questions import is_invoice_dropped, is_invoice_paid
from prefect_assay.service.models.vocabulary import (
    MACHINE_RAILS,
    ExperimentStatus,
    InvoiceStatus,
    PaymentMethod,
)
from prefect_assay.tasks.retry_policies import ONCE, READ


def require_rail(method: PaymentMethod, policy: SpendingPolicy, wallet: Wallet | None) -> None:
    """Check that the chosen rail can pay: before an order, and before its payment.

    Raises:
        PaymentsDisabled: machine payments are off in the policy, or the wallet is missing or another rail's.
        ConfigurationError: the rail is not registered, its extra is missing, or the wallet is unusable or ambiguous.
    """
    if method is PaymentMethod.ASYNC_INVOICE:
        return
    _open_rail(method, wallet)
    if not policy.machine_payments:
        raise PaymentsDisabled(
            f"payment by {method} is chosen, but machine payments are off. Turn on machine_payments of "
            "the SpendingPolicy block, or choose async_invoice to pay the invoice by hand"
        )


def choose_rail(
    ledger: OrderLedger, method: PaymentMethod, policy: SpendingPolicy, wallet: Wallet | None
) -> PaymentMethod:
    """Choose the rail by which the order is paid: `method`, unless the service's acceptance names others.

    The token's payment policy, or an earlier create, may have pinned the experiment (contract 4.2, rule 2). Of the rails
    that are named, the one that the wallet and the policy can pay is used. A hosted page needs neither.

    Raises:
        PaymentsDisabled: the wallet or the policy does not allow any of them; nothing is paid.
    """
    state = ledger.read()
    answer = state.accepted
    if answer is None or answer.machine is None:
        return method
    if not answer.machine:
        in_doubt = (
            state.payment is not None and state.payment.in_doubt
        )  # a page would invite a second payment
        return method if in_doubt else PaymentMethod.ASYNC_INVOICE
    named = [rail for rail in sorted(MACHINE_RAILS) if rail in (answer.rails or MACHINE_RAILS)]
    if method in named:
        return method
    reasons = []
    for rail in named:
        try:
            require_rail(rail, policy, wallet)
        except (PaymentsDisabled, ConfigurationError) as error:
            reasons.append(error.message)
        else:
            return rail
    raise PaymentsDisabled(
        f"the service has accepted the order for payment by {' or '.join(answer.rails) or 'a machine rail'}, and {method} was "
        "asked for: the token's payment policy, or an earlier create, has pinned the experiment. Nothing is paid; the order "
        f"remains. Run it again with the wallet and the policy that the rail needs: {'; '.join(reasons) or 'not known here'}"
    )


@task(name="read-due", task_run_name="read-due-{ledger.order_key}", **READ)
def read_due(
    credentials: AssayCredentials,
    order: Order,
    *,
    ledger: OrderLedger,
    wallet: Wallet | None,
    method: PaymentMethod,
) -> int | None:
    """The open amount of the order's invoice, in US cents; None if it is paid.

    Where no call shows the amount (contract 2.8), it is that of the challenge, which is asked for and not answered.

    Raises:
        ExperimentCanceled: the invoice is open, and must not be paid.
        NotReady: the invoice is void or uncollectible, and no payment was sent.
        PayByHand: which invoice is the order's is not known for certain; a person can pay its hosted page.
        PaymentFailed: the invoice names no amount.
        PaymentOutcomeUnknown: as ExperimentCanceled or NotReady, after a payment that may have been made.
        TransientError: the order has another experiment by now.
    """
    with credentials.get_client() as client:
        due = _make_due_invoice(client, order, method, wallet)
        invoice = _find_payable_invoice(client, due, order, ledger)
        require_order(ledger, order.experiment_id)
        _refuse_canceled(client, order, invoice, ledger)
    if is_invoice_paid(invoice.status):
        return None
    if is_invoice_dropped(invoice.status):
        message = f"invoice {invoice.id} is {invoice.status}, and nothing is paid; ask the laboratory"
        payment = ledger.state.payment
        if payment is not None and payment.in_doubt:
            raise PaymentOutcomeUnknown(f"{message} whether it has received the payment that was sent")
        get_run_logger().error(message)
        raise NotReady(message)
    if invoice.amount is None:
        cause = invoice.money.problem or "it has no amount, and its payment endpoint shows none either"
        raise PaymentFailed(
            f"nothing can be compared with invoice {invoice.id}, and nothing is paid: {cause}. Ask the laboratory to correct it"
        )
    return invoice.amount


@task(name="pay-invoice", task_run_name="pay-invoice-{ledger.order_key}", **ONCE)
def pay_invoice(
    credentials: AssayCredentials,
    order: Order,
    *,
    ledger: OrderLedger,
    policy: SpendingPolicy,
    wallet: Wallet | None,
    method: PaymentMethod,
    limit_cents: int,
    sums: Mapping[str, int] | None = None,
) -> Payment:
    """Read the order's invoice, and pay it if it is open and of exactly the approved amount.

    Args:
        credentials: the token that ordered.
        order: the order.
        ledger: the order's log.
        policy: allows machine payments and sets the rolling cap.
        wallet: the wallet of a machine rail.
        method: the rail; `async_invoice` pays nothing and returns the hosted page.
        limit_cents: the approved amount for this order, in US cents; the invoice must have exactly this amount.
        sums: caps of the budget's sums, in US cents: `rolling` replaces the policy's, and `campaign`.

    Raises:
        ExperimentCanceled: the invoice is open, and must not be paid.
        PaymentError: nothing was paid.
        PaymentOutcomeUnknown: money may have moved. Another run reads the invoice first.
        TransientError: the order has another experiment by now; nothing was paid.
    """
    with credentials.get_client() as client:
        payment_ledger = PaymentLedger(ledger)
        if method is PaymentMethod.ASYNC_INVOICE:
            invoice = _hosted_invoice_of(client, order, ledger)
            require_order(ledger, order.experiment_id)
            _refuse_canceled(client, order, invoice, ledger)
            _reserve_billed(ledger, invoice)
            if not invoice.ended:
                ledger.saw_invoice(invoice.id, invoice.amount)
            return _hosted_invoice(invoice, payment_ledger, lambda: _hosted_invoice_of(client, order, ledger))
        allowed = _make_payment_policy(credentials, policy, limit_cents, sums or {})
        due = _make_due_invoice(client, order, method, wallet)
        invoice = _find_payable_invoice(client, due, order, ledger)
        require_order(ledger, order.experiment_id)
        if is_invoice_paid(invoice.status):
            return Reconciliation(due, payment_ledger, method, time.sleep, ()).confirm_paid(
                invoice, already_paid=True
            )
        _refuse_canceled(client, order, invoice, ledger)
        with _next_step(invoice):
            payment = settle(
                due,
                invoice.id,
                _open_rail(method, wallet),
                allowed,
                payment_ledger,
                expected_cents=limit_cents,
                experiment_id=order.experiment_id,
            )
    get_run_logger().info(
        "Invoice %s: %s%s", payment.invoice_id, payment.state, ", paid before" if payment.already_paid else ""
    )
    return payment


def _refuse_canceled(client: AssayClient, order: Order, invoice: Invoice, ledger: OrderLedger) -> None:
    """Contract 3 does not promise that a cancellation voids the invoice."""
    if is_invoice_paid(invoice.status) or invoice.status == InvoiceStatus.VOID:
        return
    if client.experiments.get(order.experiment_id).status != ExperimentStatus.CANCELED:
        return
    remains = (
        f"experiment {order.experiment_code or order.experiment_id} was canceled, and its invoice {invoice.id} is "
        f"{invoice.status or 'unpaid'}: it must not be paid, and is not paid by this run. Ask the laboratory to void it"
    )
    sent = ledger.read().payment
    if sent and sent.in_doubt:
        raise PaymentOutcomeUnknown(f"{remains}. A payment that was sent before may still settle")
    raise ExperimentCanceled(remains)


@contextmanager
def _next_step(invoice: Invoice) -> Iterator[None]:
    """Add the next step to the message, for the run's state in the UI."""
    try:
        yield
    except PaymentError as error:
        page = invoice.provider_hosted_invoice_url
        if invoice.status == InvoiceStatus.OPEN:
            by_hand = f", or pay the invoice by hand: {page}" if page else ""
            error.message += (
                f"\nNothing was paid. The order remains: fix the cause, and a run that waits pays it{by_hand}"
            )
        else:
            error.message += (
                "\nThe order remains: ask the laboratory about its invoice; a run that waits reads it again"
            )
        raise


def _open_rail(method: PaymentMethod, wallet: Wallet | None) -> Rail:
    kind = get_rail_kind(method)
    if wallet is None or wallet.rail is not method:
        raise PaymentsDisabled(
            f"{method} pays with a wallet of its kind, and the account has none: save a {kind.wallet_block} block, and select "
            "it as the account's wallet"
        )
    return wallet.get_rail()


def _reserve_billed(ledger: OrderLedger, invoice: Invoice) -> None:
    """Count what a hosted invoice bills, and log an error where that is more than was approved."""
    approved = ledger.state.approved
    billed = 0 if invoice.status == InvoiceStatus.VOID else invoice.amount or 0
    ledger.reserve_billed(billed)
    if approved is None or billed <= approved.amount_cents:
        return
    get_run_logger().error(
        "Invoice %s bills %s, and %s was approved: ask the laboratory why",
        invoice.id,
        usd(billed),
        usd(approved.amount_cents),
    )


def _hosted_invoice(
    invoice: Invoice, payment_ledger: PaymentLedger, read_again: Callable[[], Invoice]
) -> Payment:
    """The hosted invoice. A void invoice is logged as an error; waiting continues."""
    try:
        return _record_payment(invoice, payment_ledger, read_again)
    except PaymentFailed as error:
        get_run_logger().error("%s; ask the laboratory", error)
        return Payment(invoice_id=invoice.id, method=PaymentMethod.ASYNC_INVOICE, state=PaymentState.FAILED)


def _record_payment(
    invoice: Invoice, payment_ledger: PaymentLedger, read_again: Callable[[], Invoice]
) -> Payment:
    payment = describe_hosted(invoice)
    if payment.state is PaymentState.SETTLED:
        require_paid_again(read_again)
        payment_ledger.record_paid(invoice.id, invoice.amount)
    return payment


def _make_payment_policy(
    credentials: AssayCredentials,
    policy: SpendingPolicy,
    limit_cents: int,
    sums: Mapping[str, int],
) -> PaymentPolicy:
    return PaymentPolicy(
        enabled=policy.machine_payments,
        max_cents_per_payment=limit_cents,
        max_cents_rolling=sums.get("rolling", policy.rolling_cents),
        max_cents_per_campaign=sums.get("campaign"),
        rolling_days=policy.rolling_days,
        allowed_origins=(credentials.base_url,),
    )


def _make_due_invoice(
    client: AssayClient, order: Order, method: PaymentMethod, wallet: Wallet | None
) -> DueInvoice:
    def amount_of(answer: PayAnswer, invoice_id: str) -> int | None:
        return guard.read_offered_cents(
            _open_rail(method, wallet),
            answer,
            base_url=client.base_url,
            invoice_id=invoice_id,
            now=utc_now(),
        )

    return DueInvoice(client, order.experiment_id, amount_of)


def _find_payable_invoice(client: AssayClient, due: DueInvoice, order: Order, ledger: OrderLedger) -> Invoice:
    """Read the only invoice that a machine may pay: the one that the order's acceptance named, else the one that lists it.

    A machine never pays a second invoice of an order.

    Raises:
        PayByHand: none is known for certain.
    """
    state = ledger.read()
    ordered = state.ordered
    if ordered is not None and ordered.experiment_id == order.experiment_id:
        recorded_id = (
            (state.tied_invoice(_digest_hosted_page(client, order)) if state.accepted is not None else None)
            or ordered.invoice_id
            or (state.payment.invoice_id if state.payment else None)
        )
        if recorded_id:
            invoice = due.get(recorded_id)
            if invoice.experiment_id in {None, order.experiment_id}:
                return invoice.model_copy(update={"experiment_id": order.experiment_id})
    # If a payment was sent, the list was there: then it is an error that it is not.
    listed = (
        find_listed_invoice(client, order.experiment_id)
        if state.payment is None
        else client.invoices.find_for_experiment(order.experiment_id)
    )
    if listed is None:
        raise _by_hand(client, order)
    return listed


def _digest_hosted_page(client: AssayClient, order: Order) -> str | None:
    """A digest of the hosted page that the experiment shows, which tells pages apart; None where it shows none."""
    try:
        return page_digest(_page_of(client, order))
    except TransientError:
        raise
    except AssayError:
        return None


def _page_of(client: AssayClient, order: Order) -> str | None:
    return client.experiments.get_invoice(order.experiment_id).provider_invoice_url


def _by_hand(client: AssayClient, order: Order) -> PayByHand:
    page = order.hosted_invoice_url
    with suppress(NotReady):
        page = _page_of(client, order) or page
    return PayByHand(
        f"the invoice of experiment {order.experiment_code or order.experiment_id} cannot be paid by machine: the service's "
        "acceptance, which names it, was lost or does not name it for certain, and no call of the contract does. Nothing is "
        f"paid. A person can pay it: {page or order.experiment_url}"
    )


def _hosted_invoice_of(client: AssayClient, order: Order, ledger: OrderLedger) -> Invoice:
    """The invoice that a person pays. It may replace a void one, or be missing in the list of invoices."""
    ordered = ledger.read().ordered
    if ordered is not None and ordered.invoice_id and ordered.experiment_id == order.experiment_id:
        try:
            invoice = client.invoices.get(ordered.invoice_id)
        except AssayError as error:
            if not is_absent(error):  # the contract does not have this call
                raise
        else:
            if invoice.experiment_id == order.experiment_id and invoice.status != InvoiceStatus.VOID:
                return invoice
    return read_invoice(client, order.experiment_id)
