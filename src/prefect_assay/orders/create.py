"""Create the experiment of an order, and search for it when the answer is lost. Each attempt is recorded first."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeVar

from prefect_assay.errors import (
    AccessError,
    AssayError,
    Conflict,
    NotFound,
    OrderMismatch,
    OrderOutcomeUnknown,
    OrderPending,
    OrderStopped,
    OutcomeUnknown,
    PartialOrder,
    RequestRefused,
    ServiceUnavailable,
    TransientError,
    UnexpectedAnswer,
)
from prefect_assay.orders.find import (
    NamedExperiment,
    adopt_experiment,
    adopt_first,
    find_order,
    order_of,
    read_named,
    read_order,
    recheck_order,
    record_surplus,
    the_order,
)
from prefect_assay.orders.identity import search_token
from prefect_assay.orders.job import Order, OrderRoute
from prefect_assay.orders.ledger import OrderLedger, OrderState
from prefect_assay.orders.ledger.log import (
    Accepted,
    Named,
    Ordered,
    Refused,
    Sending,
)
from prefect_assay.orders.payments.due import invoice_id_of, page_digest
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.http.failures import CLIENT_ERRORS, NO_VERDICT
from prefect_assay.service.models.experiment import (
    Created,
    CreateRequest,
    Experiment,
    ExperimentSummary,
    QuoteAcceptance,
)
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import ExperimentStatus, PaymentMethod, snake_case

S = TypeVar("S", bound=ExperimentSummary)

MACHINE: Final = "machine"  # contract 2.6, the kinds of a payment pointer
_HOSTED: Final = "hosted_invoice"
# Neither the service nor a gateway carries out what it refuses so; the search confirms that.
_REFUSALS: Final = CLIENT_ERRORS - NO_VERDICT - {HTTPStatus.CONFLICT}
# A submission that is refused with these words may succeed later; other refusals last.
_SUBMIT_LATER: Final = frozenset({"rate_limited", "upstream_server_error"})
_UNREAD: Final = (TransientError, UnexpectedAnswer, NotFound, AccessError)
# Longer than a create may take to be answered.
PATIENCE_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
# From the record of a create to its sending. With the time for its answer it is less than others wait for it.
SEND_WITHIN_SECONDS: Final = 30.0


def elapsed_seconds() -> float:
    """A clock that nobody sets, and that runs on while the machine sleeps or the process is stopped."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def acceptance_of(api: AssayClient, answer: QuoteAcceptance, experiment_id: str | None = None) -> Accepted:
    """An acceptance as the log keeps it: without it, a later run could not pay by the contract's calls alone."""
    pointer = answer.payment
    kind = snake_case(pointer.kind) if pointer else None
    machine = {MACHINE: True, _HOSTED: False}.get(kind or "")
    if machine is None and pointer and (pointer.pay_url or pointer.methods):
        machine = True  # whatever its kind is called: only a machine has a pay path
    return Accepted(
        invoice_id=invoice_id_of(answer, api.base_url),
        experiment_id=experiment_id or answer.experiment_id,
        page=page_digest(answer.hosted_invoice_url or (pointer.hosted_invoice_url if pointer else None)),
        machine=machine,
        rails=tuple(rail.strip().lower().replace("_", "-") for rail in pointer.methods) if pointer else (),
    )


