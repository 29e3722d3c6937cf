import pytest

from prefect_assay.analysis.kinetics.curves import Curve
from prefect_assay.analysis.kinetics.package import analyze
from prefect_assay.analysis.kinetics.prepare import matrix, subtract_blanks
from support.kinetics.packages import published_files, zipped


@pytest.fixture(scope="session")
def published():
    return analyze(zipped(published_files()))


@pytest.fixture(scope="session")
def prepared():
    """Measured curves, with a blank, as the matrix that is fitted."""

    def prepare(curves, association_s=180.0):
        return matrix(subtract_blanks(curves), association_s, blanks=1, unit="nm")

    return prepare


@pytest.fixture(scope="session")
def exact():
    """Curves without noise or blank, by concentration in M, as the matrix that is fitted."""

    def prepare(clean, schedule):
        curves = [Curve(concentration, schedule.times, signal) for concentration, signal in clean.items()]
        return matrix(curves, schedule.association_s, blanks=0, unit="nm")

    return prepare
