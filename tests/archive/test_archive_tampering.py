"""Whatever is changed in an archive behind its back is damage, for the library and for the command."""

import shutil

import pytest
from typer.testing import CliRunner

from prefect_assay.archive import LocalStore, list_versions, verify_versions
from prefect_assay.cli.app import app
from prefect_assay.cli.archives import archive as archive_command
from support.archive import archive_writer
from support.archive.stores import bucket_store
from support.archive.tampering import E1, FOLDER_WAYS, WAYS, Hands, fill

EVERYWHERE = [(way, *WAYS[way]) for way in WAYS]
IN_A_FOLDER = [(way, *FOLDER_WAYS[way]) for way in FOLDER_WAYS]
WITHOUT_REGISTER = [case for case in EVERYWHERE + IN_A_FOLDER if case[3]]


def damaged(report):
    return {finding.key for finding in report.findings if finding.is_damage}


@pytest.fixture(scope="module")
def filled_folder(tmp_path_factory):
    return fill(LocalStore(tmp_path_factory.mktemp("filled") / "archive"))


@pytest.fixture(scope="module")
def filled_bucket(moto_endpoint):
    return fill(bucket_store(moto_endpoint))


@pytest.fixture
def folder(filled_folder, tmp_path):
    return Hands(LocalStore(shutil.copytree(filled_folder.root, tmp_path / "archive")))


@pytest.fixture
def bucket(filled_bucket, moto_store):
    for key in filled_bucket.keys(""):
        source = {"Bucket": filled_bucket.bucket, "Key": key}
        moto_store._client.copy_object(Bucket=moto_store.bucket, Key=key, CopySource=source)
    return Hands(moto_store)


def said_of(arguments):
    """What the command prints, and its exit code."""
    done = CliRunner().invoke(app, ["archive", "verify", *arguments], env={"COLUMNS": "200"})
    return done.output, done.exit_code


def assert_is_damage(store, named):
    """For the library, at the whole place."""
    report = verify_versions(store)
    assert not report.ok
    assert named in damaged(report)


def assert_says_damage(named, arguments):
    """For the command, at the archive's own prefix."""
    output, code = said_of(arguments)
    assert code == 1
    assert named.removeprefix("lab/") in output
    assert "damaged" in output
    assert "intact" not in output


@pytest.mark.parametrize(("way", "tamper", "named", "_"), EVERYWHERE + IN_A_FOLDER)
def test_in_a_folder(folder, way, tamper, named, _):
    tamper(folder)
    assert_is_damage(folder.store, named)
    assert_says_damage(named, [str(folder.store.root / "lab")])


@pytest.mark.parametrize(("way", "tamper", "named", "_"), EVERYWHERE)
def test_in_a_bucket(bucket, way, tamper, named, _):
    tamper(bucket)
    assert_is_damage(bucket.store, named)


def test_in_a_bucket_for_the_command(bucket, monkeypatch):
    _, tamper, named, _ = EVERYWHERE[0]
    tamper(bucket)
    monkeypatch.setattr(archive_command, "open_archive", lambda path, archive, account: (bucket.store, "lab"))
    assert_says_damage(named, ["--archive", "block"])


@pytest.mark.parametrize(("way", "tamper", "named", "_"), WITHOUT_REGISTER)
def test_an_archive_without_its_register_is_checked_as_far_as_it_goes(folder, way, tamper, named, _):
    folder.remove("lab/LEDGERS")
    assert verify_versions(folder.store).findings == ()
    tamper(folder)
    assert named in damaged(verify_versions(folder.store))


@pytest.mark.parametrize("place", ["E-1", "E-1/"])
def test_an_experiment_named_by_itself_is_compared_with_the_register_of_its_archive(folder, place):
    folder.remove(f"{E1}/v003")
    assert f"{E1}/v003" in damaged(verify_versions(folder.store, E1))
    output, code = said_of([f"{folder.store.root}/lab/c/{place}"])
    assert (code, "missing: c/E-1/v003" in output) == (1, True)


