"""What an experiment of a campaign would cost now, or that its money is committed already."""

from prefect import task

from prefect_assay.blocks import AssayCredentials
from prefect_assay.books import OrderBook
from prefect_assay.models.base import Model
from prefect_assay.models.plan import PlannedExperiment
from prefect_assay.ordering import find_order, recorded_order
from prefect_assay.runs.task_policy import READ
from prefect_assay.tasks.quote import BillingStage, read_billing

_OPEN = {BillingStage.QUOTE_PENDING, BillingStage.QUOTE_OPEN, BillingStage.NOT_SUBMITTED}


class OpenPrice(Model):
    """US cents without VAT. `total_cents` is None as long as nobody knows: a quote is needed.

    What is committed has its invoice, and `total_cents` is the invoice's amount.
    """

    committed: bool
    total_cents: int | None = None


@task(name="open-price", **READ)
def open_price(credentials: AssayCredentials, planned: PlannedExperiment, *, book: OrderBook) -> OpenPrice:
    """The price of a planned experiment: the estimate, the quote of an order that waits, or nothing any more.

    An order is committed once it has its invoice (contract 3); before that its quote can still be declined.
    """
    with credentials.get_client() as client:
        order = recorded_order(client, book) or find_order(client, planned.order_key, planned.spec)
        if order is None:
            return OpenPrice(committed=False, total_cents=client.estimate(planned.spec).total_cents)
        billing = read_billing(client, order.experiment_id)
        if billing.stage in _OPEN:
            return OpenPrice(
                committed=False, total_cents=billing.quote.amount_total if billing.quote else None
            )
        if billing.stage is BillingStage.INVOICED:
            invoice = client.find_invoice(order.experiment_id)
            return OpenPrice(committed=True, total_cents=invoice.amount if invoice else None)
    return OpenPrice(committed=True, total_cents=0)  # ended without a bill
