"""`experiment`: one laboratory experiment, from its specification to its archived results.

The flow starts from the top after every wake-up, crash and upgrade, and keeps no state between executions. The order's
log names the experiment, the invoice shows whether it is paid, and the archive compares before it writes.
"""

from typing import Annotated, Final

from prefect.client.schemas.objects import State
from prefect.runtime import flow_run as current_run
from pydantic import Field

from prefect_assay.approvals.questions import unanswered
from prefect_assay.designs import check_spec
from prefect_assay.errors import (
    ApprovalExpired,
    ApprovalRejected,
    ArchiveError,
    DecisionNeeded,
    ExperimentCanceled,
    InvalidSpec,
    OrderMismatch,
    QuoteExpired,
    QuoteRejected,
)
from prefect_assay.events import concerning, emit, kinds
from prefect_assay.flows import form
from prefect_assay.flows.experiment_billing import accept_ledger, approve_price, decide_which, place_order
from prefect_assay.flows.experiment_steps import announce, complete_order, leave, outlasting
from prefect_assay.flows.first_look import look_first
from prefect_assay.flows.run_options import ExperimentRun, RunOptions
from prefect_assay.models.bounds import CampaignId, Cents, Count, Position
from prefect_assay.models.job import Order
from prefect_assay.models.question import QuestionKind
from prefect_assay.models.report import ExperimentReport
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.ordering import adopt, read_order
from prefect_assay.ordering.identity import KEY_LENGTH
from prefect_assay.reporting import artifacts
from prefect_assay.runs import can_suspend, outlast, was_suspended
from prefect_assay.runs.block_references import require_blocks
from prefect_assay.runs.children import wake_waiting_parent
from prefect_assay.runs.crashes import stop_crash_loop
from prefect_assay.runs.durable import durable_flow
from prefect_assay.runs.suspend import outlive
from prefect_assay.runs.tags import (
    ARCHIVE_TAG,
    EXPERIMENT_TAG,
    ORDER_OVER_LABEL,
    ORDER_TAG,
    add_tags,
    own_tags,
    set_labels,
    tag_values,
)
from prefect_assay.sweeping.cancellations import report_cancellation
from prefect_assay.tasks.archive import check_archive
from prefect_assay.tasks.collate import planned_spec
from prefect_assay.tasks.estimate import estimate_cost
from prefect_assay.tasks.order import find_order
from prefect_assay.tasks.pay import require_rail
from prefect_assay.waiting import DEADLINE_DAYS

# After these no other run has to wait for the order.
_ENDS_ORDER: Final = (ApprovalRejected, ExperimentCanceled, QuoteExpired, QuoteRejected)


@durable_flow(
    name="experiment",
    asks_for=("wallet", "webhook"),
    flow_run_name="{campaign_id}-{batch_index}",
    on_completion=[wake_waiting_parent],
    on_failure=[wake_waiting_parent],
    on_crashed=[wake_waiting_parent],
    on_cancellation=[report_cancellation, wake_waiting_parent],
)
def experiment(
    spec: Annotated[ExperimentSpec, form.titled("Specification")],
    campaign_id: Annotated[CampaignId, form.titled("Campaign id")],
    *,
    limit_cents: form.LowerCap = None,
    campaign_limit_cents: Annotated[Cents | None, form.titled("Lower cap of the campaign (US cents)")] = None,
    credentials: form.Credentials,
    policy: form.Policy,
    archive: form.Archive,
    webhook: form.Webhook = None,
    payment_method: form.Payment = PaymentMethod.ASYNC_INVOICE,
    wallet: form.Wallet = None,
    request_quote: form.ByQuote = False,
    deadline_days: form.Deadline = DEADLINE_DAYS,
    poll_seconds: form.Poll = 300.0,
    batch_index: Annotated[Position, form.titled("Position in the campaign")] = 0,
    batch_count: Annotated[Count, form.titled("Experiments of the campaign")] = 1,
    planned: Annotated[str | None, Field(max_length=KEY_LENGTH), form.titled("Order key in the plan")] = None,
) -> ExperimentReport | State[ExperimentReport]:
    """Order one experiment once, pay it once, wait for the laboratory, archive its results.

    Args:
        spec: what to measure, with sequences and the target's catalog id.
        campaign_id: part of the order key: the same id and specification are ordered once, ever.
        limit_cents: a lower cap for this experiment than the policy's.
        campaign_limit_cents: a lower cap for the whole campaign than the policy's.
        credentials: the service's address and your API token.
        policy: caps, and permission for machine payments.
        archive: where results are archived.
        webhook: where the service delivers updates; without it the sweep or polling finds them.
        payment_method: async_invoice: a person pays the hosted invoice; a machine rail pays with the wallet.
        wallet: for a machine rail: an X402Wallet for x402-exact, SharedPaymentTokens for mpp-spt.
        request_quote: order by quote, even if the estimate is complete.
        deadline_days: how long to wait, counted from the order.
        poll_seconds: longest pause between two polls of a run that is not deployed.
        batch_index: position of this experiment in its campaign, from 0.
        batch_count: number of experiments in the campaign, for names only.
        planned: set by a campaign whose sequences are too many for a run's parameters: the order key under which they
            are in its plan in the archive.

    Returns:
        ExperimentReport: the order, its payment, its outcome and its archive.

    Raises:
        InputError: the specification is wrong; nothing was ordered.
        PaymentError: over a cap or not payable; the message names what was ordered.
        Stopped: canceled, quote rejected or expired, not approved, or overdue.
        OutcomeUnknown: an answer was lost; another run reads the state first.
        CrashedTooOften: its process was killed more than five times since its last suspension.
    """
    stop_crash_loop()
    options = RunOptions(
        credentials=credentials,
        policy=policy,
        archive=archive,
        payment_method=payment_method,
        wallet=wallet,
        webhook=webhook,
        request_quote=request_quote,
        deadline_days=deadline_days,
        poll_seconds=poll_seconds,
    )
    if planned is not None:
        spec = outlast(
            lambda: planned_spec(archive, campaign_id, planned),
            key="plan",
            timeout=options.round_timeout,
            poll=options.poll,
        )
    run = ExperimentRun(
        options,
        spec=spec,
        campaign_id=campaign_id,
        batch_index=batch_index,
        batch_count=batch_count,
        limit_cents=limit_cents,
        campaign_limit_cents=campaign_limit_cents,
        planned=planned,
    )
    concerning(campaign_id=campaign_id, order_key=run.key)
    look_first(run)
    try:
        report = _find_and_complete(run)
    except ApprovalExpired as error:
        leave(run)
        return unanswered(error)
    except Exception as error:  # a suspension is none
        outlive(error)  # a run that waits stays in the order's log
        leave(run)
        if isinstance(error, _ENDS_ORDER):
            set_labels(current_run.id, {ORDER_OVER_LABEL: type(error).__name__})
        raise
    leave(run)
    return report


