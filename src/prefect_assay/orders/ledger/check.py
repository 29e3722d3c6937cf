"""Compare the ledgers of orders with themselves, with the plans of campaigns and with what is archived.

Of the logs of campaigns it also puts the index of open ones right. Nothing else is written.
"""

import csv
from collections.abc import Callable, Iterator

from prefect_assay.archive.layout import (
    CAMPAIGN_CODES,
    IDENTITY_FOLDER,
    LEDGERS_FOLDER,
    PLAN_CODE,
    TABLE_CODE,
    TABLE_PATH,
    version_folder,
    version_of,
)
from prefect_assay.archive.read import chosen_version, csv_lines, latest_version, read_manifest, read_plan
from prefect_assay.archive.store import Store, join_key
from prefect_assay.archive.verify import Finding
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError, NewerFormat
from prefect_assay.orders.ledger.archive_identity import Identity
from prefect_assay.orders.ledger.campaign_log import CampaignLog, list_logs, list_open
from prefect_assay.orders.ledger.log import last_numbers
from prefect_assay.orders.ledger.order_ledger import ARCHIVE_NAME, Ledgers
from prefect_assay.orders.ledger.state import OrderState

Orders = dict[str, set[str]]  # experiments by order key, surplus ones included


def check_orders(store: Store, prefix: str = "") -> Iterator[Finding]:
    """The discrepancies of a whole archive; `verify` checks its versions."""
    campaigns: dict[str, Orders] = {}
    identity = join_key(prefix, LEDGERS_FOLDER, ARCHIVE_NAME)
    owners = Identity(store, join_key(prefix, LEDGERS_FOLDER))
    yield from _report_unreadable(join_key(prefix, LEDGERS_FOLDER, IDENTITY_FOLDER), owners.read)
    every = Ledgers.list_all(store, prefix)
    if every and store.find(identity) is None:
        yield Finding(kind="missing", key=identity, detail="the archive's id, which its logs of orders name")
        return  # reading them would make another id
    for ledgers in every:
        yield from _report_unreadable(join_key(ledgers.folder, "BUDGET"), ledgers.budget.read)
        last = last_numbers(store, ledgers.folder)
        for ledger in ledgers.list_orders():
            folder = join_key(ledgers.folder, ledger.campaign_id, ledger.order_key)
            findings = list(_report_unreadable(folder, ledger.read))
            yield from findings or _lost_records(folder, ledger.state.count, last.get(folder, 0))
            known = campaigns.setdefault(ledger.campaign_id, {}).setdefault(ledger.order_key, set())
            known.update(_list_experiments(ledger.state))
    archive_id = every[0].archive_id if every else None
    for campaign, codes in sorted(_list_archived(store, prefix).items()):
        folder = join_key(prefix, campaign)
        try:
            yield from _compare_orders(store, folder, codes, campaigns.get(campaign, {}), archive_id)
        except ArchiveUnavailable:
            raise
        except NewerFormat as error:
            yield Finding.describe_unreadable(folder, error)
        except (ArchiveError, ValueError, csv.Error) as error:
            yield Finding(kind="unreadable", key=folder, detail=f"its plan or table: {error}")


def check_campaigns(store: Store, prefix: str = "") -> Iterator[Finding]:
    """The logs of campaigns and loops that are damaged; and the index of open ones, which is put right from the others."""
    listed = {log.index_key: log for log in list_open(store, prefix)}
    for log, last in list_logs(store, prefix):
        entry = listed.pop(log.index_key, None)
        findings = list(_report_unreadable(log.key, log.read))
        findings += [] if findings else _lost_records(log.key, log.state.count, last)
        yield from findings or _correct_index(log, is_listed=entry is not None)
    for log in listed.values():  # entries without a log: a start was killed before its record
        yield from list(_report_unreadable(log.key, log.read)) or _correct_index(log, is_listed=True)


