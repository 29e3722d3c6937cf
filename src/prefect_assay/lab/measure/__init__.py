"""What the laboratory measures: real data where the design is known, a stated model where it is not.

`measure` answers one experiment with result records in neutral words and its data package. Everything is a
function of the request: no clock, no store, no network (docs/lab-measurements.md).
"""

from dataclasses import dataclass
from typing import Any, Unpack

from prefect_assay.lab.measure.assays import package_of, records_of
from prefect_assay.lab.measure.request import Fields, prepare
from prefect_assay.lab.measure.targets import CATALOG

__all__ = ["CATALOG", "Fields", "Measurement", "build_package", "measure", "measure_records"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """Result records without id, experiment_id and created_at, and the zip data package."""

    result_records: list[dict[str, Any]]
    package: bytes


def measure(**fields: Unpack[Fields]) -> Measurement:
    """Measure one experiment.

    Args:
        **fields: the experiment, see `Fields`.

    Returns:
        Records whose units are K_D in M, k_on in 1/(M s), k_off in 1/s, Tm in degrees Celsius; and the package.
    """
    request = prepare(**fields)
    return Measurement(records_of(request), package_of(request))


def measure_records(**fields: Unpack[Fields]) -> list[dict[str, Any]]:
    """The records of `measure` alone, in milliseconds: the package may wait until somebody downloads it."""
    return records_of(prepare(**fields))


def build_package(**fields: Unpack[Fields]) -> bytes:
    """The package of `measure` alone; the same fields give the same bytes at any later time."""
    return package_of(prepare(**fields))
