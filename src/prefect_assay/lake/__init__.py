"""The lake: the results of all campaigns of an archive as Parquet files, made from its versions and never changed.

Knows neither Prefect nor orders. Everything here needs the extra `parquet`.
"""

from prefect_assay.lake.parts import Rebuilt, add, rebuild
from prefect_assay.lake.query import Query, query

__all__ = ["Query", "Rebuilt", "add", "query", "rebuild"]
