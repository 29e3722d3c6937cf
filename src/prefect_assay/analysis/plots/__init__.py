"""Figures as SVG (extra `report`): same input, same bytes. Knows neither the archive nor Prefect.

`terminal_ranking` needs no extra; the import of this package loads neither matplotlib nor NumPy.
"""

from prefect_assay.analysis.plots.affinities import ranked_affinities
from prefect_assay.analysis.plots.overview import calls, overview
from prefect_assay.analysis.plots.responses import dose_response, melting_curve
from prefect_assay.analysis.plots.scores import enough_measured, measured_against_predicted, score_columns
from prefect_assay.analysis.plots.sensorgrams import sensorgrams
from prefect_assay.analysis.plots.svg import as_markdown_image

__all__ = [
    "as_markdown_image",
    "calls",
    "dose_response",
    "enough_measured",
    "measured_against_predicted",
    "melting_curve",
    "overview",
    "ranked_affinities",
    "score_columns",
    "sensorgrams",
]
