"""The budget: the commitments of campaigns and the sum of machine payments, one log per service and archive.

A reservation names its order, so that it counts once. Every `EVERY`th record is a checkpoint with all reservations.
No decision reads the clock of the machine that writes: a payment has the time that machine and service agree on.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field, TypeAdapter

from prefect_assay.archive.store import Store
from prefect_assay.errors import BudgetExceeded
from prefect_assay.orders.ledger.log import Log, Record
from prefect_assay.orders.payments.interfaces import RollingCap
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import usd

EVERY: Final = 32


class Reservation(Model):
    """The commitment of one order, in US cents."""

    order_key: str
    campaign_id: str | None
    cents: int
    paid_at: AwareDatetime | None = None  # when a machine payment of it was last reserved
    runs: tuple[str, ...] = ()  # those that reserved a machine payment and have not released it
    action: str = ""  # id of the order's last record that preceded an action, for the comparison with its log


class Reserved(Record):
    """A reservation is made or changed; 0 cents release it."""

    kind: Literal["reserved"] = "reserved"
    reservation: Reservation


class CapRaised(Record):
    """A person has raised a campaign's cap above the policy's."""

    kind: Literal["cap_raised"] = "cap_raised"
    campaign_id: str
    cents: int
    approver: str


class Checkpoint(Record):
    """All reservations and raised caps so far."""

    kind: Literal["checkpoint"] = "checkpoint"
    reservations: tuple[Reservation, ...]
    caps: dict[str, int]


BudgetRecord = Annotated[Reserved | CapRaised | Checkpoint, Field(discriminator="kind")]
_RECORDS: Final[TypeAdapter[BudgetRecord]] = TypeAdapter(BudgetRecord)


class BudgetState(Model):
    """The reservations by order key, and the raised caps by campaign."""

    last: int = 0
    reservations: dict[str, Reservation] = Field(default_factory=dict)
    caps: dict[str, int] = Field(default_factory=dict)

    def campaign_cents(self, campaign_id: str) -> int:
        """The sum of a campaign's orders."""
        return sum(r.cents for r in self.reservations.values() if r.campaign_id == campaign_id)

    def paid_cents(self, since: datetime) -> int:
        """The sum that was paid by machine since then, or may have been."""
        return sum(r.cents for r in self.reservations.values() if r.paid_at and r.paid_at >= since)


