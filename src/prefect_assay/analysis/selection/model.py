"""What is predicted from what was measured: scikit-learn's Gaussian process on features of designs.

For a pool its kernel is the product of features, so that it is a ridge regression with the uncertainty that a batch needs. For a library
it is a radial basis function of the number of sites that differ.
"""

# The stubs of SciPy and scikit-learn that pyright brings are narrower than these libraries; mypy reads neither.
# pyright: reportArgumentType=false, reportOptionalSubscript=false, reportOptionalOperand=false
# pyright: reportOperatorIssue=false, reportReturnType=false, reportIndexIssue=false, reportAttributeAccessIssue=false

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.sparse import csr_array
from scipy.special import ndtr
from scipy.stats import spearmanr
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict

from prefect_assay.analysis.selection.candidates import Floats

NOISE: Final = 0.6  # of yes and no, and of values in a pool
_NOISES: Final = (0.01, 0.03, 0.1, 0.3, 0.6)
_REACHES: Final = (0.125, 0.25, 0.5, 1.0, 2.0)  # in typical distances between measured variants
_LINEAR: Final = (0.0, 0.5, 1.0)  # of a library's kernel: sites one by one; the rest is what they do together
_SEARCHED: Final = 500  # measured designs that the search for reach and noise looks at
_FEWEST: Final = 4  # measured designs that can tell reach and noise
_FAR: Final = 2.5  # standard deviations from what all others say: more is damped
_PASSES: Final = 3
_SMALL: Final = 1e-9
_DIGITS: Final = 9


class _Choice(NamedTuple):
    """The weights of a kernel's two parts, the length of the radial one, and the noise."""

    linear: float
    radial: float
    length: float
    noise: float

    def kernel(self) -> Kernel:
        linear = ConstantKernel(self.linear) * DotProduct(0.0, "fixed")
        radial = ConstantKernel(self.radial) * RBF(self.length)
        if self.linear and self.radial:
            return linear + radial
        return linear if self.linear else radial

    def scaled(self, factor: float) -> "_Choice":
        return _Choice(self.linear * factor, self.radial * factor, self.length, self.noise * factor)


class Model:
    """Predictions for designs by their features; standardized, and beyond what was expected of them.

    Args:
        known: features of what was measured.
        values: what was measured, minus what was expected; may be empty.
        counts: measurements of each.
        is_library: whether features are those of sites.
        is_robust: damp values that are far from what all others say of them.
    """

    def __init__(
        self, known: csr_array, values: Floats, counts: Floats, *, is_library: bool, is_robust: bool
    ) -> None:
        self._known = known
        x = known.toarray()
        choices = _list_choices(x, values, is_robust=is_robust) if is_library else _POOL
        self._choice = choices[0]
        if len(choices) > 1:
            some = np.unique(np.linspace(0, len(values) - 1, min(len(values), _SEARCHED)).astype(np.intp))
            searched = x[some], values[some]
            fits = [_fit(choice.kernel(), *searched, choice.noise / counts[some]) for choice in choices]
            best = int(np.argmax([_likelihood(fit) for fit in fits]))
            self._choice = choices[best].scaled(_misfit(fits[best]))
        self.noise, kernel = self._choice.noise, self._choice.kernel()
        self._process = GaussianProcessRegressor(kernel, optimizer=None)
        self._alpha: Floats | None = None
        self.fitted: Floats = np.zeros(0)
        if not len(values):
            return
        noises = self.noise / counts
        self._process = _fit(kernel, x, values, noises)
        for _ in range(_PASSES if is_robust else 0):
            inverse = np.diag(cho_solve((self._process.L_, True), np.eye(len(values))))
            far = np.abs(self._process.alpha_) / np.sqrt(np.maximum(inverse, _SMALL)) / _FAR
            noises = noises * np.maximum(far, 1) ** 2
            self._process = _fit(kernel, x, values, noises)
        self._alpha = self._process.alpha_
        self.fitted = values - noises * self._alpha

    def mean(self, rows: csr_array) -> Floats:
        """The mean of each design."""
        value = np.zeros(rows.shape[0])
        if self._alpha is not None and self._choice.linear:
            value += self._choice.linear * np.asarray(rows @ (self._known.T @ self._alpha))
        if self._alpha is not None and self._choice.radial:
            alike = rbf_kernel(rows, self._known, gamma=0.5 / self._choice.length**2)
            value += self._choice.radial * np.asarray(alike @ self._alpha)
        return value

    def parts(self, row: csr_array, columns: Mapping[str, slice]) -> dict[str, float]:
        """What each kind of feature adds to the mean of one design; of a radial kernel nothing can be told apart."""
        if self._alpha is None or self._choice.radial:
            return {}
        products = row.multiply((self._known.T @ self._alpha)[None, :]).toarray()[0] * self._choice.linear
        return {part: float(products[columns[part]].sum()) for part in columns}

    def covariance(self, rows: csr_array) -> Floats:
        """The covariance of these designs, without noise."""
        if not rows.shape[0]:
            return np.zeros((0, 0))
        return np.asarray(self._process.predict(rows.toarray(), return_cov=True)[1])


