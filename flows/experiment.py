"""`experiment`: one laboratory experiment, from its specification to its archived results.

Runs again from the top after every wake-up, crash and upgrade. No process remembers anything between executions: the
order's log says which experiment it is, the invoice says whether it is paid, the archive compares before it writes.
"""

from datetime import timedelta
from typing import Annotated, Final

from prefect.client.schemas.objects import State
from prefect.runtime import flow_run as current_run
from pydantic import Field

from prefect_assay.approvals.questions import unanswered
from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy, Wallet, WebhookEndpoint
from prefect_assay.blocks.order_books import import_variables
from prefect_assay.designs import check_spec
from prefect_assay.errors import ApprovalExpired, ArchiveError, InvalidSpec
from prefect_assay.flows.experiment_billing import approve_price, place_order
from prefect_assay.flows.experiment_job import Job
from prefect_assay.flows.experiment_steps import announce, carry_on, outlasting
from prefect_assay.models.job import Order
from prefect_assay.models.report import ExperimentReport
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.ordering import adopt, experiment_name, order_key
from prefect_assay.reporting import artifacts
from prefect_assay.runs import PollPolicy, was_suspended
from prefect_assay.runs.block_references import require_blocks
from prefect_assay.runs.crashes import stop_crash_loop
from prefect_assay.runs.durable import durable_flow, refuse_unknown_parameters
from prefect_assay.runs.hooks import wake_waiting_parent
from prefect_assay.runs.queries import ARCHIVE_TAG, EXPERIMENT_TAG
from prefect_assay.sweeping.cancellations import say_what_remains
from prefect_assay.tasks.archive import check_archive
from prefect_assay.tasks.estimate import estimate_cost
from prefect_assay.tasks.order import find_order
from prefect_assay.tasks.pay import require_rail

DEADLINE_DAYS: Final = 45


@durable_flow(
    name="experiment",
    asks_for=("wallet", "webhook"),
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
        limit_cents: a lower cap for this experiment than the policy's; more than the policy allows takes an approval.
        campaign_limit_cents: a lower cap for the whole campaign than the policy's.
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
        cap_cents=_lower(policy.per_experiment_cents, limit_cents),
        campaign_cap_cents=_lower(policy.per_campaign_cents, campaign_limit_cents),
        request_quote=request_quote,
        patience=timedelta(days=deadline_days),
        poll=PollPolicy(first_seconds=min(2.0, poll_seconds), longest_seconds=poll_seconds),
    )
    try:
        return _run(job)
    except ApprovalExpired as error:
        return unanswered(error)


def _run(job: Job) -> ExperimentReport:
    # Before anything is ordered, trouble may end the run: running it again is safe, and a wrong address shows at
    # once. A run that has waited, if only for an answer, goes on waiting instead.
    if was_suspended(current_run.tags or []):
        order = outlasting(job, "order", lambda: _find_or_place(job))
    else:
        order = _find_or_place(job)
    announce(job, order)
    return outlasting(job, "steps", lambda: carry_on(job, order))


def _lower(cap_cents: int, limit_cents: int | None) -> int:
    return cap_cents if limit_cents is None else min(cap_cents, limit_cents)


def _find_or_place(job: Job) -> Order:
    _adopt_earlier(job)
    return find_order(job.credentials, job.book) or _place_order(job)


def _adopt_earlier(job: Job) -> None:
    """Bring an order that an earlier version has placed in this very run, known by the run's tag, into the log.

    Raises:
        ArchiveError: the run has ordered in another archive.
    """
    tags = current_run.tags or []
    archives = [t.removeprefix(ARCHIVE_TAG) for t in tags if t.startswith(ARCHIVE_TAG)]
    if archives and job.book.books.archive_id not in archives:
        raise ArchiveError(
            f"this run has ordered in another archive than {job.book.location}; nothing is ordered or paid. Point the "
            "archive block to the archive in which the run was begun, and run it again"
        )
    if not archives:
        for tag in tags:
            if tag.startswith(EXPERIMENT_TAG) and job.book.read().ordered is None:
                import_variables(job.book, job.credentials.base_url)
                adopt(job.book, tag.removeprefix(EXPERIMENT_TAG))


def _place_order(job: Job) -> Order:
    """Check, estimate, check the budget, order. An incomplete estimate is never a price: it takes the quoted route."""
    refuse_unknown_parameters()
    require_blocks("wallet", "webhook")
    InvalidSpec.check(check_spec(job.spec))
    require_rail(job.payment_method, job.policy, job.wallet)
    check_archive(job.archive)
    estimate = estimate_cost(job.credentials, job.spec)
    artifacts.show_estimate(job.label, job.name, job.spec, estimate)
    # With a quote to come, the quote is the price. Without a target there is no other way (contract 4.2).
    total = None if job.request_quote or not job.spec.takes_target else estimate.total_cents
    if total is not None:
        approve_price(job, what=f"Experiment {job.name}", amount_cents=total, otherwise="nothing was ordered")
    return place_order(job, total)
