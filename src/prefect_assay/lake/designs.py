"""Every measured design of an archive with what its designer said, what was decided on it, and what came of it.

The newest results, the plan's columns, the report's verdict and price, and a loop's decision are joined here, when they are
read, so that no file changes when a result comes later. A decision is joined by campaign and residues.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pydantic import ValidationError

from prefect_assay.archive import Store, latest
from prefect_assay.archive.layout import PLAN_CODE, PLAN_PATH, REPORT_CODE, experiment_folder, lake_folder
from prefect_assay.archive.read import chosen_version
from prefect_assay.errors import ArchiveError
from prefect_assay.lake.candidates import Decision, chosen, sequence_digest
from prefect_assay.lake.query import Query, query
from prefect_assay.models.spec import Plan
from prefect_assay.results import COLUMNS, DesignSummary, Outcome, ResultRow, summarize
from prefect_assay.results.formats import csv_lines
from prefect_assay.results.tables import guarded

_SUMMARY: Final = "summary.csv"


class Unanswered(NamedTuple):
    """A candidate that was chosen, no control, and has no row yet: pending, if its order was placed."""

    campaign_id: str
    order_key: str | None  # by the campaign's plan
    design: DesignSummary


class MeasuredDesigns(NamedTuple):
    """Designs with a row of results, open ones included, and a line for what could not be read."""

    designs: tuple[DesignSummary, ...]
    unanswered: tuple[Unanswered, ...] = ()
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
    for campaign_id, (rows, targets) in _rows(store, prefix, campaigns).items():
        try:
            plan = _plan(store, prefix, campaign_id)
            verdicts, prices = _reported(store, prefix, campaign_id)
        except (ArchiveError, ValidationError, ValueError) as error:
            notes.append(
                f"campaign {campaign_id}: without its designers' columns and prices: {_cause(error)}"
            )
            plan, verdicts, prices = None, {}, {}
        plans[campaign_id] = plan
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
                plans[campaign_id] = _noted_plan(store, prefix, campaign_id, notes)
            keys = _order_keys(plans[campaign_id])
            unanswered += (
                Unanswered(campaign_id, keys.get(name), _pending(name, decision))
                for name, decision in absent.items()
            )
    return MeasuredDesigns(tuple(found), tuple(unanswered), tuple(notes))


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


def _plan(store: Store, prefix: str, campaign_id: str) -> Plan | None:
    version = chosen_version(store, experiment_folder(prefix, campaign_id, PLAN_CODE))
    return Plan.model_validate_json(version.read(PLAN_PATH)) if version else None


def _noted_plan(store: Store, prefix: str, campaign_id: str, notes: list[str]) -> Plan | None:
    """The plan; where it cannot be read, a note: it would say which open designs were ordered."""
    try:
        return _plan(store, prefix, campaign_id)
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
