"""`experiment`: one laboratory experiment, from its specification to its archived results.

Runs again from the top after every wake-up, crash and upgrade. Nothing is remembered between executions: the
order is found by its key, the invoice says whether it is paid, the archive compares before it writes.
"""

from datetime import timedelta
from typing import Annotated, Final

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.runtime import flow_run as current_run
from pydantic import Field

from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy, Wallet, WebhookEndpoint
from prefect_assay.designs import check_spec
from prefect_assay.errors import (
    ApprovalExpired,
    AssayError,
    ExperimentCanceled,
    InvalidSpec,
    NotFound,
    OrderOutcomeUnknown,
    Overdue,
    QuoteExpired,
    QuoteRejected,
)
from prefect_assay.flows import artifacts
from prefect_assay.flows.attempts import stop_crash_loop
from prefect_assay.flows.canceled import say_what_remains
from prefect_assay.flows.hooks import wake_waiting_parent
from prefect_assay.flows.job import Job
from prefect_assay.flows.paying import accept_quote, approve_price, pay, place_order
from prefect_assay.flows.questions import unanswered
from prefect_assay.models.archived import ArchiveRecord
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.job import Order, Payment
from prefect_assay.models.report import ExperimentReport
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import AFTER_MATERIALS, PaymentMethod, ResultsStatus
from prefect_assay.ordering import experiment_name, order_key, read_order
from prefect_assay.tasks.archive import archive_experiment, check_archive
from prefect_assay.tasks.check import look, outcome_of
from prefect_assay.tasks.estimate import estimate_cost
from prefect_assay.tasks.order import find_order
from prefect_assay.tasks.pay import require_rail
from prefect_assay.tasks.quote import Billing, BillingStage, read_billing
from prefect_assay.waiting import Decision, Failed, Partial, PollPolicy, Wait, can_suspend, wait_until
from prefect_assay.waiting import Overdue as PastDeadline
from prefect_assay.waiting.runs import EXPERIMENT_TAG, add_tags

DEADLINE_DAYS: Final = 45

# The run's own deadline decides; Prefect's suspension time-out only backs it up if nobody wakes the run.
_SUSPENSION_MARGIN = timedelta(days=30)


@flow(
    name="experiment",
    flow_run_name="{campaign_id}-{batch_index}",
    on_completion=[wake_waiting_parent],
    on_failure=[wake_waiting_parent],
    on_crashed=[wake_waiting_parent],
    on_cancellation=[say_what_remains, wake_waiting_parent],
)
def experiment(
    spec: ExperimentSpec,
    credentials: AssayCredentials,
    policy: SpendingPolicy,
    archive: Archive,
    campaign_id: str,
    batch_index: Annotated[int, Field(ge=0)] = 0,
    batch_count: Annotated[int, Field(ge=1)] = 1,
    payment_method: PaymentMethod = PaymentMethod.ASYNC_INVOICE,
    wallet: Wallet | None = None,
    webhook: WebhookEndpoint | None = None,
    limit_cents: Annotated[int | None, Field(ge=0)] = None,
    campaign_limit_cents: Annotated[int | None, Field(ge=0)] = None,
    request_quote: bool = False,  # noqa: FBT001, FBT002 - a checkbox of the form
    deadline_days: Annotated[int, Field(ge=1, le=365)] = DEADLINE_DAYS,
    poll_seconds: Annotated[float, Field(gt=0)] = 300.0,
) -> ExperimentReport | State[ExperimentReport]:
    """Order one experiment once, pay it once, wait for the laboratory, archive its results.

    Args:
        spec: what to measure, with sequences and the target's catalog id.
        credentials: the service's address and your own token.
        policy: caps, and whether machine payments are allowed.
        archive: where results are kept.
        campaign_id: part of the order key: the same id and specification are ordered once, ever.
        batch_index: position of this experiment in its campaign, from 0.
        batch_count: number of experiments in the campaign, for names only.
        payment_method: async_invoice shows a hosted invoice to a person; a machine rail pays by itself.
        wallet: what a machine rail pays with: an X402Wallet for x402-exact, SharedPaymentTokens for mpp-spt.
        webhook: where the service delivers updates; without it the sweep or polling finds them.
        limit_cents: what has been approved for this experiment; empty means the policy's cap.
        campaign_limit_cents: what has been approved for the whole campaign; empty means the policy's cap.
        request_quote: order by quote, even if the estimate is complete.
        deadline_days: when to stop waiting, counted from the order.
        poll_seconds: longest pause between two looks of a run that is not deployed.

    Returns:
        ExperimentReport: the order, its payment, how it ended and where the results are.

    Raises:
        InputError: the specification is wrong; nothing was ordered.
        PaymentError: over a cap or not payable; the message says whether something was ordered.
        Stopped: canceled, quote rejected or expired, not approved, or overdue.
        OutcomeUnknown: an answer was lost; running the flow again looks first.
        CrashedTooOften: its process was killed more than five times since it last waited.
    """
    stop_crash_loop()
    key = order_key(campaign_id, batch_index, spec)
    job = Job(
        spec=spec,
        key=key,
        name=experiment_name(campaign_id, batch_index, batch_count, key),
        label=artifacts.label_of(campaign_id, batch_index),
        campaign_id=campaign_id,
        credentials=credentials,
        policy=policy,
        archive=archive,
        payment_method=payment_method,
        wallet=wallet,
        webhook=webhook,
        cap_cents=policy.per_experiment_cents if limit_cents is None else limit_cents,
        campaign_cap_cents=policy.per_campaign_cents
        if campaign_limit_cents is None
        else campaign_limit_cents,
        request_quote=request_quote,
        patience=timedelta(days=deadline_days),
        poll=PollPolicy(first_seconds=min(2.0, poll_seconds), longest_seconds=poll_seconds),
    )
    try:
        return _run(job)
    except ApprovalExpired as error:
        return unanswered(error)


