"""Every measured design of an archive, with its designer's columns, the decision on it, and its results.

Joins, at reading, the summary tables of all campaigns, the plans' columns, and a loop's decision. So no
file changes when a result comes later. A decision is joined by campaign and residues.
"""

from collections.abc import Iterator
from typing import NamedTuple

from prefect_assay.analysis.results import DesignSummary, Outcome
from prefect_assay.analysis.tables.candidates import Decision, digest_sequence, read_decisions
from prefect_assay.analysis.tables.files import Source
from prefect_assay.analysis.tables.rows import list_outdated_notes, list_registered_versions
from prefect_assay.analysis.tables.summary import read_rows, read_summary_table
from prefect_assay.archive import Store
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.layout import PLAN_CODE, experiment_folder, safe_name, safe_prefix
from prefect_assay.archive.read import chosen_version, read_plan
from prefect_assay.archive.store import join_key
from prefect_assay.errors import ArchiveError, ArchiveUnavailable


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


def read_measured_designs(store: Store, prefix: str, loop_id: str | None = None) -> MeasuredDesigns:
    """The designs of all campaigns, or of a loop's; empty as long as none has results.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: a file of the tables is damaged, or the archive is not available.
    """
    decisions = read_decisions(store, prefix, loop_id)
    campaigns = None if loop_id is None else tuple(decisions)
    designs: list[DesignSummary] = []
    answered: set[tuple[str, str, str]] = set()
    notes: list[str] = []
    unread: dict[str, str] = {}
    plans: dict[str, Plan | None] = {}
    known = {
        campaign_id: {name for named in by_residues.values() for name in named}
        for campaign_id, by_residues in decisions.items()
    }
    sources: list[Source] = []
    for campaign_id, measured in read_rows(store, prefix, campaigns).items():
        sources += measured.sources
        folder = experiment_folder(prefix, campaign_id, PLAN_CODE)
        plan = plans[campaign_id] = _read_plan_with_notes(store, folder, campaign_id, unread)
        table = read_summary_table(
            store, prefix, campaign_id, measured.rows, targets=measured.targets, plan=plan
        )
        notes += table.notes
        known.setdefault(campaign_id, set()).update(row.name for row in measured.rows)
        residues = _list_residues(plan)
        for design in table.designs:
            aa_string = residues.get(design.name) or design.aa_string
            digest = digest_sequence(aa_string or "")
            decided = decisions.get(campaign_id, {}).get(digest, {})
            name = design.name if len(decided) != 1 else next(iter(decided))
            answered.add((campaign_id, digest, name))
            changes = {
                "aa_string": aa_string,
                "attributes": {**design.attributes, **(decided[name].attributes if name in decided else {})},
            }
            designs.append(design.model_copy(update=changes))
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
                plans[campaign_id] = _read_plan_with_notes(store, folder, campaign_id, unread)
            keys = _list_order_keys(plans[campaign_id])
            unanswered += (
                Unanswered(
                    campaign_id,
                    keys.get(name),
                    _list_pending(campaign_id, name, decision),
                    campaign_id in unread,
                )
                for name, decision in absent.items()
            )
    registered = list_registered_versions(store, prefix, campaigns)
    if loop_id is None:
        planned_in = {campaign for campaign, code in registered if code == PLAN_CODE}
        for campaign in planned_in - {safe_name(campaign_id) for campaign_id in plans}:
            folder = join_key(safe_prefix(prefix), campaign, PLAN_CODE)
            plans[campaign] = _read_plan_with_notes(store, folder, campaign, unread)
    planned = tuple(
        design
        for _, plan in sorted(plans.items())
        if plan
        for design in _list_open_designs(plan, known.get(plan.campaign_id, set()))
    )
    notes += list_outdated_notes(store, prefix, registered, sources)
    return MeasuredDesigns(
        tuple(designs), tuple(unanswered), planned, tuple(notes), tuple(sorted(unread.values()))
    )


def _list_open_designs(plan: Plan, known: set[str]) -> Iterator[Unanswered]:
    """The planned designs that are not known, controls left out."""
    for experiment in plan.experiments:
        for name, value in experiment.spec.sequences.items():
            if name not in known and not value.control:
                design = DesignSummary(
                    campaign_id=plan.campaign_id,
                    name=name,
                    experiment_code="",
                    target=plan.target_name,
                    outcome=Outcome.PENDING,
                    aa_string=value.aa_string,
                    attributes=plan.attributes.get(name, {}),
                )
                yield Unanswered(plan.campaign_id, experiment.order_key, design)


def _list_pending(campaign_id: str, name: str, decision: Decision) -> DesignSummary:
    return DesignSummary(
        campaign_id=campaign_id,
        name=name,
        experiment_code="",
        outcome=Outcome.PENDING,
        aa_string=decision.sequence,
        attributes=decision.attributes,
    )


def _read_plan_with_notes(store: Store, folder: str, campaign_id: str, unread: dict[str, str]) -> Plan | None:
    """The plan; where it cannot be read, a line: it would say which open designs were ordered."""
    try:
        version = chosen_version(store, folder)
        return read_plan(version) if version else None
    except ArchiveUnavailable:
        raise
    except ArchiveError as error:
        unread[campaign_id] = f"campaign {campaign_id}: its open designs are not known: {error.message}"
        return None


def _list_order_keys(plan: Plan | None) -> dict[str, str]:
    """The order of each planned design."""
    planned = plan.experiments if plan else ()
    return {name: experiment.order_key for experiment in planned for name in experiment.spec.sequences}


def _list_residues(plan: Plan | None) -> dict[str, str]:
    """What was ordered under each name."""
    return {name: value.aa_string for name, value in plan.sequences.items()} if plan else {}
