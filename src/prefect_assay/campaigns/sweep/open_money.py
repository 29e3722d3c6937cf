"""Collects the open money of every saved archive and service, whatever became of the runs.

Each log names its account, and is read with a token of that account only.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from prefect.client.orchestration import SyncPrefectClient

from prefect_assay.blocks import Archive, AssayAccount
from prefect_assay.blocks.order_ledger import open_ledgers
from prefect_assay.campaigns.sweep.saved_blocks import saved_accounts, saved_archives
from prefect_assay.errors import AssayError
from prefect_assay.orders.billing import withdraw_order
from prefect_assay.orders.ledger import Ledgers, PaymentLedger, known_archive_id
from prefect_assay.orders.ledger.open_money import OpenKind, OpenMoney, merge_open_money, of_logs, read_logs
from prefect_assay.orders.open_money import OrderCheck, OrderChecks, check_orders
from prefect_assay.orders.payments.interfaces import normalize_address

_NOT_ASKED: Final = "no saved account is of its service, so this is what the archive has"


def read_open_money(client: SyncPrefectClient) -> OpenMoney:
    """All open money, by the logs and by the services, which are asked only about an archive with an open order.

    What cannot be asked stays as the log has it, with a note.
    """
    return merge_open_money(checks.open_money for checks in _Reader(client).every())


def record_open_money(client: SyncPrefectClient, open_campaigns: Collection[str]) -> OpenMoney:
    """The same, and record in the ledgers what no run will: a payment that came late, a quote that came to nothing.

    The runs of `open_campaigns`, by their ids, record it themselves, and say why.
    """
    every = list(_Reader(client, thorough=True).every())
    for checks in every:
        for check in checks.checks:
            planned = check.ledger.state.planned
            if planned is not None and planned.campaign_id not in open_campaigns:
                record_check(check)
    return merge_open_money(checks.open_money for checks in every)


def record_check(check: OrderCheck) -> None:
    """Record what the service shows of an order, where its ledger does not have it."""
    if check.ledger.state.ordered is None:
        return  # a run of its campaign decides which experiment it is
    invoice = check.invoice
    # The bill of a canceled experiment is open, and not to be paid.
    is_to_pay = check.item is not None and check.item.kind is OpenKind.TO_PAY
    if invoice is not None and (check.is_paid or is_to_pay):
        check.ledger.reserve_billed(invoice.amount or 0)
    if check.is_paid and invoice is not None:
        PaymentLedger(check.ledger).record_paid(invoice.id, invoice.amount)
    elif is_to_pay and invoice is not None:
        check.ledger.saw_invoice(invoice.id, invoice.amount)
    elif check.ended is not None:
        withdraw_order(check.ledger, check.ended)


@dataclass
class _Reader:
    """One reading of all archives. A `thorough` one also asks about orders that came to nothing by their logs."""

    client: SyncPrefectClient
    thorough: bool = False
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def every(self) -> Iterator[OrderChecks]:
        accounts = saved_accounts(self.client)
        for _, archive in saved_archives(self.client, accounts):
            try:
                yield from self._of_archive(archive, accounts)
            except AssayError as error:
                note = f"an archive cannot be read, so its open money is not listed: {error.message}"
                yield OrderChecks(notes=(note,), complete=False)

    def _of_archive(self, archive: Archive, accounts: list[AssayAccount]) -> Iterator[OrderChecks]:
        store = archive.get_store()
        archive_id = known_archive_id(store, archive.prefix)
        if archive_id is None:
            return  # nothing was ordered in it, or it is another machine's folder
        for ledgers in Ledgers.list_all(store, archive.prefix):
            if (archive_id, ledgers.log) not in self._seen:
                self._seen.add((archive_id, ledgers.log))
                yield self._of_ledgers(archive, ledgers, accounts)

    def _of_ledgers(self, archive: Archive, ledgers: Ledgers, accounts: list[AssayAccount]) -> OrderChecks:
        logs, damaged = read_logs(ledgers)
        recorded = of_logs(logs, damaged)
        if not (self.thorough or recorded.items or any(log.state.surplus for log in logs)):
            return OrderChecks(notes=recorded.notes, complete=recorded.complete, paid=recorded.paid)
        services = {bound.service for bound in ledgers.list_owners() if bound.log == ledgers.log}
        why = _NOT_ASKED
        for credentials in (account.credentials for account in accounts):
            try:
                if normalize_address(credentials.base_url) not in services:
                    continue
                open_ledgers(credentials, archive)  # refuses the token of another organization
                with credentials.get_client() as service:
                    checks = check_orders(logs, service)
                return replace(
                    checks, notes=(*damaged, *checks.notes), complete=recorded.complete, paid=recorded.paid
                )
            except AssayError as error:
                why = f"the service could not be asked, so this is what the archive has: {error.message}"
        notes = (*damaged, why) if recorded.items else damaged
        return OrderChecks(
            recorded=recorded.items, notes=notes, complete=recorded.complete, paid=recorded.paid
        )
