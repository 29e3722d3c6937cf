"""The steps of one experiment after its order: its invoice, its payment, the wait, its results.

All of them may be repeated at any time: each reads first how things stand. Trouble that passes leads back to waiting.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeVar

from prefect.logging import get_run_logger
from prefect.runtime import flow_run as current_run

from prefect_assay.errors import (
    AssayError,
    ExperimentCanceled,
    NotReady,
    OutcomeUnknown,
    Overdue,
    QuoteExpired,
    QuoteRejected,
)
from prefect_assay.flows.experiment_billing import accept_quote, pay
from prefect_assay.flows.experiment_job import Job
from prefect_assay.models.archived import ArchiveRecord
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.job import Order, Payment
from prefect_assay.models.report import ExperimentReport
from prefect_assay.models.vocabulary import AFTER_MATERIALS, ResultsStatus
from prefect_assay.reporting import artifacts
from prefect_assay.runs import can_suspend, is_passing, outlast, wait_until
from prefect_assay.runs.queries import ARCHIVE_TAG, EXPERIMENT_TAG, ORDER_TAG, add_tags, set_tag
from prefect_assay.sweeping.settle_cancellation import reject_surplus
from prefect_assay.tasks.archive import archive_experiment
from prefect_assay.tasks.check import look, outcome_of
from prefect_assay.tasks.order import confirm_order
from prefect_assay.tasks.quote import Billing, BillingStage, read_billing, withdraw
from prefect_assay.waiting import Decision, Failed, Partial, Wait, WaitsFor
from prefect_assay.waiting import Overdue as PastDeadline

T = TypeVar("T")

# The run's own deadline decides; Prefect's suspension time-out only backs it up if nobody wakes the run.
_SUSPENSION_MARGIN: Final = timedelta(days=30)


def outlasting(job: Job, name: str, step: Callable[[], T]) -> T:
    """`outlast` with this job's patience. The name stands in the run's history."""
    timeout = job.patience + _SUSPENSION_MARGIN
    return outlast(step, key=f"{name}-{job.key}", timeout=timeout, poll=job.poll, passing=_passes)


def _passes(error: AssayError) -> bool:
    """Also a confirmation whose answer was lost: the quote is read before it is confirmed again."""
    return is_passing(error) or type(error) is OutcomeUnknown


def announce(job: Job, order: Order) -> None:
    """Make the run findable by its experiment, for wake-ups and for people."""
    get_run_logger().info("Experiment %s, order %s", order.experiment_code, order.order_key)
    beside = [ARCHIVE_TAG + job.book.books.archive_id, ORDER_TAG + order.order_key]
    if {EXPERIMENT_TAG + order.experiment_id, *beside} <= {*(current_run.tags or [])}:
        return  # the tags come last, so an earlier execution has shown the order as well
    artifacts.show_order(job.label, order)
    if can_suspend():
        add_tags(current_run.id, beside)
        set_tag(current_run.id, EXPERIMENT_TAG, order.experiment_id)


def carry_on(job: Job, order: Order) -> ExperimentReport:
    """From the order to the archived results. Every step reads how things stand first, so all may be repeated."""
    payment = None
    if order.surplus:
        with job.credentials.get_client() as client:
            reject_surplus(client, order.surplus)
    if order.status not in AFTER_MATERIALS:
        order = _await_invoice(job, order)
    try:
        payment = pay(job, order)
    except AssayError as error:
        # The laboratory works on it already: no trouble with money may stand before its results.
        if order.status not in AFTER_MATERIALS:
            raise
        get_run_logger().error("The invoice of %s needs a person: %s", order.experiment_code, error)
    finished, decision = _await_results(job, order, payment)
    return _conclude(job, order, payment, finished, decision)


def _await_invoice(job: Job, order: Order) -> Order:
    """Bring the order to its invoice: at once on the self-service route, after a quote on the other.

    Returns:
        The order. It is an older experiment than before when one has come to light and nothing was committed yet.
    """
    while True:
        billing = _await_billing(job, order)
        known, order = order, confirm_order(job.credentials, job.spec, order, book=job.book)
        artifacts.show_surplus(job.label, order)
        if order.experiment_id != known.experiment_id:
            announce(job, order)
            continue
        match billing.stage:
            case BillingStage.INVOICED:
                return order
            case BillingStage.QUOTE_OPEN if billing.quote is not None:
                accept_quote(job, order, billing.quote)
            case BillingStage.NOT_SUBMITTED:
                # Orders are never made as drafts: someone has said no, and that must not become an order.
                withdraw(job.book, "the experiment is a draft again")
                raise QuoteRejected(
                    f"experiment {order.experiment_code} is a draft again, so its quote was rejected or withdrawn; "
                    "nothing is billed. Submit it in the portal and run the flow again, or start the campaign "
                    "under a new campaign id"
                )
            case BillingStage.QUOTE_REJECTED:
                withdraw(job.book, "the quote was rejected")
                raise QuoteRejected(
                    f"the quote of experiment {order.experiment_code} was rejected; nothing is billed"
                )
            case BillingStage.QUOTE_EXPIRED:
                withdraw(job.book, "the quote expired")
                raise QuoteExpired(
                    f"the quote of experiment {order.experiment_code} expired before it was confirmed; "
                    "nothing is billed. Start the campaign under a new campaign id to get a new quote"
                )
            case BillingStage.CANCELED:
                withdraw(job.book, "the experiment was canceled")
                raise ExperimentCanceled(f"experiment {order.experiment_code} was canceled")
            case _:
                raise NotReady(f"the quote of experiment {order.experiment_code} is not readable yet")


def _await_billing(job: Job, order: Order) -> Billing:
    def ready() -> Billing | None:
        with job.credentials.get_client() as client:
            billing = read_billing(client, order.experiment_id)
        return None if billing.stage is BillingStage.QUOTE_PENDING else billing

    return wait_until(
        ready, key=f"{WaitsFor.QUOTE}-{job.key}", timeout=job.patience + _SUSPENSION_MARGIN, poll=job.poll
    )


def _await_results(job: Job, order: Order, payment: Payment | None) -> tuple[Experiment, Decision]:
    """Wait for the released results; archive preliminary ones when they appear, and go on waiting."""
    partial_kept = False

    def ready() -> tuple[Experiment, Decision] | None:
        with job.credentials.get_client() as client:
            found, decision = look(client, order.experiment_id, job.patience)
        again = isinstance(decision, Wait) or (isinstance(decision, Partial) and partial_kept)
        return None if again else (found, decision)

    while True:
        # The sweep reads by this word what is worth waking the run for.
        what = WaitsFor.MORE_RESULTS if partial_kept else WaitsFor.RESULTS
        found, decision = wait_until(
            ready, key=f"{what}-{job.key}", timeout=job.patience + _SUSPENSION_MARGIN, poll=job.poll
        )
        if not isinstance(decision, Partial):
            return found, decision
        _archive(job, order, payment, found)
        partial_kept = True


def _conclude(
    job: Job, order: Order, payment: Payment | None, finished: Experiment, decision: Decision
) -> ExperimentReport:
    """Archive whatever there is, then say how it ended."""
    record = None
    if finished.results_status != ResultsStatus.NONE:
        record = _archive(job, order, payment, finished)
    outcome = outcome_of(finished, decision)
    if isinstance(decision, Failed):
        raise ExperimentCanceled(
            f"experiment {finished.code} was canceled by the laboratory or in the portal"
        )
    if isinstance(decision, PastDeadline):
        raise Overdue(
            f"experiment {finished.code} has no complete results {job.patience.days} days after its order "
            f"(status {finished.status}); run the flow again with a later deadline to go on waiting"
        )
    no_link = {"hosted_invoice_url": None}  # it works without a token, and the report is kept
    return ExperimentReport(
        order=order.model_copy(update=no_link),
        payment=payment and payment.model_copy(update=no_link),
        outcome=outcome,
        archive=record,
    )


def _archive(job: Job, order: Order, payment: Payment | None, found: Experiment) -> ArchiveRecord:
    kept = archive_experiment(
        job.credentials,
        job.archive,
        campaign_id=job.campaign_id,
        order=order,
        payment=payment,
        spec=job.spec,
        results_status=str(found.results_status),
    )
    artifacts.show_results(job.label, kept)
    return kept.record
