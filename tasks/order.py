"""Order an experiment once: find it by its order key, else create it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import httpx
from prefect import task
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.logging import get_run_logger

from prefect_assay.blocks import AssayCredentials, WebhookEndpoint
from prefect_assay.errors import AssayError, OrderOutcomeUnknown
from prefect_assay.models.experiment import CreateRequest
from prefect_assay.models.job import Order, OrderRoute
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import MACHINE_RAILS, PaymentMethod
from prefect_assay.ordering import find_or_create
from prefect_assay.ordering import find_order as find_in_service
from prefect_assay.tasks.intent import CampaignIntents
from prefect_assay.tasks.ledger import last_written
from prefect_assay.tasks.locks import held
from prefect_assay.tasks.policy import ONCE, READ

# Whoever places an order waits under its lock for the one of payments and intents, and may have to free that first.
_TIMES_PATIENCE: Final = 4.0


@contextmanager
def one_create_at_a_time(order_key: str) -> Iterator[None]:
    """Look and create under a lock of the order's own, so that two runs cannot both find nothing.

    The lock is a concurrency limit that exists while the order is being placed. A run that still waits for it
    when it is removed goes on without it, and then finds the order.
    """
    name = f"assay-order-{order_key}"
    with get_client(sync_client=True) as client:
        with suppress(ObjectAlreadyExists):
            client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=name, limit=1))
        with held(name, trace=last_written, times_patience=_TIMES_PATIENCE):
            yield
        with suppress(ObjectNotFound, httpx.HTTPError):  # the order stands; the next run of it tidies up
            client.delete_global_concurrency_limit_by_name(name)


@task(name="find-order", **READ)
def find_order(credentials: AssayCredentials, order_key: str) -> Order | None:
    """The experiment that already carries this order key, or None. The service is the truth, not a cache."""
    with credentials.get_client() as client:
        return find_in_service(client, order_key)


@task(name="order-experiment", **ONCE)
def order_experiment(
    credentials: AssayCredentials,
    spec: ExperimentSpec,
    *,
    order_key: str,
    name: str,
    route: OrderRoute,
    payment_method: PaymentMethod,
    webhook: WebhookEndpoint | None,
    campaign_id: str,
    amount_cents: int = 0,
    campaign_cap_cents: int,
) -> Order:
    """Return the experiment of this order key, creating it only when the service does not have it.

    Args:
        credentials: who orders.
        spec: what to measure.
        order_key: 20 hex digits that stand in the name.
        name: the experiment's name, with the order key's search token in it.
        route: self-service accepts the quote in the same call; quoted waits for one.
        payment_method: the rail. A machine rail is pinned to the experiment for life.
        webhook: where updates are delivered, if anywhere.
        campaign_id: the campaign whose cap the order counts against.
        amount_cents: what it commits the campaign to, in US cents; 0 while its quote is still to come.
        campaign_cap_cents: what all orders of the campaign may come to.

    Raises:
        BudgetExceeded: with this order the campaign would pass its cap; nothing was ordered.
        RequestRefused: the service refused the specification; nothing was ordered.
        OrderOutcomeUnknown: the answer was lost and the experiment did not show up.
    """
    url, secret = webhook.for_order(order_key) if webhook else (None, None)
    request = CreateRequest(
        experiment_spec=spec,
        name=name,
        skip_draft=True,
        auto_accept_quote=route is OrderRoute.SELF_SERVICE,
        payment_method=payment_method if payment_method in MACHINE_RAILS else None,
        webhook_url=url,
        webhook_secret=secret,
    )
    intents = CampaignIntents(credentials.base_url, campaign_id)
    with credentials.get_client() as client, one_create_at_a_time(order_key):
        intended = False

        def intend() -> bool:
            nonlocal intended
            before = intents.sending(order_key, amount_cents, campaign_cap_cents)
            intended = not before
            return before

        try:
            order = find_or_create(client, request, order_key, intend=intend)
        except OrderOutcomeUnknown:
            raise
        except AssayError:
            if intended:  # refused, or never handled; with an earlier one about, nobody can say so
                intents.withdraw(order_key)
            raise
    get_run_logger().info(
        "%s experiment %s",
        "Found" if order.adopted else "Ordered",
        order.experiment_code or order.experiment_id,
    )
    return order
