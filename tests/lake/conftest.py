"""Archives with two campaigns, in a folder and in a bucket of an S3 server."""

from uuid import uuid4

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.archive.s3 import S3Store
from support.archive.campaigns import archive_two_campaigns
from support.archive.moto_s3 import moto_server
from support.archive.swift_server import reason_not_to_run, s3_client, swift_server


@pytest.fixture(scope="session")
def moto_endpoint():
    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def swift_endpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swift")
    if reason := reason_not_to_run(folder):
        pytest.skip(reason)
    with swift_server(folder) as endpoint:
        yield endpoint


def bucket_store(endpoint):
    bucket = f"lake-{uuid4().hex[:12]}"
    client = s3_client(endpoint)
    client.create_bucket(Bucket=bucket)
    return S3Store(bucket, client)


@pytest.fixture
def swift_store(swift_endpoint):
    return bucket_store(swift_endpoint)


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
