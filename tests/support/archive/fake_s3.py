# ruff: noqa: N803  the names are those of boto3
"""A boto3 client's calls for uploads, answered from memory: a test may look at, delay or fail each of them."""

import threading
from collections import Counter

from botocore.exceptions import ClientError


class FakeS3:
    """Attributes: `objects` by key, `calls` by name, `most_at_once` parts, and `on_part`, called with each number.

    With `keeps=False` the content of parts is dropped, for tests of memory.
    """

    def __init__(self, *, keeps=True):
        self.objects, self.calls, self.uploads = {}, Counter(), {}
        self.on_part = lambda number: None
        self.most_at_once = self._at_once = 0
        self._keeps, self._lock = keeps, threading.Lock()

    def head_object(self, *, Key, **_):
        self.calls["head"] += 1
        raise failed("404", 404)

    def put_object(self, *, Key, Body, **_):
        self.calls["put"] += 1
        self._name(Key, bytes(Body))

    def create_multipart_upload(self, **_):
        with self._lock:
            self.calls["create"] += 1
            name = str(self.calls["create"])
        self.uploads[name] = {}
        return {"UploadId": name}

    def upload_part(self, *, UploadId, PartNumber, Body, **_):
        with self._lock:
            self.calls["part"] += 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            self.on_part(PartNumber)
            content = b"".join(
                bytes(block) if self._keeps else b"" for block in iter(lambda: Body.read(1 << 20), b"")
            )
            self.uploads[UploadId][PartNumber] = content
        finally:
            with self._lock:
                self._at_once -= 1
        return {"ETag": f'"{PartNumber}"'}

    def complete_multipart_upload(self, *, Key, UploadId, MultipartUpload, IfNoneMatch, **_):
        self.calls["complete"] += 1
        numbers = [part["PartNumber"] for part in MultipartUpload["Parts"]]
        assert numbers == list(range(1, len(numbers) + 1)), "S3 wants the parts in their order"
        assert IfNoneMatch == "*"
        self._name(Key, b"".join(map(self.uploads[UploadId].get, numbers)))
        del self.uploads[UploadId]

    def abort_multipart_upload(self, *, UploadId, **_):
        self.calls["abort"] += 1
        del self.uploads[UploadId]

    def _name(self, key, body):
        with self._lock:
            if key in self.objects:
                raise failed("PreconditionFailed", 412)
            self.objects[key] = body


def failed(code, status):
    """The error that boto3 raises for an answer."""
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Call")
