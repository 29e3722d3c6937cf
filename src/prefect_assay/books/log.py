"""A log of numbered records in a store: read in order, append with a conditional write. Knows no order.

A writer reads the log, decides from its last state and writes the next number. The store gives a number to one writer,
so that all writers agree on one sequence of decisions, without a lock.
"""

import random
import time
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from prefect_assay.archive.store import Store, join_key
from prefect_assay.books.records import Record
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError

R = TypeVar("R", bound=Record)

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
                        f"{self.store.location(self._key(number))} is missing, and the record after it exists; "
                        "nothing is ordered or paid. Restore it from a backup of the archive"
                    )
            if record is None:
                return
            yield record
            number += 1

    def find(self, number: int) -> R | None:
        """One record, or None."""
        key = self._key(number)
        body = self.store.find(key)
        if body is None:
            return None
        try:
            return self._adapter.validate_json(body)
        except ValidationError as error:
            raise ConfigurationError(
                f"{self.store.location(key)} cannot be read ({error.error_count()} errors): a newer version of "
                "prefect-assay has written it, or it is damaged; nothing is ordered or paid. Upgrade, or restore it"
            ) from None

    def exists(self, number: int) -> bool:
        """Return True if the number is taken."""
        return self.store.stat(self._key(number)) is not None

    def append(self, number: int, record: R) -> bool:
        """Write the record under the number; False when the number belongs to another record.

        When the store's answer was lost, the id of the record under the number decides; when the store was away
        (ArchiveUnavailable), the next reading does.
        """
        body = self._adapter.dump_json(record)
        for wait in (*_WAITS, None):
            try:
                if self.store.put_if_absent(self._key(number), body, "application/json"):
                    return True
                there = self.find(number)
                if there is not None:
                    return there.id == record.id
            except ArchiveUnavailable:
                if wait is None:
                    raise
            if wait is not None:
                time.sleep(wait * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
        raise ArchiveUnavailable(f"{self.store.location(self._key(number))} is neither absent nor readable")

    def _key(self, number: int) -> str:
        return join_key(self.folder, f"{number:06d}.json")
