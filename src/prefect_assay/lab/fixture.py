"""The pytest fixture `local_lab`: `pytest_plugins = ["prefect_assay.lab.fixture"]` in a conftest loads it."""

from collections.abc import Iterator

import pytest

from prefect_assay.lab.testing import LocalLab


@pytest.fixture
def local_lab() -> Iterator[LocalLab]:
    """A fresh lab with a manual clock, ended with the test."""
    with LocalLab() as lab:
        yield lab
