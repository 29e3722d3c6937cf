"""Versions in a folder: what is written, what is left alone, and what a crash leaves behind."""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prefect_assay.archive import (
    Document,
    LocalStore,
    archive_version,
    list_versions,
    read_latest,
    verify_versions,
)
from prefect_assay.archive.store import Digest
from prefect_assay.errors import ArchiveError, ArchiveUnavailable
from support.archive.stores import DyingStore

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
PLACE = ("lab", "round 1", "EGFR-001")


def documents(**bodies: bytes | Path) -> list[Document]:
    return [
        Document(path=f"raw/{name}.json", content_type="application/json", body=body)
        for name, body in bodies.items()
    ]


def archive(store, files, status="all", now=NOW):
    prefix, campaign, code = PLACE
    return archive_version(
        store,
        prefix,
        campaign_id=campaign,
        experiment_id="e-1",
        experiment_code=code,
        results_status=status,
        documents=files,
        now=now,
    )


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "archive")


def test_first_version_holds_every_byte_and_a_manifest(store, tmp_path):
    source = tmp_path / "package.zip"
    source.write_bytes(b"z" * 3_000_000)
    record = archive(store, documents(results=b'{"a": 1}', package=source))
    assert (record.version, record.files, record.total_bytes) == (1, 2, 3_000_008)
    assert record.unchanged is False
    folder = Path(record.location)
    assert (folder / "raw/results.json").read_bytes() == b'{"a": 1}'
    assert (folder / "raw/package.json").read_bytes() == source.read_bytes()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert [file["path"] for file in manifest["files"]] == ["raw/package.json", "raw/results.json"]
    assert verify_versions(store, "lab").ok


def test_a_second_run_changes_nothing(store):
    first = archive(store, documents(results=b"1", quote=b"2"))
    before = snapshot(store)
    second = archive(store, documents(quote=b"2", results=b"1"), now=datetime(2025, 4, 1, tzinfo=UTC))
    assert second == first.model_copy(update={"unchanged": True})
    assert snapshot(store) == before


@pytest.mark.parametrize(
    ("files", "status"),
    [
        (documents(results=b"2"), "all"),
        (documents(results=b"1", more=b"1"), "all"),
        (documents(renamed=b"1"), "all"),
        (documents(results=b"1"), "partial"),
        ([], "all"),
    ],
    ids=["content", "one more", "renamed", "status only", "one less"],
)
def test_a_change_becomes_the_next_version_beside_the_old(store, files, status):
    archive(store, documents(results=b"1"))
    before = snapshot(store)
    record = archive(store, files, status)
    assert (record.version, record.unchanged) == (2, False)
    after = snapshot(store)
    assert {key: after[key] for key in before} == before
    assert read_latest(store, *PLACE).manifest.version == 2
    assert verify_versions(store, "lab").ok


def test_latest_reads_files_by_the_path_they_were_given(store):
    path = "raw_data/My Design (1).csv"
    archive(store, [Document(path=path, content_type="text/csv", body=b"t,y\n")])
    latest = read_latest(store, *PLACE)
    assert latest.read(path) == b"t,y\n"
    with pytest.raises(ArchiveError, match=r"holds no raw/other\.csv"):
        latest.read("raw/other.csv")


def test_nothing_archived_has_no_latest(store):
    assert read_latest(store, *PLACE) is None
    assert list_versions(store, *PLACE) == ()


@pytest.mark.parametrize(
    "paths",
    [["a.csv", "a.csv"], ["manifest.json"], ["claim.json"], ["raw", "raw/a.csv"], ["manifest.json/a"]],
)
def test_paths_that_cannot_stand_together_are_refused_before_anything_is_written(store, paths):
    files = [Document(path=path, content_type="text/csv", body=b"") for path in paths]
    with pytest.raises(ArchiveError, match="rename one"):
        archive(store, files)
    assert snapshot(store) == {}


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_an_interrupted_version_is_finished_by_the_same_content(store, writes):
    files = documents(results=b"1", quote=b"2")
    with pytest.raises(KeyboardInterrupt):
        archive(DyingStore(store, writes), files)
    assert read_latest(store, *PLACE) is None
    report = verify_versions(store, "lab")
    assert [finding.kind for finding in report.findings] == ["incomplete"]
    assert report.ok
    record = archive(store, files)
    assert (record.version, record.unchanged) == (1, False)
    assert verify_versions(store, "lab").findings == ()


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_an_interrupted_version_is_left_behind_by_other_content(store, writes):
    with pytest.raises(KeyboardInterrupt):
        archive(DyingStore(store, writes), documents(results=b"1", quote=b"2"))
    assert archive(store, documents(results=b"new", quote=b"2")).version == 2
    assert [(state.version, state.complete) for state in list_versions(store, *PLACE)] == [
        (1, False),
        (2, True),
    ]
    report = verify_versions(store, "lab")
    assert report.ok
    assert [finding.kind for finding in report.findings] == ["incomplete"]


def test_a_version_that_lost_a_file_is_archived_again_as_the_next(store):
    record = archive(store, documents(results=b"1", quote=b"2"))
    (Path(record.location) / "raw/quote.json").unlink()
    again = archive(store, documents(results=b"1", quote=b"2"))
    assert (again.version, again.unchanged) == (2, False)
    assert archive(store, documents(results=b"1", quote=b"2")).unchanged


def test_a_damaged_leftover_is_never_sealed(store):
    with pytest.raises(KeyboardInterrupt):
        archive(DyingStore(store, 3), documents(results=b"1", quote=b"2"))
    leftover = store.root / "lab"
    (file,) = leftover.rglob("quote.json")
    file.write_bytes(b"X")
    assert archive(store, documents(results=b"1", quote=b"2")).version == 2


def test_a_file_that_fails_keeps_the_manifest_away_and_the_next_run_finishes(store, monkeypatch):
    put = store.put_if_absent

    def fail(key, *args, **options):
        if key.endswith("quote.json"):
            raise ArchiveUnavailable("no connection")
        return put(key, *args, **options)

    files = documents(results=b"1", quote=b"2")
    monkeypatch.setattr(store, "put_if_absent", fail)
    with pytest.raises(ArchiveUnavailable, match="no connection"):
        archive(store, files)
    monkeypatch.undo()
    assert read_latest(store, *PLACE) is None
    record = archive(store, files)
    assert (record.version, record.files) == (1, 2)


def test_a_body_with_a_known_digest_is_not_needed_again(store, tmp_path):
    source = tmp_path / "package.zip"
    source.write_bytes(b"received")
    known = Digest(size=8, sha256=hashlib.sha256(b"received").hexdigest())
    document = Document(path="package.zip", content_type="application/zip", body=source, digest=known)
    archive(store, [document])
    source.unlink()
    assert archive(store, [document]).unchanged


def test_a_body_without_its_digest_is_refused(store):
    known = Digest(size=3, sha256=hashlib.sha256(b"abc").hexdigest())
    with pytest.raises(ArchiveError, match="content changed"):
        archive(store, [Document(path="a", content_type="text/plain", body=b"abd", digest=known)])
    assert read_latest(store, *PLACE) is None


def snapshot(store: LocalStore) -> dict[str, tuple[int, bytes]]:
    return {key: ((store.root / key).stat().st_mtime_ns, store.read(key)) for key in store.keys("")}
