"""Inline SVG for the portal's pages: progress, K_D on a log axis, binding curves, bars.

Text in it is escaped. Colours are classes of `style.css`, so that the charts follow the reader's light or dark mode.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup, escape

from prefect_assay.lab.measure.formulas import ASSOCIATION_S, NM, RUN_S, binding_signal
from prefect_assay.models.vocabulary import ANTIGEN_CONCENTRATIONS_NM, ExperimentStatus

STAGES: Final = (
    ExperimentStatus.DRAFT,
    ExperimentStatus.WAITING_FOR_CONFIRMATION,
    ExperimentStatus.QUOTE_SENT,
    ExperimentStatus.WAITING_FOR_MATERIALS,
    ExperimentStatus.IN_QUEUE,
    ExperimentStatus.IN_PRODUCTION,
    ExperimentStatus.DATA_ANALYSIS,
    ExperimentStatus.IN_REVIEW,
    ExperimentStatus.DONE,
)
_SHORT: Final = ("Draft", "Review", "Quote", "Materials", "Queue", "Assay", "Analysis", "QC", "Done")
ROWS_MAX: Final = 48

_WIDTH = 760
_LABEL = 210
_ROW = 22


def progress(status: str) -> Markup:
    """The nine stages, those behind filled, the present one ringed. A canceled experiment has none."""
    reached = next((index for index, stage in enumerate(STAGES) if stage == status), -1)
    done = status == ExperimentStatus.DONE
    gap = (_WIDTH - 80) / (len(STAGES) - 1)
    parts = [f'<line class="rail" x1="40" y1="22" x2="{_WIDTH - 40}" y2="22"/>']
    if reached > 0:
        parts.append(f'<line class="rail on" x1="40" y1="22" x2="{40 + gap * reached:.1f}" y2="22"/>')
    for index, label in enumerate(_SHORT):
        state = (
            "past"
            if index < reached or (done and index == reached)
            else "now"
            if index == reached
            else "next"
        )
        x = 40 + gap * index
        parts.append(
            f'<circle class="stage {state}" cx="{x:.1f}" cy="22" r="8"/>'
            f'<text class="tick {state}" x="{x:.1f}" y="50" text-anchor="middle">{label}</text>'
        )
    return _svg(_WIDTH, 60, "Progress of the experiment", "".join(parts))


def fitted(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The designs with fitted constants, tightest first."""
    return sorted((entry for entry in entries if _constants(entry)), key=_best)


def kd_plot(entries: Sequence[dict[str, Any]]) -> Markup:
    """Every replicate's K_D on a log axis, tightest design first; designs without a K_D are left to the table."""
    rows = fitted(entries)[:ROWS_MAX]
    if not rows:
        return Markup()
    values = [kd for entry in rows for kd in _kds(entry)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def place(kd: float) -> float:
        return _LABEL + (math.log10(kd) - low) / (high - low) * (_WIDTH - _LABEL - 20)

    bottom = 8 + _ROW * len(rows)
    parts = []
    for decade in range(low, high + 1):
        x = place(10.0**decade)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="4" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{molar(10.0**decade)}</text>'
        )
    for index, entry in enumerate(rows):
        y = 8 + _ROW * index + _ROW / 2
        parts.append(_row_label(design(entry), y))
        parts.extend(
            f'<circle class="dot {_class(row.get("binding_strength"))}" cx="{place(row["kd"]):.1f}" cy="{y}" r="4"/>'
            for row in entry["replicates"]
            if row.get("kd")
        )
        if entry.get("kd_mean"):
            x = place(entry["kd_mean"])
            parts.append(f'<line class="mean" x1="{x:.1f}" y1="{y - 8}" x2="{x:.1f}" y2="{y + 8}"/>')
    return _svg(_WIDTH, bottom + 24, "Dissociation constants", "".join(parts))


