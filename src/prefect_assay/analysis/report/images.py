"""The figures that a Prefect artifact shows inline: few, and below a megabyte together, the best designs first."""

from collections.abc import Iterable
from typing import Final

from prefect_assay.analysis.kinetics.analysis import PackageAnalysis
from prefect_assay.analysis.report.contents import collect_contents
from prefect_assay.analysis.report.documents import read_earlier, summarize_contents
from prefect_assay.analysis.report.figures import (
    CampaignFigures,
    Extras,
    Ranking,
    campaign_figures,
    fitted_packages,
)
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.summary import summarize
from prefect_assay.archive.store import Store
from prefect_assay.service.models.base import Model

IMAGES_BYTES_MAX: Final = (
    500_000  # of SVG: an address makes half as much more of it, and proxies often stop at 1 MB
)
DESIGNS_MAX: Final = 4


class Image(Model):
    """A figure as SVG, and its words for those who cannot see it."""

    alt: str
    svg: str


def campaign_images(figures: CampaignFigures) -> tuple[Image, ...]:
    """The overview and the ranking."""
    named = (("overview of all designs", figures.overview), ("ranked affinities", figures.ranked))
    return take_fitting(Image(alt=alt, svg=svg) for alt, svg in named if svg)


def experiment_images(
    store: Store, prefix: str, campaign_id: str, experiment_code: str
) -> tuple[tuple[DesignSummary, ...], tuple[Image, ...], tuple[str, ...]]:
    """The designs of one archived experiment; overview, ranking and the curves of the best; and notes on what is missing.

    Raises:
        ArchiveError: the experiment is not in the archive, or a file of it is unreadable or has changed.
    """
    contents = collect_contents(store, prefix, campaign_id)
    experiment = next(
        (reported for reported in contents.experiments if reported.code == experiment_code), None
    )
    if experiment is None:
        return (), (), ()
    extras = Extras()
    ranked = [(design.experiment_code, design.name) for design in summarize(experiment.rows)]
    places = Ranking(
        places={design: place for place, design in enumerate(ranked)},
        skipped=frozenset(ranked[DESIGNS_MAX:]),
        dose_responses=0,
    )
    analyses: dict[tuple[str, str], PackageAnalysis] = {}
    curves: list[Image] = []
    for code, result_id, analysis, drawn in fitted_packages(store, prefix, [experiment], places, extras):
        analyses[code, result_id] = analysis
        by_place = sorted(drawn, key=lambda curve: places.place(curve.experiment_code, curve.fit.name))
        curves += [Image(alt=f"curves of {curve.fit.name}", svg=curve.svg) for curve in by_place if curve.svg]
    earlier, notes = read_earlier(store, prefix, contents)
    table = summarize_contents(contents, analyses, earlier)
    designs = tuple(design for design in table if design.experiment_code == experiment.code)
    figures = campaign_figures(designs, experiment.rows)
    return designs, take_fitting((*campaign_images(figures), *curves)), (*notes, *extras.notes)


def take_fitting(images: Iterable[Image]) -> tuple[Image, ...]:
    """The first images that fit together."""
    kept, size = [], 0
    for image in images:
        size += len(image.svg.encode())
        if size > IMAGES_BYTES_MAX:
            break
        kept.append(image)
    return tuple(kept)
