"""Fixes, at the first use of a service's address, which log belongs to it. No later answer leads to another log.

A log of numbered records in `LEDGERS/IDENTITY`, like that of an order: of two first uses at once, one record counts.
"""

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import TypeAdapter

from prefect_assay.archive.layout import IDENTITY_FOLDER
from prefect_assay.archive.store import Store, join_key
from prefect_assay.errors import OtherOrganization
from prefect_assay.orders.ledger.log import Log, Record


class Bound(Record):
    """The log of a service's address. `organisation` is None as long as the service has not named one."""

    kind: Literal["bound"] = "bound"
    service: str
    organisation: str | None
    log: str  # the name of its folder
    organisation_name: str | None = None  # for people only, as the service called it then


_RECORDS: Final[TypeAdapter[Bound]] = TypeAdapter(Bound)


class Identity:
    """The addresses that an archive knows, with the organization and the log of each."""

    def __init__(self, store: Store, root: str) -> None:
        folder = join_key(root, IDENTITY_FOLDER)
        self._log = Log(store, folder, _RECORDS)
        self.location = store.location(folder)

    def read(self) -> list[Bound]:
        """All records, oldest first; the last one of an address holds."""
        return list(self._log.read())

    def find_recorded(self, service: str) -> Bound | None:
        """What is recorded for an address, in its one spelling (`orders.payments.interfaces.address`)."""
        return _find_last(self.read(), service)

    def bind_address(
        self, service: str, organisation: str | None, name: str, organisation_name: str | None = None
    ) -> Bound:
        """The record of an address, made at its first use; `name` is the folder of a log that no address has yet.

        Another address of the same organization has the same log. An organization that the service names later is noted.

        Raises:
            OtherOrganization: the log is another organization's.
        """
        while True:
            records = self.read()
            known = _find_last(records, service)
            if known is not None and organisation in {None, known.organisation}:
                return known
            if known is not None and known.organisation is not None:
                raise OtherOrganization(
                    f"the credentials belong to organization {organisation} at {service}, and the log {self.location} to "
                    f"organization {known.organisation}; nothing is ordered or paid. Put a token of that organization into "
                    "the credentials block, or make it the active one in the portal. For another organization use an archive "
                    "block with another prefix"
                )
            same = (record.log for record in records if organisation and record.organisation == organisation)
            log = known.log if known else next(same, name)
            bound = Bound(
                service=service, organisation=organisation, log=log, organisation_name=organisation_name
            )
            if self._log.append(len(records) + 1, bound):
                return bound


def _find_last(records: Sequence[Bound], service: str) -> Bound | None:
    return next((record for record in reversed(records) if record.service == service), None)