def _find_and_complete(run: ExperimentRun) -> ExperimentReport:
    while True:
        try:
            return _once(run)
        except OrderMismatch as error:
            decide_which(run, error)
        except DecisionNeeded as error:
            if error.question.kind is not QuestionKind.LEDGER:
                raise
            accept_ledger(run, error)


def _once(run: ExperimentRun) -> ExperimentReport:
    # Before anything is ordered, a failure may end the run: running it again is safe, and a wrong address shows at
    # once. A run that was suspended, if only for an answer, keeps waiting instead.
    if was_suspended(own_tags()):
        order = outlasting(run, "order", lambda: _find_or_place(run))
    else:
        order = _find_or_place(run)
    announce(run, order)
    first = iter([order])  # a repetition in this process reads the order again, as another execution would
    return outlasting(run, "steps", lambda: complete_order(run, next(first, None) or _find_or_place(run)))


def _find_or_place(run: ExperimentRun) -> Order:
    _adopt_tagged(run)
    try:
        return find_order(run.options.credentials, run.book) or _place_order(run)
    except Exception:
        if run.book.state.placed and can_suspend():
            add_tags(current_run.id, [ORDER_TAG + run.key])  # what failed was behind the order: see `outlive`
        raise


def _adopt_tagged(run: ExperimentRun) -> None:
    """Record the order that this run has placed, known by its tag, if its log does not have it.

    With the service's address under another name, the log may be another.

    Raises:
        ArchiveError: the run has ordered in another archive.
        OrderOutcomeUnknown: these credentials cannot see what it has ordered, or the order is in another log.
    """
    tags = own_tags()
    archives = tag_values(tags, ARCHIVE_TAG)
    if archives and run.book.books.archive_id not in archives:
        raise ArchiveError(
            f"this run has ordered in another archive than {run.book.location}; nothing is ordered or paid. Point the "
            "archive block to the archive in which the run started, and run it again"
        )
    for experiment_id in tag_values(tags, EXPERIMENT_TAG):
        if run.book.read().ordered is None:
            with run.options.credentials.get_client() as client:
                read_order(client, experiment_id, run.key)
            adopt(run.book, experiment_id)


def _place_order(run: ExperimentRun) -> Order:
    """Check, estimate, approve, order. An incomplete estimate is never a price: the order takes the quoted route."""
    require_blocks("wallet", "webhook")
    InvalidSpec.check(check_spec(run.spec))
    require_rail(run.options.payment_method, run.options.policy, run.options.wallet)
    check_archive(run.options.archive)
    estimate = estimate_cost(run.options.credentials, run.spec)
    artifacts.show_estimate(run.label, run.name, run.spec, estimate)
    emit(
        kinds.EstimateCompleted(
            campaign_id=run.campaign_id,
            order_key=run.key,
            designs=len(run.spec.sequences),
            total_cents=estimate.total_cents or 0,
            unpriced=int(estimate.total_cents is None),
        )
    )
    # On the quoted route the quote is the price. Without a target it is the only route (contract 4.2).
    total = None if run.options.request_quote or not run.spec.takes_target else estimate.total_cents
    if total is not None:
        approve_price(run, what=f"Experiment {run.name}", amount_cents=total, otherwise="nothing was ordered")
    return place_order(run, total)
