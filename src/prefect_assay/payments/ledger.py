"""The ledger: what was intended, sent and settled, written before anything is sent. No credential in it.

`Ledger` is what `settle` needs. `KeyValueLedger` builds it on any store that can create a key once, so that
files, memory and a remote store share one logic. This module knows no rail and no service.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from hashlib import sha256
from threading import Lock
from typing import Final, Protocol
from uuid import uuid4

from pydantic import AwareDatetime, Field, ValidationError

from prefect_assay.errors import BudgetExceeded, ConfigurationError
from prefect_assay.models.base import Model
from prefect_assay.models.job import PaymentState
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments.terms import dollars

# Everything that may have cost money, or still may, counts against the rolling cap.
COUNTED: Final = frozenset(
    {PaymentState.INTENDED, PaymentState.SENT, PaymentState.UNKNOWN, PaymentState.SETTLED}
)
MAYBE_PAID: Final = COUNTED - {PaymentState.INTENDED}


class RollingCap(Model):
    """At most `max_cents` over all counted entries recorded at or after `since`.

    `campaign_cents`, when set, is also the most over all counted entries of the entry's campaign, of any age.
    """

    max_cents: int
    since: AwareDatetime
    campaign_cents: int | None = None


class LedgerEntry(Model):
    """One invoice's payment.

    Attributes:
        key: stable key of the invoice at this service, 40 hex characters.
        claim_id: changes with every attempt; two runs that claim the same invoice differ in it.
        nonce: the rail's reference of the payment. On a chain it is the same for every attempt with one wallet; a
            shared payment token is sent for one challenge, whose id it is.
        network: the chain, or the provider of the shared payment token.
        asset: the token contract, or the currency.
        pay_to: the receiver.
        expires_at: until when the last authorisation is valid.
        sent_at: when a credential last left this process; None as long as none ever has.
        receipt: the rail's own words on the settlement; the service gives them once, so they are kept here.
        remark: what was odd about the answer to the payment, for people; None when it was as it should be.
    """

    key: str
    base_url: str
    invoice_id: str
    rail: PaymentMethod
    amount_cents: int
    nonce: str
    network: str
    asset: str
    pay_to: str
    expires_at: AwareDatetime
    recorded_at: AwareDatetime
    state: PaymentState = PaymentState.INTENDED
    sent_at: AwareDatetime | None = None
    claim_id: str = Field(default_factory=lambda: uuid4().hex)
    experiment_id: str | None = None
    campaign_id: str | None = None
    receipt: dict[str, str] | None = None
    remark: str | None = None

    def moved(
        self,
        state: PaymentState,
        *,
        sent_at: datetime | None = None,
        receipt: dict[str, str] | None = None,
        remark: str | None = None,
    ) -> "LedgerEntry":
        """The same entry in another state, with what has become known since."""
        changes = {
            "state": state,
            "sent_at": sent_at or self.sent_at,
            "receipt": receipt or self.receipt,
            "remark": remark or self.remark,
        }
        return self.model_copy(update=changes)


def ledger_key(base_url: str, invoice_id: str) -> str:
    """The key of an invoice's entry; fit for a file name or a variable's name."""
    return sha256(f"{len(base_url)}:{base_url}{invoice_id}".encode()).hexdigest()[:40]


class Ledger(Protocol):
    """The record of payments. Every method is atomic against other runs that use the same ledger."""

    def get(self, key: str) -> LedgerEntry | None:
        """The entry of an invoice."""
        ...

    def claim(
        self, entry: LedgerEntry, *, previous: LedgerEntry | None = None, cap: RollingCap | None = None
    ) -> bool:
        """Record the intent: create the entry, or put it in place of `previous`.

        False: another run was faster, and its entry stands. Raises BudgetExceeded when the entry would pass
        the cap; nothing is then claimed.
        """
        ...

    def update(self, before: LedgerEntry, after: LedgerEntry) -> bool:
        """Put `after` in place of exactly `before`; False when another run has changed the entry."""
        ...

    def spent_cents(self, since: datetime) -> int:
        """Everything that has cost money or may have, recorded at or after `since`."""
        ...


class KeyValueStore(Protocol):
    """What a ledger needs of a store. Where `locked` cannot lock, `create` must be atomic by itself."""

    def create(self, key: str, value: str) -> bool:
        """Write the value durably if the key does not exist; False if it does. Called under `locked`."""
        ...

    def read(self, key: str) -> str | None:
        """The value, or None."""
        ...

    def replace(self, key: str, value: str) -> None:
        """Write the value of an existing key durably; readers see the old or the new one, never a mixture."""
        ...

    def values(self) -> Iterator[str]:
        """All values."""
        ...

    def locked(self) -> AbstractContextManager[object]:
        """Hold back every other writer; never entered twice by one caller.

        The rolling cap stays safe in a store that cannot (a null context): an entry is written first and
        summed up afterwards, so of two racing runs at least one sees the other. It may then refuse both.
        """
        ...


class KeyValueLedger:
    """The ledger's rules on top of a store."""

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store

    def get(self, key: str) -> LedgerEntry | None:
        """The entry of an invoice."""
        text = self._store.read(key)
        return None if text is None else _parse(text, key)

    def claim(
        self, entry: LedgerEntry, *, previous: LedgerEntry | None = None, cap: RollingCap | None = None
    ) -> bool:
        """Record the intent; see `Ledger.claim`."""
        with self._store.locked():
            if previous is None:
                won = self._store.create(entry.key, entry.model_dump_json())
            else:
                won = self._swap(previous, entry)
            if won and cap is not None:
                self._check(cap, entry, previous)
            return won

    def update(self, before: LedgerEntry, after: LedgerEntry) -> bool:
        """Put `after` in place of exactly `before`; False when another run has changed the entry."""
        with self._store.locked():
            return self._swap(before, after)

    def spent_cents(self, since: datetime) -> int:
        """Everything that has cost money or may have, recorded at or after `since`."""
        return _sum(e for e in self._counted() if e.recorded_at >= since)

    def _counted(self) -> list[LedgerEntry]:
        entries = (_parse(text, "an entry") for text in self._store.values())
        return [e for e in entries if e.state in COUNTED]

    def entries(self) -> list[LedgerEntry]:
        """Every entry, oldest first; for people who look."""
        found = (_parse(text, "an entry") for text in self._store.values())
        return sorted(found, key=lambda entry: (entry.recorded_at, entry.key))

    def _swap(self, before: LedgerEntry, after: LedgerEntry) -> bool:
        if self.get(before.key) != before:
            return False
        self._store.replace(after.key, after.model_dump_json())
        return True

    def _check(self, cap: RollingCap, entry: LedgerEntry, previous: LedgerEntry | None) -> None:
        """Sum up after the entry is written, itself included; over a cap, take it back."""
        counted = self._counted()
        over = _over_cap(cap, entry, counted)
        if over is None:
            return
        self._store.replace(entry.key, (previous or entry.moved(PaymentState.FAILED)).model_dump_json())
        raise over


