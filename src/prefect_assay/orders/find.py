"""Find the experiment of an order by its log or by the order key in its name, and decide which of several it is.

An experiment with the key is the order if its record proves it: type, target and sequences can be read and agree. The
contract does not show the record (2.1). So an unanswered create of the order, sent before the experiment was made, is
evidence as well, if everything in the record can be read and nothing contradicts. Everything else a person decides.

The experiment that the answer to a create names is the order only if its own record has the key and nothing in it
contradicts: a gateway may have mixed two answers up.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from prefect_assay.errors import (
    AccessError,
    AssayError,
    Candidate,
    NotFound,
    OrderMismatch,
    OrderNotVisible,
    OrderOutcomeUnknown,
    OrderPending,
    TransientError,
    UnexpectedAnswer,
)
from prefect_assay.orders.identity import (
    Evidence,
    carries_key,
    evidence,
    find_contradictions,
    search_token,
)
from prefect_assay.orders.job import Order
from prefect_assay.orders.ledger import OrderLedger, OrderState
from prefect_assay.orders.ledger.log import Ordered, Surplus
from prefect_assay.orders.payments.interfaces import CLOCKS_DIFFER
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.experiment import Experiment, ExperimentSummary
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.status_questions import is_accepted, is_inactive


@dataclass(frozen=True)
class Found:
    """An experiment that carries the order key, as the list has it, and what its record says."""

    row: ExperimentSummary
    evidence: Evidence

    def is_made_by(self, state: OrderState) -> bool:
        """Whether a create of the order's log has made it: nothing contradicts, and it is not older than the create.

        What is there and cannot be read may contradict, unless the service has answered that it has accepted the create.
        One that the answer to a create has named is made by it.
        """
        if self.evidence.differs or self.row.id in state.named:
            return not self.evidence.differs
        fits = not self.evidence.unread or state.accepted is not None
        return fits and any(one.at - CLOCKS_DIFFER <= self.row.created_at for one in state.open_attempts)

    @property
    def why(self) -> str:
        """What does not make it the order, for people."""
        lines = [
            *self.evidence.differs,
            *(f"{field}: there, and not readable here" for field in self.evidence.unread),
        ]
        return "; ".join(lines) or "its record does not show type, target and sequences"


def find_carriers(
    api: AssayClient, key: str, spec: ExperimentSpec, skip: Iterable[str] = (), named: Iterable[str] = ()
) -> list[Found]:
    """The experiments that carry the order key, the order first; without those to `skip`.

    `named` are ids that answers to the order's creates have named; the list may not show them yet.
    """
    passed = set(skip)
    candidates: list[Found] = []
    for row in api.experiments.iterate(search=search_token(key)):
        if row.id in passed or (row.name and not carries_key(row.name, key)):
            continue
        passed.add(row.id)
        record = api.experiments.get(row.id)
        if row.name or carries_key(record.name, key):  # the name is optional in the list (contract 2.1)
            candidates.append(Found(row, evidence(spec, record)))
    for experiment_id in dict.fromkeys(named):
        if experiment_id not in passed:
            with suppress(NotFound):
                record = api.experiments.get(experiment_id)
                if carries_key(record.name, key):
                    candidates.append(Found(record, evidence(spec, record)))
    return sorted(candidates, key=lambda one: rank_seniority(one.row))


@dataclass(frozen=True)
class NamedExperiment:
    """What the service shows of an experiment that the answer to a create has named.

    Attributes:
        experiment_id: the id in the answer.
        record: its own record; None while it cannot be read, and then `error` says why.
        differs: why it is not the order.
    """

    experiment_id: str
    record: Experiment | None = None
    differs: tuple[str, ...] = ()
    error: AssayError | None = None

    @property
    def is_order(self) -> bool:
        """Return True if its record was read and agrees with the order."""
        return self.record is not None and not self.differs

    @property
    def pending(self) -> OrderPending | None:
        """The error for an order that stands and cannot be compared yet; None once it was compared."""
        if self.record is not None:
            return None
        return OrderPending(
            f"the service answered the order with experiment {self.experiment_id} and does not show it yet: "
            f"{self.error.message if self.error else 'no answer'}. The order stands, nothing is sent again, and nothing is "
            "confirmed or paid. Run the same flow again with the same campaign id, which goes on with this experiment"
        )


def read_named(api: AssayClient, key: str, spec: ExperimentSpec, experiment_id: str) -> NamedExperiment:
    """Compare the record of an experiment that the answer to a create has named with the order, by key and fields.

    The name is in the record, or else in its row of the list (contract 2.1).

    Raises:
        OrderMismatch: a person has to decide, because the service shows no name of it at all.
    """
    try:
        record = api.experiments.get(experiment_id)
        row = record if record.name else _listed_row(api, key, experiment_id)
    except (TransientError, UnexpectedAnswer, NotFound, AccessError) as error:
        return NamedExperiment(experiment_id, error=error)
    if row is None:
        return NamedExperiment(
            experiment_id, error=NotFound("its record has no name, and the list not yet its row")
        )
    if not row.name:
        raise ask_which_order(key, [Found(row, evidence(spec, record))])
    differs = () if carries_key(row.name, key) else (f"its name {row.name!a} has not the key of the order",)
    return NamedExperiment(experiment_id, record, (*differs, *evidence(spec, record).differs))


def _listed_row(api: AssayClient, key: str, experiment_id: str) -> ExperimentSummary | None:
    rows = api.experiments.iterate(search=search_token(key))
    return next((row for row in rows if row.id == experiment_id), None)


def the_order(api: AssayClient, key: str, spec: ExperimentSpec, state: OrderState) -> list[ExperimentSummary]:
    """The experiments of an order that its log does not name yet, the order first; empty if there is none.

    Raises:
        OrderMismatch: a person has to say which experiment, if any, is the order.
    """
    carriers = find_carriers(api, key, spec, (*state.surplus, *state.others), state.named)
    proven = [one.row for one in carriers if one.evidence.proves_identity(spec)]
    if len(proven) == len(carriers):
        return proven
    if len(carriers) == 1 and carriers[0].is_made_by(state):
        return [carriers[0].row]
    raise ask_which_order(key, carriers)


def ask_which_order(key: str, carriers: Sequence[Found]) -> OrderMismatch:
    """The question which of some experiments is the order."""
    lines = "; ".join(f"{one.row.code} ({one.why})" for one in carriers)
    plural = len(carriers) > 1
    return OrderMismatch(
        f"{'experiments carry' if plural else 'an experiment carries'} the order key {search_token(key)}, and whether "
        f"{'one of them' if plural else 'it'} is this order is not certain: {lines}. Nothing is ordered, confirmed or paid. "
        "A run of a deployment asks a person which one it is; or look at it in the portal, and ask the laboratory",
        candidates=tuple(
            Candidate(one.row.id, one.row.code, one.row.experiment_url, one.why) for one in carriers
        ),
    )


def find_order(api: AssayClient, ledger: OrderLedger, spec: ExperimentSpec | None = None) -> Order | None:
    """Find the order as its log names it, even if renamed; else by its key and specification.

    Raises:
        OrderMismatch: a person has to say whether an experiment that carries the key is the order.
        OrderNotVisible: see `read_order`.
    """
    state = ledger.read()
    if state.ordered:
        return read_order(api, state.ordered.experiment_id, ledger.order_key, surplus=state.surplus)
    rows = the_order(api, ledger.order_key, spec, state) if spec else []
    return order_of(rows[0], ledger.order_key, adopted=True) if rows else None


def read_order(api: AssayClient, experiment_id: str, key: str, *, surplus: tuple[str, ...] = ()) -> Order:
    """The order whose experiment is known; OrderNotVisible when it cannot be seen any more."""
    try:
        return order_of(api.experiments.get(experiment_id), key, adopted=True, surplus=surplus)
    except NotFound as error:
        raise OrderNotVisible(
            f"experiment {experiment_id} was ordered, and these credentials cannot see it; nothing is ordered again. "
            "Check the token and the address in the credentials block, then run it again",
            request_id=error.request_id,
        ) from error


def adopt_experiment(ledger: OrderLedger, experiment_id: str, *, by_person: bool = False) -> None:
    """Record an experiment as the order's, unless one is recorded.

    The caller has compared it with the order, or `by_person`: a person vouches for it.

    Raises:
        OrderOutcomeUnknown: the order is in another log of the archive.
    """
    ledger.require_only_log()

    def adopt_unless_ordered(state: OrderState) -> Ordered | None:
        is_created = experiment_id in state.named  # the answer to the order's create named it
        new = Ordered(experiment_id=experiment_id, adopted=not is_created, by_person=by_person)
        return None if state.ordered else new

    ledger.record(adopt_unless_ordered)


def adopt_listed(api: AssayClient, ledger: OrderLedger, spec: ExperimentSpec) -> None:
    """Record the experiment that carries the order's key as the order, and others that carry it as surplus.

    Raises:
        OrderMismatch: a person has to say which experiment, if any, is the order.
    """
    experiments = the_order(api, ledger.order_key, spec, ledger.read())
    if experiments:
        adopt_first(ledger, experiments)


def adopt_first(ledger: OrderLedger, experiments: Sequence[ExperimentSummary]) -> None:
    """Record the first of some experiments as the order, unless one is recorded, and the others as surplus."""
    adopt_experiment(ledger, experiments[0].id)
    record_surplus(ledger, [experiment.id for experiment in experiments])


def record_choice(ledger: OrderLedger, chosen: str | None, candidates: Sequence[Candidate]) -> None:
    """Record which of some experiments is the order, as a person has decided; None: none of them is."""
    if chosen is not None:
        adopt_experiment(ledger, chosen, by_person=True)
        ledger.record(
            lambda state: (
                Surplus(experiment_id=state.ordered.experiment_id, kept=chosen)
                if state.ordered and state.ordered.experiment_id != chosen and not state.committed
                else None
            )
        )
    for candidate in candidates:
        other = Surplus(experiment_id=candidate.experiment_id, kept="")
        ledger.record(lambda state, new=other: None if _is_known(state, new.experiment_id) else new)  # type: ignore[misc]


def _is_known(state: OrderState, experiment_id: str) -> bool:
    ordered_id = state.ordered.experiment_id if state.ordered else None
    return experiment_id in {ordered_id, *state.surplus, *state.others}


def recheck_order(api: AssayClient, spec: ExperimentSpec, ledger: OrderLedger) -> str:
    """The id of the experiment that is the order, after one more search before money is committed.

    Without a shared log, another Prefect server may have ordered the same: the older of two is the order, unless the
    other is paid, and both sides come to the same result. An order with a commitment does not move.

    Raises:
        OrderMismatch: the record of the order does not agree with it any more, or another experiment may be the order as
            well, and its record does not say.
    """
    state = ledger.read()
    if state.ordered is None:
        raise OrderOutcomeUnknown(f"order {ledger.order_key} is not recorded in {ledger.location}")
    current = state.ordered.experiment_id
    if state.committed:
        return current
    others = [
        one
        for one in find_carriers(
            api, ledger.order_key, spec, {current, *state.surplus, *state.others}, state.named
        )
        if not is_inactive(one.row.status) and not one.evidence.differs
    ]
    try:
        known = api.experiments.get(current)
    except NotFound:
        return current
    against = () if state.ordered.by_person else find_contradictions(spec, ledger.order_key, known)
    if against:
        raise OrderMismatch(
            f"experiment {known.code} is recorded as the order {search_token(ledger.order_key)}, and its record does not agree: "
            f"{'; '.join(against)}. Nothing is confirmed or paid. Compare it in the portal with what you ordered, and ask the "
            "laboratory"
        )
    if not others:
        return current
    doubtful = [one for one in others if not one.evidence.proves_identity(spec)]
    if doubtful:
        raise ask_which_order(ledger.order_key, [Found(known, evidence(spec, known)), *doubtful])
    experiments = sorted((known, *(one.row for one in others)), key=rank_seniority)
    first = experiments[0]
    if first.id != current and first.id not in state.surplus:
        ledger.record(
            lambda now: (
                None
                if now.committed or now.ordered != state.ordered
                else Surplus(experiment_id=current, kept=first.id)
            )
        )
    record_surplus(ledger, [e.id for e in experiments])
    ordered = ledger.state.ordered
    return ordered.experiment_id if ordered else current


def record_surplus(ledger: OrderLedger, experiment_ids: Iterable[str]) -> None:
    """Record the experiments that are not the order, each once."""
    for experiment_id in dict.fromkeys(experiment_ids):

        def decide(state: OrderState, seen: str = experiment_id) -> Surplus | None:
            kept = state.ordered.experiment_id if state.ordered else seen
            return None if seen == kept or seen in state.surplus else Surplus(experiment_id=seen, kept=kept)

        ledger.record(decide)


def rank_seniority(experiment: ExperimentSummary) -> tuple[bool, bool, datetime, str, str]:
    """Paid or confirmed experiments first, then the older; codes are numbered (contract 2.1) and decide a tie.

    Those that are inactive come last: they commit nothing any more.
    """
    inactive, accepted = is_inactive(experiment.status), is_accepted(experiment.status)
    return (inactive, not accepted, experiment.created_at, experiment.code, experiment.id)


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
