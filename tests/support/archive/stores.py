"""Buckets on the S3 servers of tests/conftest.py."""

from uuid import uuid4

from prefect_assay.archive.s3 import S3Store
from support.archive.swift_server import s3_client


def bucket_store(endpoint):
    """A store in a new bucket."""
    client = s3_client(endpoint)
    bucket = f"archive-{uuid4().hex[:12]}"
    client.create_bucket(Bucket=bucket)
    return S3Store(bucket, client)
