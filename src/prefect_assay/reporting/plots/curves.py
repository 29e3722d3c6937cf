"""What the figures of single replicates share: verdicts, captions, thinning, limits. Knows no figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from prefect_assay.reporting.plots.style import TEXT, WIDTH, wrap
from prefect_assay.results.kinetics.analysis import KineticsFit, ModelName, ReplicateKinetics, Verdict

if TYPE_CHECKING:
    from prefect_assay.results.kinetics.curves import FloatArray

LEFT: Final = 54
BOTTOM: Final = 42
# Words and line of each model. The first that was fitted gives the residuals and the numbers of the caption.
MODELS: Final[dict[ModelName, tuple[str, str]]] = {
    "two_step": ("two-step fit", "-"),
    "global_1to1": ("global 1:1 fit", "--"),
}
_VERDICTS: Final = {
    Verdict.AGREES: "agrees",
    Verdict.REVIEW: "to review",
    Verdict.NOT_1_TO_1: "not 1:1",
    Verdict.NO_BINDING: "no binding",
}
_POINTS: Final = 50  # of one curve: more make no visible difference in this size
_REASON_LINES: Final = 2


def first_fit(kinetics: ReplicateKinetics) -> KineticsFit | None:
    """The fit that gives the numbers."""
    return next((fit for model in MODELS if (fit := kinetics.fit(model))), None)


def caption(replicate: int | None, verdict: Verdict, value: str | None) -> str:
    """Replicate, verdict and value, as far as there are any."""
    parts = [None if replicate is None else f"replicate {replicate}", _VERDICTS[verdict], value]
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
