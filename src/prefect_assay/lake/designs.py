"""Every measured design of an archive with what its designer said, what was decided on it, and what came of it.

The newest results, the plan's columns, the report's verdict and price, and a loop's decision are joined here, when they are
read, so that no file changes when a result comes later. A decision is joined by campaign and residues.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from pydantic import ValidationError

from prefect_assay.archive import Store, latest
from prefect_assay.archive.layout import (
    BOOKS_FOLDER,
    PLAN_CODE,
    PLAN_PATH,
    REPORT_CODE,
    VERSIONS_FOLDER,
    experiment_folder,
    lake_folder,
    safe_name,
    safe_prefix,
)
from prefect_assay.archive.read import chosen_version
from prefect_assay.archive.store import join_key
from prefect_assay.errors import ArchiveError
from prefect_assay.lake.candidates import Decision, chosen, sequence_digest
from prefect_assay.lake.query import Query, query
from prefect_assay.models.spec import Plan
from prefect_assay.results import COLUMNS, DesignSummary, Outcome, ResultRow, summarize
from prefect_assay.results.formats import csv_lines
from prefect_assay.results.tables import guarded

_SUMMARY: Final = "summary.csv"


class Unanswered(NamedTuple):
    """A design that was chosen or planned, no control, and has no row yet: pending, if its order was placed."""

    campaign_id: str
    order_key: str | None  # by the campaign's plan
    design: DesignSummary


class MeasuredDesigns(NamedTuple):
    """Designs with a row of results, open ones included, and a line for what could not be read.

    `unanswered` were chosen by a loop, `planned` are in the plan of a campaign only.
    """

    designs: tuple[DesignSummary, ...]
    unanswered: tuple[Unanswered, ...] = ()
    planned: tuple[Unanswered, ...] = ()
    notes: tuple[str, ...] = ()


def measured_designs(store: Store, prefix: str, loop_id: str | None = None) -> MeasuredDesigns:
    """The designs of all campaigns, or of a loop's; empty as long as none has results.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: a file of the lake is damaged.
    """
    decisions = chosen(store, prefix, loop_id)
    campaigns = None if loop_id is None else tuple(decisions)
    found: list[DesignSummary] = []
    answered: set[tuple[str, str, str]] = set()
    notes: list[str] = []
    plans: dict[str, Plan | None] = {}
    known = {
        campaign_id: {name for named in by_residues.values() for name in named}
        for campaign_id, by_residues in decisions.items()
    }
    for campaign_id, (rows, targets) in _rows(store, prefix, campaigns).items():
        try:
            plan = _plan(store, experiment_folder(prefix, campaign_id, PLAN_CODE))
            verdicts, prices = _reported(store, prefix, campaign_id)
        except (ArchiveError, ValidationError, ValueError) as error:
            notes.append(
                f"campaign {campaign_id}: without its designers' columns and prices: {_cause(error)}"
            )
            plan, verdicts, prices = None, {}, {}
        plans[campaign_id] = plan
        known.setdefault(campaign_id, set()).update(row.name for row in rows)
        residues = _residues(plan)
        designs = summarize(rows, attributes=plan.attributes if plan else {}, targets=targets, prices=prices)
        for design in designs:
            aa_string = residues.get(design.name) or design.aa_string
            digest = sequence_digest(aa_string or "")
            decided = decisions.get(campaign_id, {}).get(digest, {})
            name = design.name if len(decided) != 1 else next(iter(decided))
            answered.add((campaign_id, digest, name))
            own = {
                "aa_string": aa_string,
                "verdict": verdicts.get((design.experiment_code, guarded(design.name))),
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
                plans[campaign_id] = _noted_plan(store, folder, campaign_id, notes)
            keys = _order_keys(plans[campaign_id])
            unanswered += (
                Unanswered(campaign_id, keys.get(name), _pending(name, decision))
                for name, decision in absent.items()
            )
    if loop_id is None:
        _read_other_plans(store, prefix, plans, notes)
    planned = tuple(
        design
        for plan in plans.values()
        if plan
        for design in _open(plan, known.get(plan.campaign_id, set()))
    )
    return MeasuredDesigns(tuple(found), tuple(unanswered), planned, tuple(notes))


def _read_other_plans(store: Store, prefix: str, plans: dict[str, Plan | None], notes: list[str]) -> None:
    """Add the plans of campaigns without results, which only the archive's register names."""
    root = join_key(safe_prefix(prefix), BOOKS_FOLDER, VERSIONS_FOLDER)
    places = (key.removeprefix(f"{root}/").split("/") for key in store.keys(root))
    campaigns = {campaign for campaign, code, *_ in places if code == PLAN_CODE}
    for campaign in sorted(campaigns - {safe_name(campaign_id) for campaign_id in plans}):
        folder = join_key(safe_prefix(prefix), campaign, PLAN_CODE)
        plans[campaign] = _noted_plan(store, folder, campaign, notes)


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
            rows.append(ResultRow.model_validate({column: row[column] for column in COLUMNS}))
            targets[row["experiment_code"]] = row["target"]
    return found


def _plan(store: Store, folder: str) -> Plan | None:
    version = chosen_version(store, folder)
    return Plan.model_validate_json(version.read(PLAN_PATH)) if version else None


def _noted_plan(store: Store, folder: str, campaign_id: str, notes: list[str]) -> Plan | None:
    """The plan; where it cannot be read, a note: it would say which open designs were ordered."""
    try:
        return _plan(store, folder)
    except (ArchiveError, ValidationError) as error:
        notes.append(f"campaign {campaign_id}: without its open designs, as pending: {_cause(error)}")
        return None


def _cause(error: Exception) -> str:
    return error.message if isinstance(error, ArchiveError) else "another version wrote its plan"


def _order_keys(plan: Plan | None) -> dict[str, str]:
    """The order of each planned design."""
    planned = plan.experiments if plan else ()
    return {name: each.order_key for each in planned for name in each.spec.sequences}


def _residues(plan: Plan | None) -> dict[str, str]:
    """What was ordered under each name."""
    return {name: value.aa_string for name, value in plan.sequences.items()} if plan else {}


def _reported(
    store: Store, prefix: str, campaign_id: str
) -> tuple[dict[tuple[str, str], str], dict[str, float]]:
    """From the newest report: verdicts by experiment and name as its table spells it, and the price by experiment."""
    version = latest(store, prefix, campaign_id, REPORT_CODE)
    if version is None or _SUMMARY not in version.files:
        return {}, {}
    header, *lines = csv_lines(version.read(_SUMMARY))
    table = [dict(zip(header, cells, strict=True)) for cells in lines]
    verdicts = {(row["experiment_code"], row["name"]): word for row in table if (word := row.get("verdict"))}
    prices = {row["experiment_code"]: float(cents) for row in table if (cents := row.get("price_cents"))}
    return verdicts, prices
