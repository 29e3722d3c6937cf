"""The conditional-write and checksum cases of `ceph/s3-tests`, as far as the archive relies on them.

Names with `ifnonmatch` are those of the suite; the other cases are its subjects in the form that the archive uses. Each
case is sent by boto3 alone, to the servers of the other tests: OpenStack Swift, which is real, and moto.
`S3Store.probe` makes the cases marked with it on a user's own server before an order.
"""

import base64
import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from prefect_assay.archive.s3 import S3Store
from support.archive.stores import bucket_store
from support.archive.swift_server import s3_client

ABSENT = {"IfNoneMatch": "*"}


def sha256(data):
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


class Server:
    def __init__(self, kind, endpoint):
        self.kind, self.endpoint = kind, endpoint
        self.bucket = bucket_store(endpoint).bucket
        self.client = s3_client(endpoint)
        self.address = {"Bucket": self.bucket, "Key": "foo"}

    def put(self, body, **more):
        return self.client.put_object(**self.address, Body=body, **more)

    def content(self):
        return self.client.get_object(**self.address)["Body"].read()


@pytest.fixture(params=["swift", "moto"])
def server(request):
    return Server(request.param, request.getfixturevalue(f"{request.param}_endpoint"))


def refused(send, body, **more):
    with pytest.raises(ClientError) as caught:
        send(body, **more)
    error = caught.value.response
    return error["ResponseMetadata"]["HTTPStatusCode"], error["Error"]["Code"]


def test_put_object_ifnonmatch_nonexisted_good(server):
    """In the probe."""
    server.put(b"bar", **ABSENT)
    assert server.content() == b"bar"


def test_put_object_ifnonmatch_overwrite_existed_failed(server):
    """In the probe."""
    server.put(b"bar")
    assert refused(server.put, b"zar", **ABSENT) == (412, "PreconditionFailed")
    assert server.content() == b"bar"


def test_of_concurrent_conditional_writes_one_is_kept(server):
    """As the suite's atomic writes, with the condition; not in the probe, which is one writer."""
    if server.kind == "swift":
        pytest.skip("Swift accepts several of them: docs/results.md says what it is not for")
    bodies = [bytes([65 + n]) * 1000 for n in range(8)]

    def write(body):
        return S3Store(server.bucket, s3_client(server.endpoint)).put_if_absent("foo", body, "text/plain")

    with ThreadPoolExecutor(len(bodies)) as pool:
        kept = list(pool.map(write, bodies))
    assert sum(kept) == 1
    assert server.content() == bodies[kept.index(True)]


def test_object_checksum_sha256(server):
    """Not in the probe: damage on the way is caught by the signature of the body, or by TLS."""
    server.put(b"bar", ChecksumSHA256=sha256(b"bar"))
    assert server.content() == b"bar"
    if server.kind == "moto":
        pytest.skip("moto takes any checksum; `archive verify` reads the bytes of an object without one")
    status, _ = refused(server.put, b"zar", ChecksumSHA256=sha256(b"bad"))
    assert status == 400
    assert server.content() == b"bar"


def test_what_a_server_states_as_checksum_is_the_content_s(server):
    """`archive verify` trusts it in place of the bytes."""
    store = S3Store(server.bucket, server.client)
    store.put_if_absent("foo", b"bar", "text/plain")
    assert store.stat("foo").sha256 in {hashlib.sha256(b"bar").hexdigest(), None}


def test_the_probe_passes_and_leaves_nothing(server):
    S3Store(server.bucket, server.client).probe("team")
    assert "Contents" not in server.client.list_objects_v2(Bucket=server.bucket)
