"""Real processes, really killed, and writers that race: what is complete is whole, what is not is finished."""

import hashlib
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from prefect_assay.archive import LocalStore, archive_version, list_versions, read_latest, verify_versions
from prefect_assay.archive.s3 import S3Store
from prefect_assay.archive.write import Document
from support.archive import archive_writer
from support.archive.swift_server import s3_client

PLACE = ("lab", "c", "E-1")


def run_writer(root, step, tag="x"):
    command = [sys.executable, archive_writer.__file__, root, str(step), tag]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def assert_nothing_is_torn(store, tag="x"):
    """Every file that stands under its final name is whole, sealed or not."""
    whole = {document.path: document.body for document in archive_writer.documents(tag)}
    for key in store.keys(""):
        name = key.split("/", 4)[-1]
        if name in whole:
            assert store.read(key) == whole[name], key
    assert verify_versions(store).ok


def assert_finished(store):
    assert [(state.version, state.complete) for state in list_versions(store, *PLACE)] == [(1, True)]
    assert verify_versions(store).findings == ()
    assert verify_versions(store).checked == 5


def test_a_writer_killed_at_any_step_is_finished_by_the_next(tmp_path):
    steps = int(run_writer(tmp_path / "whole", 0).stdout)
    assert steps > 30
    for index, step in enumerate(random.Random(7).sample(range(1, steps), 6)):
        root = tmp_path / f"killed-{index}"
        assert run_writer(root, step).returncode == -signal.SIGKILL
        store = LocalStore(root)
        assert_nothing_is_torn(store)
        archive_writer.archive(store, "x")
        assert_finished(store)


def race(make_store, tags):
    """One writer per tag, all starting at once; the records in the order of the tags."""
    barrier = Barrier(len(tags))

    def write(tag):
        store = make_store()
        barrier.wait(timeout=10)
        return archive_writer.archive(store, tag, large=False)

    with ThreadPoolExecutor(len(tags)) as pool:
        return list(pool.map(write, tags))


def stores_of(store):
    """A maker of independent stores on the same place, one per writer."""
    if isinstance(store, LocalStore):
        return lambda: LocalStore(store.root)
    endpoint = store._client.meta.endpoint_url
    return lambda: S3Store(store.bucket, s3_client(endpoint))


def assert_records_tell_the_manifest_that_stands(store, records):
    for record in records:
        manifest = store.read(f"lab/c/E-1/v{record.version:03d}/manifest.json")
        assert record.manifest_sha256 == hashlib.sha256(manifest).hexdigest()


def test_racing_writers_of_the_same_content_make_one_version(any_store):
    records = race(stores_of(any_store), "xxxx")
    assert {record.version for record in records} == {1}
    assert not all(record.unchanged for record in records)
    assert_records_tell_the_manifest_that_stands(any_store, records)
    assert_finished(any_store)


def test_racing_writers_of_different_content_each_make_a_whole_version(any_store):
    tags = "ababab"
    records = race(stores_of(any_store), tags)
    assert_records_tell_the_manifest_that_stands(any_store, records)
    for record, tag in zip(records, tags, strict=True):
        for document in archive_writer.documents(tag, large=False):
            assert any_store.read(f"lab/c/E-1/v{record.version:03d}/{document.path}") == document.body
    report = verify_versions(any_store)
    assert report.ok
    assert report.versions == len({record.version for record in records})


class Overwriting(LocalStore):
    """A server that looks for a name before an upload and not at its end: another claim lands after ours."""

    def __init__(self, root: Path, after: str, claim: bytes) -> None:
        super().__init__(root)
        self._after, self._claim = after, claim

    def put_if_absent(self, key, data, content_type, *, sha256=None):
        written = super().put_if_absent(key, data, content_type, sha256=sha256)
        if key.endswith(self._after):
            (self.root / "lab/c/E-1/v001/claim.json").write_bytes(self._claim)
        return written


@pytest.mark.parametrize("after", ["v001/claim.json", "v001/raw/quote.json"], ids=["at once", "much later"])
def test_a_writer_that_lost_its_claim_unnoticed_takes_the_next_number(tmp_path, after):
    other = LocalStore(tmp_path / "other")
    archive_writer.archive(other, "y", large=False)
    store = Overwriting(tmp_path / "archive", after, other.read("lab/c/E-1/v001/claim.json"))
    assert archive_writer.archive(store, "x", large=False).version == 2
    assert [(state.version, state.complete) for state in list_versions(store, *PLACE)] == [
        (1, False),
        (2, True),
    ]
    assert verify_versions(store).ok


def test_a_claim_nobody_can_read_keeps_its_number(tmp_path):
    store = LocalStore(tmp_path)
    store.put_if_absent("lab/c/E-1/v001/claim.json", b"{", "application/json")
    assert archive_writer.archive(store, "x", large=False).version == 2


@pytest.mark.parametrize("stale", [True, False])
def test_a_listing_that_lags_behind_makes_no_second_copy(tmp_path, monkeypatch, stale):
    store = LocalStore(tmp_path)
    archive_writer.archive(store, "x")
    archive_writer.archive(store, "y")
    if stale:
        monkeypatch.setattr(store, "keys", lambda prefix: iter(()))
    assert read_latest(store, *PLACE).manifest.version == 2
    record = archive_writer.archive(store, "y")
    assert (record.version, record.unchanged) == (2, True)


def test_a_source_that_changes_while_it_is_archived_is_not_sealed(tmp_path):
    source = tmp_path / "growing.csv"
    source.write_bytes(b"1")

    class Growing(LocalStore):
        def put_if_absent(self, key, data, content_type, *, sha256=None):
            source.write_bytes(b"12")
            return super().put_if_absent(key, data, content_type, sha256=sha256)

    store = Growing(tmp_path / "archive")
    with pytest.raises(Exception, match="content changed while it was being archived"):
        archive_version(
            store,
            "lab",
            campaign_id="c",
            experiment_id="e-1",
            experiment_code="E-1",
            results_status="all",
            documents=[Document(path="growing.csv", content_type="text/csv", body=source)],
            now=archive_writer.datetime.now(archive_writer.UTC),
        )
    assert read_latest(store, *PLACE) is None
