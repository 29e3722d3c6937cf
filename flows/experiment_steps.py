"""The steps of one experiment after its order: its invoice, its payment, the wait, its results.

Every step may be repeated at any time, because each reads the present state first. After a transient failure the run
waits and starts again from the top.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeVar, assert_never

from prefect.client.orchestration import get_client
from prefect.logging import get_run_logger
from prefect.runtime import deployment as current_deployment
from prefect.runtime import flow_run as current_run

from prefect_assay.client.http.dates import time_at
from prefect_assay.errors import (
    AssayError,
    ExperimentCanceled,
    NotReady,
    OutcomeUnknown,
    Overdue,
    QuoteExpired,
    QuoteRejected,
    ResultsUnread,
    ServiceUnavailable,
)
from prefect_assay.flows.experiment_billing import accept_quote, pay
from prefect_assay.flows.run_options import ExperimentRun
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.job import Order, OutcomeKind, Payment, PaymentState
from prefect_assay.models.report import ExperimentReport
from prefect_assay.models.vocabulary import AFTER_MATERIALS, ExperimentStatus, ResultsStatus
from prefect_assay.models.words import in_words
from prefect_assay.reporting import artifacts, facts
from prefect_assay.reporting.progress import show_progress
from prefect_assay.results.row import ArchivedResults
from prefect_assay.runs import can_suspend, is_temporary, outlast, wait_until, was_suspended
from prefect_assay.runs.suspend import this_run
from prefect_assay.runs.tags import (
    ARCHIVE_TAG,
    EXPERIMENT_CODE_LABEL,
    EXPERIMENT_TAG,
    ORDER_TAG,
    PARTIAL_LABEL,
    RETRY_TAG,
    own_label,
    own_tags,
    set_labels,
    set_tag,
    tag_values,
)
from prefect_assay.sweeping.settle_cancellation import reject_surplus
from prefect_assay.tasks.archive import archive_experiment
from prefect_assay.tasks.order import confirm_order
from prefect_assay.ordering.billing import Billing, BillingStage, read_billing, withdraw
from prefect_assay.tasks.read import look, outcome_of
from prefect_assay.tasks.report import plot_results
from prefect_assay.waiting import PARTIAL_WAIT, Decision, NotYet, WaitsFor

T = TypeVar("T")

_PACKAGE_LOOKS: Final = 3


def outlasting(run: ExperimentRun, name: str, step: Callable[[], T]) -> T:
    """`outlast` with this run's patience. The name appears in the run's history."""
    key = f"{name}-{run.key}"
    return outlast(step, key=key, timeout=run.timeout, poll=run.options.poll, retry_on=_passes)


def _passes(error: AssayError) -> bool:
    """Also a confirmation whose answer was lost: the quote is read before it is confirmed again."""
    return is_temporary(error) or type(error) is OutcomeUnknown


def leave(run: ExperimentRun) -> None:
    """Record in the order's log that this run has ended, for a later cancellation. Never fails the run."""
    try:
        run.book.end_work(str(current_run.id))
    except AssayError as error:
        get_run_logger().warning("Could not record that this run has ended: %s", error)


def announce(run: ExperimentRun, order: Order) -> None:
    """Tag the run with its experiment, for wake-ups and for people."""
    get_run_logger().info("Experiment %s, order %s", order.experiment_code, order.order_key)
    facts.ordered(run.book, order, run.spec, run.options.payment_method)
    constant = [ARCHIVE_TAG + run.book.books.archive_id, ORDER_TAG + order.order_key]
    tagged = {EXPERIMENT_TAG + order.experiment_id, *constant} <= {*own_tags()}
    if order.experiment_code and not (tagged and own_label(EXPERIMENT_CODE_LABEL)):
        set_labels(current_run.id, {EXPERIMENT_CODE_LABEL: order.experiment_code})
    if tagged:
        return  # the tags are set last, so an earlier execution has shown the order as well
    artifacts.show_order(run.label, order)
    if can_suspend():
        set_tag(current_run.id, EXPERIMENT_TAG, order.experiment_id, also=constant)


def complete_order(run: ExperimentRun, order: Order) -> ExperimentReport:
    """From the order to the archived results."""
    run.book.begin_work(str(current_run.id), str(current_run.name), current_deployment.id)
    payment = None
    if order.surplus:
        with run.options.credentials.get_client() as client:
            reject_surplus(client, order.surplus)
    if order.status not in AFTER_MATERIALS:
        order = _await_invoice(run, order)
    canceled = order.status not in AFTER_MATERIALS and _is_canceled_in_doubt(run, order)
    if canceled:
        _end_canceled(run, order)  # first: the run may end with the answer about its payment, or without one
    try:
        payment = pay(run, order, canceled=canceled)
    except AssayError as error:
        # The laboratory already works on it: a payment problem must not hold back its results.
        if order.status not in AFTER_MATERIALS:
            if isinstance(error, ExperimentCanceled):
                _end_canceled(run, order)
            raise
        get_run_logger().error("The invoice of %s needs a person: %s", order.experiment_code, error)
    finished, decision = _await_results(run, order, payment)
    return _conclude(run, order, payment, finished, decision)


