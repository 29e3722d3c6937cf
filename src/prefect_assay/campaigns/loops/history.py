"""Reads from the archive what a loop has measured and ordered, for its designers and its selection."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prefect_assay.analysis.results import DesignSummary, Outcome, ResultRow
from prefect_assay.analysis.results.row import CampaignTable
from prefect_assay.analysis.tables.summary import read_summary_table
from prefect_assay.archive import read_latest
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.layout import TABLE_CODE
from prefect_assay.blocks import Archive
from prefect_assay.campaigns.loops.loop_log import Round
from prefect_assay.campaigns.loops.rules import best_value, has_measurement
from prefect_assay.service.assays import Objective
from prefect_assay.service.models.vocabulary import ResultsStatus
from prefect_assay.tasks.collate import kept_plan, read_campaign_table

# Whether the laboratory has an order, or may have it: by the campaign's id and the order key.
Placed = Callable[[str, str], bool]


def loop_history(archive: Archive, rounds: Sequence[Round], placed: Placed) -> tuple[DesignSummary, ...]:
    """One entry per design that the loop has measured or ordered, with the designer's columns and the column `round`.

    An ordered design without a row is `pending`, also once its run has given up on it or its round has failed: it is
    paid, or may be, and must not be bought again. What was refused, withdrawn or never sent has no entry.
    """
    designs: list[DesignSummary] = []
    for entry in rounds:
        plan = kept_plan(archive, entry.fixed.campaign_id)
        if plan is None:
            continue
        table = read_campaign_table(archive, entry.fixed.campaign_id)
        rows = table.rows if table else ()
        planned = plan.sequences
        names = {row.name for row in rows}
        attributes = {
            name: plan.attributes.get(name, {}) | {"round": str(entry.fixed.number)}
            for name in names | planned.keys()
        }
        measured = _read_designs(archive, plan, rows)
        for design in measured:
            # What was ordered: results may come without residues, or with those of the construct and its tag.
            ordered = planned.get(design.name)
            sequence_fields = {"aa_string": ordered.aa_string if ordered else design.aa_string}
            designs.append(
                design.model_copy(update={**sequence_fields, "attributes": attributes[design.name]})
            )
        designs += _list_pending(plan, names, attributes, placed)
    return tuple(designs)


def with_newest_tables(
    archive: Archive, rounds: Iterable[Round], objective: Objective | None
) -> tuple[Round, ...]:
    """The rounds with what their campaigns' newest tables say.

    A round of an overdue campaign ends with preliminary results and a problem; the log keeps that end. The released ones
    come later, and with all of them the problem is over.
    """
    return tuple(_update_from_newest_table(archive, entry, objective) for entry in rounds)


def _update_from_newest_table(archive: Archive, entry: Round, objective: Objective | None) -> Round:
    """The round with its summary read again, if its campaign has a newer table than the loop's log names."""
    if entry.ended is None:
        return entry
    campaign_id = entry.fixed.campaign_id
    newest = read_latest(archive.get_store(), archive.prefix, campaign_id, TABLE_CODE)
    if newest is None or entry.ended.table.startswith(f"{newest.location}/"):
        return entry
    table = read_campaign_table(archive, campaign_id)
    if table is None:
        return entry
    summary_fields = summary_of(archive, campaign_id, table, objective)
    if newest.manifest.results_status == ResultsStatus.ALL and _has_every_design(archive, campaign_id, table):
        summary_fields["problem"] = None
    return entry.model_copy(update={"ended": entry.ended.model_copy(update=summary_fields)})


def _has_every_design(archive: Archive, campaign_id: str, table: CampaignTable) -> bool:
    """A complete table may lack an experiment that came to nothing; the round's problem is about that one."""
    plan = kept_plan(archive, campaign_id)
    return plan is not None and plan.sequences.keys() <= {row.name for row in table.rows}


def summary_of(
    archive: Archive, campaign_id: str, table: CampaignTable, objective: Objective | None
) -> dict[str, Any]:
    """What the end of a round says of its campaign, with the numbers of its report."""
    designs = read_summary_table(archive.get_store(), archive.prefix, campaign_id, table.rows).designs
    return {
        "table": table.location,
        "rows": len(table.rows),
        "best": best_value(designs, objective),
        "best_kd_M": best_value(designs, Objective.AFFINITY),
        "measured": has_measurement(designs),
    }


def _read_designs(archive: Archive, plan: Plan, rows: Sequence[ResultRow]) -> tuple[DesignSummary, ...]:
    """The campaign's summary table, with the numbers of its report."""
    targets = {row.experiment_code: plan.target_name for row in rows}
    return read_summary_table(
        archive.get_store(), archive.prefix, plan.campaign_id, rows, targets=targets, plan=plan
    ).designs


def _list_pending(
    plan: Plan, names: set[str], attributes: Mapping[str, dict[str, str]], placed: Placed
) -> Iterator[DesignSummary]:
    """The designs without a row whose order was placed, by its log."""
    for experiment in plan.experiments:
        absent = {name: value for name, value in experiment.spec.sequences.items() if name not in names}
        if absent and placed(plan.campaign_id, experiment.order_key):
            for name, value in absent.items():
                yield DesignSummary(
                    campaign_id=plan.campaign_id,
                    name=name,
                    experiment_code="",
                    result_type=plan.assay.experiment_type.value,
                    target=plan.target_name,
                    control=value.control,
                    outcome=Outcome.PENDING,
                    aa_string=value.aa_string,
                    attributes=attributes[name],
                )
