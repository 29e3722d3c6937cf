"""The data package of the binding assays.

Layout (service shapes, Results): `<experiment>_summary.csv`, `raw_data/`, `fit_data/`, `aux/replicate_info.csv`.
Beside them lie `aux/curve_sources.csv`, which says of every curve whether it was measured or modelled, and the
licence of the measured data where some are included.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from prefect_assay.lab.measure.curves import Curve, Run, runs
from prefect_assay.lab.measure.draws import measured_of, replicates
from prefect_assay.lab.measure.known import data_folder
from prefect_assay.lab.measure.request import Request
from prefect_assay.lab.measure.tables import File, summary_file, table


def binding_files(request: Request) -> Iterator[File]:
    """Every file of an affinity or screening package."""
    yield summary_file(request, _SUMMARY, _summary_rows(request))
    info: list[Sequence[Any]] = []
    sources: list[Sequence[Any]] = []
    for run in runs(request):
        stem = f"{run.design.stem}_{run.replicate.number}"
        for curve in run.curves:
            path = f"raw_data/{stem}_{curve.concentration}.csv"
            yield path, curve_text(curve)
            step = round(curve.times[1] - curve.times[0], 3)
            sources.append(
                (
                    path,
                    run.design.name,
                    run.replicate.number,
                    curve.concentration,
                    curve.source,
                    step,
                    request.signal_unit,
                )
            )
        for curve in run.fit.curves if run.fit else ():
            yield f"fit_data/{stem}_{curve.concentration}.csv", curve_text(curve)
        info.append(_info_row(request, run))
    yield (
        "aux/replicate_info.csv",
        table(("name", "replicate", "method", "MAE", "rel_MAE", "rmax_estimate", "source"), info),
    )
    yield (
        "aux/curve_sources.csv",
        table(("file", "name", "replicate", "concentration_nm", "source", "step_s", "signal_unit"), sources),
    )
    if request.against_egfr and any(measured_of(request, design.residues) for design in request.designs):
        folder = data_folder() / "egfr_round1"
        yield "aux/LICENSE-egfr_round1.txt", (folder / "LICENSE").read_text(encoding="utf-8")
        yield "aux/README-egfr_round1.md", (folder / "README.md").read_text(encoding="utf-8")


_SUMMARY = (
    "name",
    "replicate",
    "expression",
    "binding",
    "kd",
    "kon",
    "koff",
    "sequence",
    "binding_strength",
)


def _summary_rows(request: Request) -> Iterator[Sequence[Any]]:
    kinetic = request.experiment_type == "affinity"
    for design in request.designs[: request.measured]:
        for row in replicates(request, design.residues):
            constants = (row.kd, row.kon, row.koff) if kinetic else (None, None, None)
            yield (
                design.name,
                row.number,
                row.expression,
                row.binding,
                *constants,
                design.residues,
                row.binding_strength,
            )


def _info_row(request: Request, run: Run) -> Sequence[Any]:
    fit = run.fit
    errors = (
        (round(fit.mae, 6), round(fit.relative_mae, 6), round(fit.rmax, 6)) if fit else (None, None, None)
    )
    return (
        run.design.name,
        run.replicate.number,
        request.method,
        *errors,
        "+".join(sorted({curve.source for curve in run.curves})),
    )


def curve_text(curve: Curve) -> str:
    """Columns t and y. One formatting call per curve: this is where a big package spends its time."""
    if curve.source == "measured":
        rows = zip(curve.times, curve.signal, strict=True)
        return "t,y\n" + "".join(f"{t!r},{y!r}\n" for t, y in rows)
    return _template(tuple(curve.times)) % tuple(curve.signal)


@cache
def _template(times: tuple[float, ...]) -> str:
    return "t,y\n" + "".join(f"{t:.1f},%.5f\n" for t in times)
