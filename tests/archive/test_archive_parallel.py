"""Parts and files go up several at a time: bounded in number and memory, and nothing is complete after a failure."""

import hashlib
import io
import os
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from prefect_assay.archive import Document, LocalStore, archive_version, latest, verify
from prefect_assay.archive.s3 import S3Store, client_config
from prefect_assay.archive.s3_parts import PART_BYTES, REQUESTS_AT_ONCE
from prefect_assay.archive.store import Digest
from prefect_assay.errors import ArchiveError, ArchiveUnavailable
from support.archive.fake_s3 import FakeS3, failed

TIMEOUT = 20


@pytest.fixture
def client():
    return FakeS3()


@pytest.fixture
def source(tmp_path):
    """A sparse file of ten parts and a bit; the content of each part is its own."""
    path = tmp_path / "source.bin"
    with path.open("wb") as file:
        for number in range(10):
            file.seek(number * PART_BYTES)
            file.write(os.urandom(1000))
        file.truncate(10 * PART_BYTES + 7)
    return path


def put(client, source, key="a"):
    return S3Store("bucket", client).put_if_absent(key, source, "application/zip")


def test_parts_are_sent_at_once_and_put_together_in_their_order(client, source):
    together = threading.Barrier(REQUESTS_AT_ONCE)

    def meet(number):
        if number <= REQUESTS_AT_ONCE:  # breaks when fewer come
            together.wait(TIMEOUT)
        time.sleep(0.02 if number % 2 else 0)  # the answers come in another order

    client.on_part = meet
    assert put(client, source)
    assert client.most_at_once == REQUESTS_AT_ONCE
    assert client.calls["part"] == 11
    assert client.objects["a"] == source.read_bytes()


def test_bytes_are_sent_in_parts_as_well(client):
    body = os.urandom(PART_BYTES + 1)
    assert put(client, body)
    assert client.objects["a"] == body
    assert client.calls["part"] == 2


def test_uploads_of_one_store_share_the_bound(client, source):
    client.on_part = lambda number: time.sleep(0.01)
    store = S3Store("bucket", client)
    with ThreadPoolExecutor(3) as pool:
        written = list(pool.map(lambda key: store.put_if_absent(key, source, "a/b"), "abc"))
    assert written == [True, True, True]
    assert client.most_at_once <= REQUESTS_AT_ONCE
    whole = source.read_bytes()
    assert all(client.objects[key] == whole for key in "abc")


@pytest.mark.parametrize(
    ("error", "expected"),
    [(failed("InternalError", 500), ArchiveUnavailable), (failed("AccessDenied", 403), ArchiveError)],
)
def test_a_failed_part_ends_the_upload_without_an_object(client, source, error, expected):
    def fail(number):
        if number == 2:
            raise error
        time.sleep(0.1)

    client.on_part = fail
    store = S3Store("bucket", client)
    with pytest.raises(expected):
        store.put_if_absent("a", source, "a/b")
    assert (client.calls["complete"], client.calls["abort"], client.uploads) == (0, 1, {})
    assert client.calls["part"] < 11
    client.on_part = lambda number: None
    assert store.put_if_absent("a", source, "a/b")  # every turn is free again


def test_a_source_that_cannot_be_read_to_its_end_leaves_the_store_usable(client, source, monkeypatch):
    class Failing(io.FileIO):
        def readinto(self, buffer):
            if self.tell() > PART_BYTES:
                raise OSError("the disk is broken")
            return super().readinto(buffer)

    store = S3Store("bucket", client)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", lambda path, mode, **_: Failing(path, mode))
        for _ in range(REQUESTS_AT_ONCE + 1):
            with pytest.raises(ArchiveUnavailable, match="disk is broken"):
                store.put_if_absent("a", source, "a/b")
    assert store.put_if_absent("a", source, "a/b")


def test_of_two_writers_at_once_one_writes(client, source):
    together = threading.Barrier(2)
    client.on_part = lambda number: together.wait(TIMEOUT) if number == 1 else None
    with ThreadPoolExecutor(2) as pool:
        written = list(pool.map(lambda _: put(client, source), range(2)))
    assert sorted(written) == [False, True]
    assert client.uploads == {}
    assert client.objects["a"] == source.read_bytes()


