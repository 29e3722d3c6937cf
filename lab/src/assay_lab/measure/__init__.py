"""Measures an experiment: from a landscape, real data, or else a stated model (lab/docs/lab-measurements.md).

Everything is a function of the request: no clock, no store, no network.
"""

from assay_lab.measure.bundled import CATALOG
from assay_lab.measure.landscape import Landscape, LandscapeRules, consult_landscape
from assay_lab.measure.landscape_table import open_landscape
from assay_lab.measure.release import build_package, measure_records
from assay_lab.measure.request import AssayRequest

__all__ = [
    "CATALOG",
    "AssayRequest",
    "Landscape",
    "LandscapeRules",
    "build_package",
    "consult_landscape",
    "measure_records",
    "open_landscape",
]
