"""Find the experiment of an order by its log or by the order key in its name, and decide which of several it is."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from prefect_assay.books import OrderBook, OrderState
from prefect_assay.books.log import Ordered, Surplus
from prefect_assay.client import AssayClient
from prefect_assay.errors import NotFound, OrderMismatch, OrderNotVisible, OrderOutcomeUnknown
from prefect_assay.models.experiment import Experiment, ExperimentSummary
from prefect_assay.models.job import Order
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import AFTER_MATERIALS, ExperimentStatus
from prefect_assay.ordering.identity import differences, search_token

# Experiments in these states compete with no order: they commit nothing any more.
_INACTIVE: Final = frozenset({ExperimentStatus.DRAFT, ExperimentStatus.CANCELED})
_COMMITTED: Final = AFTER_MATERIALS | {ExperimentStatus.WAITING_FOR_MATERIALS}


def find_order(api: AssayClient, key: str, spec: ExperimentSpec) -> Order | None:
    """The oldest experiment that carries the order key, or None; OrderMismatch when one does not agree with `spec`."""
    found = agreeing(api, key, spec, strict=True)
    return order_of(found[0], key, adopted=True) if found else None


def read_order(api: AssayClient, experiment_id: str, key: str, *, surplus: tuple[str, ...] = ()) -> Order:
    """The order whose experiment is known; NotFound when it does not exist or this token may not see it."""
    return order_of(api.experiment(experiment_id), key, adopted=True, surplus=surplus)


def recorded_order(api: AssayClient, book: OrderBook) -> Order | None:
    """The order of its log, even if renamed, or None; OrderNotVisible when it cannot be seen any more."""
    state = book.read()
    if state.ordered is None:
        return None
    return placed_order(api, state.ordered.experiment_id, book.order_key, surplus=state.surplus)


def placed_order(api: AssayClient, experiment_id: str, key: str, *, surplus: tuple[str, ...] = ()) -> Order:
    """The order that was placed as this experiment; OrderNotVisible when it cannot be seen any more."""
    try:
        return read_order(api, experiment_id, key, surplus=surplus)
    except NotFound as error:
        raise OrderNotVisible(
            f"experiment {experiment_id} was ordered, and these credentials cannot see it; nothing is ordered again. "
            "Check the token and the address in the credentials block, then run it again",
            request_id=error.request_id,
        ) from error


def adopt(book: OrderBook, experiment_id: str) -> None:
    """Record an experiment as the order, unless one is recorded.

    Raises:
        OrderOutcomeUnknown: the order is in another log of the archive.
    """
    book.require_only_log()
    book.record(lambda state: None if state.ordered else Ordered(experiment_id=experiment_id, adopted=True))


def one_experiment(api: AssayClient, spec: ExperimentSpec, book: OrderBook) -> str:
    """The id of the experiment that is the order, after one more search before money is committed.

    Without a shared log, another Prefect server may have ordered the same: the older of two is the order, unless the
    other is paid, and both sides come to the same result. An order with a commitment does not move.
    """
    state = book.read()
    if state.ordered is None:
        raise OrderOutcomeUnknown(f"order {book.order_key} is not recorded in {book.location}")
    current = state.ordered.experiment_id
    if state.committed:
        return current
    try:
        known = {current: api.experiment(current)}
    except NotFound:
        return current
    found = agreeing(api, book.order_key, spec, known=known)
    first = found[0]
    if first.id != current and first.id not in state.surplus:
        book.record(
            lambda now: (
                None
                if now.committed or now.ordered != state.ordered
                else Surplus(experiment_id=current, kept=first.id)
            )
        )
    record_surplus(book, [e.id for e in found])
    ordered = book.state.ordered
    return ordered.experiment_id if ordered else current


def record_surplus(book: OrderBook, experiment_ids: Iterable[str]) -> None:
    """Record the experiments that are not the order, each once."""
    for experiment_id in dict.fromkeys(experiment_ids):

        def decide(state: OrderState, seen: str = experiment_id) -> Surplus | None:
            kept = state.ordered.experiment_id if state.ordered else seen
            return None if seen == kept or seen in state.surplus else Surplus(experiment_id=seen, kept=kept)

        book.record(decide)


def agreeing(
    api: AssayClient,
    key: str,
    spec: ExperimentSpec,
    *,
    known: dict[str, Experiment] | None = None,
    strict: bool = False,
) -> list[ExperimentSummary]:
    """The experiments with the key that agree with the specification, and those `known`; the order first.

    One that has the key and does not agree is skipped, or with `strict` an OrderMismatch.
    """
    token = search_token(key)
    agreeing: dict[str, ExperimentSummary] = dict(known or {})
    for row in api.iter_experiments(search=token):
        if row.id in agreeing or not row.name or token not in row.name.split():
            continue
        if not strict and row.status in _INACTIVE:
            continue
        found = differences(spec, api.experiment(row.id))
        if not found:
            agreeing[row.id] = row
        elif strict:
            raise OrderMismatch(
                f"experiment {row.code} carries the order key {token} in its name, and is another one "
                f"({'; '.join(found)}); nothing is ordered while it does. Rename it in the portal if it has nothing "
                "to do with this order, or give the campaign another id, then run it again"
            )
    return sorted(agreeing.values(), key=_seniority)


def _seniority(experiment: ExperimentSummary) -> tuple[bool, datetime, str, str]:
    """Paid or confirmed experiments first, then the older; codes are numbered (contract 2.1) and decide a tie."""
    return (experiment.status not in _COMMITTED, experiment.created_at, experiment.code, experiment.id)


def order_of(
    experiment: ExperimentSummary,
    key: str,
    *,
    adopted: bool,
    surplus: tuple[str, ...] = (),
    url: str | None = None,
) -> Order:
    """An experiment as the order of a key."""
    return Order(
        order_key=key,
        experiment_id=experiment.id,
        experiment_code=experiment.code,
        experiment_url=experiment.experiment_url,
        status=experiment.status,
        adopted=adopted,
        surplus=surplus,
        hosted_invoice_url=url,
    )
