"""A log of numbered records in a store, and the records of an order: one frozen model per kind.

A writer reads the log, decides from its last state and writes the next number. The store gives a number to one writer,
so that all writers agree on one sequence of decisions, without a lock. No record holds a secret, and no decision reads
`at`.
"""

import os
import random
import re
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Final, Generic, Literal, TypeVar
from uuid import uuid4

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from prefect_assay.archive.formats import RECORD_FORMAT, refuse_newer
from prefect_assay.archive.store import Store, join_key
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.payments.interfaces import PaymentAttempt
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.vocabulary import PaymentMethod


class Record(Model):
    """A record: its format number, a random id, the wall clock's time, and the process that wrote it.

    A field or a kind that this version does not know is refused: it may say that money has moved.
    """

    record_schema: Literal[1] = RECORD_FORMAT
    id: str = Field(default_factory=lambda: uuid4().hex)
    at: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    by: str = Field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")


class Planned(Record):
    """The first record, written before anything else."""

    kind: Literal["planned"] = "planned"
    archive_id: str
    campaign_id: str


class Sending(Record):
    """Written right before a create is sent."""

    kind: Literal["sending"] = "sending"
    attempt: int
    route: OrderRoute
    rail: PaymentMethod

    @property
    def commits(self) -> bool:
        """Return True if the create accepts its quote and makes an invoice in the same call (contract 4.2, rules 3 and 4)."""
        return self.route is OrderRoute.SELF_SERVICE


class Refused(Record):
    """The create of an attempt was refused for certain, or never sent."""

    kind: Literal["refused"] = "refused"
    attempt: int
    reason: str


class Accepted(Record):
    """The service's answer to the order's own create or confirmation: how its invoice is paid (contract 2.6).

    `experiment_id` is set if the answer belongs to this experiment for certain; without it, it is that of the create.
    `page` is a digest of the hosted page, whose address works without a token; `rails` are those that the answer names.
    """

    kind: Literal["accepted"] = "accepted"
    invoice_id: str | None = None
    experiment_id: str | None = None
    page: str | None = None
    machine: bool | None = None
    rails: tuple[str, ...] = ()


class Named(Record):
    """The experiment that the answer to a create names. It becomes the order when its own record agrees."""

    kind: Literal["named"] = "named"
    experiment_id: str


class Ordered(Record):
    """The experiment of this order, at most once, after its own record was read and agreed with the order.

    `invoice_id` is set only if the invoice names the experiment. With `by_person`, a person has said that it is the order.
    """

    kind: Literal["ordered"] = "ordered"
    experiment_id: str
    invoice_id: str | None = None
    adopted: bool = False
    by_person: bool = False


class Surplus(Record):
    """An experiment with the key that is not the order, which is `kept`: never confirmed, never paid.

    Without `kept`, a person has said that it is another order's; then its quote is left alone.

    The order moves to an older experiment only while nothing is committed.
    """

    kind: Literal["surplus"] = "surplus"
    experiment_id: str
    kept: str


class Invoiced(Record):
    """The order is billed, in US cents; None is an invoice without an amount. Its page needs no token and is not kept."""

    kind: Literal["invoiced"] = "invoiced"
    invoice_id: str
    amount_cents: int | None


class Delivered(Record):
    """All results of the order are in the archive."""

    kind: Literal["delivered"] = "delivered"
    experiment_code: str


class Approved(Record):
    """The order may cost this much, in US cents; `approver` is the rule or the person.

    What a rule approved holds only within the caps of the moment. An amount that somebody has approved before the price
    was known is a rule as well, with the person as its `approver`.
    """

    kind: Literal["approved"] = "approved"
    amount_cents: int
    approver: str
    by_person: bool = False
    requester: str | None = None  # who has asked for the campaign
    how: str | None = None  # how the approver has said it, and how the name is known


class Confirming(Record):
    """A quote is about to be confirmed."""

    kind: Literal["confirming"] = "confirming"
    amount_cents: int


class Paying(Record, PaymentAttempt):
    """A payment credential is about to leave."""

    kind: Literal["paying"] = "paying"


class InDoubt(Record):
    """The answer to a payment was lost, and the invoice does not show it."""

    kind: Literal["in_doubt"] = "in_doubt"
    remark: str | None = None


class NotSettled(Record):
    """The payment was refused for certain; nothing was paid."""

    kind: Literal["not_settled"] = "not_settled"
    remark: str | None = None


class Settled(Record):
    """The invoice is paid, by the last `paying` record or, without one, by other means."""

    kind: Literal["settled"] = "settled"
    invoice_id: str
    amount_cents: int | None
    receipt: dict[str, str] | None = None
    remark: str | None = None


class Withdrawn(Record):
    """The quote came to nothing: rejected, expired, or the experiment was canceled."""

    kind: Literal["withdrawn"] = "withdrawn"
    reason: str


class Partial(Record):
    """The service has released a part of the results of an experiment that it calls finished, and not yet the rest."""

    kind: Literal["partial"] = "partial"
    seen: AwareDatetime  # by the service's clock, when it first showed this


