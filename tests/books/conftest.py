"""The stores that a log can lie in, and no waiting for a store that is away."""

from uuid import uuid4

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.archive.s3 import S3Store
from prefect_assay.books import log as log_module
from support.archive.memory_store import MemoryStore
from support.archive.moto_s3 import moto_server
from support.archive.swift_server import s3_client


@pytest.fixture(scope="session")
def moto_endpoint():
    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture(params=["memory", "local", "moto"])
def any_store(request, tmp_path):
    if request.param == "memory":
        return MemoryStore()
    if request.param == "local":
        return LocalStore(tmp_path / "archive")
    client = s3_client(request.getfixturevalue("moto_endpoint"))
    bucket = f"books-{uuid4().hex[:12]}"
    client.create_bucket(Bucket=bucket)
    return S3Store(bucket, client)


@pytest.fixture
def waits(monkeypatch):
    """The seconds that the log has waited for its store."""
    seconds = []
    monkeypatch.setattr(log_module.time, "sleep", seconds.append)
    return seconds