def binding_curves(entry: dict[str, Any]) -> Markup:
    """The 1:1 curves of a fitted design's first replicate, over the contract's default concentrations."""
    constants = _constants(entry)[0]
    width, height, left, top = 370, 190, 34, 26
    times = [RUN_S * step / 120 for step in range(121)]

    def point(t: float, y: float) -> str:
        return f"{left + t / RUN_S * (width - left - 10):.1f},{height - 26 - y * (height - 26 - top):.1f}"

    end = point(ASSOCIATION_S, 0).split(",")[0]
    parts = [
        f'<text class="label" x="{left}" y="15">{escape(shortened(design(entry), 42))}</text>',
        f'<line class="grid" x1="{end}" y1="{top}" x2="{end}" y2="{height - 26}"/>',
        f'<polyline class="axis" points="{left},{top} {left},{height - 26} {width - 10},{height - 26}"/>',
        f'<text class="tick" x="{left}" y="{height - 10}">0 s</text>',
        f'<text class="tick" x="{end}" y="{height - 10}" text-anchor="middle">{ASSOCIATION_S:.0f} s</text>',
        f'<text class="tick" x="{width - 10}" y="{height - 10}" text-anchor="end">{RUN_S:.0f} s</text>',
        f'<text class="tick" x="{left - 6}" y="{top + 8}" text-anchor="end">1</text>',
    ]
    for index, concentration in enumerate(ANTIGEN_CONCENTRATIONS_NM[:-1]):
        signal = binding_signal(
            times, concentration_m=concentration * NM, kon=constants["kon"], koff=constants["koff"], rmax=1.0
        )
        line = " ".join(point(t, y) for t, y in zip(times, signal, strict=True))
        parts.append(f'<polyline class="curve c{index}" points="{line}"/>')
    return _svg(width, height, f"Binding curves of {design(entry)}", "".join(parts))


def bar_plot(rows: Sequence[tuple[str, float]], unit: str) -> Markup:
    """One bar per design, from zero, the value written beside it."""
    if not rows:
        return Markup()
    highest = max(value for _, value in rows) or 1.0
    parts = []
    for index, (name, value) in enumerate(rows[:ROWS_MAX]):
        y = 4 + _ROW * index
        length = max(0.0, value / highest) * (_WIDTH - _LABEL - 100)
        parts.append(_row_label(name, y + _ROW / 2))
        parts.append(
            f'<rect class="bar" x="{_LABEL}" y="{y + 4}" width="{length:.1f}" height="{_ROW - 8}" rx="3"/>'
        )
        parts.append(
            f'<text class="label" x="{_LABEL + length + 8:.1f}" y="{y + _ROW / 2 + 4}">{value:.4g} {escape(unit)}</text>'
        )
    return _svg(_WIDTH, 8 + _ROW * min(len(rows), ROWS_MAX), "Measured values", "".join(parts))


def molar(value: float) -> str:
    """A concentration in M as a person reads it: 9.3e-08 is 93 nM."""
    for unit, size in (("M", 1.0), ("mM", 1e-3), ("µM", 1e-6), ("nM", 1e-9)):
        if value >= size * 0.9995:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-12:.3g} pM"


def shortened(text: str, length: int) -> str:
    """At most `length` characters, the cut marked."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _row_label(name: str, y: float) -> str:
    return (
        f'<text class="label" x="{_LABEL - 10}" y="{y + 4}" text-anchor="end">'
        f"{escape(shortened(name, 26))}<title>{escape(name)}</title></text>"
    )


def _svg(width: int, height: float, title: str, content: str) -> Markup:
    """An image of content whose text is escaped already."""
    return Markup('<svg viewBox="0 0 {0} {1:.0f}" role="img" aria-label="{2}" class="w{0}">{3}</svg>').format(
        width,
        height,
        title,
        Markup(content),  # noqa: S704
    )


def design(entry: dict[str, Any]) -> str:
    """The name of the sequence that an entry is about."""
    sequence = entry.get("sequence")
    name = entry.get("sequence_name") or (sequence.get("name") if isinstance(sequence, dict) else None)
    return str(name or "unnamed").strip()


def _constants(entry: dict[str, Any]) -> list[dict[str, Any]]:
    rows = entry.get("replicates") or []
    return [row for row in rows if row.get("kd") and row.get("kon") and row.get("koff")]


def _kds(entry: dict[str, Any]) -> list[float]:
    return [row["kd"] for row in _constants(entry)]


def _best(entry: dict[str, Any]) -> float:
    return float(entry.get("kd_mean") or min(_kds(entry)))


def _class(strength: Any) -> str:
    return strength if strength in {"strong", "medium", "weak"} else "unknown"
