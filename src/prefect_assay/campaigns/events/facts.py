"""The events of an order and its experiment, made of what a run has just read or done (docs/operating.md).

A run calls these at every execution, for one order after the other (`events.describe_subject`); `emit_fact` sends each fact once.
What an earlier run has reported is not news: the times in the ledger, the campaign's log and an unchanged archive show it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from prefect_assay.analysis.results.row import ArchivedResults
from prefect_assay.archive.archived import ArchiveRecord
from prefect_assay.archive.layout import TABLE_PATH
from prefect_assay.campaigns.events import emit_fact, is_news, kinds
from prefect_assay.campaigns.flow_results import RoundReport
from prefect_assay.orders.job import Order, Payment, PaymentState
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.ledger.campaign_log import ShownExperiment
from prefect_assay.service.models.billing import Quote
from prefect_assay.service.models.experiment import Experiment, ExperimentSummary
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import ExperimentStatus, PaymentMethod, ResultsStatus

_DESIGNS_MAX: Final = 100  # in the payload of an event


def report_order(ledger: OrderLedger, order: Order, spec: ExperimentSpec, method: PaymentMethod) -> None:
    """The experiment of the order exists, and the log names it."""
    emit_fact(
        kinds.ExperimentOrdered(
            experiment_id=order.experiment_id,
            experiment_code=order.experiment_code,
            designs=len(spec.sequences),
            experiment_type=spec.experiment_type,
            payment_method=method,
        ),
        news=is_news(_ordered_at(ledger)),
    )


def report_quote(order: Order, quote: Quote) -> None:
    """Send the event that a quote waits for its acceptance."""
    emit_fact(
        kinds.ExperimentQuoted(
            experiment_id=order.experiment_id,
            experiment_code=order.experiment_code,
            quote_id=quote.id,
            amount_cents=quote.total,
            expires_at=quote.expires_at,
        )
    )


def report_invoice(
    ledger: OrderLedger, order: Order, method: PaymentMethod, amount_cents: int | None
) -> None:
    """Send the event that the order's invoice is open."""
    ordered = ledger.state.ordered
    emit_fact(
        kinds.ExperimentInvoiced(
            experiment_id=order.experiment_id,
            experiment_code=order.experiment_code,
            invoice_id=ordered.invoice_id if ordered else None,
            amount_cents=amount_cents,
            payment_method=method,
        ),
        # Without a quote the invoice is as old as the order.
        news=ledger.state.confirmed or is_news(_ordered_at(ledger)),
    )


def report_payment(ledger: OrderLedger, order: Order, made: Payment) -> None:
    """Send the event that the invoice is open, or paid."""
    if made.state is PaymentState.INTENDED:
        report_invoice(ledger, order, made.method, made.amount_cents)
    elif made.state is PaymentState.SETTLED:
        settled = ledger.state.settled
        fact = _make_paid_event(order.experiment_id, order.experiment_code, made)
        emit_fact(fact, news=is_news(settled.at if settled else None))


def report_statuses(before: Mapping[str, ShownExperiment], now: Mapping[str, ShownExperiment]) -> None:
    """The experiments whose status has changed since the last look, by order key."""
    for order_key, shown in now.items():
        earlier = before.get(order_key)
        if shown.experiment_id is None or shown.status is None:
            continue
        if earlier is None or earlier.status != shown.status:
            emit_fact(
                kinds.StatusChanged(
                    order_key=order_key,
                    experiment_id=shown.experiment_id,
                    experiment_code=shown.experiment_code,
                    status=shown.status,
                    results_status=shown.results_status or ResultsStatus.NONE,
                )
            )
            if shown.status == ExperimentStatus.CANCELED:
                emit_fact(
                    kinds.ExperimentCanceled(
                        order_key=order_key,
                        experiment_id=shown.experiment_id,
                        experiment_code=shown.experiment_code,
                    )
                )


def report_version(experiment: Experiment, kept: ArchivedResults, *, news: bool) -> None:
    """A version is in the archive, with the preliminary or with the released results."""
    record = kept.record
    news = news or not record.unchanged
    emit_fact(
        kinds.ExperimentArchived(
            experiment_id=experiment.id,
            experiment_code=experiment.code,
            version=record.version,
            location=record.location,
            table=f"{record.location}/{TABLE_PATH}",
            files=record.files,
            total_bytes=record.total_bytes,
            manifest_sha256=record.manifest_sha256,
            results_status=experiment.reported,
        ),
        news=news,
    )
    kind = kinds.ResultsReady if experiment.reported == ResultsStatus.ALL else kinds.PartialResults
    emit_fact(
        kind(
            experiment_id=experiment.id,
            experiment_code=experiment.code,
            version=record.version,
            table=f"{record.location}/{TABLE_PATH}",
            rows=len(kept.rows),
        ),
        news=news,
    )


def report_overdue(order_key: str, experiment: ExperimentSummary, deadline_days: int) -> None:
    """The deadline has passed without complete results."""
    emit_fact(
        kinds.ExperimentOverdue(
            order_key=order_key,
            experiment_id=experiment.id,
            experiment_code=experiment.code,
            status=experiment.status,
            deadline_days=deadline_days,
        )
    )


def report_curve_reviews(report: ArchiveRecord | None, reviews: Sequence[str], *, news: bool) -> None:
    """The archived report of a campaign has curves that need a look; `reviews` has a design for each of them."""
    if report is not None and reviews:
        emit_fact(
            kinds.CurveReview(
                campaign_id=report.campaign_id,
                report=report.location,
                manifest_sha256=report.manifest_sha256,
                curves=len(reviews),
                designs=tuple(dict.fromkeys(reviews))[:_DESIGNS_MAX],
            ),
            news=news or not report.unchanged,
        )


def round_completed(loop_id: str, made: RoundReport, *, news: bool) -> None:
    """A round has ended."""
    emit_fact(
        kinds.RoundCompleted(
            campaign_id=made.campaign_id,
            loop_id=loop_id,
            round=made.name,
            table=made.table,
            best_kd_M=made.best_kd_M,
            problem=made.problem,
        ),
        news=news,
    )


def _make_paid_event(experiment_id: str, experiment_code: str | None, made: Payment) -> kinds.ExperimentPaid:
    return kinds.ExperimentPaid(
        experiment_id=experiment_id,
        experiment_code=experiment_code,
        invoice_id=made.invoice_id,
        amount_cents=made.amount_cents,
        payment_method=made.method,
    )


def _ordered_at(ledger: OrderLedger) -> datetime | None:
    ordered = ledger.state.ordered
    return ordered.at if ordered else None