def _correct_index(log: CampaignLog, *, is_listed: bool) -> Iterator[Finding]:
    what = f"{log.what} {log.name}"
    try:
        if log.state.needs_sweep and not is_listed and log.open_index():
            detail = f"{what} is open and was not in the index, so no sweep looked after it: it is in the index again"
            yield Finding(kind="repaired", key=log.index_key, detail=detail)
        if not log.state.needs_sweep and is_listed and log.close_index():
            detail = f"{what} {'has ended' if log.state.count else 'was never started'}: it is no longer in the index"
            yield Finding(kind="repaired", key=log.index_key, detail=detail)
    except ArchiveUnavailable:
        raise
    except ArchiveError as error:
        detail = f"the index of open campaigns is not right, and could not be corrected: {error.message}"
        yield Finding(kind="incomplete", key=log.index_key, detail=detail)


def _lost_records(folder: str, count: int, last: int) -> list[Finding]:
    """What a reading does not notice: two or more records in a row are gone, and later ones are there."""
    if last <= count:
        return []
    detail = f"records {count + 1} and {count + 2} are gone, and record {last} is there"
    return [Finding(kind="missing", key=folder, detail=detail)]


def _report_unreadable(key: str, read: Callable[[], object]) -> Iterator[Finding]:
    try:
        read()
    except ArchiveUnavailable:
        raise
    except (ArchiveError, ConfigurationError) as error:
        yield Finding.describe_unreadable(key, error)


def _list_experiments(state: OrderState) -> set[str]:
    return {*state.surplus, *([state.ordered.experiment_id] if state.ordered else [])}


def _list_archived(store: Store, prefix: str) -> dict[str, set[str]]:
    """The experiment codes with versions, by campaign."""
    codes: dict[str, set[str]] = {}
    for key in store.keys(prefix):
        campaign, code, version, *rest = [*key.removeprefix(f"{prefix}/").split("/"), "", ""]
        if any(rest) and campaign != LEDGERS_FOLDER and version_of(version) is not None:
            codes.setdefault(campaign, set()).add(code)
    return codes


def _compare_orders(
    store: Store, folder: str, codes: set[str], orders: Orders, archive_id: str | None
) -> Iterator[Finding]:
    ids = {code: _experiment_id(store, join_key(folder, code)) for code in sorted(codes - CAMPAIGN_CODES)}
    table = _read_newest(store, join_key(folder, TABLE_CODE), TABLE_PATH)
    if table is not None:
        header, *lines = csv_lines(table) or [[]]
        rows = (dict(zip(header, cells, strict=False)) for cells in lines)
        for code in sorted({row.get("experiment_code", "") for row in rows} - ids.keys() - {""}):
            detail = "the campaign's table has rows of it, and it is not archived"
            yield Finding(kind="missing", key=join_key(folder, code), detail=detail)
    version = chosen_version(store, join_key(folder, PLAN_CODE))
    if version is None:
        return
    plan = read_plan(version)
    if archive_id and plan.archive_id not in {None, archive_id}:
        detail = "its plan was made in another archive"
        yield Finding(kind="misplaced", key=join_key(folder, PLAN_CODE), detail=detail)
    archived = set(ids.values())
    done = sum(1 for key in plan.order_keys if orders.get(key, set()) & archived)
    if done < len(plan.order_keys):
        detail = (
            f"{done} of {len(plan.order_keys)} planned experiments are archived by the log of their orders"
        )
        yield Finding(kind="incomplete", key=folder, detail=detail)
    if all(orders.get(key) for key in plan.order_keys):
        ordered = set().union(*orders.values())
        for code, experiment_id in ids.items():
            if experiment_id is not None and experiment_id not in ordered:
                detail = f"experiment {experiment_id} belongs to no order of this campaign"
                yield Finding(kind="extra", key=join_key(folder, code), detail=detail)


def _experiment_id(store: Store, folder: str) -> str | None:
    newest = latest_version(store, folder)
    return None if newest is None else read_manifest(store, version_folder(folder, newest))[0].experiment_id


def _read_newest(store: Store, folder: str, path: str) -> bytes | None:
    newest = latest_version(store, folder)
    return None if newest is None else store.find(join_key(version_folder(folder, newest), path))