def find_or_create(
    api: AssayClient,
    request: CreateRequest,
    ledger: OrderLedger,
    *,
    reserve: Callable[[], None] = lambda: None,
    release: Callable[[], None] = lambda: None,
    repeats: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
    patience: tuple[float, ...] = PATIENCE_SECONDS,
) -> Order:
    """Return the one experiment of an order; create it only if it does not exist.

    The name in the request must contain the key's search token. `reserve` is called before a create is recorded, and if
    it raises, nothing is sent; `release` when the service has refused the create for certain. Another create may follow
    `repeats` earlier ones whose outcome is unknown, as a person approved; by default any number, but only if none of them
    commits: a create that accepts its quote makes an invoice, on every rail (contract 4.2, rules 3 and 4). `patience` are the seconds before
    each search for a lost order.

    Raises:
        OrderMismatch: a person has to say whether an experiment that carries the key is the order.
        OrderOutcomeUnknown: a create may have been carried out, and its experiment is not listed; or the order
            is in another log of the archive.
        OrderPending: a create was answered, and the experiment that it names cannot be compared yet.
        OrderStopped: a person has canceled the order, and no experiment of it is known; nothing was sent.
        RequestRefused: the service refused the specification; nothing was ordered.
    """
    ordering = _Ordering(api, request, ledger, sleep, patience)
    while True:
        state = ledger.read()
        if state.ordered is None:
            ordering.adopt_listed()
            state = ledger.read()
        order = find_order(api, ledger)
        if order is not None:
            return order
        if state.open_attempts:
            error = ordering.search_until_listed()
            if error is not None:
                raise error  # the search was not answered
            if ledger.read().ordered is not None:
                continue
            # Another run may have sent one since a person was asked about those before it.
            if not (ordering.is_repeatable(state) if repeats is None else state.attempts <= repeats):
                raise OrderOutcomeUnknown(
                    f"an earlier order {search_token(ledger.order_key)} was sent at "
                    f"{state.open_attempts[-1].at:%Y-%m-%d %H:%M} UTC, and the service does not list its experiment; "
                    "nothing is ordered again. Ask the laboratory whether it has the order"
                )
        ledger.require_not_stopped()  # before a person is asked about its price
        ledger.require_only_log()
        reserve()
        attempt = ordering.prepare_attempt(state)
        recorded = elapsed_seconds()
        try:
            written = ledger.record(lambda now, new=attempt: ordering.unless_changed(now, new))  # type: ignore[misc]
        except OrderStopped:
            ordering.release_unless_placed(release)
            raise
        if written is not None:
            ordering.require_recent(attempt, recorded, release)
            return ordering.send_create(attempt, release)


