"""Measures an experiment: from a landscape, real data, or else a stated model (docs/lab-measurements.md).

Everything is a function of the request: no clock, no store, no network.
"""

from prefect_assay.lab.measure.assays import build_package, measure_records
from prefect_assay.lab.measure.bundled import CATALOG
from prefect_assay.lab.measure.landscape import Landscape, LandscapeRules, consulted
from prefect_assay.lab.measure.landscape_table import open_landscape
from prefect_assay.lab.measure.request import AssayRequest

__all__ = [
    "CATALOG",
    "AssayRequest",
    "Landscape",
    "LandscapeRules",
    "build_package",
    "consulted",
    "measure_records",
    "open_landscape",
]