def test_a_link_in_place_of_an_experiment_that_is_named(folder):
    folder.link(E1)
    assert damaged(verify_versions(folder.store, E1)) == {E1}
    output, code = said_of([f"{folder.store.root}/{E1}"])
    assert (code, "link: c/E-1" in output) == (1, True)


def test_files_of_others_are_remarks(folder):
    for key in ("lab/.DS_Store", f"{E1}/.DS_Store", "lab/c/notes.txt", f"{E1}/notes.txt", "lab/.git/config"):
        folder.write(key, b"1")
    report = verify_versions(folder.store)
    assert report.ok
    assert {finding.key for finding in report.findings} == {"lab/c/notes.txt", f"{E1}/notes.txt"}


def test_a_path_in_a_manifest_that_leads_outside_is_no_way_out(folder):
    (folder.store.root / "secret").write_text("1")
    folder.edit_files(f"{E1}/v003/manifest.json", lambda file: {**file, "path": "../../../../secret"})
    report = verify_versions(folder.store)
    assert f"{E1}/v003/manifest.json" in damaged(report)
    assert any(f.kind == "unreadable" and f.key.endswith("secret") for f in report.findings)


class Watching(LocalStore):
    """Verifies before and after each write, as somebody else may at any time; files are written side by side."""

    def __init__(self, root):
        super().__init__(root)
        self.reports = []

    def put_if_absent(self, key, data, content_type, *, sha256=None):
        before = verify_versions(LocalStore(self.root))
        written = super().put_if_absent(key, data, content_type, sha256=sha256)
        self.reports.extend((before, verify_versions(LocalStore(self.root))))
        return written


def test_what_is_being_archived_is_never_damage(tmp_path):
    store = Watching(tmp_path / "archive")
    for tag in "xy":
        archive_writer.archive(store, tag, large=False)
    assert len(store.reports) == 2 * 2 * 8
    assert {finding.kind for report in store.reports for finding in report.findings} == {"incomplete"}
    assert store.reports[-1].findings == ()


class LateListing(LocalStore):
    """Lists what was there before the run that archives meanwhile."""

    def keys(self, prefix):
        listed_keys = list(super().keys(prefix))
        if prefix in {"", "lab"}:
            archive_writer.archive(LocalStore(self.root), "y", large=False)
        return iter(listed_keys)


def test_what_is_completed_after_the_listing_is_never_damage(tmp_path):
    store = LateListing(tmp_path / "archive")
    archive_writer.archive(LocalStore(store.root), "x", large=False)
    unfinished = store.root / "lab/c/E-1/v002"
    unfinished.mkdir()
    archive_writer.archive(LocalStore(tmp_path / "other"), "y", large=False)
    (unfinished / "claim.json").write_bytes((tmp_path / "other/lab/c/E-1/v001/claim.json").read_bytes())
    assert verify_versions(store, "lab").ok
    assert [state.complete for state in list_versions(store, "lab", "c", "E-1")] == [True, True]


def test_a_version_that_is_not_in_the_register_is_registered_by_the_next_run(folder):
    folder.remove("lab/LEDGERS/VERSIONS/c/E-1")
    assert verify_versions(folder.store).findings == ()
    store = LocalStore(folder.store.root)
    first = archive_writer.archive(store, "x", large=False)
    (store.root / "lab/LEDGERS/VERSIONS/c/E-1/v004.json").unlink()
    again = archive_writer.archive(store, "x", large=False)
    assert (first.version, again.unchanged) == (4, True)
    folder.remove(f"{E1}/v004")
    assert damaged(verify_versions(folder.store)) == {f"{E1}/v004"}


def test_the_number_of_a_version_that_is_gone_is_not_given_again(folder):
    folder.remove(E1)
    record = archive_writer.archive(folder.store, "x", large=False)
    assert record.version == 4
    assert damaged(verify_versions(folder.store)) == {f"{E1}/v{number:03d}" for number in (1, 2, 3)}
    assert archive_writer.archive(folder.store, "x", large=False).unchanged