@dataclass(frozen=True)
class _Ordering:
    """One call of `find_or_create`."""

    api: AssayClient
    request: CreateRequest
    ledger: OrderLedger
    sleep: Callable[[float], None]
    patience: tuple[float, ...]

    @property
    def spec(self) -> ExperimentSpec:
        return self.request.experiment_spec

    def is_repeatable(self, state: OrderState) -> bool:
        """Return True if neither the next create nor one whose outcome is unknown accepts a quote."""
        return not any(sent.commits for sent in (*state.open_attempts, self.prepare_attempt(state)))

    def prepare_attempt(self, state: OrderState) -> Sending:
        route = OrderRoute.SELF_SERVICE if self.request.auto_accept_quote else OrderRoute.QUOTED
        rail = self.request.payment_method or PaymentMethod.ASYNC_INVOICE
        return Sending(attempt=state.attempts + 1, route=route, rail=rail)

    def unless_changed(self, state: OrderState, attempt: Sending) -> Sending | None:
        """The attempt; None if another run has ordered or sent meanwhile."""
        return None if state.ordered or state.attempts + 1 != attempt.attempt else attempt

    def require_recent(self, sent: Sending, recorded: float, release: Callable[[], None]) -> None:
        """Raise before a create whose record is old: this process was stopped, and others may have looked for the order.

        The record says that it was never sent, so the next execution may send another one.
        """
        seconds = elapsed_seconds() - recorded
        if seconds <= SEND_WITHIN_SECONDS:
            return
        late = ServiceUnavailable(
            f"this process was stopped for {seconds:.0f} s after it recorded the order {search_token(self.ledger.order_key)}, "
            f"which is longer than {SEND_WITHIN_SECONDS:.0f} s; the order was not sent. Run the same flow again, which looks "
            "for the order first"
        )
        self.record_refusal(sent, late, release)
        raise late

    def send_create(self, sent: Sending, release: Callable[[], None]) -> Order:
        try:
            created = self.api.experiments.create(self.request)
        except PartialOrder as partial:
            # contract 4.2, create rule 6: the experiment exists.
            return self.order_named(sent, partial.experiment_id)
        except OrderOutcomeUnknown as lost:
            try:
                return self.search_for_lost(lost)
            except RequestRefused as error:
                self.record_refusal(sent, error, release)
                raise
        except AssayError as error:
            self.record_refusal(sent, error, release)
            if isinstance(error, Conflict):  # contract 7 knows none; an OrderMismatch comes of a search
                raise RequestRefused.of(error) from error
            raise
        if isinstance(created, Created):
            return self.order_named(sent, created.experiment_id, url=created.provider_hosted_invoice_url)
        # contract 2.6: the acceptance of a machine rail need not name the experiment; its invoice may.
        self.ledger.record(lambda _: acceptance_of(self.api, created))
        owner = self.find_invoice_owner(created.invoice_id)
        if owner is not None:
            self.ledger.record(lambda _: acceptance_of(self.api, created, owner))
        experiment_id = created.experiment_id or owner
        if experiment_id is None:
            return self.search_for_lost(
                OrderOutcomeUnknown("the service accepted it and did not name its experiment"), first=0.0
            )
        tied = created.invoice_id if owner == experiment_id else None
        return self.order_named(sent, experiment_id, tied, created.hosted_invoice_url)

    def record_refusal(self, sent: Sending, error: AssayError, release: Callable[[], None]) -> None:
        refused = Refused(attempt=sent.attempt, reason=str(error))
        self.ledger.record(lambda state: refused if sent in state.open_attempts else None)
        self.release_unless_placed(release)

    def release_unless_placed(self, release: Callable[[], None]) -> None:
        """Release the reservation, unless the service has the order or may have it."""
        if not self.ledger.state.open_attempts and self.ledger.state.ordered is None:
            release()

    def find_invoice_owner(self, invoice_id: str | None) -> str | None:
        try:
            return self.api.invoices.get(invoice_id).experiment_id if invoice_id else None
        except _UNREAD:
            return None

    def order_named(
        self, sent: Sending, experiment_id: str, invoice_id: str | None = None, url: str | None = None
    ) -> Order:
        """The order, after the record of the experiment that the answer names was read and agrees.

        The answer is recorded at once. If the record is another order's, the answer counts as lost.

        Raises:
            OrderPending: the record cannot be read; nothing is sent again.
        """
        new = Named(experiment_id=experiment_id)
        self.ledger.record(lambda state: None if experiment_id in state.named else new)
        named = self.read_patiently(experiment_id)
        if named.pending is not None and self.ledger.state.ordered is None:
            raise named.pending
        if named.differs:
            return self.search_for_lost(
                OrderOutcomeUnknown(
                    f"the answer to create {sent.attempt} names experiment {experiment_id}, which is not this order "
                    f"({'; '.join(named.differs)})"
                )
            )
        if named.record is None:
            return read_order(self.api, self.kept, self.ledger.order_key, surplus=self.ledger.state.surplus)
        return self.record_created(named.record, invoice_id, url)

    def read_patiently(self, experiment_id: str) -> NamedExperiment:
        """Read the experiment that an answer names; a record that is not shown yet is waited for (eventual consistency)."""
        named = read_named(self.api, self.ledger.order_key, self.spec, experiment_id)
        for seconds in self.patience:
            has_order = self.ledger.read().ordered is not None  # another run was faster
            if named.record is not None or has_order or isinstance(named.error, AccessError):
                break
            self.sleep(seconds)
            named = read_named(self.api, self.ledger.order_key, self.spec, experiment_id)
        return named

    @property
    def kept(self) -> str:
        """The experiment that the log names."""
        ordered = self.ledger.state.ordered
        if ordered is None:
            raise OrderOutcomeUnknown(
                f"order {self.ledger.order_key} is not recorded in {self.ledger.location}"
            )
        return ordered.experiment_id

    def record_created(self, record: Experiment, invoice_id: str | None, url: str | None) -> Order:
        """Record a created experiment. If an older one has the key, that is the order, and this one is surplus."""
        record = self.submit_draft(record)
        ordered = Ordered(experiment_id=record.id, invoice_id=invoice_id)
        self.ledger.record(lambda state: None if state.ordered else ordered)
        with suppress(*_UNREAD, OrderMismatch):  # the search is repeated before money is committed
            recheck_order(self.api, self.spec, self.ledger)
        record_surplus(self.ledger, [record.id])
        surplus = self.ledger.state.surplus
        if self.kept != record.id:
            return read_order(self.api, self.kept, self.ledger.order_key, surplus=surplus)
        return order_of(record, self.ledger.order_key, adopted=False, surplus=surplus, url=url)

    def submit_draft(self, created: S) -> S | Experiment:
        """Submit what the service has left a draft although `skip_draft` was set (contract 3); this commits nothing.

        It precedes the record of the order, so that an execution that is killed here is made up for by the next.

        Raises:
            TransientError: it is still a draft, and another try may help.
        """
        if created.status != ExperimentStatus.DRAFT or not self.request.skip_draft:
            return created
        if self.ledger.read().stopped is not None:
            return created  # canceled meanwhile: the draft stays one
        refusal: AssayError | None = None
        try:
            self.api.experiments.submit(created.id)
        except (Conflict, RequestRefused, OutcomeUnknown) as error:
            refusal = error
        record = self.api.experiments.get(created.id)
        is_final = isinstance(refusal, Conflict | RequestRefused) and refusal.code not in _SUBMIT_LATER
        if record.status == ExperimentStatus.DRAFT and not is_final:
            why = refusal.message if refusal is not None else "it was submitted, and does not show it yet"
            raise TransientError(
                f"experiment {record.code} is still a draft; it is submitted later: {why}"
            ) from refusal
        return record

    def search_for_lost(self, lost: OrderOutcomeUnknown, first: float | None = None) -> Order:
        """Search for an experiment whose answer was lost. It is never created again in this execution.

        Raises:
            OrderOutcomeUnknown: it is not listed.
            RequestRefused: nor is it listed, and the answer was a refusal that only its words did not make certain.
        """
        last = self.search_until_listed(*(() if first is None else (first,)))
        order = find_order(self.api, self.ledger)
        if order is not None:
            return order
        if isinstance(last, OrderPending):
            raise last
        if last is None and lost.status_code in _REFUSALS:
            raise RequestRefused(
                f"the order {search_token(self.ledger.order_key)} was refused, and the service lists no experiment of it after "
                f"{sum(self.patience):.0f} s; nothing was ordered. {lost.message.partition('; whether')[0]}",
                request_id=lost.request_id,
                status_code=lost.status_code,
            ) from lost
        raise OrderOutcomeUnknown(
            f"the answer to the order {search_token(self.ledger.order_key)} was lost and the service does not list it "
            f"after {sum(self.patience):.0f} s: {(last or lost).message}. Run the same flow again with the same "
            "campaign id, which looks for the order first",
            request_id=lost.request_id,
        ) from lost

    def search_until_listed(self, *first: float) -> AssayError | None:
        """Search until the order is listed or recorded; the error of the last search, if it failed."""
        last: AssayError | None = None
        for seconds in (*first, *self.patience):
            self.sleep(seconds)
            try:
                last = self.adopt_listed() if self.ledger.read().ordered is None else None
            except (TransientError, UnexpectedAnswer, NotFound) as error:  # a list may be ahead of a record
                last = error
            if self.ledger.state.ordered is not None:
                return None
        return last

    def adopt_listed(self) -> OrderPending | None:
        """Record the experiment that an answer has named, or else the one that has the key, as the order.

        Of several with the key it is the oldest, and the others are surplus. Returns the error of a named experiment that
        cannot be compared yet.
        """
        state = self.ledger.state
        pending = None
        for experiment_id in dict.fromkeys(state.named):
            if experiment_id in {*state.surplus, *state.others}:
                continue
            named = read_named(self.api, self.ledger.order_key, self.spec, experiment_id)
            if named.record is not None and named.is_order:
                self.submit_draft(named.record)
                adopt_experiment(self.ledger, experiment_id)
                return None
            pending = pending or named.pending
        others = state.model_copy(update={"named": ()})  # those are compared
        experiments = the_order(self.api, self.ledger.order_key, self.spec, others)
        if experiments:
            if state.open_attempts:  # its answer was lost
                self.submit_draft(experiments[0])
            adopt_first(self.ledger, experiments)
        return None if experiments else pending
