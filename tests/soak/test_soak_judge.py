"""A version that a killed execution has begun is left behind only when the next execution found other results."""

from datetime import UTC, datetime

import pytest

from prefect_assay.archive import Document, LocalStore, archive_version
from prefect_assay.archive.layout import MANIFEST_NAME, experiment_folder, version_folder
from prefect_assay.archive.read import read_manifest
from support.soak.judge import left_behind

FOLDER = experiment_folder("lab", "c", "E-1")


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path)


def archived(store, status, body):
    document = Document(path="a", content_type="text/plain", body=body)
    return archive_version(
        store,
        "lab",
        campaign_id="c",
        experiment_id="e",
        experiment_code="E-1",
        results_status=status,
        documents=[document],
        now=datetime(2025, 1, 1, tzinfo=UTC),
    ).version


def manifest(store, version):
    return read_manifest(store, version_folder(FOLDER, version))[0]


def killed_before_its_manifest(store, version):
    (store.root / version_folder(FOLDER, version) / MANIFEST_NAME).unlink()


def test_other_results_leave_a_begun_version_behind(store):
    assert (archived(store, "partial", b"1"), archived(store, "all", b"2")) == (1, 2)
    killed_before_its_manifest(store, 1)
    assert left_behind(store, version_folder(FOLDER, 1), [manifest(store, 2)])


def test_the_same_results_would_have_finished_it(store):
    bodies = (b"1", b"2", b"1")
    assert [archived(store, "all", body) for body in bodies] == [1, 2, 3]
    killed_before_its_manifest(store, 1)
    assert not left_behind(store, version_folder(FOLDER, 1), [manifest(store, 2), manifest(store, 3)])


def test_begun_after_the_last_complete_version_it_is_a_result_that_is_missing(store):
    archived(store, "partial", b"1")
    archived(store, "all", b"2")
    killed_before_its_manifest(store, 2)
    assert not left_behind(store, version_folder(FOLDER, 2), [manifest(store, 1)])
