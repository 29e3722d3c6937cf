"""What the laboratory measures: real data where the design is known, a stated model where it is not.

An experiment in plain values gives result records in neutral words, and a data package. Everything is a function of
the request: no clock, no store, no network (docs/lab-measurements.md).
"""

from prefect_assay.lab.measure.assays import Measurement, build_package, measure, measure_records
from prefect_assay.lab.measure.bundled import CATALOG
from prefect_assay.lab.measure.request import AssayRequest

__all__ = ["CATALOG", "AssayRequest", "Measurement", "build_package", "measure", "measure_records"]
