"""The derived files of a campaign: the page, tables, fits and plots, made of its archive and archived next to it.

They are versions of `REPORT`, which is not an experiment. The same archive gives the same bytes in the same environment, so
an unchanged report writes nothing.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final

from prefect_assay.analysis.kinetics.analysis import PackageAnalysis, ReplicateKinetics
from prefect_assay.analysis.report.contents import CampaignContents, collect_contents
from prefect_assay.analysis.report.decision import summarize_decision
from prefect_assay.analysis.report.figures import (
    CampaignFigures,
    CurveFigure,
    Extras,
    campaign_figures,
    fitted_packages,
    make_ranking,
)
from prefect_assay.analysis.report.render import render_page
from prefect_assay.analysis.results import tables
from prefect_assay.analysis.results.answers import find_highest_concentration
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.row import ResultRow
from prefect_assay.analysis.results.summary import is_of_lab, pool_scatters, summarize
from prefect_assay.analysis.tables.files import SUMMARY_PATH
from prefect_assay.analysis.tables.rows import read_earlier_replicates
from prefect_assay.archive import ArchivedVersion, Document, archive_version, campaign_crate, read_latest
from prefect_assay.archive.archived import ArchiveRecord
from prefect_assay.archive.layout import REPORT_CODE, REPORT_PATH, safe_name
from prefect_assay.archive.store import Store, json_bytes
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.vocabulary import ResultsStatus

PLOT_FILES_MAX: Final = 100
_JSON: Final = "application/json"
_SVG: Final = "image/svg+xml"
_CSV: Final = "text/csv"


class MadeReport(Model):
    """All derived files. `page` is None without the extra `report`; `notes` are for the log, one line each."""

    contents: CampaignContents
    summaries: tuple[DesignSummary, ...]
    figures: CampaignFigures
    page: bytes | None
    reviews: tuple[str, ...]  # a design for each curve to look at
    decision: tuple[tuple[str, str], ...]  # titles and lines of the page's summary
    documents: tuple[Document, ...]
    notes: tuple[str, ...]


def make_report(store: Store, prefix: str, campaign_id: str) -> MadeReport:
    """Make everything again from the archive; writes nothing.

    Raises:
        ArchiveError: the archive has nothing of the campaign, or a file of it is unreadable or has changed.
    """
    contents = collect_contents(store, prefix, campaign_id)
    rows = contents.rows
    extras = Extras()
    places = make_ranking(((design.experiment_code, design.name) for design in summarize(rows)), rows)
    analyses: dict[tuple[str, str], PackageAnalysis] = {}
    curves: list[CurveFigure] = []
    for code, result_id, analysis, drawn in fitted_packages(
        store, prefix, contents.experiments, places, extras
    ):
        analyses[code, result_id] = analysis
        curves += drawn
    curves.sort(key=lambda curve: (places.place(curve.experiment_code, curve.fit.name), curve.fit.name))
    earlier, earlier_notes = read_earlier(store, prefix, contents)
    designs = summarize_contents(contents, analyses, earlier)
    figures = campaign_figures(designs, rows)
    analysis_notes = [note for _, analysis in sorted(analyses.items()) for note in analysis.notes]
    read = tuple(dict.fromkeys((*contents.notes, *earlier_notes, *analysis_notes)))
    shown = (*read, *extras.notes)
    decided = summarize_decision(contents, designs, pool_scatters(rows, earlier))
    page = extras.make(
        "the HTML report", lambda: render_page(contents, designs, figures, tuple(curves), shown, decided)
    )
    documents = [
        *_make_tables(designs),
        *_make_fits(analyses),
        *_make_plots(figures, curves),
        *([Document(path=REPORT_PATH, content_type="text/html; charset=utf-8", body=page)] if page else []),
    ]
    return MadeReport(
        contents=contents,
        summaries=designs,
        figures=figures,
        page=page,
        reviews=tuple(curve.fit.name for curve in curves if curve.needs_review),
        decision=decided.lines,
        documents=tuple(documents),
        notes=(*read, *extras.notes),
    )


def archive_report(store: Store, prefix: str, made: MadeReport, *, now: datetime) -> ArchiveRecord:
    """Archive the derived files, unless the newest version holds exactly these, with a description of the campaign."""
    campaign_id = made.contents.campaign_id
    partial_results = made.contents.preliminary or made.contents.missing
    return archive_version(
        store,
        prefix,
        campaign_id=campaign_id,
        experiment_id=campaign_id,
        experiment_code=REPORT_CODE,
        results_status=ResultsStatus.PARTIAL if partial_results else ResultsStatus.ALL,
        documents=made.documents,
        now=now,
        crate=partial(campaign_crate, sources=made.contents.manifests),
    )


def kept_report(store: Store, prefix: str, campaign_id: str) -> ArchivedVersion | None:
    """The newest archived report, or None."""
    return read_latest(store, prefix, campaign_id, REPORT_CODE)


def read_earlier(
    store: Store, prefix: str, contents: CampaignContents
) -> tuple[tuple[ResultRow, ...], tuple[str, ...]]:
    """The replicates of earlier campaigns, real or simulated like this one, and a note if they cannot be read.

    None without the extra `parquet`.
    """
    read = partial(read_earlier_replicates, simulated=any(map(is_of_lab, contents.rows)))
    try:
        return read(store, prefix, contents.campaign_id, contents.as_of), ()
    except ConfigurationError:
        return (), ()
    except ArchiveUnavailable:
        raise
    except ArchiveError as error:
        return (), (f"Intervals are from this campaign alone: {error.message}",)


def summarize_contents(
    contents: CampaignContents, analyses: dict[tuple[str, str], PackageAnalysis], earlier: Sequence[ResultRow]
) -> tuple[DesignSummary, ...]:
    """The summary table of a campaign, with fits by experiment code and result id."""
    name = contents.plan.target_name if contents.plan else None
    return summarize(
        contents.rows,
        analyses=analyses,
        targets={e.code: name or e.target for e in contents.experiments},
        prices={
            e.code: price for e in contents.experiments if (price := e.price_per_sequence_cents) is not None
        },
        attributes=contents.plan.attributes if contents.plan else {},
        earlier=earlier,
        campaign_id=contents.campaign_id,
        highest_molar={
            e.code: highest
            for e in contents.experiments
            if (highest := find_highest_concentration(e.spec)) is not None
        },
        simulated=bool(contents.terms and contents.terms.simulated),
    )


def _make_tables(designs: tuple[DesignSummary, ...]) -> Iterator[Document]:
    yield Document(path="summary.csv", content_type=_CSV, body=tables.write_summary_csv(designs))
    yield Document(path=SUMMARY_PATH, content_type=_JSON, body=tables.write_summary_json(designs))


def _make_fits(analyses: dict[tuple[str, str], PackageAnalysis]) -> Iterator[Document]:
    for (code, result_id), analysis in analyses.items():
        body = json_bytes(analysis.model_dump(mode="json"))
        yield Document(path=f"kinetics/{code.lower()}/{result_id}.json", content_type=_JSON, body=body)


def _make_plots(figures: CampaignFigures, curves: list[CurveFigure]) -> Iterator[Document]:
    """The campaign's figures, and the curves of the best designs; the page has all of them."""
    named = {"overview": figures.overview, "ranked": figures.ranked, "calls": figures.calls}
    for name, svg in [*named.items(), *((f"predicted-{c}", svg) for c, svg in figures.predicted.items())]:
        if svg:
            yield _make_plot(_make_segment(name), svg)
    drawn = ((curve, curve.svg) for curve in curves if curve.svg)
    for curve, svg in islice(drawn, PLOT_FILES_MAX):
        kind = "sensorgrams" if isinstance(curve.fit, ReplicateKinetics) else "melting"
        number = "" if curve.fit.replicate is None else f"-{curve.fit.replicate}"
        place = f"{kind}/{curve.experiment_code.lower()}/{curve.result_id}"
        yield _make_plot(f"{place}/{_make_segment(curve.fit.name)}{number}", svg)


def _make_segment(name: str) -> str:
    """One part of a path for any name, and another one for each name: `VHH/1` and `VHH_1` may both be there."""
    return safe_name(name) if "/" in name else name


def _make_plot(name: str, svg: str) -> Document:
    return Document(path=f"plots/{name}.svg", content_type=_SVG, body=svg.encode())
