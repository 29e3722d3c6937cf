"""`prefect-assay kinetics`: fits of raw curves beside the service's values."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prefect_assay.errors import InputError
from prefect_assay.results.formats import molar, rate
from prefect_assay.results.kinetics.analysis import (
    Estimate,
    PackageAnalysis,
    ReplicateKinetics,
    ReplicateMelting,
    Verdict,
)
from prefect_assay.results.kinetics.package import analyze

_EMPTY = "–"  # noqa: RUF001  a dash: a missing value is not a number
_STYLES = {
    Verdict.AGREES: "green",
    Verdict.REVIEW: "yellow",
    Verdict.NOT_1_TO_1: "magenta",
    Verdict.NO_BINDING: "cyan",
}


def show_kinetics(packages: Sequence[Path], *, as_json: bool) -> None:
    """Analyse data packages and print tables, or one JSON object per package in a list."""
    console = Console()
    results = []
    for path in packages:
        if not path.is_file():
            raise InputError(f"there is no data package {path}; name the zip of a result")
        analysis = analyze(path).analysis
        results.append({"package": str(path), **analysis.model_dump(mode="json")})
        if not as_json:
            _show(console, path, analysis)
    if as_json:
        print(json.dumps(results, indent=2))


def _show(console: Console, path: Path, analysis: PackageAnalysis) -> None:
    if analysis.kinetics:
        console.print(_table(f"{path.name}: kinetics", _KINETICS, map(_kinetics_rows, analysis.kinetics)))
    if analysis.melting:
        console.print(_table(f"{path.name}: melting", _MELTING, map(_melting_rows, analysis.melting)))
    if not analysis.kinetics and not analysis.melting:
        console.print(f"{path.name}: no raw binding or melting curves", markup=False, highlight=False)
    for note in analysis.notes:
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False)


_Row = tuple[str, ...]
_KINETICS = ("Design", "Replicate", "Verdict", "Fit", "k_on /M/s", "k_off /s", "K_D", "Residuals")
_MELTING = ("Design", "Replicate", "Verdict", "Tm °C", "Derivative", "Service")


def _table(
    title: str, columns: _Row, groups: Iterable[tuple[Verdict, Iterable[_Row], Sequence[str]]]
) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column)
    for verdict, rows, reasons in groups:
        for row in rows:
            cells = [Text(cell) for cell in row]
            cells[2].stylize(_STYLES[verdict])
            table.add_row(*cells)
        if reasons:
            table.add_row(*[""] * 3, Text("; ".join(reasons), style="dim"))
        table.add_section()
    return table


def _kinetics_rows(item: ReplicateKinetics) -> tuple[Verdict, Iterator[_Row], tuple[str, ...]]:
    def rows() -> Iterator[_Row]:
        head = (item.name, _text(item.replicate), item.verdict.value)
        for fit in item.fits:
            values = (_rate(fit.kon_per_M_s), _rate(fit.koff_per_s), _molar(fit.kd_M))
            yield (*head, fit.model, *values, f"{fit.relative_mae:.1%}")
            head = ("", "", "")
        service = item.service
        values = (rate(service.kon_per_M_s, ""), rate(service.koff_per_s, ""), molar(service.kd_M))
        residuals = _EMPTY if service.relative_mae is None else f"{service.relative_mae:.1%}"
        yield (*head, "service", *values, residuals)

    return item.verdict, rows(), item.reasons


def _melting_rows(item: ReplicateMelting) -> tuple[Verdict, list[_Row], tuple[str, ...]]:
    fitted = _EMPTY if item.tm_C is None else _with_ends(item.tm_C, "{:.2f}".format)
    values = (fitted, _celsius(item.derivative_tm_C), _celsius(item.service.tm_C))
    return item.verdict, [(item.name, _text(item.replicate), item.verdict.value, *values)], item.reasons


def _text(value: int | None) -> str:
    return _EMPTY if value is None else str(value)


def _celsius(value: float | None) -> str:
    return _EMPTY if value is None else f"{value:.2f}"


def _rate(estimate: Estimate) -> str:
    return _with_ends(estimate, "{:.2e}".format)


def _molar(estimate: Estimate) -> str:
    return _with_ends(estimate, molar)


def _with_ends(estimate: Estimate, text_of: Callable[[float], str]) -> str:
    """The value and its interval; an open end is an ellipsis."""
    low, high = (None if end is None else text_of(end) for end in (estimate.low, estimate.high))
    return f"{text_of(estimate.value)} ({low or '…'} to {high or '…'})"
