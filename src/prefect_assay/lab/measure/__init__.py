"""What the laboratory measures: real data where the design is known, a stated model where it is not.

`measure` answers one experiment with result records in neutral words and its data package. Everything is a
function of the request: no clock, no store, no network (docs/lab-measurements.md).
"""

from dataclasses import dataclass
from typing import Any

from prefect_assay.lab.measure.assays import files, records
from prefect_assay.lab.measure.package import pack
from prefect_assay.lab.measure.request import Design, Request, default_concentrations, target_key
from prefect_assay.lab.measure.targets import CATALOG

__all__ = ["CATALOG", "Measurement", "build_package", "measure", "measure_records"]


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

    Args:
        experiment_id: names the package's table, and nothing else depends on it.
        experiment_type: one of the seven types of contract 1.
        method: `bli` or `spr` for affinity and screening, else None.
        target: a catalog record, or `{name, target_catalog_id}`; None for assays without a target.
        sequences: `{name, aa_string, control, metadata}`, and `id` where known.
        n_replicates: 1 to 5; ignored by epitope binning.
        antigen_concentrations: nM; None for the contract's default.
        partial: a preliminary release: the first half of the sequences is measured, the rest in progress.

    Returns:
        Records whose units are K_D in M, k_on in 1/(M s), k_off in 1/s, Tm in degrees Celsius; and the package.
    """
    request = _request(
        experiment_id,
        experiment_type,
        method,
        target,
        sequences,
        n_replicates,
        antigen_concentrations,
        partial=partial,
    )
    return Measurement(records(request), pack(files(request)))


def measure_records(
    *,
    experiment_id: str,
    experiment_type: str,
    method: str | None,
    target: dict[str, Any] | None,
    sequences: list[dict[str, Any]],
    n_replicates: int,
    antigen_concentrations: list[float] | None,
    partial: bool,
) -> list[dict[str, Any]]:
    """The records of `measure` alone, in milliseconds: the package may wait until somebody downloads it."""
    return records(
        _request(
            experiment_id,
            experiment_type,
            method,
            target,
            sequences,
            n_replicates,
            antigen_concentrations,
            partial=partial,
        )
    )


def build_package(
    *,
    experiment_id: str,
    experiment_type: str,
    method: str | None,
    target: dict[str, Any] | None,
    sequences: list[dict[str, Any]],
    n_replicates: int,
    antigen_concentrations: list[float] | None,
    partial: bool,
) -> bytes:
    """The package of `measure` alone; the same request gives the same bytes at any later time."""
    return pack(
        files(
            _request(
                experiment_id,
                experiment_type,
                method,
                target,
                sequences,
                n_replicates,
                antigen_concentrations,
                partial=partial,
            )
        )
    )


def _request(
    experiment_id: str,
    experiment_type: str,
    method: str | None,
    target: dict[str, Any] | None,
    sequences: list[dict[str, Any]],
    n_replicates: int,
    antigen_concentrations: list[float] | None,
    *,
    partial: bool,
) -> Request:
    return Request(
        experiment_id=experiment_id,
        experiment_type=experiment_type,
        method=method,
        target_name=(target or {}).get("name"),
        target_key=target_key(_from_catalog(target)),
        designs=tuple(
            Design(
                name=str(sequence["name"]),
                residues=str(sequence["aa_string"]).upper(),
                control=bool(sequence.get("control")),
                metadata=sequence.get("metadata"),
                id=sequence.get("id"),
            )
            for sequence in sequences
        ),
        n_replicates=n_replicates,
        concentrations=tuple(
            float(value) for value in antigen_concentrations or default_concentrations(experiment_type)
        ),
        partial=partial,
    )


def _from_catalog(target: dict[str, Any] | None) -> dict[str, Any] | None:
    """A resolved target names its catalog id only: find the antigen behind it."""
    wanted = {(target or {}).get("id"), (target or {}).get("target_catalog_id")} - {None}
    return next((record for record in CATALOG if record["id"] in wanted), target)
