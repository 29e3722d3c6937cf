"""Charts of the portal's pages as inline SVG. Colours are classes of `style.css`, for light and dark mode."""

import math
from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from prefect_assay.lab.measure.model import ASSOCIATION_S, NM, RUN_S, binding_signal
from prefect_assay.lab.portal.pages import fragment
from prefect_assay.models.vocabulary import ANTIGEN_CONCENTRATIONS_NM, ExperimentStatus

_LABELS: Final = {
    ExperimentStatus.DRAFT: "Draft",
    ExperimentStatus.WAITING_FOR_CONFIRMATION: "Review",
    ExperimentStatus.QUOTE_SENT: "Quote",
    ExperimentStatus.WAITING_FOR_MATERIALS: "Materials",
    ExperimentStatus.IN_QUEUE: "Queue",
    ExperimentStatus.IN_PRODUCTION: "Assay",
    ExperimentStatus.DATA_ANALYSIS: "Analysis",
    ExperimentStatus.IN_REVIEW: "QC",
    ExperimentStatus.DONE: "Done",
}
STAGES: Final = tuple(_LABELS)
ROWS_MAX: Final = 48


def progress(status: str) -> Markup:
    """The nine stages, the past ones filled, the present one ringed."""
    reached = next((index for index, stage in enumerate(STAGES) if stage == status), -1)
    passed = reached + (status == ExperimentStatus.DONE)
    return fragment("progress.svg", labels=_LABELS.values(), reached=reached, passed=passed)


def fitted(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The designs with fitted constants, tightest first."""
    return sorted((entry for entry in entries if _constants(entry)), key=_best)


def kd_plot(entries: Sequence[dict[str, Any]]) -> Markup:
    """Every replicate's K_D on a log axis, tightest design first; designs without a K_D are left to the table."""
    rows = fitted(entries)[:ROWS_MAX]
    if not rows:
        return Markup()
    values = [row["kd"] for entry in rows for row in _constants(entry)]
    low = math.floor(math.log10(min(values)))
    high = max(math.ceil(math.log10(max(values))), low + 1)

    def place(kd: float) -> str:
        return f"{210 + (math.log10(kd) - low) / (high - low) * 530:.1f}"

    decades = [(place(10.0**decade), molar(10.0**decade)) for decade in range(low, high + 1)]
    designs = [
        (
            design(entry),
            [(place(row["kd"]), _strength(row)) for row in entry["replicates"] if row.get("kd")],
            place(entry["kd_mean"]) if entry.get("kd_mean") else None,
        )
        for entry in rows
    ]
    return fragment("kd_plot.svg", decades=decades, designs=designs)


def binding_curves(entry: dict[str, Any]) -> Markup:
    """The 1:1 curves of a fitted design's first replicate, over the contract's default concentrations."""
    constants = _constants(entry)[0]
    times = [RUN_S * step / 120 for step in range(121)]

    def x(t: float) -> str:
        return f"{34 + t / RUN_S * 326:.1f}"

    def curve(concentration: float) -> str:
        signal = binding_signal(
            times, concentration_m=concentration * NM, kon=constants["kon"], koff=constants["koff"], rmax=1.0
        )
        return " ".join(f"{x(t)},{164 - y * 138:.1f}" for t, y in zip(times, signal, strict=True))

    return fragment(
        "binding_curves.svg",
        name=design(entry),
        switch=x(ASSOCIATION_S),
        association_s=ASSOCIATION_S,
        run_s=RUN_S,
        curves=[curve(concentration) for concentration in ANTIGEN_CONCENTRATIONS_NM[:-1]],
    )


def bar_plot(rows: Sequence[tuple[str, float]], unit: str) -> Markup:
    """One bar per design, from zero, with its value."""
    if not rows:
        return Markup()
    highest = max(value for _, value in rows) or 1.0
    bars = [(name, max(0.0, value / highest) * 450, value) for name, value in rows[:ROWS_MAX]]
    return fragment("bar_plot.svg", bars=bars, unit=unit)


def molar(value: float) -> str:
    """A concentration in M with a readable unit: 9.3e-08 is 93 nM."""
    for unit, size in (("M", 1.0), ("mM", 1e-3), ("µM", 1e-6), ("nM", 1e-9)):
        if value >= size * 0.9995:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-12:.3g} pM"


def design(entry: dict[str, Any]) -> str:
    """The name of the sequence that an entry is about."""
    sequence = entry.get("sequence")
    name = entry.get("sequence_name") or (sequence.get("name") if isinstance(sequence, dict) else None)
    return str(name or "unnamed").strip()


def _constants(entry: dict[str, Any]) -> list[dict[str, Any]]:
    rows = entry.get("replicates") or []
    return [row for row in rows if row.get("kd") and row.get("kon") and row.get("koff")]


def _best(entry: dict[str, Any]) -> float:
    return float(entry.get("kd_mean") or min(row["kd"] for row in _constants(entry)))


def _strength(row: dict[str, Any]) -> str:
    strength = str(row.get("binding_strength"))
    return strength if strength in {"strong", "medium", "weak"} else "unknown"