def _run(job: Job) -> ExperimentReport:
    order = _own_order(job) or find_order(job.credentials, job.key) or _place_order(job)
    _announce(job, order)
    payment = None
    if order.status not in AFTER_MATERIALS:
        _await_invoice(job, order)
    try:
        payment = pay(job, order)
    except AssayError as error:
        # The laboratory works on it already: no trouble with money may stand before its results.
        if order.status not in AFTER_MATERIALS:
            raise
        get_run_logger().error("The invoice of %s needs a person: %s", order.experiment_code, error)
    finished, decision = _await_results(job, order, payment)
    return _conclude(job, order, payment, finished, decision)


def _own_order(job: Job) -> Order | None:
    """The order that an earlier execution of this very run placed or found, by the run's tag.

    A run that has ordered never orders again, whatever became of the experiment's name, the token or the way
    order keys are made. While the service is away, it waits.
    """
    known = [
        tag.removeprefix(EXPERIMENT_TAG) for tag in current_run.tags or [] if tag.startswith(EXPERIMENT_TAG)
    ]
    if not known:
        return None

    def ready() -> Order | None:
        with job.credentials.get_client() as client:
            return read_order(client, known[0], job.key)

    try:
        return wait_until(
            ready, key=f"order-{job.key}", timeout=job.patience + _SUSPENSION_MARGIN, poll=job.poll
        )
    except NotFound as error:
        raise OrderOutcomeUnknown(
            f"this run has ordered experiment {known[0]}, and its credentials cannot see it any more; nothing is "
            "ordered again. Check the token and the address in the credentials block, then run it again",
            request_id=error.request_id,
        ) from error


def _place_order(job: Job) -> Order:
    """Check, estimate, check the budget, order. An incomplete estimate is never a price: it takes the quoted route."""
    InvalidSpec.check(check_spec(job.spec))
    require_rail(job.payment_method, job.policy, job.wallet)
    check_archive(job.archive)
    estimate = estimate_cost(job.credentials, job.spec)
    artifacts.show_estimate(job.label, job.name, job.spec, estimate)
    # With a quote to come, the quote is the price.
    total = None if job.request_quote else estimate.total_cents
    if total is not None:
        approve_price(job, what=f"Experiment {job.name}", amount_cents=total, otherwise="nothing was ordered")
    return place_order(job, total)


def _announce(job: Job, order: Order) -> None:
    """Make the run findable by its experiment, for wake-ups and for people."""
    get_run_logger().info("Experiment %s, order %s", order.experiment_code, order.order_key)
    artifacts.show_order(job.label, order)
    if can_suspend():
        add_tags(current_run.id, [EXPERIMENT_TAG + order.experiment_id])


def _await_invoice(job: Job, order: Order) -> None:
    """Bring the order to its invoice: at once on the self-service route, after a quote on the other."""
    while True:
        billing = _await_billing(job, order)
        match billing.stage:
            case BillingStage.INVOICED:
                return
            case BillingStage.NOT_SUBMITTED:
                # Orders are never made as drafts: someone has said no, and that must not become an order.
                raise QuoteRejected(
                    f"experiment {order.experiment_code} is a draft again, so its quote was rejected or withdrawn; "
                    "nothing is billed. Submit it in the portal and run the flow again, or start the campaign "
                    "under a new campaign id"
                )
            case BillingStage.QUOTE_OPEN:
                accept_quote(job, order, billing)
            case BillingStage.QUOTE_REJECTED:
                raise QuoteRejected(
                    f"the quote of experiment {order.experiment_code} was rejected; nothing is billed"
                )
            case BillingStage.QUOTE_EXPIRED:
                raise QuoteExpired(
                    f"the quote of experiment {order.experiment_code} expired before it was confirmed; "
                    "nothing is billed. Start the campaign under a new campaign id to get a new quote"
                )
            case _:
                raise ExperimentCanceled(f"experiment {order.experiment_code} was canceled")


def _await_billing(job: Job, order: Order) -> Billing:
    def ready() -> Billing | None:
        with job.credentials.get_client() as client:
            billing = read_billing(client, order.experiment_id)
        return None if billing.stage is BillingStage.QUOTE_PENDING else billing

    return wait_until(ready, key=f"quote-{job.key}", timeout=job.patience + _SUSPENSION_MARGIN, poll=job.poll)


def _await_results(job: Job, order: Order, payment: Payment | None) -> tuple[Experiment, Decision]:
    """Wait for the released results; archive preliminary ones when they appear, and go on waiting."""
    partial_kept = False

    def ready() -> tuple[Experiment, Decision] | None:
        with job.credentials.get_client() as client:
            found, decision = look(client, order.experiment_id, job.patience)
        again = isinstance(decision, Wait) or (isinstance(decision, Partial) and partial_kept)
        return None if again else (found, decision)

    while True:
        found, decision = wait_until(
            ready, key=f"results-{job.key}", timeout=job.patience + _SUSPENSION_MARGIN, poll=job.poll
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
    return ExperimentReport(order=order, payment=payment, outcome=outcome, archive=record)


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
