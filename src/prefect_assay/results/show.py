"""Tables for people: Rich for terminals, Markdown for the Prefect UI. Three significant digits, nM and not 1e-9."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from prefect_assay.results.row import Level, Outcome, ResultRow

_MOLAR: Final = (("M", 1.0), ("mM", 1e-3), ("µM", 1e-6), ("nM", 1e-9), ("pM", 1e-12), ("fM", 1e-15))
_DIGITS: Final = 3
_NAME_LENGTH: Final = 40
_WORDS: Final = {
    Outcome.MEASURED: "measured",
    Outcome.BINDING: "binds",
    Outcome.NO_BINDING: "no binding",
    Outcome.NO_EXPRESSION: "no expression",
    Outcome.UNKNOWN: "unknown",
    Outcome.PENDING: "pending",
    Outcome.MISSING: "not reported",
}
_EMPTY: Final = "–"  # noqa: RUF001  a dash, not a minus: a missing value is not a number


def molar(value: float | None, qualifier: str | None = None) -> str:
    """A concentration in M for people: `7.4e-8` gives `74.0 nM`."""
    if value is None:
        return _EMPTY
    prefix = f"{qualifier} " if qualifier else ""
    if value <= 0:
        return f"{prefix}{_significant(value)} M"
    for unit, size in _MOLAR:
        if float(f"{value / size:.{_DIGITS - 1}e}") >= 1:  # rounded first: 999.9 nM is 1.00 µM
            return f"{prefix}{_significant(value / size)} {unit}"
    return f"{prefix}{value:.{_DIGITS - 1}e} M"


def rate(value: float | None, unit: str) -> str:
    """A rate constant for people: `7.00e+04 /M/s`."""
    return _EMPTY if value is None else f"{value:.{_DIGITS - 1}e} {unit}"


def markdown_table(rows: Iterable[ResultRow], *, replicates: bool = False, limit: int | None = None) -> str:
    """A Markdown table of the summary rows (with `replicates`, of all rows); the rest is counted below it."""
    shown, left_out, columns = _select(rows, replicates=replicates, limit=limit)
    if not shown:
        return "No results.\n"
    lines = [
        "| " + " | ".join(title for title, _ in columns) + " |",
        "|" + " --- |" * len(columns),
        *("| " + " | ".join(_markdown_cell(show(row)) for _, show in columns) + " |" for row in shown),
    ]
    if left_out:
        lines += ["", f"… and {left_out} more"]
    return "\n".join(lines) + "\n"


def rich_table(
    rows: Iterable[ResultRow],
    *,
    title: str | None = None,
    replicates: bool = False,
    limit: int | None = None,
) -> Table:
    """The same table for a terminal."""
    shown, left_out, columns = _select(rows, replicates=replicates, limit=limit)
    table = Table(title=title, caption=f"… and {left_out} more" if left_out else None)
    for heading, _ in columns:
        table.add_column(heading)
    for row in shown:
        table.add_row(*(Text(_one_line(show(row))) for _, show in columns))  # Text: names are no markup
    return table


def _concentration(row: ResultRow) -> str:
    if row.concentration_nM is None:
        return _EMPTY
    return molar(row.concentration_nM * 1e-9, None if row.kd_M is not None else row.qualifier)


_Show = Callable[[ResultRow], str]
_COLUMNS: Final[tuple[tuple[str, _Show], ...]] = (
    ("Design", lambda row: _shortened(row.name)),
    ("Replicate", lambda row: _EMPTY if row.replicate is None else str(row.replicate)),
    ("Outcome", lambda row: _WORDS[row.outcome]),
    ("K_D", lambda row: molar(row.kd_M, row.qualifier)),
    ("k_on", lambda row: rate(row.kon_per_M_s, "/M/s")),
    ("k_off", lambda row: rate(row.koff_per_s, "/s")),
    ("Tm", lambda row: _EMPTY if row.tm_C is None else f"{row.tm_C:.1f} °C"),
    ("Concentration", _concentration),
    ("Strength", lambda row: row.binding_strength or _EMPTY),
    ("Expression", lambda row: row.expression or _EMPTY),
    ("Fit", lambda row: row.fit_quality or _EMPTY),
    ("Experiment", lambda row: row.experiment_code),
)
_ALWAYS: Final = frozenset({"Design", "Outcome"})


def _select(
    rows: Iterable[ResultRow], *, replicates: bool, limit: int | None
) -> tuple[Sequence[ResultRow], int, Sequence[tuple[str, _Show]]]:
    """The rows to show, how many are left out, and the columns that say anything."""
    chosen = [row for row in rows if replicates or row.level is Level.SUMMARY]
    shown = chosen[:limit]
    columns = [
        (title, show)
        for title, show in _COLUMNS
        if title in _ALWAYS or any(show(row) not in {"", _EMPTY} for row in shown)
    ]
    return shown, len(chosen) - len(shown), columns


def _significant(value: float) -> str:
    """Three significant digits, without an exponent in the range of a unit prefix."""
    rounded = float(f"{value:.{_DIGITS - 1}e}")
    if not 1 <= rounded < 1000:  # noqa: PLR2004  the range of a unit prefix
        return f"{value:.{_DIGITS}g}"
    return f"{rounded:.{_DIGITS - len(str(int(rounded)))}f}"


def _shortened(name: str) -> str:
    """Pipelines write whole score lines as names; the values beside them must stay in sight."""
    flat = _one_line(name)
    return flat if len(flat) <= _NAME_LENGTH else f"{flat[: _NAME_LENGTH - 1]}…"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _markdown_cell(text: str) -> str:
    """Names come from users: a pipe or a bracket must not break the table or make a link."""
    escaped = _one_line(text)
    for character in "\\|[]<`*_":
        escaped = escaped.replace(character, "&lt;" if character == "<" else f"\\{character}")
    return escaped
