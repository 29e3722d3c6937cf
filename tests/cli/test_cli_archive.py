from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from prefect_assay.archive import Document, LocalStore, archive_version
from prefect_assay.blocks import LocalArchive
from prefect_assay.cli import prefect_api
from prefect_assay.cli.app import app
from prefect_assay.cli.archives.archive import open_archive, verify_archive
from prefect_assay.errors import ArchiveUnavailable, MissingBlock
from support.accounts import make_account
from support.command import command


@pytest.fixture
def archive(tmp_path):
    archive_version(
        LocalStore(tmp_path),
        "",
        campaign_id="round-1",
        experiment_id="e1",
        experiment_code="LAB-001-001",
        results_status="all",
        documents=[
            Document(path="results.csv", content_type="text/csv", body=b"name,kd_M\na,1e-9\n"),
            Document(path="raw/experiment.json", content_type="application/json", body=b"{}"),
        ],
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return tmp_path


def test_an_intact_archive(archive):
    done = command("archive", "verify", str(archive))
    assert done.code == 0, done.err
    assert "intact; 2 files in 1 version" in done.out


def test_one_experiment_of_it(archive):
    assert command("archive", "verify", str(archive / "round-1" / "LAB-001-001")).code == 0


def test_json(archive):
    report = command("archive", "verify", str(archive), "--json").json()
    assert report["ok"] is True
    assert report["checked"] == 2
    assert report["findings"] == []


def test_without_a_name_the_archive_of_the_account_main_is_read(archive, tmp_path, monkeypatch):
    named = []

    def load_account(name):
        named.append(f"account {name}")
        return make_account(archive=archive)

    def load_archive(name):
        named.append(f"archive {name}")
        return LocalArchive(root=str(tmp_path))

    monkeypatch.setattr(prefect_api, "require_api", lambda: None)
    monkeypatch.setattr(prefect_api, "load_account", load_account)
    monkeypatch.setattr(prefect_api, "load_archive", load_archive)
    store, prefix = open_archive(None, None)
    assert (named, store.root, prefix) == (["account main"], archive, "")
    store, _ = open_archive(None, "lab")
    assert (named, store.root) == (["account main", "archive lab"], tmp_path)
    store, _ = open_archive(None, None, "lab")
    assert (named[-1], store.root) == ("account lab", archive)


def test_a_missing_account_is_said_with_those_that_are_saved(monkeypatch):
    monkeypatch.setattr(prefect_api, "find_block", lambda *_: None)
    monkeypatch.setattr(prefect_api, "_other_accounts", lambda: "; saved: --account lab")
    with pytest.raises(
        MissingBlock, match=r"there is no account 'main' .*; saved: --account lab; make it with"
    ):
        prefect_api.load_account("main")


@pytest.mark.parametrize(
    "arguments",
    [
        ("results",), ("results", "--compare", "a", "b"), ("results", "--reread"), ("results", "--replicates"), ("report", "c"),
        ("archive", "verify"), ("archive", "tables"), ("designs", "history"), ("spending",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_each_command_that_reads_an_archive_takes_an_account(monkeypatch, arguments):
    def load_account(name):
        raise MissingBlock(f"asked for {name}")

    monkeypatch.setattr(prefect_api, "require_api", lambda: None)
    monkeypatch.setattr(prefect_api, "load_account", load_account)
    monkeypatch.setattr(prefect_api, "check_api_address", lambda: None)
    done = CliRunner().invoke(app, [*arguments, "--account", "lab"])
    assert "Error: asked for lab" in done.stderr


def test_damage_is_named_and_is_exit_code_1(archive):
    damaged = archive / "round-1" / "LAB-001-001" / "v001" / "results.csv"
    damaged.chmod(0o644)
    damaged.write_bytes(b"name,kd_M\na,2e-9\n")
    done = command("archive", "verify", str(archive))
    assert done.code == 1
    assert "changed: round-1/LAB-001-001/v001/results.csv" in done.out
    assert "1 damaged" in done.out
    report = command("archive", "verify", str(archive), "--json")
    assert report.code == 1
    assert [f["kind"] for f in report.json()["findings"]] == ["changed"]


@pytest.mark.parametrize("damaged", [True, False])
def test_what_the_store_does_not_answer_for_is_exit_code_5_unless_there_is_damage(
    archive, monkeypatch, capsys, damaged
):
    file = archive / "round-1" / "LAB-001-001" / "v001" / "results.csv"
    file.chmod(0o644)
    file.write_bytes(b"") if damaged else None
    whole = LocalStore.stream

    def stream(self, key):
        if key.endswith("raw/experiment.json"):
            raise ArchiveUnavailable("busy")
        return whole(self, key)

    monkeypatch.setattr(LocalStore, "stream", stream)
    with pytest.raises(SystemExit) as ended:
        verify_archive(archive, None, as_json=False)
    assert ended.value.code == (1 if damaged else 5)
    shown = capsys.readouterr().out
    assert "unavailable: round-1/LAB-001-001/v001/raw/experiment.json: busy" in shown
    assert ("changed: round-1/LAB-001-001/v001/results.csv" in shown) == damaged
    assert ("1 damaged, 1 could not be read now" if damaged else ": 1 could not be read now") in shown


@pytest.mark.parametrize("arguments", [[], ["somewhere", "--archive", "block"]])
def test_exactly_one_archive_is_named(arguments):
    done = command("archive", "verify", *arguments)
    assert done.code == 1
    assert "name one archive" in done.err


def test_a_folder_without_an_archive_is_never_called_intact(tmp_path):
    (tmp_path / "notes.txt").write_text("no archive")
    for path in (tmp_path, tmp_path / "missing"):
        done = command("archive", "verify", str(path))
        assert done.code == 1
        assert "intact" not in done.out
        assert "Traceback" not in done.err


def test_a_path_that_cannot_be_looked_at_is_named(tmp_path):
    done = command("archive", "verify", str(tmp_path / ("n" * 300)))
    assert done.code == 1
    assert "Error: " in done.err
    assert "Traceback" not in done.err