class Budget:
    """The log of reservations."""

    def __init__(self, store: Store, folder: str) -> None:
        self._log = Log(store, folder, _RECORDS)
        self._state = BudgetState()

    def read(self) -> BudgetState:
        """The state after all records that exist now."""
        state = self._state
        fresh = not state.last
        if fresh:
            state = BudgetState(last=max(0, self._last_checkpoint() - 1))
        for record in self._log.read(state.last + 1, all_of_it=fresh):
            state = _apply_record(state, record)
        self._state = state
        return state

    def reserve(
        self,
        order_key: str,
        campaign_id: str,
        cents: int,
        *,
        campaign_cap_cents: int | None = None,
        rolling: RollingCap | None = None,
        run: str = "",
    ) -> None:
        """Reserve this amount for an order, once; with `rolling` also as a machine payment by `run`.

        Raises:
            BudgetExceeded: a cap would be passed; nothing is reserved.
        """

        def decide(state: BudgetState) -> BudgetRecord | None:
            before = state.reservations.get(order_key)
            reservation = (
                before or Reservation(order_key=order_key, campaign_id=campaign_id, cents=0)
            ).model_copy(update={"campaign_id": campaign_id, "cents": cents})
            had = before.cents if before else 0
            if rolling is not None:  # money may move from now on
                paid_at = max(rolling.at, reservation.paid_at or rolling.at)
                runs = tuple(dict.fromkeys((*reservation.runs, run)))
                reservation = reservation.model_copy(update={"paid_at": paid_at, "runs": runs})
            elif before == reservation:
                return None
            if campaign_cap_cents is not None and cents > had:
                cap = max(campaign_cap_cents, state.caps.get(campaign_id, 0))
                total = state.campaign_cents(campaign_id) - had + cents
                _check_cap("campaign", f"the cap of campaign {campaign_id}", reservation, total, cap)
            if rolling is not None:
                counted = had if before and before.paid_at and before.paid_at >= rolling.since else 0
                total = state.paid_cents(rolling.since) - counted + cents
                if cents > counted:
                    words = f"rolling_usd of the SpendingPolicy block since {rolling.since:%Y-%m-%d}"
                    _check_cap("rolling", words, reservation, total, rolling.max_cents)
            return Reserved(reservation=reservation)

        self._append(decide)

    def note_action(self, order_key: str, campaign_id: str, action: str) -> None:
        """Note the record of an order that precedes an action, so that a log that has lost it is found out."""

        def note_unless_noted(state: BudgetState) -> BudgetRecord | None:
            before = state.reservations.get(order_key) or Reservation(
                order_key=order_key, campaign_id=campaign_id, cents=0
            )
            noted = before.model_copy(update={"action": action})
            return None if noted == state.reservations.get(order_key) else Reserved(reservation=noted)

        self._append(note_unless_noted)

    def restore(self, reservation: Reservation) -> None:
        """Write the reservation of an order again, as its log has it and a person has confirmed."""
        self._append(
            lambda state: (
                None
                if state.reservations.get(reservation.order_key) == reservation
                else Reserved(reservation=reservation)
            )
        )

    def release(self, order_key: str, *, payment_only: bool = False, run: str | None = None) -> None:
        """Release an order, or only its machine payment; with `run`, unless another run pays it."""

        def decide(state: BudgetState) -> BudgetRecord | None:
            before = state.reservations.get(order_key)
            if before is None or (payment_only and before.paid_at is None):
                return None
            if run is not None and run not in before.runs:
                return None
            runs = tuple(r for r in before.runs if run not in {None, r})
            less: dict[str, object] = {"runs": runs}
            if not runs:
                less["paid_at"] = None
            if not payment_only:
                less["cents"] = 0
            return Reserved(reservation=before.model_copy(update=less))

        self._append(decide)

    def redate_payments(self, known: Iterable[Reservation], latest: datetime) -> None:
        """Date payments at `latest` that have a later time. `known` was read before `latest` was confirmed.

        So they had been reserved by then, and their time is wrong: they would count for too long.
        """
        for reservation in known:
            if reservation.paid_at is not None and reservation.paid_at > latest:

                def decide(state: BudgetState, before: Reservation = reservation) -> BudgetRecord | None:
                    if state.reservations.get(before.order_key) != before:
                        return None
                    return Reserved(reservation=before.model_copy(update={"paid_at": latest}))

                self._append(decide)

    def raise_cap(self, campaign_id: str, cents: int, approver: str) -> None:
        """Record a campaign's cap that a person has raised."""
        self._append(
            lambda state: (
                None
                if state.caps.get(campaign_id, 0) >= cents
                else CapRaised(campaign_id=campaign_id, cents=cents, approver=approver)
            )
        )

    def _append(self, decide: Callable[[BudgetState], BudgetRecord | None]) -> None:
        while True:
            state = self.read()
            number = state.last + 1
            if number % EVERY == 0:
                self._log.append(number, _make_checkpoint(state))
            else:
                record = decide(state)
                if record is None or self._log.append(number, record):
                    return

    def _last_checkpoint(self) -> int:
        """The number of the last checkpoint, by bisection; 1 is the first."""
        high = 1
        while self._log.exists(EVERY * high):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._log.exists(EVERY * middle) else (low, middle)
        return EVERY * low or 1


def _apply_record(state: BudgetState, record: BudgetRecord) -> BudgetState:
    last = state.last + 1
    match record:
        case Checkpoint():
            known = {r.order_key: r for r in record.reservations}
            return BudgetState(last=last, reservations=known, caps=record.caps)
        case CapRaised():
            return state.model_copy(
                update={"last": last, "caps": state.caps | {record.campaign_id: record.cents}}
            )
        case Reserved():
            known = state.reservations | {record.reservation.order_key: record.reservation}
            return state.model_copy(update={"last": last, "reservations": known})


def _make_checkpoint(state: BudgetState) -> Checkpoint:
    return Checkpoint(reservations=tuple(state.reservations.values()), caps=state.caps)


def _check_cap(name: str, words: str, reservation: Reservation, total: int, cap: int) -> None:
    if total > cap:
        raise BudgetExceeded(
            f"order {reservation.order_key} of {usd(reservation.cents)} would pass {words}: "
            f"{usd(total - reservation.cents)} of {usd(cap)} is committed",
            cap=name,
            total_cents=total,
            cap_cents=cap,
        )
