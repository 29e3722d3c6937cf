"""The published curves in data/egfr_round1, through the whole path from zip to verdict."""

import io
import zipfile
from importlib import resources

import pytest

from prefect_assay.results.kinetics.analysis import Verdict
from prefect_assay.results.kinetics.package import analyze

FOLDER = resources.files("prefect_assay.lab") / "data" / "egfr_round1"


@pytest.fixture(scope="module")
def package():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("egfr_round1_summary.csv", (FOLDER / "egfr_round1_summary.csv").read_bytes())
        for file in (FOLDER / "raw_data").iterdir():
            archive.writestr(f"raw_data/{file.name}", file.read_bytes())
    return analyze(buffer.getvalue()).analysis


@pytest.mark.parametrize("replicate", [1, 2])
def test_two_step_is_within_15_percent_of_the_published_values(package, replicate):
    (found,) = [r for r in package.kinetics if r.name == "P01133-971-1023" and r.replicate == replicate]
    fit, service = found.fit("two_step"), found.service
    assert fit.kon_per_M_s.value == pytest.approx(service.kon_per_M_s, rel=0.15)
    assert fit.koff_per_s.value == pytest.approx(service.koff_per_s, rel=0.15)
    assert fit.kd_M.value == pytest.approx(service.kd_M, rel=0.15)


def test_a_non_binder_gets_no_number(package):
    found = [r for r in package.kinetics if r.name == "gitter-yolo10"]
    assert [(r.verdict, r.fits) for r in found] == [(Verdict.NO_BINDING, ())] * 2