_POOL: Final = [_Choice(1.0, 0.0, 1.0, NOISE)]


def _list_choices(x: Floats, values: Floats, *, is_robust: bool) -> list[_Choice]:
    """Kernels of a library to choose from by their likelihood; a single one where too little is measured to tell."""
    typical = _typical_distance(x)
    if len(values) < _FEWEST or np.ptp(values) == 0:
        return [_Choice(0.5, 0.5, math.sqrt(typical), NOISE)]
    return [
        _Choice(linear, 1 - linear, math.sqrt(typical * reach), noise)
        for linear in _LINEAR
        for reach in (_REACHES if linear < 1 else (1.0,))
        for noise in (_NOISES if is_robust else (NOISE,))
    ]


def _fit(kernel: Kernel, x: Floats, values: Floats, noises: Floats) -> GaussianProcessRegressor:
    return GaussianProcessRegressor(kernel, alpha=noises, optimizer=None, copy_X_train=False).fit(x, values)


def _misfit(process: GaussianProcessRegressor) -> float:
    """The likeliest factor of the whole covariance."""
    return max(float(process.y_train_ @ process.alpha_) / len(process.alpha_), _SMALL)


def _likelihood(process: GaussianProcessRegressor) -> float:
    """Rounded, so that the choice among kernels does not hang on last digits."""
    size = len(process.alpha_)
    likelihood = -0.5 * size * math.log(_misfit(process)) - float(np.log(np.diag(process.L_)).sum())
    return round(likelihood, 6)


def _typical_distance(x: Floats) -> float:
    """Half of the median squared distance."""
    if len(x) < 2:  # noqa: PLR2004 - a distance
        return 0.5
    some = x[np.unique(np.linspace(0, len(x) - 1, min(len(x), _SEARCHED)).astype(np.intp))]
    squares = np.square(some).sum(axis=1)
    distances = (squares[:, None] + squares - 2 * some @ some.T) / 2
    return float(np.median(distances[np.triu_indices(len(some), 1)])) or 0.5


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """How much more than `best` a value is on average, counting less as nothing."""
    gain = mean - best
    steps = gain / deviation
    density = np.exp(-np.square(steps) / 2) / math.sqrt(2 * math.pi)
    promised: Floats = np.maximum(gain * ndtr(steps) + deviation * density, 0)
    return promised


def learn_from_others(
    rows: csr_array, known: csr_array, values: Floats, expected: Floats, targets: NDArray[np.int32]
) -> tuple[Floats, float]:
    """What the results of other targets say of designs, and how far that is trusted, from 0 to 1.

    Each target is predicted from all others: trust is 1 - standard error / mean of the gain in Spearman's correlation over what was
    expected anyway, and 0 where the gain is within its error or there is one target only.

    Args:
        rows: features of the designs to predict.
        known: features of what was measured on other targets.
        values: of these, minus the mean of their target.
        expected: what was expected of these before any was measured.
        targets: a number for the target of each of these.
    """
    numbers = np.unique(targets)
    model = Ridge(alpha=NOISE, fit_intercept=False, solver="cholesky")
    if len(numbers) < 2:  # noqa: PLR2004 - one of them is left out
        return np.zeros(rows.shape[0]), 0.0
    rest = values - expected
    left_out = cross_val_predict(model, known, rest, groups=targets, cv=LeaveOneGroupOut())
    gains = []
    for target in numbers:
        is_measured = targets == target
        if is_measured.sum() >= _FEWEST and np.ptp(values[is_measured]) > 0:
            with_others, without = (
                _correlation(values[is_measured], predicted[is_measured])
                for predicted in (expected + left_out, expected)
            )
            gains.append(with_others - without)
    error = float(np.std(gains, ddof=1)) / math.sqrt(len(gains)) if len(gains) > 1 else math.inf
    mean = float(np.mean(gains)) if gains else 0.0
    trust = 1 - error / mean if mean > error else 0.0
    if not trust:
        return np.zeros(rows.shape[0]), 0.0
    return np.asarray(model.fit(known, rest).predict(rows)), trust


def _correlation(values: Sequence[float] | Floats, predicted: Floats) -> float:
    """Spearman's; 0 where one of them ranks nothing."""
    predicted = predicted.round(_DIGITS)
    return float(spearmanr(values, predicted).statistic) if np.ptp(predicted) > 0 else 0.0
