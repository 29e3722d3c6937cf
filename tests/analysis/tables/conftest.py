"""Archives with two campaigns, in a folder and in a bucket of an S3 server."""

import pytest

from prefect_assay.archive import LocalStore
from support.archive.campaigns import archive_two_campaigns
from support.archive.stores import bucket_store


@pytest.fixture(params=["local", "moto"])
def any_store(request, tmp_path):
    if request.param == "local":
        return LocalStore(tmp_path / "archive")
    return bucket_store(request.getfixturevalue("moto_endpoint"))


@pytest.fixture
def local_store(tmp_path):
    store = LocalStore(tmp_path / "archive")
    archive_two_campaigns(store, "")
    return store
