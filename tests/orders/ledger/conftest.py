"""The stores that a log can lie in, and no waiting for a store that is away."""

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.orders.ledger import log as log_module
from support.archive.memory_store import MemoryStore
from support.archive.stores import bucket_store


@pytest.fixture(params=["memory", "local", "moto"])
def any_store(request, tmp_path):
    if request.param == "memory":
        return MemoryStore()
    if request.param == "local":
        return LocalStore(tmp_path / "archive")
    return bucket_store(request.getfixturevalue("moto_endpoint"))


@pytest.fixture
def waits(monkeypatch):
    """The seconds that the log has waited for its store."""
    seconds = []
    monkeypatch.setattr(log_module.time, "sleep", seconds.append)
    return seconds
