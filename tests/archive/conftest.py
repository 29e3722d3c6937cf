"""The three places an archive can lie in: a folder, a stand-in S3, and a real S3 server."""

import pytest

from prefect_assay.archive import LocalStore
from support.archive.stores import bucket_store


@pytest.fixture
def moto_store(moto_endpoint):
    return bucket_store(moto_endpoint)


@pytest.fixture
def swift_store(swift_endpoint):
    return bucket_store(swift_endpoint)


@pytest.fixture(params=["local", "moto", "swift"])
def any_store(request, tmp_path):
    if request.param == "local":
        return LocalStore(tmp_path / "archive")
    return bucket_store(request.getfixturevalue(f"{request.param}_endpoint"))