def _await_invoice(run: ExperimentRun, order: Order) -> Order:
    """Wait for the order's invoice: it exists at once on the self-service route, after a quote on the other.

    Returns:
        The order. It names another experiment if an older one was found before anything was committed.
    """
    while True:
        billing = _await_billing(run, order)
        known = order
        order = confirm_order(run.options.credentials, run.spec, order, book=run.book)
        artifacts.show_surplus(run.label, order)
        if order.experiment_id != known.experiment_id:
            announce(run, order)
        elif _is_invoiced(run, order, billing):
            return order


def _is_invoiced(run: ExperimentRun, order: Order, billing: Billing) -> bool:
    """Return True if the invoice exists; accept an open quote.

    Raises:
        Stopped: the quote came to nothing, or the experiment was canceled.
        NotReady: the quote cannot be read yet.
    """
    experiment = f"experiment {order.experiment_code}"
    match billing.stage:
        case BillingStage.INVOICED:
            return True
        case BillingStage.QUOTE_OPEN | BillingStage.QUOTE_UNKNOWN if billing.quote is not None:
            facts.quoted(order, billing.quote)
            accepted = accept_quote(run, order, billing.quote)
            # One that has expired may read as open for longer.
            return accepted.stage is BillingStage.QUOTE_EXPIRED and _is_invoiced(run, order, accepted)
        case BillingStage.QUOTE_OPEN | BillingStage.QUOTE_UNKNOWN | BillingStage.QUOTE_PENDING:
            raise NotReady(f"the quote of {experiment} is not readable yet")
        case BillingStage.NOT_SUBMITTED:
            # Orders are created with `skip_draft`, and submitted if that was ignored. So most likely someone has rejected
            # the quote, and it must not become an order.
            withdraw(run.book, "the experiment is a draft")
            raise QuoteRejected(
                f"{experiment} is a draft: its quote was rejected or withdrawn, or the service has not taken it out of draft "
                "as the order asked (skip_draft). Nothing is billed. Submit it in the portal and run the flow again"
            )
        case BillingStage.QUOTE_REJECTED:
            withdraw(run.book, "the quote was rejected")
            raise QuoteRejected(f"the quote of {experiment} was rejected; nothing is billed")
        case BillingStage.QUOTE_EXPIRED:
            withdraw(run.book, "the quote expired")
            raise QuoteExpired(
                f"the quote of {experiment} expired before it was confirmed; nothing is billed. Start the campaign "
                "under a new campaign id to get a new quote"
            )
        case BillingStage.CANCELED:
            withdraw(run.book, "the experiment was canceled")
            _end_canceled(run, order)
            raise ExperimentCanceled(f"{experiment} was canceled")
        case never:
            assert_never(never)


def _is_canceled_in_doubt(run: ExperimentRun, order: Order) -> bool:
    """Return True for a canceled experiment with a payment that was sent and may still settle."""
    sent = run.book.read().payment
    if sent is None or not sent.in_doubt:
        return False
    with run.options.credentials.get_client() as client:
        return client.experiment(order.experiment_id).status == ExperimentStatus.CANCELED


def _end_canceled(run: ExperimentRun, order: Order) -> None:
    """Archive what was measured before the cancellation, and report it."""
    with run.options.credentials.get_client() as client:
        found = client.experiment(order.experiment_id)
    if found.results_status != ResultsStatus.NONE:
        _archive(run, order, None, found)
    facts.canceled(order.experiment_id, order.experiment_code)


def _await_billing(run: ExperimentRun, order: Order) -> Billing:
    def ready() -> Billing | None:
        with run.options.credentials.get_client() as client:
            billing = read_billing(client, order.experiment_id)
        return None if billing.stage is BillingStage.QUOTE_PENDING else billing

    return wait_until(ready, key=f"{WaitsFor.QUOTE}-{run.key}", timeout=run.timeout, poll=run.options.poll)


def _await_results(
    run: ExperimentRun, order: Order, payment: Payment | None
) -> tuple[Experiment, OutcomeKind]:
    """Wait for the released results; archive preliminary ones when they appear, and continue waiting."""
    partial_archived = False
    news = _is_own(order)
    seen: Experiment | None = None
    first: list[datetime] = []

    def ready() -> tuple[Experiment, Decision] | None:
        nonlocal news, seen
        with run.options.credentials.get_client() as client:
            seen, decision = look(client, order.experiment_id, run.options.patience)
            now = time_at(client)
        facts.stage(seen, news=news)
        news = True
        if (
            decision is NotYet.PARTIAL
            and seen.status == ExperimentStatus.DONE
            and _partial_for_long(first, now)
        ):
            return seen, OutcomeKind.INCOMPLETE
        if decision is NotYet.NOTHING or (decision is NotYet.PARTIAL and partial_archived):
            return None
        return seen, decision

    while True:
        # The sweep reads from this word which updates are worth a wake-up.
        what = WaitsFor.MORE_RESULTS if partial_archived else WaitsFor.RESULTS
        found, decision = wait_until(
            ready,
            key=f"{what}-{run.key}",
            timeout=run.timeout,
            poll=run.options.poll,
            describe=lambda: show_progress_of(run, seen),
        )
        if isinstance(decision, OutcomeKind):
            return found, decision
        _archive(run, order, payment, found)
        partial_archived = True


