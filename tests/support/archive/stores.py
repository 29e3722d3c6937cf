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


class DyingStore:
    """A store whose process dies after a number of writes."""

    def __init__(self, store, writes):
        self._store, self._left = store, writes

    def __getattr__(self, name):
        return getattr(self._store, name)

    def put_if_absent(self, key, data, content_type, *, sha256=None):
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        return self._store.put_if_absent(key, data, content_type, sha256=sha256)
