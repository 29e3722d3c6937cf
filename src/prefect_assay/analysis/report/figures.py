"""Fits and figures of a report, one data package in memory at a time. Without an extra the rest is made, and a note says so.

A sensorgram takes some 10 kB of the page. So at most `SENSORGRAMS_MAX` replicates are drawn, those of the best designs first. The fits of all replicates are kept.
"""

import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from prefect_assay.analysis import plots
from prefect_assay.analysis.kinetics.analysis import (
    PackageAnalysis,
    ReplicateKinetics,
    ReplicateMelting,
    Verdict,
)
from prefect_assay.analysis.report.answers import ReportedExperiment
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.row import Level, ResultRow
from prefect_assay.archive.layout import experiment_folder, version_folder
from prefect_assay.archive.read import ArchivedVersion
from prefect_assay.archive.store import Store
from prefect_assay.designs.scores import score_direction
from prefect_assay.errors import AssayError, ConfigurationError, shorten
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.vocabulary import Method
from prefect_assay.service.words import listed

if TYPE_CHECKING:
    from prefect_assay.analysis.kinetics.curves import AnalyzedPackage

logger = logging.getLogger(__name__)

SENSORGRAMS_MAX: Final = 1000
DOSE_RESPONSES_MAX: Final = 10  # designs, the best ones
PREDICTED_MAX: Final = 6
_NAMED: Final = 12
_DOSES_MIN: Final = 4  # three points carry no isotherm
_FITS: Final = "fitting the raw curves"

T = TypeVar("T")


class Extras:
    """Makes what needs an extra, and notes what is missing without it; the same thing is not tried twice."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._missing: dict[str, None] = {}

    def make(self, what: str, how: Callable[[], T]) -> T | None:
        """What `how` returns; None without its extra. `what` is for people."""
        if what in self._missing:
            return None
        try:
            return how()
        except (ConfigurationError, ImportError):
            self._missing[what] = None
            return None

    def note(self, line: str) -> None:
        """Add a line of its own."""
        self._found.append(line)

    @property
    def notes(self) -> tuple[str, ...]:
        """All lines; a single one for everything that the extra `report`, which includes `kinetics`, would add."""
        if not self._missing:
            return tuple(self._found)
        return (*self._found, ConfigurationError.missing_extra("report", ", ".join(self._missing)).message)


class CurveFigure(Model):
    """One replicate of one design: its fit, and its figure as SVG (None: not drawn)."""

    experiment_code: str
    result_id: str
    fit: ReplicateKinetics | ReplicateMelting
    svg: str | None
    dose_response: str | None = None

    @property
    def needs_review(self) -> bool:
        """Whether a person should look at the curve before the number is used."""
        return self.fit.verdict in {Verdict.REVIEW, Verdict.NOT_1_TO_1}


class CampaignFigures(Model):
    """Figures of the whole campaign as SVG; None or absent where there is nothing to draw."""

    overview: str | None = None
    ranked: str | None = None
    calls: str | None = None
    predicted: dict[str, str] = {}  # noqa: RUF012  pydantic copies it
    not_drawn: str = ""  # which scores, and why


class Ranking(Model):
    """Which designs are drawn, by experiment code and name: `places` from 0, and those beyond the bound.

    The first `dose_responses` designs also get a dose response.
    """

    places: dict[tuple[str, str], int]
    skipped: frozenset[tuple[str, str]]
    dose_responses: int = DOSE_RESPONSES_MAX

    def place(self, code: str, name: str) -> int:
        """The design's place; the last for a name that the results do not have."""
        return self.places.get((code, name), len(self.places))


def make_ranking(designs: Iterable[tuple[str, str]], rows: Iterable[ResultRow]) -> Ranking:
    """The designs in the order given, the best first; replicates are counted from the rows."""
    replicates = Counter((row.experiment_code, row.name) for row in rows if row.level is Level.REPLICATE)
    places: dict[tuple[str, str], int] = {}
    skipped = set()
    drawn = 0
    for design in designs:
        places.setdefault(design, len(places))
        drawn += max(replicates[design], 1)
        if drawn > SENSORGRAMS_MAX:
            skipped.add(design)
    return Ranking(places=places, skipped=frozenset(skipped))


