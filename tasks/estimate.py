"""Check the access, resolve the target, read the price. All of these only read."""

import hashlib
from contextlib import suppress
from typing import Any, assert_never, cast

from prefect import task

from prefect_assay.archive.campaign_plan import PlannedExperiment
from prefect_assay.blocks import AssayCredentials
from prefect_assay.errors import NotReady, OrderMismatch, ServiceUnavailable
from prefect_assay.orders.billing import BillingStage, read_billing
from prefect_assay.orders.find import find_order
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.payments.reconciliation import read_invoice
from prefect_assay.orders.targets import resolve_target as find_target
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import CostEstimate
from prefect_assay.service.models.spec import Assay, ExperimentSpec, Target
from prefect_assay.tasks.retry_policies import ONCE, READ


@task(name="check-access", **ONCE)
def check_access(credentials: AssayCredentials) -> None:
    """Check address and token before anything else, without retries (contract 4.4, 5).

    Raises:
        ServiceUnavailable: nothing answers there.
        AccessError: the token is not accepted.
    """
    with credentials.get_client() as client:
        try:
            client.targets.list(limit=1)
        except ServiceUnavailable as error:
            raise ServiceUnavailable(
                f"nothing answers at {credentials.base_url}; nothing was ordered. Check the service address in "
                f"the credentials block, and whether the service is up ({error.message})",
                request_id=error.request_id,
                status_code=error.status_code,
            ) from error


@task(name="resolve-target", task_run_name="resolve-target-{assay.target}", **READ)
def resolve_target(credentials: AssayCredentials, assay: Assay) -> Target | None:
    """The catalog target named by `assay.target`: its id, catalog number or exact name; None without one.

    Raises:
        InvalidSpec: the target is missing, not allowed, unknown, or ambiguous.
    """
    with credentials.get_client() as client:
        return find_target(client, assay)


def _make_run_name(parameters: dict[str, Any]) -> str:
    """Tells mapped estimates apart: the number of designs, and a digest of the specification."""
    spec: ExperimentSpec = parameters["spec"]
    digest = hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:8]
    return f"estimate-cost-{len(spec.sequences)}-designs-{digest}"


@task(name="estimate-cost", task_run_name=cast("Any", _make_run_name), **READ)
def estimate_cost(credentials: AssayCredentials, spec: ExperimentSpec) -> CostEstimate:
    """The service's price for a specification, in US cents without VAT (contract 2.5). Creates nothing."""
    with credentials.get_client() as client:
        return client.experiments.estimate_cost(spec)


class OrderPrice(Model):
    """A price in US cents without VAT: the invoice's amount once it is committed; None where it is not known yet."""

    committed: bool
    total_cents: int | None = None


@task(name="read-price", task_run_name="read-price-{planned.order_key}", **READ)
def read_price(
    credentials: AssayCredentials, planned: PlannedExperiment, *, ledger: OrderLedger
) -> OrderPrice:
    """Read the price of a planned experiment: its estimate, the quote of a waiting order, or the invoice's amount.

    An order is committed once it has its invoice (contract 3); before that its quote can still be declined.
    """
    with credentials.get_client() as client:
        order = None
        with suppress(OrderMismatch):  # the order's own run asks a person
            order = find_order(client, ledger, planned.spec)
        if order is None:
            return OrderPrice(
                committed=False, total_cents=client.experiments.estimate_cost(planned.spec).total_cents
            )
        billing = read_billing(client, order.experiment_id)
        match billing.stage:
            case (
                BillingStage.NOT_SUBMITTED
                | BillingStage.QUOTE_PENDING
                | BillingStage.QUOTE_OPEN
                | BillingStage.QUOTE_UNKNOWN
            ):
                total = billing.quote.total if billing.quote else None
                return OrderPrice(committed=False, total_cents=total)
            case BillingStage.INVOICED:
                billed = _read_billed_cents(client, order.experiment_id)
                return OrderPrice(
                    committed=True, total_cents=_read_reserved(ledger) if billed is None else billed
                )
            case BillingStage.QUOTE_REJECTED | BillingStage.QUOTE_EXPIRED | BillingStage.CANCELED:
                return OrderPrice(committed=True, total_cents=0)  # ended without a bill
            case never:
                assert_never(never)


def _read_billed_cents(client: AssayClient, experiment_id: str) -> int | None:
    try:
        return read_invoice(client, experiment_id).amount
    except NotReady:  # its quote is accepted, and the invoice is not made yet
        return None


def _read_reserved(ledger: OrderLedger) -> int | None:
    """What the order counts in the budget, whose sums must hold where no invoice names an amount."""
    reservation = ledger.ledgers.budget.read().reservations.get(ledger.order_key)
    return reservation.cents if reservation else None
