"""Order an experiment once: find it by its log, else by its order key, else create it."""

from datetime import UTC, datetime

from prefect import task
from prefect.logging import get_run_logger

from prefect_assay.blocks import AssayCredentials, WebhookEndpoint
from prefect_assay.orders import find
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.job import Order, OrderRoute
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.payments.guard import agreed_time
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import MACHINE_RAILS, PaymentMethod
from prefect_assay.tasks.retry_policies import ONCE, READ


@task(name="find-order", task_run_name="find-order-{ledger.order_key}", **READ)
def find_order(
    credentials: AssayCredentials, ledger: OrderLedger, spec: ExperimentSpec | None = None
) -> Order | None:
    """Find the experiment of an order by its ledger, and with a specification also by its order key.

    Raises:
        OrderMismatch: a person has to say whether an experiment that carries the order key is the order.
    """
    with credentials.get_client() as client:
        return find.find_order(client, ledger, spec)


@task(name="order-experiment", task_run_name="order-experiment-{ledger.order_key}", **ONCE)
def order_experiment(
    credentials: AssayCredentials,
    spec: ExperimentSpec,
    *,
    ledger: OrderLedger,
    name: str,
    route: OrderRoute,
    payment_method: PaymentMethod,
    webhook: WebhookEndpoint | None,
    amount_cents: int = 0,
    campaign_cap_cents: int,
    repeats: int | None = None,
) -> Order:
    """Return the experiment of this order; create it only if it does not exist.

    Args:
        credentials: the token that orders.
        spec: what to measure.
        ledger: the order's log, from `open_ledgers(credentials, archive).open_order(campaign_id, order_key)`.
        name: the experiment's name, which contains the order key's search token.
        route: self-service accepts the quote in the same call; quoted waits for one.
        payment_method: the rail. A machine rail is pinned to the experiment for life.
        webhook: where the service delivers updates.
        amount_cents: the commitment in US cents; 0 while its quote is pending.
        campaign_cap_cents: the cap of all orders of the campaign.
        repeats: how many earlier creations of unknown outcome this one may follow; None is any number.

    Raises:
        BudgetExceeded: the campaign would exceed its cap; nothing was ordered.
        DecisionNeeded: the order's log and the budget contradict each other; nothing was ordered.
        OrderMismatch: a person has to say whether an experiment that carries the order key is the order; nothing was
            ordered.
        RequestRefused: the service refused the specification; nothing was ordered.
        OrderOutcomeUnknown: the answer was lost and the experiment was not found.
        ClockDiffers: a machine is to pay, and this one's clock is not the service's; nothing was ordered.
    """
    url, secret = webhook.derive_for_order(ledger.order_key) if webhook else (None, None)
    request = CreateRequest(
        experiment_spec=spec,
        name=name,
        skip_draft=True,
        auto_accept_quote=route is OrderRoute.SELF_SERVICE,
        payment_method=payment_method if payment_method in MACHINE_RAILS else None,
        webhook_url=url,
        webhook_secret=secret,
    )
    budget = ledger.ledgers.budget
    with credentials.get_client() as client:

        def reserve() -> None:
            if payment_method in MACHINE_RAILS:  # else the order would stay, and its payment be refused
                agreed_time(
                    client.service_time,
                    datetime.now(UTC),
                    else_="nothing is ordered that a machine would have to pay",
                )
            ledger.require_agreement()
            budget.reserve(
                ledger.order_key, ledger.campaign_id, amount_cents, campaign_cap_cents=campaign_cap_cents
            )

        order = find_or_create(
            client,
            request,
            ledger,
            reserve=reserve,
            release=lambda: budget.release(ledger.order_key),
            repeats=repeats,
        )
    if amount_cents:
        # The order exists, so it counts: also if it was found, or a refusal of another run released its reservation.
        budget.reserve(ledger.order_key, ledger.campaign_id, amount_cents)
    get_run_logger().info(
        "%s experiment %s",
        "Found" if order.adopted else "Ordered",
        order.experiment_code or order.experiment_id,
    )
    return order


@task(name="recheck-order", task_run_name="recheck-order-{ledger.order_key}", **READ)
def recheck_order(
    credentials: AssayCredentials, spec: ExperimentSpec, order: Order, *, ledger: OrderLedger
) -> Order:
    """Search again before money is committed: of several experiments of one order the oldest is the order."""
    with credentials.get_client() as client:
        experiment_id = find.recheck_order(client, spec, ledger)
        surplus = ledger.state.surplus
        if experiment_id == order.experiment_id:
            return order.model_copy(update={"surplus": surplus})
        return find.read_order(client, experiment_id, ledger.order_key, surplus=surplus)
