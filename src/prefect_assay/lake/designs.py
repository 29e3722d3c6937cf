"""Every measured design of an archive, with its designer's columns, the decision on it, and its results.

Joins, at reading, the newest results, the plan's columns, the report's verdict and price, and a loop's decision. So no
file changes when a result comes later. A decision is joined by campaign and residues.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from prefect_assay.archive import Store, latest
from prefect_assay.archive.layout import (
    BOOKS_FOLDER,
    CAMPAIGN_CODES,
    MANIFEST_NAME,
    PLAN_CODE,
    REPORT_CODE,
    VERSIONS_FOLDER,
    experiment_folder,
    lake_folder,
    lake_part,
    safe_name,
    safe_prefix,
    version_folder,
    version_of,
)
from prefect_assay.archive.read import chosen_version, read_plan
from prefect_assay.archive.store import join_key
from prefect_assay.errors import ArchiveError, ArchiveUnavailable
from prefect_assay.lake.candidates import Decision, chosen, sequence_digest
from prefect_assay.lake.query import Query, query
from prefect_assay.models.spec import Plan
from prefect_assay.results import DesignSummary, Outcome, ResultRow, summarize
from prefect_assay.results.formats import csv_lines
from prefect_assay.results.row import read_row
from prefect_assay.results.tables import guarded

_SUMMARY: Final = "summary.csv"


class Unanswered(NamedTuple):
    """A design that was chosen or planned, no control, and has no row yet: pending, if its order was placed."""

    campaign_id: str
    order_key: str | None  # by the campaign's plan
    design: DesignSummary
    plan_unread: bool = False  # so that nothing names its order


class MeasuredDesigns(NamedTuple):
    """Designs with a row of results, open ones included, and a line for what could not be read.

    `unanswered` were chosen by a loop, `planned` are in the plan of a campaign only. Both lack open designs of the
    campaigns that `unread_plans` names, a line each.
    """

    designs: tuple[DesignSummary, ...]
    unanswered: tuple[Unanswered, ...] = ()
    planned: tuple[Unanswered, ...] = ()
    notes: tuple[str, ...] = ()
    unread_plans: tuple[str, ...] = ()


def measured_designs(store: Store, prefix: str, loop_id: str | None = None) -> MeasuredDesigns:
    """The designs of all campaigns, or of a loop's; empty as long as none has results.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: a file of the lake is damaged, or the archive is not available.
    """
    decisions = chosen(store, prefix, loop_id)
    campaigns = None if loop_id is None else tuple(decisions)
    found: list[DesignSummary] = []
    answered: set[tuple[str, str, str]] = set()
    notes: list[str] = []
    unread: dict[str, str] = {}
    plans: dict[str, Plan | None] = {}
    known = {
        campaign_id: {name for named in by_residues.values() for name in named}
        for campaign_id, by_residues in decisions.items()
    }
    for campaign_id, (rows, targets) in _rows(store, prefix, campaigns).items():
        folder = experiment_folder(prefix, campaign_id, PLAN_CODE)
        plan = plans[campaign_id] = _noted_plan(store, folder, campaign_id, unread)
        reported = _noted_report(store, prefix, campaign_id, notes)
        prices = {code: design.price_cents for (code, _), design in reported.items() if design.price_cents}
        known.setdefault(campaign_id, set()).update(row.name for row in rows)
        residues = _residues(plan)
        designs = summarize(rows, attributes=plan.attributes if plan else {}, targets=targets, prices=prices)
        for design in designs:
            aa_string = residues.get(design.name) or design.aa_string
            digest = sequence_digest(aa_string or "")
            decided = decisions.get(campaign_id, {}).get(digest, {})
            known_to = reported.get((design.experiment_code, guarded(design.name)))
            name = design.name if len(decided) != 1 else next(iter(decided))
            answered.add((campaign_id, digest, name))
            own = {
                "aa_string": aa_string,
                "verdict": known_to.verdict if known_to else None,
                "attributes": {**design.attributes, **(decided[name].attributes if name in decided else {})},
            }
            found.append(DesignSummary.model_validate(dict(design) | own))
    unanswered: list[Unanswered] = []
    for campaign_id, by_residues in decisions.items():
        absent = {
            name: decision
            for digest, named in by_residues.items()
            for name, decision in named.items()
            if not decision.control and (campaign_id, digest, name) not in answered
        }
        if absent:
            if campaign_id not in plans:
                folder = experiment_folder(prefix, campaign_id, PLAN_CODE)
                plans[campaign_id] = _noted_plan(store, folder, campaign_id, unread)
            keys = _order_keys(plans[campaign_id])
            unanswered += (
                Unanswered(campaign_id, keys.get(name), _pending(name, decision), campaign_id in unread)
                for name, decision in absent.items()
            )
    registered = _registered(store, prefix, campaigns)
    if loop_id is None:
        planned_in = {campaign for campaign, code in registered if code == PLAN_CODE}
        for campaign in planned_in - {safe_name(campaign_id) for campaign_id in plans}:
            folder = join_key(safe_prefix(prefix), campaign, PLAN_CODE)
            plans[campaign] = _noted_plan(store, folder, campaign, unread)
    planned = tuple(
        design
        for _, plan in sorted(plans.items())
        if plan
        for design in _open(plan, known.get(plan.campaign_id, set()))
    )
    notes += _not_in_the_lake(store, prefix, registered)
    return MeasuredDesigns(
        tuple(found), tuple(unanswered), planned, tuple(notes), tuple(sorted(unread.values()))
    )


def _registered(store: Store, prefix: str, campaigns: Iterable[str] | None) -> dict[tuple[str, str], int]:
    """The newest complete version in the folder of each campaign and code, by the archive's register."""
    root = join_key(safe_prefix(prefix), BOOKS_FOLDER, VERSIONS_FOLDER)
    wanted = None if campaigns is None else {safe_name(campaign_id) for campaign_id in campaigns}
    found: defaultdict[tuple[str, str], int] = defaultdict(int)
    for key in store.keys(root):
        campaign, code, name, *_ = [*key.removeprefix(f"{root}/").split("/"), "", ""]
        if wanted is None or campaign in wanted:
            number = version_of(name.removesuffix(".json")) or 0  # 0: the choice of a plan, or a user's file
            found[campaign, code] = max(found[campaign, code], number)
    return found


