"""The summary table of a campaign, one row per design: as its report has it, or from rows that are newer than the report.

`prefect-assay results`, comparisons, histories and loops read their designs here, so that all have the numbers of the report. Knows
no log: whether a service is simulated is given where there is no report yet.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from prefect_assay.analysis.results import DesignSummary, ResultRow, summarize
from prefect_assay.analysis.results.design import get_sort_key
from prefect_assay.analysis.results.row import HAS_RESULT, read_row
from prefect_assay.analysis.results.tables import read_summary_json
from prefect_assay.analysis.tables.files import SUMMARY_PATH, Source
from prefect_assay.analysis.tables.rows import list_outdated_notes, list_registered_versions, read_results
from prefect_assay.archive import ArchivedVersion, Store, read_latest
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.layout import REPORT_CODE
from prefect_assay.archive.plans import find_plan
from prefect_assay.errors import ArchiveError, ArchiveUnavailable
from prefect_assay.service.assays import FURTHER_QUANTITIES

# What the rows of a design say. While it is what the report has, the report is about these rows.
_OF_ROWS: Final = (
    *(
        "result_type",
        "control",
        "reported_kd_M",
        "reported_qualifier",
        "reported_tm_C",
        "kon_per_M_s",
        "koff_per_s",
    ),
    *("concentration_nM", "binding", "binding_strength", "expression", "replicates", "replicates_reported"),
    *(kind.column for kind in FURTHER_QUANTITIES),
)


class SummaryTable(NamedTuple):
    """The designs of a campaign, best first, and a line for what could not be read."""

    designs: tuple[DesignSummary, ...]
    notes: tuple[str, ...] = ()


class MeasuredRows(NamedTuple):
    """The newest rows of a campaign, replicates among them, the target's name by experiment code, and their versions."""

    rows: list[ResultRow]
    targets: dict[str, str | None]
    sources: list[Source]


def read_summary_table(
    store: Store,
    prefix: str,
    campaign_id: str,
    rows: Sequence[ResultRow],
    *,
    targets: Mapping[str, str | None] | None = None,
    plan: Plan | None = None,
    simulated: bool = False,
) -> SummaryTable:
    """The designs that rows are about, with values, intervals and verdicts of the newest report.

    A design whose results are newer than the report has the values of its rows, without a verdict; ranks are not compared then.
    `simulated` says of a campaign without a report whether a local lab has answered.

    Raises:
        ArchiveUnavailable: the archive cannot be read now.
    """
    reported, notes = _read_report(store, prefix, campaign_id)
    made = summarize(
        rows,
        targets=targets or {},
        prices={
            code: summary.price_cents
            for (code, _), summary in reported.items()
            if summary.price_cents is not None
        },
        attributes=plan.attributes if plan else {},
        campaign_id=campaign_id,
        simulated=simulated or any(summary.simulated for summary in reported.values()),
    )
    designs = [_fill_reported(design, reported.get((design.experiment_code, design.name))) for design in made]
    if reported and any(before is after for before, after in zip(made, designs, strict=True)):
        designs = [design.model_copy(update={"group": None}) for design in designs]
    return SummaryTable(tuple(sorted(designs, key=get_sort_key)), notes)


def read_designs(
    store: Store,
    prefix: str,
    campaigns: Iterable[str] | None = None,
    *,
    is_simulated: Callable[[str], bool] = lambda _: False,
) -> SummaryTable:
    """The summary tables of all campaigns, or of some, as one: best first, groups of ranks within one campaign only.

    `is_simulated` says of a campaign without a report whether a local lab has answered.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: a file of the tables is damaged, or the archive cannot be read.
    """
    designs: list[DesignSummary] = []
    notes: list[str] = []
    measured = read_rows(store, prefix, campaigns)
    for campaign_id, (rows, targets, _) in measured.items():
        plan = None
        try:
            plan = find_plan(store, prefix, campaign_id)
        except ArchiveUnavailable:
            raise
        except ArchiveError as error:
            notes.append(f"campaign {campaign_id}: without the designer's columns: {error.message}")
        made = read_summary_table(
            store, prefix, campaign_id, rows, targets=targets, plan=plan, simulated=is_simulated(campaign_id)
        )
        designs += made.designs
        notes += made.notes
    registered = list_registered_versions(store, prefix, campaigns)
    sources = (source for campaign in measured.values() for source in campaign.sources)
    notes += list_outdated_notes(store, prefix, registered, sources)
    if len(measured) > 1:
        designs = [design.model_copy(update={"group": None}) for design in designs]
    return SummaryTable(tuple(sorted(designs, key=get_sort_key)), tuple(notes))