def test_memory_is_bounded_whatever_the_size(tmp_path):
    path = tmp_path / "sparse.bin"
    with path.open("wb") as file:
        file.truncate(25 * PART_BYTES)
    client = FakeS3(keeps=False)
    tracemalloc.start()
    try:
        put(client, path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert client.calls["part"] == 25
    assert peak < 4 << 21  # no part is held as a whole


@pytest.mark.parametrize("change", ["written", "shorter", "replaced"])
def test_a_file_that_changes_while_it_is_sent_is_refused(client, source, change):
    def meddle(number):
        if number != 3:
            return
        if change == "written":
            with source.open("r+b") as file:
                file.write(b"other")
        elif change == "shorter":
            os.truncate(source, 3 * PART_BYTES)
        else:
            other = source.with_name("other")
            other.write_bytes(source.read_bytes())
            other.replace(source)

    client.on_part = meddle
    with pytest.raises(ArchiveError, match="content changed"):
        put(client, source)
    assert (client.calls["abort"], client.uploads, client.objects) == (1, {}, {})


def test_a_part_that_the_server_fails_to_take_is_sent_again_whole(moto_store, tmp_path):
    body = os.urandom(2 * PART_BYTES)
    answers = []

    def busy_once(request, **_):
        answers.append(request.headers["X-Amz-Content-SHA256"])
        return AWSResponse(request.url, 503, {}, Raw()) if len(answers) == 1 else None

    moto_store._client.meta.events.register_first("before-send.s3.UploadPart", busy_once)
    assert moto_store.put_if_absent("a", body, "a/b", sha256=hashlib.sha256(body).hexdigest())
    assert len(answers) == 3
    assert moto_store.read("a") == body


class Raw:
    """An empty body."""

    def stream(self, **_):
        return iter(())


def test_every_part_is_signed_with_its_digest_over_https_too():
    client = boto3.client(
        "s3",
        endpoint_url="https://127.0.0.1:9",
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=client_config("https://127.0.0.1:9"),
    )
    sent = {}

    def answer(request, **_):
        sent[request.url.partition("partNumber=")[2][:1]] = request.headers
        body = b"<R><UploadId>1</UploadId></R>" if request.url.endswith("?uploads") else b""
        raw = Raw()
        raw.stream = lambda **_: iter((body,))
        status = 404 if request.method == "HEAD" else 200
        return AWSResponse(request.url, status, {"ETag": '"1"'}, raw)

    client.meta.events.register("before-send.s3", answer)
    body = os.urandom(PART_BYTES + 5)
    assert S3Store("bucket", client).put_if_absent("a", body, "a/b")
    for number, part in (("1", body[:PART_BYTES]), ("2", body[PART_BYTES:])):
        assert sent[number]["X-Amz-Content-SHA256"] == hashlib.sha256(part).hexdigest().encode()
        assert "x-amz-content-sha256" in sent[number]["Authorization"].decode()


# --- the files of a version ---


class Watched(LocalStore):
    """Notes which names are written, and calls `before` with each."""

    def __init__(self, root, before):
        super().__init__(root)
        self.written, self._before = [], before

    def put_if_absent(self, key, data, content_type, *, sha256=None):
        name = key.rpartition("/")[2]
        self._before(name)
        written = super().put_if_absent(key, data, content_type, sha256=sha256)
        self.written.append(name)
        return written


def archive(store, documents):
    return archive_version(
        store,
        "lab",
        campaign_id="c",
        experiment_id="e-1",
        experiment_code="E-1",
        results_status="all",
        documents=documents,
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )


def documents(count):
    return [Document(path=f"{n}.txt", content_type="text/plain", body=f"{n}".encode()) for n in range(count)]


def test_files_of_a_version_are_written_at_once_and_the_manifest_after_all(tmp_path):
    together = threading.Barrier(4)
    store = Watched(tmp_path, lambda name: together.wait(TIMEOUT) if name[0] in "0123" else None)
    archive(store, documents(9))
    assert store.written[0] == "claim.json"
    assert sorted(store.written[1:10]) == [f"{n}.txt" for n in range(9)]
    assert store.written[10] == "manifest.json"
    assert verify(store).ok


def test_a_file_that_fails_keeps_the_manifest_away_and_the_next_run_finishes(tmp_path):
    def fail(name):
        if name == "1.txt":
            raise ArchiveUnavailable("no connection")

    store = Watched(tmp_path, fail)
    with pytest.raises(ArchiveUnavailable, match="no connection"):
        archive(store, documents(40))
    assert "manifest.json" not in store.written
    assert len(store.written) < 41  # what was not begun is not written
    assert latest(store, "lab", "c", "E-1") is None
    record = archive(LocalStore(tmp_path), documents(40))
    assert (record.version, record.files) == (1, 40)
    assert verify(store).ok


def test_a_body_with_a_known_digest_is_read_for_its_upload_only(tmp_path):
    content = b"received"
    known = Digest(size=len(content), sha256=hashlib.sha256(content).hexdigest())
    source = tmp_path / "package.zip"
    source.write_bytes(content)
    read = []

    class Counted(LocalStore):
        def put_if_absent(self, key, data, content_type, *, sha256=None):
            read.append(key.rpartition("/")[2])
            return super().put_if_absent(key, data, content_type, sha256=sha256)

    store = Counted(tmp_path / "archive")
    document = Document(path="package.zip", content_type="application/zip", body=source, digest=known)
    archive(store, [document])
    source.unlink()
    assert archive(store, [document]).unchanged  # without the file: its digest is enough
    assert read.count("package.zip") == 1


def test_a_body_without_its_digest_is_refused(tmp_path):
    known = Digest(size=3, sha256=hashlib.sha256(b"abc").hexdigest())
    store = LocalStore(tmp_path / "archive")
    with pytest.raises(ArchiveError, match="content changed"):
        archive(store, [Document(path="a", content_type="text/plain", body=b"abd", digest=known)])
    assert latest(store, "lab", "c", "E-1") is None
