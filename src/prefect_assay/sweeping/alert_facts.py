"""Gathers the facts that alerts are made of. Most are what a sweep has read; its full check sends a few requests more.

`alerts.find` decides which facts are problems. Each request fails alone, and a failed read never closes an alert.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from prefect.blocks.core import Block
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import BlockDocument, FlowRun

from prefect_assay.alerts import find, kinds
from prefect_assay.blocks import AssayCredentials, LocalArchive, S3Archive, X402Wallet
from prefect_assay.client import AssayClient
from prefect_assay.errors import AssayError
from prefect_assay.models.billing import Invoice
from prefect_assay.models.open_money import OpenMoney
from prefect_assay.models.problem import AlertLimits, Problem
from prefect_assay.models.vocabulary import OPEN_QUOTES, ExperimentStatus
from prefect_assay.runs.block_references import block_reference, name_of
from prefect_assay.runs.states import suspension_key
from prefect_assay.runs.tags import (
    CAP_LABEL,
    EXPERIMENT_CODE_LABEL,
    EXPERIMENT_TAG,
    INVOICE_SEEN_LABEL,
    set_labels,
    tag_values,
)
from prefect_assay.sweeping.order_runs import find_unattended
from prefect_assay.sweeping.watermarks import as_text
from prefect_assay.waiting import WaitsFor, waits_for

T = TypeVar("T")

# Looked at in the full check only, so that a problem begins and ends at most once an hour.
_HOURLY: Final = frozenset(
    {
        kinds.INVOICE_UNPAID,
        kinds.QUOTE_EXPIRING,
        kinds.MONEY_OPEN,
        kinds.RUN_DELETED,
        kinds.WALLET_LOW,
        kinds.TOKEN_EXPIRING,
        kinds.DEADLINE_NEAR,
        kinds.ARCHIVE_REFUSING,
        kinds.SERVICE_AWAY,
    }
)
_MONEY: Final = frozenset({kinds.MONEY_OPEN, kinds.RUN_DELETED, kinds.INVOICE_UNPAID, kinds.QUOTE_EXPIRING})
_PARTS: Final = {
    "archives": {kinds.ARCHIVE_REFUSING},
    "wallets": {kinds.WALLET_LOW},
    "open money": _MONEY,
}


class _Waiting(NamedTuple):
    """A suspended run, without its parameters: there may be thousands."""

    id: UUID
    name: str
    code: str | None  # of its experiment
    invoice_seen: datetime | None


@dataclass
class AlertFacts:
    """The facts of one sweep."""

    now: datetime
    limits: AlertLimits
    deadlines: tuple[find.Due, ...] = ()
    # Runs by experiment, by credentials block; and run names by archive block
    experiments: dict[str, dict[str, _Waiting]] = field(default_factory=dict)
    archives: dict[str, list[str]] = field(default_factory=dict)
    _undelivered: list[str] = field(default_factory=list)
    _delivered: bool = False
    _found: list[Problem] = field(default_factory=list)
    _failed: dict[str, str] = field(
        default_factory=dict
    )  # credentials blocks that cannot be read now: their names
    _unread: set[str] = field(default_factory=set)  # kinds that were not looked at everywhere
    # Problems, by kind and subject, that stay open because their block could not be read.
    unclear: set[tuple[str, str]] = field(default_factory=set)

    def note_suspended(self, run: FlowRun) -> None:
        """Note what a suspended run will need: its service and its archive."""
        reference = block_reference(run, "credentials")
        if reference is not None:
            known = self.experiments.setdefault(as_text(reference), {})
            code = run.labels.get(EXPERIMENT_CODE_LABEL)
            seen = _moment(run.labels.get(INVOICE_SEEN_LABEL))
            waiting = _Waiting(run.id, run.name, str(code) if code else None, seen)
            known.update(dict.fromkeys(tag_values(run.tags, EXPERIMENT_TAG), waiting))
        archive = block_reference(run, "archive")
        if archive is not None:
            self.archives.setdefault(as_text(archive), []).append(run.name)

    def note_delivery(self, run: str, missed: bool | None) -> None:  # noqa: FBT001 - three values
        """Note whether an update of a run's experiment was delivered."""
        if missed:
            self._undelivered.append(run)
        self._delivered |= missed is False

    def note_failure(self, reference: str, block: str | None, error: Exception, runs: Sequence[str]) -> None:
        """Note that the service could not be read with a credentials block."""
        name = self._failed[reference] = block or reference
        found = find.failed_service(name, error, self.now, runs)
        self._found += found
        if not found:
            self.unclear.add((kinds.SERVICE_AWAY, name))

    def read_service(self, block_of: Callable[[str], AssayCredentials]) -> None:
        """Read invoices, quotes and the token's end for each credentials block that can be read."""
        for reference, runs in sorted(self.experiments.items()):
            name = self._failed.get(reference)
            if name is not None:
                self._leave_open(name, runs)
                self._leave_deadlines_open(runs)
                continue
            try:
                block = block_of(reference)
                name = name_of(block) or reference
                with block.get_client() as client:
                    self._read_token(client, name)
                    self._read_billing(client, runs)
            except Exception:  # noqa: BLE001 - the full check has reported it
                if name is None:  # the block's name is not known, under which a problem of its token is saved
                    self._unread.add(kinds.TOKEN_EXPIRING)
                self._leave_open(name or reference, runs)

    def _leave_open(self, block: str, runs: Iterable[str]) -> None:
        """Solve no problem of a credentials block and of the experiments that wait with it."""
        self.unclear.add((kinds.TOKEN_EXPIRING, block))
        for kind in (kinds.INVOICE_UNPAID, kinds.QUOTE_EXPIRING):
            self.unclear |= {(kind, experiment) for experiment in runs}

    def _leave_deadlines_open(self, runs: dict[str, _Waiting]) -> None:
        """Solve no problem of a deadline, which goes by the experiment's code, where the run has shown one."""
        for run in runs.values():
            if run.code is None:
                self._unread.add(kinds.DEADLINE_NEAR)
            else:
                self.unclear.add((kinds.DEADLINE_NEAR, run.code))

    def note_money(self, client: SyncPrefectClient, money: OpenMoney) -> None:
        """Note open money that no run takes care of: of runs that are canceled, completed or deleted."""
        waiting = {experiment for runs in self.experiments.values() for experiment in runs}
        items = [item for item in money.items if item.experiment_id not in waiting]
        unattended = find_unattended(client, items)
        self._found += [find.deleted_run(item, run) for item, run in unattended.deleted]
        self._found += find.unattended_money(unattended.others, self.now, self.limits)
        if not money.complete:
            self._unread |= _MONEY

    def probe_archives(self) -> None:
        """Write into each archive that a suspended run will need, as before an order."""
        _each(self._probe, sorted(self.archives.items()))

    def read_wallets(self, client: SyncPrefectClient) -> None:
        """Read the balance of each saved wallet that names a node."""
        slug = X402Wallet.get_block_type_slug()
        _each(self._read_wallet, client.read_block_documents_by_type(slug, include_secrets=True))

    def problems(
        self, stuck: Iterable[Problem], asking: Iterable[FlowRun], *, checked: bool, failed: set[str]
    ) -> tuple[list[Problem], set[str]]:
        """Return all problems of this sweep, and the kinds that were looked at everywhere."""
        found = [
            *self._found,
            *stuck,
            *(problem for run in asking if (problem := _cap(run))),
            *find.undelivered(self._undelivered, self.now),
            *(find.near_deadlines(self.deadlines, self.now, self.limits) if checked else ()),
        ]
        unread = self._unread | {
            kind for part, kinds_of in _PARTS.items() if part in failed for kind in kinds_of
        }
        looked = set(_HOURLY - unread if checked else ())
        if self._delivered and not self._undelivered:
            looked.add(kinds.WEBHOOKS_SILENT)
        if not failed & {"runs that need a person", "marked runs"}:
            looked |= {kinds.RUN_STUCK, kinds.CAP_REACHED}
        if "open orders of failed runs" not in failed:
            looked.add(kinds.ORDER_OPEN)
        return found, looked

    def _probe(self, item: tuple[str, list[str]]) -> None:
        reference, runs = item
        try:
            archive = _archive(reference)
        except (TypeError, ValueError):
            return  # deleted: the run that needs it waits, and is named
        try:
            archive.get_store().probe(archive.prefix, with_race=False)
        except AssayError as error:
            name = name_of(archive) or reference
            self._found.append(find.refusing_archive(name, error, self.now, runs))

    def _read_wallet(self, document: BlockDocument) -> None:
        wallet = X402Wallet._load_from_block_document(document)  # noqa: SLF001 - Prefect's only way
        if wallet.node_url is None:
            return
        try:
            cents = wallet.balance_cents()
        except AssayError:
            cents = None
        self._found += find.low_wallet(
            document.name or wallet.get_block_type_slug(), cents, self.now, self.limits
        )

    def _read_token(self, client: AssayClient, block: str) -> None:
        identity = self._one(kinds.TOKEN_EXPIRING, [block], client.whoami)
        if identity is not None:
            self._found += find.expiring_token(block, identity.token_expires_at, self.now, self.limits)

    def _read_billing(self, client: AssayClient, runs: dict[str, _Waiting]) -> None:
        invoices = self._invoices(client, runs)
        if any(row.experiment_id is None for row in invoices):
            self.unclear |= {(kinds.INVOICE_UNPAID, experiment) for experiment in runs}
        self._found += find.unpaid_invoices(
            [
                find.Due(row.experiment_id, run.name, row.created_at or self._first_seen(run), row.amount)
                for row in invoices
                if row.experiment_id and not row.ended and (run := runs.get(row.experiment_id))
            ],
            self.now,
            self.limits,
        )
        # Not the list of quotes: what its rows hold is not in the contract, and no published row names its experiment.
        undecided = self._rows(
            kinds.QUOTE_EXPIRING, runs, lambda: client.iter_experiments(status=ExperimentStatus.QUOTE_SENT)
        )
        for experiment_id in (row.id for row in undecided if row.id in runs):
            quote = self._one(kinds.QUOTE_EXPIRING, [experiment_id], partial(client.quote, experiment_id))
            if quote and quote.expires_at and quote.status in OPEN_QUOTES:
                due = find.Due(experiment_id, runs[experiment_id].name, quote.expires_at, quote.total)
                self._found += find.expiring_quotes([due], self.now, self.limits)

    def _invoices(self, client: AssayClient, runs: Iterable[str]) -> list[Invoice]:
        """The invoices that the service lists; without the list, which the contract does not have, those of the experiments."""
        try:
            return list(client.iter_invoices())
        except AssayError:
            shown = {
                experiment: self._one(kinds.INVOICE_UNPAID, [experiment], partial(client.invoice, experiment))
                for experiment in runs
            }
        return [
            Invoice(id=one.id or experiment, experiment_id=experiment, status=one.status)
            for experiment, one in shown.items()
            if one is not None and one.status is not None
        ]

    def _first_seen(self, run: _Waiting) -> datetime:
        """When a full check first saw a run's open invoice: published rows have no date."""
        if run.invoice_seen is None:
            set_labels(run.id, {INVOICE_SEEN_LABEL: self.now.isoformat()})
        return run.invoice_seen or self.now

    def _rows(self, kind: str, subjects: Iterable[str], read: Callable[[], Iterable[T]]) -> list[T]:
        return self._one(kind, subjects, lambda: list(read())) or []

    def _one(self, kind: str, subjects: Iterable[str], read: Callable[[], T]) -> T | None:
        """One request; a token without the right to it, or another version of the service, is no problem.

        It then solves no problem of these subjects.
        """
        try:
            return read()
        except AssayError:
            self.unclear |= {(kind, subject) for subject in subjects}
            return None


def _each(look: Callable[[T], None], items: Iterable[T]) -> None:
    """Look at every item, and then raise what the last one that failed has raised."""
    failure: Exception | None = None
    for item in items:
        try:
            look(item)
        except Exception as error:  # noqa: BLE001 - the others are looked at before it is reported
            failure = error
    if failure:
        raise failure


def _moment(label: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(label))
    except ValueError:
        return None


def _cap(run: FlowRun) -> Problem | None:
    cap = run.labels.get(CAP_LABEL)
    if not cap or waits_for(suspension_key(run)) is not WaitsFor.APPROVAL or run.state is None:
        return None
    return find.reached_cap(run.name, str(run.id), str(cap), run.state.timestamp)


def _archive(reference: str) -> LocalArchive | S3Archive:
    found: Any = Block.load_from_ref(json.loads(reference))
    if not isinstance(found, LocalArchive | S3Archive):
        raise TypeError(f"{reference} is no archive block")
    return found
