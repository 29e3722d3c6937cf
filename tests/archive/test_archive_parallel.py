"""The files of a version are written several at a time, and nothing is complete after a failure."""

import hashlib
import threading
from datetime import UTC, datetime

import pytest

from prefect_assay.archive import Document, LocalStore, archive_version, latest, verify
from prefect_assay.archive.store import Digest
from prefect_assay.errors import ArchiveError, ArchiveUnavailable

TIMEOUT = 20


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
