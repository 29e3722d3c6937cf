"""What is predicted from what was measured: scikit-learn's Gaussian process on features of designs.

For a pool its kernel is the product of features, so that it is a ridge regression with the uncertainty that a batch needs. For a library
it is a radial basis function of the number of sites that differ.
"""

# The stubs of SciPy and scikit-learn that pyright brings are narrower than these libraries; mypy reads neither.
# pyright: reportArgumentType=false, reportOptionalSubscript=false, reportOptionalOperand=false
# pyright: reportOperatorIssue=false, reportReturnType=false, reportIndexIssue=false, reportAttributeAccessIssue=false

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel
from sklearn.metrics.pairwise import rbf_kernel

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


class _Choice(NamedTuple):
    """The weights of a kernel's two parts, the length of the radial one, and the noise."""

    linear: float
    radial: float
    length: float
    noise: float

    def make_kernel(self) -> Kernel:
        linear = ConstantKernel(self.linear) * DotProduct(0.0, "fixed")
        radial = ConstantKernel(self.radial) * RBF(self.length)
        if self.linear and self.radial:
            return linear + radial
        return linear if self.linear else radial

    def scale(self, factor: float) -> "_Choice":
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
        self._choice = _Choice(1.0, 0.0, 1.0, NOISE)
        if is_library:
            spread = np.linspace(0, len(values) - 1, min(len(values), _SEARCHED)).astype(np.intp)
            self._choice = _choose_kernel(x[spread], values[spread], counts[spread], is_robust=is_robust)
        self.noise, kernel = self._choice.noise, self._choice.make_kernel()
        self._process = GaussianProcessRegressor(kernel, optimizer=None)
        self._alpha: Floats | None = None
        self.fitted: Floats = np.zeros(0)
        if not len(values):
            return
        noises = self.noise / counts
        self._process = _fit_process(kernel, x, values, noises)
        for _ in range(_PASSES if is_robust else 0):
            inverse = np.diag(cho_solve((self._process.L_, True), np.eye(len(values))))
            far = np.abs(self._process.alpha_) / np.sqrt(np.maximum(inverse, _SMALL)) / _FAR
            noises = noises * np.maximum(far, 1) ** 2
            self._process = _fit_process(kernel, x, values, noises)
        self._alpha = self._process.alpha_
        self.fitted = values - noises * self._alpha

    def predict_mean(self, rows: csr_array) -> Floats:
        """The mean of each design."""
        value = np.zeros(rows.shape[0])
        if self._alpha is not None and self._choice.linear:
            value += self._choice.linear * np.asarray(rows @ (self._known.T @ self._alpha))
        if self._alpha is not None and self._choice.radial:
            alike = rbf_kernel(rows, self._known, gamma=0.5 / self._choice.length**2)
            value += self._choice.radial * np.asarray(alike @ self._alpha)
        return value

    def split_mean(self, row: csr_array, parts: Mapping[str, slice]) -> dict[str, float]:
        """What each kind of feature adds to the mean of one design; of a radial kernel nothing can be told apart."""
        if self._alpha is None or self._choice.radial:
            return {}
        products = row.multiply((self._known.T @ self._alpha)[None, :]).toarray()[0] * self._choice.linear
        return {part: float(products[columns].sum()) for part, columns in parts.items()}

    def predict_covariance(self, rows: csr_array) -> Floats:
        """The covariance of these designs, without noise."""
        if not rows.shape[0]:
            return np.zeros((0, 0))
        return np.asarray(self._process.predict(rows.toarray(), return_cov=True)[1])


def _choose_kernel(x: Floats, values: Floats, counts: Floats, *, is_robust: bool) -> _Choice:
    """The kernel of a library that is likeliest; the usual one where too little is measured to tell."""
    # Half of the median squared distance.
    typical = (float(np.median(pdist(x, "sqeuclidean"))) / 2 if len(x) > 1 else 0.0) or 0.5
    if len(values) < _FEWEST or np.ptp(values) == 0:
        return _Choice(0.5, 0.5, math.sqrt(typical), NOISE)
    choices = [
        _Choice(linear, 1 - linear, math.sqrt(typical * reach), noise)
        for linear in _LINEAR
        for reach in (_REACHES if linear < 1 else (1.0,))
        for noise in (_NOISES if is_robust else (NOISE,))
    ]
    fits = [_fit_process(choice.make_kernel(), x, values, choice.noise / counts) for choice in choices]
    best = int(np.argmax([_measure_likelihood(fit) for fit in fits]))
    return choices[best].scale(_measure_misfit(fits[best]))


def _fit_process(kernel: Kernel, x: Floats, values: Floats, noises: Floats) -> GaussianProcessRegressor:
    return GaussianProcessRegressor(kernel, alpha=noises, optimizer=None, copy_X_train=False).fit(x, values)


def _measure_misfit(process: GaussianProcessRegressor) -> float:
    """The likeliest factor of the whole covariance."""
    return max(float(process.y_train_ @ process.alpha_) / len(process.alpha_), _SMALL)


def _measure_likelihood(process: GaussianProcessRegressor) -> float:
    """Rounded, so that the choice among kernels does not hang on last digits."""
    size = len(process.alpha_)
    likelihood = -0.5 * size * math.log(_measure_misfit(process)) - float(np.log(np.diag(process.L_)).sum())
    return round(likelihood, 6)


def expect_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """How much more than `best` a value is on average, counting less as nothing."""
    gain = mean - best
    steps = gain / deviation
    promised: Floats = np.maximum(gain * norm.cdf(steps) + deviation * norm.pdf(steps), 0)
    return promised
