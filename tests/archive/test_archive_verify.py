"""`verify` finds what happened to an archive behind its back, and says nothing about a sound one."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefect_assay.archive import Document, LocalStore, archive_version, read_latest, verify_versions
from prefect_assay.errors import ArchiveError, ArchiveUnavailable
from support.archive import archive_writer

FOLDER = "lab/c/E-1/v001"


@pytest.fixture
def store(tmp_path):
    store = LocalStore(tmp_path / "archive")
    archive_writer.archive(store, "x", large=False)
    return store


def kinds(report):
    return [(finding.kind, finding.key) for finding in report.findings]


def test_a_sound_archive(any_store):
    record = archive_writer.archive(any_store, "x", large=False)
    report = verify_versions(any_store, "lab")
    assert (report.ok, report.findings, report.versions, report.checked) == (True, (), 1, 5)
    assert report.bytes == record.total_bytes
    assert verify_versions(any_store) == report.model_copy(update={"location": any_store.location("")})


@settings(max_examples=25)
@given(data=st.data())
def test_any_single_changed_byte_is_found(tmp_path_factory, data):
    store = LocalStore(tmp_path_factory.mktemp("archive"))
    archive_writer.archive(store, "x", large=False)
    name = data.draw(st.sampled_from(["experiment", "results-1", "package"]))
    file = store.root / FOLDER / f"raw/{name}.json"
    content = bytearray(file.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    file.write_bytes(content)
    assert kinds(verify_versions(store)) == [("changed", f"{FOLDER}/raw/{name}.json")]


class _Busy(LocalStore):
    """A store that is too busy for reading the files whose key ends so."""

    def __init__(self, root, name):
        super().__init__(root)
        self._name = name

    def find(self, key):
        if key.endswith(self._name):
            raise ArchiveUnavailable("busy")
        return super().find(key)

    def stream(self, key):
        if key.endswith(self._name):
            raise ArchiveUnavailable("busy")
        return super().stream(key)


@pytest.mark.parametrize(
    "name", ["/v001/claim.json", "/v001/manifest.json", "VERSIONS/c/E-1/v001.json", "quote.json"]
)
def test_a_busy_store_is_no_damage(store, name):
    report = verify_versions(_Busy(store.root, name), "lab")
    (finding,) = report.findings
    assert (finding.kind, finding.detail) == ("unavailable", "busy")
    assert finding.key.endswith(name)
    assert (report.ok, report.damaged) == (False, False)


def test_a_key_that_is_never_read_hides_no_damage(store):
    file = store.root / FOLDER / "raw/quote.json"
    file.chmod(0o644)
    file.write_bytes(b"{}")
    report = verify_versions(_Busy(store.root, "experiment.json"))
    assert kinds(report) == [
        ("unavailable", f"{FOLDER}/raw/experiment.json"),
        ("changed", f"{FOLDER}/raw/quote.json"),
    ]
    assert (report.checked, report.damaged) == (4, True)


def test_a_store_that_goes_away_is_not_asked_for_every_key(store):
    for number in range(9):
        archive_writer.archive(store, f"x{number}", large=False)
    asked = []

    class Away(LocalStore):
        def stream(self, key):
            asked.append(key)
            raise ArchiveUnavailable("away")

    report = verify_versions(Away(store.root))
    assert len(asked) == 3
    assert [finding.kind for finding in report.findings] == ["unavailable"] * 4
    assert report.findings[-1].detail == "the rest was not checked: away"


def test_a_store_that_is_away_is_an_error(store):
    class Away(LocalStore):
        def strays(self, prefix):
            raise ArchiveUnavailable("away")

    with pytest.raises(ArchiveUnavailable):
        verify_versions(Away(store.root))


def test_missing_extra_and_foreign_files(store):
    (store.root / FOLDER / "raw/experiment.json").unlink()
    (store.root / FOLDER / "raw/notes.txt").write_text("added by hand")
    (store.root / "lab/c/campaign.csv").write_text("")
    report = verify_versions(store)
    assert set(kinds(report)) == {
        ("missing", f"{FOLDER}/raw/experiment.json"),
        ("extra", f"{FOLDER}/raw/notes.txt"),
        ("foreign", "lab/c/campaign.csv"),
    }
    assert (report.checked, report.ok) == (4, False)


@pytest.mark.parametrize("content", [b"", b"{", b'{"version": 1}', b"\xff"])
def test_an_unreadable_manifest_is_named(store, content):
    (store.root / FOLDER / "manifest.json").write_bytes(content)
    report = verify_versions(store)
    assert kinds(report) == [("unreadable", f"{FOLDER}/manifest.json")]
    with pytest.raises(ArchiveError, match="not a readable manifest"):
        read_latest(store, "lab", "c", "E-1")


def test_without_its_manifest_a_version_is_incomplete(store):
    (
        store.root / "lab/LEDGERS/VERSIONS/c/E-1/v001.json"
    ).unlink()  # as a writer leaves it that is killed there
    (store.root / FOLDER / "manifest.json").unlink()
    report = verify_versions(store)
    assert (kinds(report), report.ok) == ([("incomplete", FOLDER)], True)


def test_only_what_lies_below_the_prefix_is_checked(store):
    (store.root / FOLDER / "raw/experiment.json").write_bytes(b"")
    for campaign in ("d", "v001"):
        archive_version(
            store,
            "lab",
            campaign_id=campaign,
            experiment_id="e",
            experiment_code="E-1",
            results_status="all",
            documents=[Document(path="a", content_type="text/plain", body=b"1")],
            now=datetime(2025, 1, 1, tzinfo=UTC),
        )
    assert verify_versions(store, "lab/d").ok
    assert verify_versions(store, "lab/d").checked == 1
    assert kinds(verify_versions(store, "lab/c/E-1")) == [("changed", f"{FOLDER}/raw/experiment.json")]
    assert verify_versions(store, "lab").versions == 3


def test_an_empty_archive_is_sound(tmp_path):
    assert verify_versions(LocalStore(Path(tmp_path) / "none")).versions == 0
