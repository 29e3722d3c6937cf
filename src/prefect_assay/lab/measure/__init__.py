"""What the laboratory measures: real data where the design is known, a stated model where it is not.

`measure` answers one experiment with result records in neutral words and its data package. Everything is a
function of the request: no clock, no store, no network (docs/lab-measurements.md).
"""

from dataclasses import dataclass
from typing import Any

from prefect_assay.lab.measure.assays import build_package, measure_records
from prefect_assay.lab.measure.request import Request, prepare
from prefect_assay.lab.measure.targets import CATALOG

__all__ = ["CATALOG", "Measurement", "Request", "build_package", "measure", "measure_records", "prepare"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """Result records without id, experiment_id and created_at, and the zip data package."""

    result_records: list[dict[str, Any]]
    package: bytes


def measure(
    *,
    experiment_id: str,
    experiment_type: str,
    method: str | None,
    target: dict[str, Any] | None,
    sequences: list[dict[str, Any]],
    n_replicates: int,
    antigen_concentrations: list[float] | None,
    partial: bool,
) -> Measurement:
    """Measure one experiment.

    The records alone take milliseconds, the package up to a second: who wants them apart calls
    `measure_records(prepare(...))` and `build_package(prepare(...))`, which give the same.

    Args:
        experiment_id: names the package's table; nothing else depends on it.
        experiment_type: one of the seven types of contract 1.
        method: `bli` or `spr` for affinity and screening, else None.
        target: a catalog record, or `{name, target_catalog_id}`; None for assays without a target.
        sequences: `{name, aa_string, control, metadata}`, and `id` where known; validated by the caller.
        n_replicates: 1 to 5; epitope binning has none.
        antigen_concentrations: nM; None for the contract's default.
        partial: a preliminary release: the first half of the sequences is measured, the rest in progress.

    Returns:
        Records whose units are K_D in M, k_on in 1/(M s), k_off in 1/s, Tm in degrees Celsius; and the package.
    """
    request = prepare(
        experiment_id=experiment_id,
        experiment_type=experiment_type,
        method=method,
        target=target,
        sequences=sequences,
        n_replicates=n_replicates,
        antigen_concentrations=antigen_concentrations,
        partial=partial,
    )
    return Measurement(measure_records(request), build_package(request))