class Stopped(Record):
    """A person has canceled the order: no action follows before a person has opened it again. What was sent stays sent."""

    kind: Literal["stopped"] = "stopped"
    person: str
    how: str  # the command, the run's Cancel, the form of `decide`


class Reopened(Record):
    """A person has opened a stopped order again."""

    kind: Literal["reopened"] = "reopened"
    person: str


OrderRecord = Annotated[
    Planned
    | Sending
    | Refused
    | Accepted
    | Named
    | Ordered
    | Surplus
    | Invoiced
    | Delivered
    | Approved
    | Confirming
    | Paying
    | InDoubt
    | NotSettled
    | Settled
    | Withdrawn
    | Partial
    | Stopped
    | Reopened,
    Field(discriminator="kind"),
]

# Each is written, and read back, right before the service is asked to do something that costs money. None follows `stopped`.
ACTIONS: Final = (Sending, Confirming, Paying)

R = TypeVar("R", bound=Record)

_NUMBER: Final = re.compile(r"(\d{6})\.json")
_WAITS: Final = (0.1, 0.5, 2.0)  # seconds before the same bytes are put again


class Log(Generic[R]):
    """The records `000001.json`, `000002.json`, ... in one folder of a store."""

    def __init__(self, store: Store, folder: str, adapter: TypeAdapter[R]) -> None:
        self.store = store
        self.folder = folder
        self._adapter = adapter

    def read(self, first: int = 1, *, all_of_it: bool = True) -> Iterator[R]:
        """The records from a number on, until one is absent; with `all_of_it`, a gap is an ArchiveError."""
        number = first
        while True:
            record = self.find(number)
            if record is None and all_of_it and self.exists(number + 1):
                record = self.find(number)  # a store may show the later one first
                if record is None:
                    raise ArchiveError(
                        f"{self.store.location(self._build_key(number))} is missing, and the record after it exists; "
                        "nothing is ordered or paid. Restore it from a backup of the archive"
                    )
            if record is None and number == 1:
                record = self._read_first()
            if record is None:
                return
            yield record
            number += 1

    def _read_first(self) -> R | None:
        """The first record where none was found, which is certain only if the folder is empty."""
        names = (key.removeprefix(f"{self.folder}/") for key in self.store.keys(self.folder))
        others = [name for name in names if name and "/" not in name]  # folders below are not records
        record = self.find(1) if others else None  # another writer may have come in between
        if others and record is None:
            raise ArchiveError(
                f"{self.store.location(self.folder)} has files, such as {others[0]}, and no first record: "
                "records are missing, or another version of prefect-assay wrote them; nothing is ordered or paid. Restore "
                "the folder from a backup of the archive, or use the version that wrote it"
            )
        return record

    def find(self, number: int) -> R | None:
        """One record, or None."""
        key = self._build_key(number)
        body = self.store.find(key)
        if body is None:
            return None
        refuse_newer(body, self.store.location(key))
        try:
            return self._adapter.validate_json(body)
        except ValidationError as error:
            raise ConfigurationError(
                f"{self.store.location(key)} cannot be read ({error.error_count()} errors): it is damaged, or another version "
                "of prefect-assay wrote it; nothing is ordered or paid. Restore it from a backup of the archive, or use the "
                "version that wrote it"
            ) from None

    def exists(self, number: int) -> bool:
        """Return True if the number is taken."""
        return self.store.stat(self._build_key(number)) is not None

    def append(self, number: int, record: R, *, read_back: bool = False) -> bool:
        """Write the record under the number; False when the number belongs to another record.

        With `read_back`, it counts as written only when the store shows it: a store may promise more than it does.
        When the store's answer was lost, the id of the record under the number decides; when the store was unreachable
        (ArchiveUnavailable), the next reading does.
        """
        body = self._adapter.dump_json(record)
        for wait in (*_WAITS, None):
            try:
                if (
                    self.store.put_if_absent(self._build_key(number), body, "application/json")
                    and not read_back
                ):
                    return True
                there = self.find(number)
                if there is not None:
                    return there.id == record.id
            except ArchiveUnavailable:
                if wait is None:
                    raise
            if wait is not None:
                time.sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
        raise ArchiveUnavailable(
            f"{self.store.location(self._build_key(number))} is neither absent nor readable"
        )

    def _build_key(self, number: int) -> str:
        return join_key(self.folder, f"{number:06d}.json")


def last_numbers(store: Store, folder: str) -> dict[str, int]:
    """The highest number of a record in each log below a folder, by the key of the log's folder. One listing.

    It is 0 for a folder that has files and no record. A log that ends before its number has lost records.
    """
    last: dict[str, int] = {}
    for key in store.keys(folder):
        log, _, name = key.rpartition("/")
        number = _NUMBER.fullmatch(name)
        last[log] = max(last.get(log, 0), int(number[1]) if number else 0)
    return last