def _not_in_the_lake(store: Store, prefix: str, registered: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """A line per experiment whose newest results the lake lacks: its designs would count as pending, or not at all."""
    parts = {part[:3] for key in store.keys(lake_folder(prefix)) if (part := lake_part(key))}
    for (campaign, code), number in sorted(registered.items()):
        if number and code not in CAMPAIGN_CODES and (campaign, code, number) not in parts:
            place = version_folder(join_key(safe_prefix(prefix), campaign, code), number)
            if store.stat(join_key(place, MANIFEST_NAME)) is not None:  # else it was moved away
                yield f"campaign {campaign}: {code} has results that are not in the lake; run `prefect-assay archive lake`"


def _open(plan: Plan, known: set[str]) -> Iterator[Unanswered]:
    """The planned designs that are not known, controls left out."""
    for each in plan.experiments:
        for name, value in each.spec.sequences.items():
            if name not in known and not value.control:
                design = DesignSummary(
                    name=name,
                    experiment_code="",
                    target=plan.target_name,
                    outcome=Outcome.PENDING,
                    aa_string=value.aa_string,
                    attributes=plan.attributes.get(name, {}),
                )
                yield Unanswered(plan.campaign_id, each.order_key, design)


def _pending(name: str, decision: Decision) -> DesignSummary:
    return DesignSummary(
        name=name,
        experiment_code="",
        outcome=Outcome.PENDING,
        aa_string=decision.sequence,
        attributes=decision.attributes,
    )


def _rows(
    store: Store, prefix: str, campaigns: Iterable[str] | None
) -> Mapping[str, tuple[list[ResultRow], dict[str, str | None]]]:
    """The newest rows of each campaign, and the target's name by experiment."""
    found: defaultdict[str, tuple[list[ResultRow], dict[str, str | None]]] = defaultdict(lambda: ([], {}))
    for campaign in [None] if campaigns is None else campaigns:
        if not any(True for _ in store.keys(lake_folder(prefix, campaign))):
            continue
        for row in query(store, prefix, Query(campaign=campaign, replicates=True)).to_pylist():
            rows, targets = found[row["campaign_id"]]
            rows.append(read_row(row))
            targets[row["experiment_code"]] = row["target"]
    return found


def _noted_plan(store: Store, folder: str, campaign_id: str, unread: dict[str, str]) -> Plan | None:
    """The plan; where it cannot be read, a line: it would say which open designs were ordered."""
    try:
        version = chosen_version(store, folder)
        return read_plan(version) if version else None
    except ArchiveUnavailable:
        raise
    except ArchiveError as error:
        unread[campaign_id] = f"campaign {campaign_id}: its open designs are not known: {error.message}"
        return None


def _noted_report(
    store: Store, prefix: str, campaign_id: str, notes: list[str]
) -> dict[tuple[str, str], DesignSummary]:
    """What the report says of verdicts and prices; where it cannot be read, nothing and a note."""
    try:
        return reported_designs(store, prefix, campaign_id)
    except ArchiveUnavailable:
        raise
    except (ArchiveError, ValueError, KeyError, csv.Error) as error:
        cause = error.message if isinstance(error, ArchiveError) else "its table cannot be read"
        notes.append(f"campaign {campaign_id}: without verdicts and prices: {cause}")
        return {}


def _order_keys(plan: Plan | None) -> dict[str, str]:
    """The order of each planned design."""
    planned = plan.experiments if plan else ()
    return {name: each.order_key for each in planned for name in each.spec.sequences}


def _residues(plan: Plan | None) -> dict[str, str]:
    """What was ordered under each name."""
    return {name: value.aa_string for name, value in plan.sequences.items()} if plan else {}


def reported_designs(store: Store, prefix: str, campaign_id: str) -> dict[tuple[str, str], DesignSummary]:
    """The designs as a campaign's newest report has them, by experiment and name; names as its table spells them (`guarded`).

    Raises:
        ArchiveError: the report cannot be read.
        ValueError, csv.Error: its table is none of this version.
    """
    version = latest(store, prefix, campaign_id, REPORT_CODE)
    if version is None or _SUMMARY not in version.files:
        return {}
    header, *lines = csv_lines(version.read(_SUMMARY))
    found = {}
    for cells in lines:
        own: dict[str, Any] = {
            title: cell
            for title, cell in zip(header, cells, strict=True)
            if cell and title in DesignSummary.model_fields
        }
        own |= {title: own[title].split("; ") for title in ("reasons", "doubts") if title in own}
        design = DesignSummary.model_validate(own)
        found[design.experiment_code, design.name] = design
    return found