def read_rows(store: Store, prefix: str, campaigns: Iterable[str] | None = None) -> dict[str, MeasuredRows]:
    """The newest rows of each campaign in the tables that has some, replicates among them.

    Raises:
        ConfigurationError: the extra `parquet` is not installed.
        ArchiveError: a file of the tables is damaged, or the archive cannot be read.
    """
    measured: defaultdict[str, MeasuredRows] = defaultdict(lambda: MeasuredRows([], {}, []))
    for campaign in [None] if campaigns is None else campaigns:
        for source, table in read_results(store, prefix, campaign).items():
            of_campaign = measured[source.campaign_id]
            of_campaign.sources.append(source)
            for row in table.to_pylist():
                if row["name"] is not None:
                    of_campaign.rows.append(read_row(row))
                    of_campaign.targets[row["experiment_code"]] = row["target"]
    return measured


def read_reported_designs(version: ArchivedVersion) -> tuple[DesignSummary, ...]:
    """The designs of an archived report, in its order.

    Raises:
        ArchiveError: the report cannot be read.
        ValueError: its table was written by another version.
    """
    if SUMMARY_PATH not in version.files:
        return ()
    return read_summary_json(version.read(SUMMARY_PATH))


def _read_report(
    store: Store, prefix: str, campaign_id: str
) -> tuple[dict[tuple[str, str], DesignSummary], tuple[str, ...]]:
    """The designs of the newest report by experiment and name; where it cannot be read, none and a note."""
    try:
        version = read_latest(store, prefix, campaign_id, REPORT_CODE)
        designs = read_reported_designs(version) if version else ()
    except ArchiveUnavailable:
        raise
    except (ArchiveError, ValueError) as error:
        cause = error.message if isinstance(error, ArchiveError) else "its table cannot be read"
        return {}, (f"campaign {campaign_id}: without verdicts and prices: {cause}",)
    return {(design.experiment_code, design.name): design for design in designs}, ()


def _fill_reported(design: DesignSummary, known: DesignSummary | None) -> DesignSummary:
    return known if known is not None and _is_about_rows(known, design) else design


def _is_about_rows(known: DesignSummary, design: DesignSummary) -> bool:
    """Whether the report is about the rows that a design is made of. Its K_D may be a limit that only the curves give."""
    is_limit_of_curves = known.verdict is not None and known.kd_M is not None and known.qualifier is not None
    is_same_kd = known.qualifier == design.qualifier and _is_close(known.kd_M, design.kd_M)
    return (
        _summarize_rows(known) == _summarize_rows(design)
        and _is_close(known.tm_C, design.tm_C)
        and (is_same_kd or is_limit_of_curves)
    )


def _is_close(value: float | None, other: float | None) -> bool:
    """Whether two means are of the same numbers: their last digits depend on the machine."""
    return value == other or (
        value is not None and other is not None and math.isclose(value, other, rel_tol=1e-9)
    )


def _summarize_rows(design: DesignSummary) -> tuple[Any, ...]:
    """What the rows say of a design. Fits may add a limit to a binding call, and so a value."""
    outcome = design.outcome in HAS_RESULT or design.outcome
    return (outcome, *(getattr(design, field) for field in _OF_ROWS))