def _partial_for_long(first: list[datetime], now: datetime) -> bool:
    """Whether a finished experiment has had partial results for `PARTIAL_WAIT`, by the service's clock.

    `first` is when this process saw it.
    """
    label = own_label(PARTIAL_LABEL)
    if not (first or label):
        first.append(now)
        if can_suspend():
            set_labels(current_run.id, {PARTIAL_LABEL: now.isoformat()})
    since = datetime.fromisoformat(label) if isinstance(label, str) and label else first[0]
    return now >= since + PARTIAL_WAIT


def _is_own(order: Order) -> bool:
    """Return False in the first execution of a run whose order an earlier run has placed."""
    return was_suspended(own_tags()) or not order.adopted


def show_progress_of(run: ExperimentRun, found: Experiment | None) -> str | None:
    """Show where the laboratory is; returns one line about it, None where its updates cannot be read."""
    if found is None:
        return None
    with run.options.credentials.get_client() as service, get_client(sync_client=True) as prefect:
        try:
            updates = service.experiment_updates(found.id)
        except AssayError as error:  # what is only shown ends no run
            get_run_logger().warning("Could not read the updates: %s", error)
            return None
        return show_progress(prefect, this_run(), found, updates)


def _conclude(
    run: ExperimentRun, order: Order, payment: Payment | None, finished: Experiment, kind: OutcomeKind
) -> ExperimentReport:
    """Archive the results, if any, then report or raise how the experiment ended."""
    kept = None
    show_progress_of(run, finished)
    if finished.results_status != ResultsStatus.NONE:
        kept = _archive(run, order, payment, finished)
    record = kept.record if kept else None
    outcome = outcome_of(finished, kind)
    if kept is not None and (kept.away or kept.unread) and _looks_again(run):
        missing = "its results" if kept.unread else f"the packages of {', '.join(kept.away)}"
        raise ServiceUnavailable(
            f"experiment {finished.code}: {missing} cannot be read now; everything else is archived in {kept.record.location}"
        )
    if kept is not None and kept.unread:
        raise ResultsUnread(
            f"the results of experiment {finished.code} are complete, and this version can read no row of them: "
            f"{'; '.join(kept.notes)}. They are archived as they came: {', '.join(kept.unread)}. Upgrade and run the flow "
            "again to make the table, or ask the laboratory about their shape"
        )
    match kind:
        case OutcomeKind.DONE | OutcomeKind.INCOMPLETE:
            pass
        case OutcomeKind.CANCELED:
            facts.canceled(finished.id, finished.code)
            unpaid = payment is not None and payment.state is not PaymentState.SETTLED
            raise ExperimentCanceled(
                f"experiment {finished.code} was canceled by the laboratory or in the portal"
                f"{'; its invoice must not be paid' if unpaid else ''}"
            )
        case OutcomeKind.OVERDUE:
            facts.overdue(finished, run.options.deadline_days)
            raise Overdue(
                f"experiment {finished.code} has no complete results {run.options.deadline_days} days after its order "
                f"(status {in_words(finished.status)}); run the flow again with a later deadline to go on waiting"
            )
        case never:
            assert_never(never)
    no_link = {"hosted_invoice_url": None}  # it works without a token, and the report is kept
    return ExperimentReport(
        order=order.model_copy(update=no_link),
        payment=payment and payment.model_copy(update=no_link),
        outcome=outcome,
        archive=record,
    )


def _looks_again(run: ExperimentRun) -> bool:
    """Whether what cannot be read now is looked for again: everything else is archived, so not for days."""
    counted = [int(count) for count in tag_values(own_tags(), RETRY_TAG) if count.isdecimal()]
    looks = max([len(run.package_looks), *counted])
    run.package_looks.append(datetime.now(UTC))
    return looks < _PACKAGE_LOOKS


def _archive(run: ExperimentRun, order: Order, payment: Payment | None, found: Experiment) -> ArchivedResults:
    kept = archive_experiment(
        run.options.credentials,
        run.options.archive,
        found,
        campaign_id=run.campaign_id,
        order=order,
        payment=payment,
        spec=run.spec,
    )
    facts.archived(found, kept, news=_is_own(order))
    if found.reported == ResultsStatus.ALL:
        run.book.deliver(kept.record.experiment_code)
    if kept.record.unchanged and found.reported != ResultsStatus.ALL:
        return kept  # a wake-up while the rest is measured: its artifact is there
    plots = plot_results(run.options.archive, run.campaign_id, kept.record.experiment_code)
    artifacts.show_results(run.label, kept, designs=plots.designs, images=plots.images, notes=plots.notes)
    return kept