def _over_cap(cap: RollingCap, entry: LedgerEntry, counted: list[LedgerEntry]) -> BudgetExceeded | None:
    total = _sum(e for e in counted if e.recorded_at >= cap.since)
    if total > cap.max_cents:
        return _exceeded(
            entry,
            "rolling",
            (total, cap.max_cents),
            ("max_cents_rolling of the spending policy", f"since {cap.since:%Y-%m-%d}"),
        )
    if cap.campaign_cents is None or entry.campaign_id is None:
        return None
    mine = (entry.base_url, entry.campaign_id)
    total = _sum(e for e in counted if (e.base_url, e.campaign_id) == mine)
    if total > cap.campaign_cents:
        return _exceeded(
            entry,
            "campaign",
            (total, cap.campaign_cents),
            ("the cap of its campaign", f"in campaign {entry.campaign_id}"),
        )
    return None


def _exceeded(entry: LedgerEntry, name: str, sums: tuple[int, int], words: tuple[str, str]) -> BudgetExceeded:
    (total, cap_cents), (what, where) = sums, words
    return BudgetExceeded(
        f"invoice {entry.invoice_id} of {dollars(entry.amount_cents)} would pass {what}: "
        f"{dollars(total - entry.amount_cents)} of {dollars(cap_cents)} is spent or reserved {where}",
        cap=name,
        total_cents=total,
        cap_cents=cap_cents,
    )


def _sum(entries: Iterable[LedgerEntry]) -> int:
    return sum(entry.amount_cents for entry in entries)


class _MemoryStore:
    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._lock = Lock()

    def create(self, key: str, value: str) -> bool:
        if key in self._values:
            return False
        self._values[key] = value
        return True

    def read(self, key: str) -> str | None:
        return self._values.get(key)

    def replace(self, key: str, value: str) -> None:
        self._values[key] = value

    def values(self) -> Iterator[str]:
        return iter(list(self._values.values()))

    def locked(self) -> AbstractContextManager[object]:
        return self._lock


class MemoryLedger(KeyValueLedger):
    """A ledger that ends with the process: for tests, and for dry runs."""

    def __init__(self) -> None:
        super().__init__(_MemoryStore())


def _parse(text: str, where: str) -> LedgerEntry:
    try:
        return LedgerEntry.model_validate_json(text)
    except ValidationError as error:
        raise ConfigurationError(
            f"the payment ledger holds an unreadable entry ({where}): {error.error_count()} errors; "
            "nothing is paid until it is repaired"
        ) from None
