"""Pytest fixtures with local labs: `pytest_plugins = ["assay_lab.fixture"]` in a conftest loads them."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_lab.testing import LabOrganization, LocalLab

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def lab_landscape() -> Path | str | None:
    """What the labs measure from: none; a project's own fixture of this name gives a CSV file or `gb1`."""
    return None


@pytest.fixture
def local_lab(lab_landscape: Path | str | None) -> Iterator[LocalLab]:
    """A fresh lab process with a manual clock, for one test."""
    with LocalLab(landscape=lab_landscape) as lab:
        yield lab


@pytest.fixture(scope="session")
def lab_process(lab_landscape: Path | str | None) -> Iterator[LocalLab]:
    """One lab for the whole session; `shared_lab` takes its organizations from it."""
    with LocalLab(landscape=lab_landscape) as lab:
        yield lab


@pytest.fixture
def shared_lab(lab_process: LocalLab) -> Iterator[LabOrganization]:
    """An empty organization in the session's lab, with its own tokens and clock; takes a few milliseconds."""
    organization = lab_process.seed(f"test{next(_numbers)}")
    yield organization
    organization.clear_faults()
