"""A hosted invoice that a person has paid, recorded for a suspended run without starting its flow.

It does what the flow does with the same payment (`flows/experiment_billing.py`): log, artifact. Event and labels are
the caller's. It must not know why the run was woken, and suspends nothing.
"""

from collections.abc import Callable

from prefect.client.schemas.objects import FlowRun

from prefect_assay.blocks import AssayCredentials
from prefect_assay.blocks.of_runs import archive_of
from prefect_assay.blocks.order_books import open_books
from prefect_assay.client import AssayClient
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.job import Order, Payment
from prefect_assay.models.vocabulary import MACHINE_RAILS
from prefect_assay.reporting.artifacts import label_of_run, show_payment
from prefect_assay.runs.states import event_reference
from prefect_assay.runs.tags import INVOICE_LABEL, PRICE_LABEL
from prefect_assay.tasks.pay import record_hosted


def may_have_been_paid(run: FlowRun) -> bool:
    """Return True for a hosted invoice, unless the run's labels say that its payment is recorded."""
    if run.parameters.get("payment_method") in MACHINE_RAILS:
        return False
    return not run.labels.get(PRICE_LABEL) or bool(run.labels.get(INVOICE_LABEL))


def payment_reader(
    service: AssayClient, credentials: AssayCredentials, run: FlowRun, found: Experiment
) -> Callable[[], Payment | None]:
    """Open the log of the run's order; returns what records the payment of its invoice in it, and shows it.

    That returns None while nothing is new. The page of an unpaid invoice is shown, too, if the run's label has another one.
    `payment_labels` are the caller's to set, once the event has left: they say that there is nothing more to record.

    Raises:
        ValueError: the run does not name its order.
        AssayError: the service, the archive or its block cannot be read, or the invoice cannot be paid any more.
    """
    if not may_have_been_paid(run):
        return lambda: None
    reference = event_reference(run)
    if reference.campaign_id is None or reference.order_key is None:
        raise ValueError(f"run {run.id} does not name its order")
    books = open_books(credentials, archive_of(run))
    book = books.order(reference.campaign_id, reference.order_key)
    order = Order(
        order_key=reference.order_key,
        experiment_id=found.id,
        experiment_code=found.code,
        status=found.status,
        adopted=True,
    )
    shown = run.labels.get(INVOICE_LABEL)

    def read() -> Payment | None:
        payment = record_hosted(service, order, book=book, shown=str(shown) if shown else None)
        if payment is not None:
            show_payment(label_of_run(run), payment, run_id=run.id)
        return payment

    return read