def fitted_packages(
    store: Store, prefix: str, experiments: Iterable[ReportedExperiment], places: Ranking, extras: Extras
) -> Iterator[tuple[str, str, PackageAnalysis, tuple[CurveFigure, ...]]]:
    """Experiment code, result id, analysis and curves of each data package.

    Raises:
        ArchiveError: a package cannot be read, or has changed since it was archived.
    """
    for experiment in experiments:
        for result in experiment.results:
            if result.package is None:
                continue
            method = experiment.spec.method if experiment.spec else None
            with _open_package(store, prefix, experiment, result.package) as file:
                analyzed = extras.make(_FITS, partial(_analyze_package, file, method, result.id, extras))
            if analyzed is not None:
                curves = tuple(_draw_curves(analyzed, experiment.code, result.id, places))
                yield experiment.code, result.id, analyzed.analysis, curves


def _open_package(store: Store, prefix: str, experiment: ReportedExperiment, path: str) -> BinaryIO:
    """The package in a temporary file, compared with the manifest."""
    manifest = experiment.manifest
    folder = experiment_folder(prefix, manifest.campaign_id, manifest.experiment_code)
    version = ArchivedVersion(store, version_folder(folder, manifest.version), manifest)
    file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    try:
        for chunk in version.stream(path):
            file.write(chunk)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


def _analyze_package(
    file: BinaryIO, method: Method | None, result_id: str, extras: Extras
) -> "AnalyzedPackage | None":
    try:
        from prefect_assay.analysis.kinetics.package import analyze  # noqa: PLC0415  an optional extra
    except ImportError:
        raise ConfigurationError.missing_extra("kinetics", _FITS) from None
    try:
        return analyze(file, method=method)
    except ConfigurationError:
        raise
    except Exception as error:  # whatever is in the laboratory's package must not cost the report
        logger.warning("The curves of result %s cannot be read", result_id, exc_info=shorten(error))
        reason = error.message if isinstance(error, AssayError) else type(error).__name__
        extras.note(f"The curves of result {result_id} cannot be read: {reason}")
        return None


def _draw_curves(
    analyzed: "AnalyzedPackage", code: str, result_id: str, places: Ranking
) -> Iterator[CurveFigure]:
    for replicate in analyzed.replicates:
        kinetics = replicate.kinetics
        svg = dose = None
        if (code, kinetics.name) not in places.skipped:
            svg = plots.draw_sensorgrams(replicate)
        doses = sum(dose > 0 for dose in kinetics.concentrations_nM)
        is_best = places.place(code, kinetics.name) < places.dose_responses
        if svg and kinetics.fit and is_best and doses >= _DOSES_MIN:
            dose = plots.draw_dose_response(replicate)
        yield CurveFigure(
            experiment_code=code, result_id=result_id, fit=kinetics, svg=svg, dose_response=dose
        )
    for melt in analyzed.melts:
        is_drawn = (code, melt.melting.name) not in places.skipped
        svg = plots.draw_melting_curve(melt) if is_drawn else None
        yield CurveFigure(experiment_code=code, result_id=result_id, fit=melt.melting, svg=svg)


def campaign_figures(summaries: tuple[DesignSummary, ...], rows: tuple[ResultRow, ...]) -> CampaignFigures:
    """The figures of all designs; those without anything to show are left out."""
    if not summaries:
        return CampaignFigures()
    has_affinity = any(summary.kd_M is not None for summary in summaries)
    has_calls = any(summary.binding or summary.binding_strength for summary in summaries)
    scored = plots.find_score_columns(summaries) if plots.has_enough_measured(summaries) else ()
    known = [column for column in scored if score_direction(column) is not None]
    drawn = [column for column in known if plots.has_points(summaries, column)]
    return CampaignFigures(
        overview=plots.draw_overview(summaries),
        ranked=plots.draw_ranked_affinities(summaries, rows) if has_affinity else None,
        calls=plots.draw_calls(summaries) if has_calls else None,
        predicted={
            column: plots.draw_measured_against_predicted(summaries, column)
            for column in drawn[:PREDICTED_MAX]
        },
        not_drawn=_not_drawn(drawn[PREDICTED_MAX:], [column for column in scored if column not in known]),
    )


def _not_drawn(beyond: Sequence[str], unknown: Sequence[str]) -> str:
    """The columns of numbers without a figure, with the reason."""
    lines = []
    if beyond:
        lines.append(f"Not drawn, because {PREDICTED_MAX} are: {listed(beyond, _NAMED)}.")
    if unknown:
        lines.append(
            f"Not drawn, because the title does not say whether more is better: {listed(unknown, _NAMED)}."
        )
    return " ".join(lines)
