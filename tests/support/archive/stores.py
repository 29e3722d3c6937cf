"""Fixtures of the places that an archive can lie in, for conftest.py: moto, a real S3 server, a bucket of its own in each."""

from uuid import uuid4

import pytest

from prefect_assay.archive.s3 import S3Store
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


@pytest.fixture
def swift_store(swift_endpoint):
    return bucket_store(swift_endpoint)


def bucket_store(endpoint):
    """A store in a new bucket."""
    client = s3_client(endpoint)
    bucket = f"archive-{uuid4().hex[:12]}"
    client.create_bucket(Bucket=bucket)
    return S3Store(bucket, client)
