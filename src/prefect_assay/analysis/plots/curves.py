"""Verdicts, captions, thinning and limits, shared by the figures of single replicates. Knows no figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from prefect_assay.analysis.kinetics.analysis import ReplicateKinetics, ReplicateMelting
from prefect_assay.analysis.plots.style import TEXT, WIDTH, wrap
from prefect_assay.analysis.results.ranked import replicate_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prefect_assay.analysis.kinetics.curves import FloatArray

LEFT: Final = 54
BOTTOM: Final = 42
_EVEN: Final = 14  # points of a phase at equal distances
_DENSE: Final = 26  # further ones, the closer the nearer to its beginning
_POINTS: Final = 100  # of a curve without phases
_REASON_LINES: Final = 2


def caption(fit: ReplicateKinetics | ReplicateMelting, value: str | None) -> str:
    """Replicate, verdict and value, as far as there are any."""
    number = None if fit.replicate is None else f"replicate {fit.replicate}"
    parts = [number, ", ".join(replicate_parts(fit)), value]
    return " · ".join(part for part in parts if part)


def reasons(texts: Sequence[str]) -> list[str]:
    """The reasons of a verdict on at most two lines; the report's table has all of them."""
    lines = wrap("; ".join(texts).split(), WIDTH - 24, TEXT, " ")
    cut = (
        [f"{line}…" for line in lines[_REASON_LINES - 1 : _REASON_LINES]]
        if len(lines) > _REASON_LINES
        else []
    )
    return [*lines[: _REASON_LINES - 1], *cut] if cut else lines


def every_nth(values: FloatArray) -> slice:
    """So many of the points that a figure of this size shows no difference."""
    return slice(None, None, max(1, -(-len(values) // _POINTS)))


def drawn_points(times: FloatArray, starts: Sequence[float]) -> NDArray[np.intp]:
    """The places of the points to draw: dense where a phase begins, because a curve is fast there, and never far apart."""
    import numpy as np  # noqa: PLC0415  an optional extra

    bounds = [0, *np.searchsorted(times, starts), len(times)]
    kept = [np.asarray([len(times) - 1])]
    for first, end in pairwise(bounds):
        if end > first:
            dense = np.geomspace(1, end - first, _DENSE) - 1
            even = np.linspace(0, end - first - 1, _EVEN)
            kept.append(first + np.rint(np.concatenate([dense, even])).astype(int))
    return np.unique(np.concatenate(kept))


def mean(values: FloatArray) -> float:
    """The mean of the finite values; zero without any."""
    import numpy as np  # noqa: PLC0415  an optional extra

    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else 0.0


def extent(arrays: Iterable[FloatArray], margin: float) -> tuple[float, float]:
    """The range of all finite values, widened by a share of itself; (0, 1) without a value."""
    import numpy as np  # noqa: PLC0415  an optional extra

    values = np.concatenate([np.empty(0), *arrays])
    values = values[np.isfinite(values)]
    if not len(values):
        return 0, 1
    low, high = float(values.min()), float(values.max())
    more = (high - low) * margin if high > low else 0.5
    return low - more, high + more
