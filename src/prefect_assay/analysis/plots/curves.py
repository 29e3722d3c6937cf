"""Captions, thinning and limits, shared by the figures of single replicates. Knows no figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from prefect_assay.analysis.kinetics.analysis import ReplicateKinetics, ReplicateMelting
from prefect_assay.analysis.plots.scales import widen_range
from prefect_assay.analysis.plots.sheet import TEXT, WIDTH, Line, Marker, Panel
from prefect_assay.analysis.plots.texts import wrap_words
from prefect_assay.analysis.results.ranked import list_replicate_parts

if TYPE_CHECKING:
    from prefect_assay.analysis.kinetics.curves import FloatArray

LEFT: Final = 58
BOTTOM: Final = 42
_GROWTH: Final = 4  # pixels after the beginning of a phase in which a column grows by one
_REASON_LINES: Final = 2


def write_caption(fit: ReplicateKinetics | ReplicateMelting, value: str | None) -> str:
    """Replicate, verdict and value, as far as there are any."""
    number = None if fit.replicate is None else f"replicate {fit.replicate}"
    parts = [number, ", ".join(list_replicate_parts(fit)), value]
    return " · ".join(part for part in parts if part)


def wrap_reasons(texts: Sequence[str]) -> list[str]:
    """The reasons of a verdict on at most two lines; the report's table has all of them."""
    lines = wrap_words("; ".join(texts).split(), WIDTH - 24, TEXT, " ")
    if len(lines) <= _REASON_LINES:
        return lines
    return [*lines[: _REASON_LINES - 1], f"{lines[_REASON_LINES - 1]}…"]


def draw_readings(
    panel: Panel,
    xs: FloatArray,
    ys: FloatArray,
    style: Line | Marker,
    *,
    column_px: int,
    starts: Sequence[float] = (),
) -> None:
    """Readings by ascending x, as a line or as markers: the lowest and the highest of each column of pixels.

    So peaks remain, and noise is as wide as it was measured. Columns are narrower after `starts`, where a phase begins and
    a curve is fast. A reading that is not finite leaves a gap.
    """
    import numpy as np  # noqa: PLC0415  an optional extra

    known = np.flatnonzero(np.isfinite(ys))
    if not len(known):
        return
    gaps = np.cumsum(~np.isfinite(ys))[known]
    xs, ys = xs[known], ys[known]
    phase = np.searchsorted(starts, xs, side="right")
    begins = np.array([panel.x.low, *starts])[phase]
    per_pixel = (panel.x.high - panel.x.low) / panel.width
    since = (xs - begins) / per_pixel
    near = np.minimum(since, _GROWTH * (column_px - 1) if starts else 0)
    column = np.floor(_GROWTH * np.log1p(near / _GROWTH) + (since - near) / column_px)
    part = gaps + phase  # both only grow
    order = np.lexsort((ys, column, part))
    is_new = (np.diff(column[order]) != 0) | (np.diff(part[order]) != 0)
    is_end = np.concatenate([[True], is_new]) | np.concatenate([is_new, [True]])
    kept = np.unique(np.concatenate([order[is_end], [0, len(known) - 1]]))
    across = panel.left + (xs[kept] - panel.x.low) / per_pixel
    down = panel.top + panel.height * (panel.y.high - ys[kept]) / (panel.y.high - panel.y.low)
    cuts = np.flatnonzero(np.diff(gaps[kept])) + 1
    points = zip(*(np.insert(places, cuts, np.nan).tolist() for places in (across, down)), strict=True)
    if isinstance(style, Line):
        panel.sheet.add_line(points, style)
    else:
        panel.sheet.add_markers(points, style)


def find_mean(values: FloatArray) -> float:
    """The mean of the finite values; zero without any."""
    import numpy as np  # noqa: PLC0415  an optional extra

    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else 0.0


def find_limits(arrays: Iterable[FloatArray | Sequence[float]], margin: float) -> tuple[float, float]:
    """The range of all finite values, widened by a share of itself; (0, 1) without a value."""
    import numpy as np  # noqa: PLC0415  an optional extra

    values = np.concatenate([np.empty(0), *arrays])
    values = values[np.isfinite(values)]
    if not len(values):
        return 0, 1
    return widen_range(float(values.min()), float(values.max()), margin)
