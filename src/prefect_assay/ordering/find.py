"""Find the order, else create it; after a lost answer look for it, with patience. Never a second create.

The service has no idempotency key, so the order key in the experiment's name is what makes an order
findable. This module talks to a narrow protocol and knows neither Prefect nor httpx.
"""

import time
from collections.abc import Callable
from typing import Final, Protocol

from prefect_assay.errors import (
    AssayError,
    NotFound,
    OrderOutcomeUnknown,
    PartialOrder,
    TransientError,
    UnexpectedAnswer,
)
from prefect_assay.models.experiment import (
    Created,
    CreateRequest,
    Experiment,
    ExperimentSummary,
    QuoteAcceptance,
)
from prefect_assay.models.job import Order
from prefect_assay.models.page import Page
from prefect_assay.ordering.key import search_token

_NOT_READ: Final = "unknown"
PATIENCE_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class OrderApi(Protocol):
    """What ordering needs of the client."""

    def experiments(self, *, search: str | None = None, limit: int | None = None) -> Page[ExperimentSummary]:
        """List experiments whose name or code contains a text."""
        ...

    def experiment(self, experiment_id: str) -> Experiment:
        """One experiment."""
        ...

    def create(self, request: CreateRequest) -> Created | QuoteAcceptance:
        """Create an experiment."""
        ...


def find_order(api: OrderApi, key: str) -> Order | None:
    """The experiment that carries the order key, or None.

    If there should ever be two, the older one is the order: every run then agrees on the same one.
    """
    token = search_token(key)
    matches = [
        e for e in api.experiments(search=token, limit=100).items if e.name and token in e.name.split()
    ]
    if not matches:
        return None
    return _order_of(min(matches, key=lambda e: (e.created_at, e.id)), key, adopted=True)


def read_order(api: OrderApi, experiment_id: str, key: str) -> Order:
    """The order whose experiment is known.

    Raises:
        NotFound: it does not exist, or this token may not see it.
    """
    return _order_of(api.experiment(experiment_id), key, adopted=True)


def find_or_create(
    api: OrderApi,
    request: CreateRequest,
    key: str,
    *,
    intend: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], None] = time.sleep,
    patience: tuple[float, ...] = PATIENCE_SECONDS,
) -> Order:
    """Return the one experiment of an order key, creating it only when it does not exist.

    Args:
        api: the client.
        request: what to create; its name must contain the key's search token.
        key: the order key.
        intend: called right before the create, to write it down; True when an earlier process may have sent one
            already: the order is looked for with patience first.
        sleep: how to pass the time while looking for a lost order.
        patience: seconds to wait before each look.

    Raises:
        OrderOutcomeUnknown: the answer of the create was lost and the experiment did not show up. Running the
            same flow again looks for it again before it orders.
        RequestRefused: the service refused the specification; nothing was ordered.
    """
    existing = find_order(api, key)
    if existing is not None:
        return existing
    if intend():
        sent = _look(api, key, sleep, patience)
        if isinstance(sent, Order):
            return sent
        if sent is not None:
            raise sent  # nobody can say whether it is there
    try:
        created = api.create(request)
    except PartialOrder as partial:
        # contract 4.2, create rule 6: the experiment exists, so it is the order.
        return _named(api, partial.experiment_id, key, adopted=True)
    except OrderOutcomeUnknown as lost:
        return _look_for_lost_order(api, key, lost, sleep, patience)
    if created.experiment_id is None:
        # contract 2.6: the acceptance of a machine rail does not name the experiment.
        unnamed = OrderOutcomeUnknown("the service accepted it and did not name its experiment")
        found = _look_for_lost_order(api, key, unnamed, sleep, (0.0, *patience))
    else:
        found = _named(api, created.experiment_id, key, adopted=False)
    return _with_hints(found, created)


def _named(api: OrderApi, experiment_id: str, key: str, *, adopted: bool) -> Order:
    """The order that the answer to its create has named. It exists, even if it cannot be read right now."""
    try:
        return _order_of(api.experiment(experiment_id), key, adopted=adopted)
    except (TransientError, UnexpectedAnswer, NotFound):
        # An error here would bring the next execution to a search, which may not list the order yet.
        return Order(order_key=key, experiment_id=experiment_id, status=_NOT_READ, adopted=adopted)


def _with_hints(found: Order, created: Created | QuoteAcceptance) -> Order:
    """What only the answer to the create says."""
    hints: dict[str, str | bool | None]
    if isinstance(created, QuoteAcceptance):
        hints = {"invoice_id": created.invoice_id, "hosted_invoice_url": created.hosted_invoice_url}
    else:
        hints = {
            "hosted_invoice_url": created.provider_hosted_invoice_url,
            "experiment_code": found.experiment_code or created.experiment_code,
        }
    return found.model_copy(update=hints | {"adopted": False})


def _look_for_lost_order(
    api: OrderApi,
    key: str,
    lost: OrderOutcomeUnknown,
    sleep: Callable[[float], None],
    patience: tuple[float, ...],
) -> Order:
    found = _look(api, key, sleep, patience)
    if isinstance(found, Order):
        return found
    last = found or lost
    raise OrderOutcomeUnknown(
        f"the answer to the order {search_token(key)} was lost and the service does not list it after "
        f"{sum(patience):.0f} s: {last.message}. Nothing is ordered again by itself; run the same flow again "
        "with the same campaign id, which looks for the order first",
        request_id=lost.request_id,
    ) from lost


def _look(
    api: OrderApi, key: str, sleep: Callable[[float], None], patience: tuple[float, ...]
) -> Order | AssayError | None:
    """Search until the order is listed; else the last error, or None."""
    last: AssayError | None = None
    for seconds in patience:
        sleep(seconds)
        try:
            order = find_order(api, key)
        except (TransientError, UnexpectedAnswer) as error:
            last = error
            continue
        last = None
        if order is not None:
            return order
    return last


def _order_of(experiment: ExperimentSummary, key: str, *, adopted: bool) -> Order:
    return Order(
        order_key=key,
        experiment_id=experiment.id,
        experiment_code=experiment.code,
        experiment_url=experiment.experiment_url,
        status=experiment.status,
        adopted=adopted,
    )
