"""Figures as SVG, without a drawing library: same input, same bytes. Knows neither the archive nor Prefect.

Figures of curves take what the extra `kinetics` has fitted; the others need no extra, and the import of this package
loads no NumPy.
"""

from prefect_assay.analysis.plots.affinities import draw_ranked_affinities
from prefect_assay.analysis.plots.overview import draw_calls, draw_overview
from prefect_assay.analysis.plots.responses import draw_dose_response, draw_melting_curve
from prefect_assay.analysis.plots.scores import (
    draw_measured_against_predicted,
    find_score_columns,
    has_enough_measured,
    has_points,
)
from prefect_assay.analysis.plots.sensorgrams import draw_sensorgrams
from prefect_assay.analysis.plots.svg import make_markdown_image

__all__ = [
    "draw_calls",
    "draw_dose_response",
    "draw_measured_against_predicted",
    "draw_melting_curve",
    "draw_overview",
    "draw_ranked_affinities",
    "draw_sensorgrams",
    "find_score_columns",
    "has_enough_measured",
    "has_points",
    "make_markdown_image",
]
