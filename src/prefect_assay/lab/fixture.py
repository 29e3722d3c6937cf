"""Pytest fixtures with local labs: `pytest_plugins = ["prefect_assay.lab.fixture"]` in a conftest loads them."""

import itertools
from collections.abc import Iterator

import pytest

from prefect_assay.lab.testing import LabOrganization, LocalLab

_numbers = itertools.count(1)


@pytest.fixture
def local_lab() -> Iterator[LocalLab]:
    """A fresh lab process with a manual clock, for one test."""
    with LocalLab() as lab:
        yield lab


@pytest.fixture(scope="session")
def lab_process() -> Iterator[LocalLab]:
    """One lab for the whole session; `shared_lab` takes its organisations from it."""
    with LocalLab() as lab:
        yield lab


@pytest.fixture
def shared_lab(lab_process: LocalLab) -> Iterator[LabOrganization]:
    """An empty organisation in the session's lab, with its own tokens and clock; takes a few milliseconds."""
    organization = lab_process.seed(f"test{next(_numbers)}")
    yield organization
    organization.clear_faults()
