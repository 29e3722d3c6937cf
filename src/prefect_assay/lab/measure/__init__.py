"""What the laboratory measures: real data where the design is known, else a stated model (docs/lab-measurements.md).

Everything is a function of the request: no clock, no store, no network.
"""

from prefect_assay.lab.measure.assays import build_package, measure_records
from prefect_assay.lab.measure.bundled import CATALOG
from prefect_assay.lab.measure.request import AssayRequest

__all__ = ["CATALOG", "AssayRequest", "build_package", "measure_records"]
