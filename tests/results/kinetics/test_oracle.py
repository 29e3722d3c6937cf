"""The global 1:1 fit against `pykingenie`, an independent implementation (MIT)."""

import numpy as np
import pytest
from pykingenie.utils.fitting_surface import fit_one_site_assoc_and_disso

from prefect_assay.results.kinetics.global_fit import fit_global
from prefect_assay.results.kinetics.prepare import matrix


def oracle(curves):
    """K_D in M, k_off in 1/s and Rmax; concentrations in µM inside."""
    before = [curve.time_s <= 180.0 for curve in curves]
    found, *_ = fit_one_site_assoc_and_disso(
        [c.signal[b][::5] for c, b in zip(curves, before, strict=True)],
        [c.time_s[b][::5] for c, b in zip(curves, before, strict=True)],
        [c.concentration_M * 1e6 for c in curves],
        [c.signal[~b][::5] for c, b in zip(curves, before, strict=True)],
        [c.time_s[~b][::5] for c, b in zip(curves, before, strict=True)],
        [0.1, 0.005, 8.0],
        [1e-4, 1e-5, 0.1],
        [10.0, 1.0, 50.0],
        smax_idx=[0] * len(curves),
        shared_smax=True,
    )
    return found[0] * 1e-6, found[1], found[2]


@pytest.mark.parametrize("number", [1, 2])
def test_published_curves_give_the_oracles_values(published, number):
    found = next(r for r in published.replicates if r.kinetics.replicate == number and r.kinetics.fits)
    curves = [curve.curve for curve in found.curves]
    kd, koff, rmax = oracle(curves)
    fit = fit_global(matrix(curves, 180.0, has_blank=True, unit="nm"))
    assert np.exp(fit.rates.kd.best) == pytest.approx(kd, rel=0.01)
    assert np.exp(fit.rates.koff.best) == pytest.approx(koff, rel=0.01)
    assert fit.rmax == pytest.approx(rmax, rel=0.01)
