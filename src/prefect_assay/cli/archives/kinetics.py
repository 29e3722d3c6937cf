"""`prefect-assay kinetics`: fits of raw curves next to the service's values."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prefect_assay.analysis.kinetics.analysis import (
    Estimate,
    PackageAnalysis,
    ReplicateKinetics,
    ReplicateMelting,
    ServiceValues,
    Verdict,
)
from prefect_assay.analysis.kinetics.package import analyze
from prefect_assay.analysis.results.formats import format_molar
from prefect_assay.cli.output import TerminalConsole, make_plain_console, print_json
from prefect_assay.errors import InputError

_EMPTY = "–"  # noqa: RUF001  a dash: a missing value is not a number
_STYLES = {
    Verdict.AGREES: "green",
    Verdict.REVIEW: "yellow",
    Verdict.NOT_1_TO_1: "magenta",
    Verdict.NO_BINDING: "cyan",
}


def show_kinetics(
    packages: Sequence[Path], association_s: float | None, concentration_error: float, *, as_json: bool
) -> None:
    """Analyse data packages and print tables, or one JSON object per package in a list."""
    console = TerminalConsole()
    results = []
    for path in packages:
        try:
            is_file = path.is_file()
        except OSError as error:  # a folder above it may not be entered, or the name is too long
            raise InputError(
                f"{path} cannot be looked at: {error.strerror or error}; name the zip of a result"
            ) from None
        if not is_file:
            raise InputError(f"there is no data package {path}; name the zip of a result")
        analysis = analyze(
            path, association_s=association_s, concentration_error=concentration_error
        ).analysis
        results.append({"package": str(path), **analysis.model_dump(mode="json")})
        if not as_json:
            _show_analysis(console, path, analysis)
    if as_json:
        print_json(results)


def _show_analysis(console: Console, path: Path, analysis: PackageAnalysis) -> None:
    parts: list[tuple[str, _Row, list[tuple[_Analysed, list[_Row]]]]] = [
        ("kinetics", _KINETICS, [(item, _kinetics_rows(item)) for item in analysis.kinetics]),
        ("melting", _MELTING, [(item, _melting_rows(item)) for item in analysis.melting]),
    ]
    say = make_plain_console().print
    for title, columns, groups in parts:
        if groups:
            console.print(_make_table(f"{path.name}: {title}", columns, groups))
        for item, _ in groups:
            say(
                f"{_make_label(item)}: {item.verdict}: {'; '.join(item.reasons)}", style=_STYLES[item.verdict]
            )
    if not analysis.kinetics and not analysis.melting:
        say(f"{path.name}: no raw binding or melting curves")
    if analysis.kinetics:
        say(
            "K_D: at the nominal concentrations, with what differs from curve to curve and how far the curves are from 1:1;"
            f" uncertainty: also with an error of {analysis.concentration_error:.0%} of all concentrations. Plateaus: without any rate"
        )
        say(
            "K_D is apparent if the partner in solution is a dimer, an Fc fusion or an antibody; a package does not say which"
            " partner was immobilized"
        )
    if analysis.melting:
        say("Tm is apparent: it depends on the scan rate, which a package does not name")
    for note in analysis.notes:
        say(f"note: {note}", style="yellow")


_Row = tuple[str, ...]
_Analysed = ReplicateKinetics | ReplicateMelting
_KINETICS: _Row = (
    "Design, replicate",
    "Verdict",
    "",
    "k_on /M/s",
    "k_off /s",
    "K_D",
    "Uncertainty",
    "Residuals",
)
_MELTING: _Row = ("Design, replicate", "Verdict", "Tm °C", "Derivative °C", "Service °C")


def _make_label(item: _Analysed) -> str:
    return item.name if item.replicate is None else f"{item.name} {item.replicate}"


def _make_table(title: str, columns: _Row, groups: Iterable[tuple[_Analysed, list[_Row]]]) -> Table:
    table = Table(title=Text(title))  # a file name is not markup
    for column in columns:
        table.add_column(column)
    for item, rows in groups:
        heads = [(Text(_make_label(item)), Text(item.verdict, style=_STYLES[item.verdict]))]
        heads += [(Text(""), Text(""))] * (len(rows) - 1)
        for head, row in zip(heads, rows, strict=True):
            table.add_row(*head, *map(Text, row))
        table.add_section()
    return table


def _kinetics_rows(item: ReplicateKinetics) -> list[_Row]:
    service = item.service
    values = (
        _format_reported(service, "kon_per_M_s", "{:.2e}".format),
        _format_reported(service, "koff_per_s", "{:.2e}".format),
        _format_reported(service, "kd_M", format_molar),
    )
    residuals = _EMPTY if service.relative_mae is None else f"{service.relative_mae:.1%}"
    fit = item.fit
    fitted = (
        [
            (
                "fit",
                _with_ends(fit.kon_per_M_s, "{:.2e}".format),
                _with_ends(fit.koff_per_s, "{:.2e}".format),
                _with_ends(fit.kd_M, format_molar),
                fit.kd_uncertainty_M.text(format_molar, "{1} to {2}"),
                f"{fit.relative_mae:.1%}",
            )
        ]
        if fit
        else []
    )
    if item.steady_state_kd_M is not None:
        fitted.append(
            (
                "plateaus",
                "",
                "",
                format_molar(item.steady_state_kd_M.value),
                item.steady_state_kd_M.text(format_molar, "{1} to {2}"),
                "",
            )
        )
    return [*fitted, ("service", *values, "", residuals)]


def _melting_rows(item: ReplicateMelting) -> list[_Row]:
    fitted = _EMPTY if item.tm_C is None else _with_ends(item.tm_C, "{:.2f}".format)
    steepest = _EMPTY if item.derivative_tm_C is None else f"{item.derivative_tm_C:.2f}"
    return [(fitted, steepest, _format_reported(item.service, "tm_C", "{:.2f}".format))]


def _format_reported(service: ServiceValues, name: str, text_of: Callable[[float], str]) -> str:
    reported = service.get_reported(name)
    return _EMPTY if reported is None else reported.text(text_of)


def _with_ends(estimate: Estimate, text_of: Callable[[float], str]) -> str:
    """The value over its interval, or a limit."""
    return estimate.text(text_of, "{}\n{} to {}")
