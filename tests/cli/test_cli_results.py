"""`prefect-assay archive tables` and `prefect-assay results`, as a user runs them."""

import csv
import io

import pyarrow.parquet as pq
import pytest

from prefect_assay.analysis.tables.files import update_tables
from prefect_assay.archive import LocalStore
from prefect_assay.orders.ledger.campaign_log import CampaignLog, Started, StartedKind
from support.archive.campaign_records import some_terms
from support.archive.campaigns import archive_odd_answer, archive_two_campaigns
from support.command import command


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    store = LocalStore(tmp_path_factory.mktemp("archive"))
    archive_two_campaigns(store, "")
    update_tables(store, "")
    return str(store.root)


def test_the_tables_are_written_once_and_then_read(tmp_path):
    archive_two_campaigns(LocalStore(tmp_path), "")
    done = command("results", "--archive", str(tmp_path))
    assert done.code == 1
    assert "`prefect-assay archive tables` writes the tables" in done.err
    done = command("archive", "tables", str(tmp_path))
    assert (done.code, done.out) == (0, f"{tmp_path}/TABLES: 6 files, 6 written now\n"), done.err
    assert command("archive", "tables", str(tmp_path), "--json").json() == {
        "location": f"{tmp_path}/TABLES",
        "files": 6,
        "written": 0,
        "notes": [],
        "candidates": {"files": 0, "written": 0, "notes": []},
    }
    assert "d1" in command("results", "--archive", str(tmp_path)).out


def test_a_version_that_cannot_be_read_is_named_and_is_exit_code_1(tmp_path):
    archive_two_campaigns(LocalStore(tmp_path), "")
    (tmp_path / "round-1/LAB-002/v001/results.csv").write_bytes(b"")
    done = command("archive", "tables", str(tmp_path))
    assert done.code == 1
    assert "round-1/LAB-002/v001/results.csv has changed since it was archived" in done.err
    assert "5 files, 5 written now" in done.out


def test_the_screen_shows_affinities_of_binders_only(archive):
    done = command("results", "--archive", archive)
    assert done.code == 0, done.err
    names = ("d1", "=d3", "d4", "d2", "d5")
    lines = [line for line in done.out.splitlines() if {*names} & {*line.split()}]
    assert [next(word for word in line.split() if word in names) for line in lines] == [*names]
    assert "4.50 nM" in lines[0], "the mean over the replicates"
    assert "5.00 nM" in lines[0], "the laboratory's own"
    assert "1.00 pM" not in done.out  # the fitted number of d2, which does not bind
    assert "Fold" not in done.out  # an empty column
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_account_and_its_mode_are_named_with_the_campaigns(tmp_path):
    store = LocalStore(tmp_path)
    archive_two_campaigns(store, "")
    update_tables(store, "")
    CampaignLog(store, "", "round-1").start(
        Started(
            what=StartedKind.CAMPAIGN, name="round-1", terms=some_terms(account_name="lab", simulated=True)
        )
    )
    for options in (["round-1", "Round 2"], ["round-1", "Round 2", "--compare"]):
        done = command("results", *options, "--archive", str(tmp_path))
        assert done.code == 0, done.err
        assert "account lab, simulated: round-1\n" in done.out
        assert "account not known, no log that can be read: Round 2\n" in done.out


def test_filters(archive):
    def names(*options):
        return [
            row["name"]
            for row in command("results", "--archive", archive, *options, "--json").json()["results"]
        ]

    assert len(names("Round 2", "round-1")) == 5
    assert names("Round 2", "--type", "thermostability") == ["d4"]
    assert names("--target", "egfr", "--outcome", "measured", "--limit", "1") == ["d1"]
    assert names("--experiment", "LAB-004", "--name", "D5") == ["d5"]


def test_the_rows_of_the_laboratory(archive, tmp_path):
    def rows(*options):
        return command("results", "--archive", archive, "--replicates", *options, "--json").json()["rows"]

    assert [row["outcome"] for row in rows("--experiment", "LAB-004")] == ["no_binding"]
    assert [row["kd_M"] for row in rows("round-1", "--experiment", "LAB-001", "--name", "d1")] == [
        4.5e-9,
        5e-9,
    ]
    shown = command("results", "--archive", archive, "--replicates")
    assert "d1 (1)" in shown.out
    assert "1.00 pM" not in shown.out  # the fitted number of d2, which does not bind
    done = command("results", "--archive", archive, "--replicates", "--csv", "-", "--limit", "1")
    (first,) = csv.DictReader(io.StringIO(done.out))
    assert (first["level"], first["kd_M"], first["version"]) == ("replicate", "4.5e-09", "2")


def test_files(archive, tmp_path):
    done = command(
        "results", "--archive", archive, "--csv", "rows.csv", "--parquet", "rows.parquet", cwd=tmp_path
    )
    assert (done.code, done.out) == (0, ""), done.err
    assert "5 rows in rows.csv" in done.err
    rows = list(csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text(encoding="utf-8-sig"))))
    assert [row["name"] for row in rows] == ["d1", "'=d3", "d4", "d2", "d5"]
    assert float(rows[0]["kd_M"]) == pytest.approx(4.5e-9), (
        "as on the screen, and not the laboratory's own mean"
    )
    exact = pq.read_table(tmp_path / "rows.parquet")
    assert exact.column("name").to_pylist() == ["d1", "=d3", "d4", "d2", "d5"]
    printed = command("results", "--archive", archive, "--csv", "-", "--limit", "1")
    assert [row["name"] for row in csv.DictReader(io.StringIO(printed.out.removeprefix("\ufeff")))] == ["d1"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--csv", "-", "--json"], 2, "only one of"),
        (["--csv", "/dev/null/x"], 2, "cannot be written"),
        (["elsewhere"], 1, "holds no results of campaign elsewhere yet"),
        (["--compare", "round-1"], 2, "name at least two campaigns"),
        (["--replicates", "round-1", "Round 2"], 2, "name one, or none"),
    ],
)
def test_what_is_wrong_is_named(archive, options, code, message):
    done = command("results", "--archive", archive, *options)
    assert done.code == code
    assert message in done.err + done.out
    assert "Traceback" not in done.err


def test_archived_answers_are_read_again_with_a_mapping(tmp_path):
    """What no published shape has becomes a result, without another request to the service."""
    archive_odd_answer(LocalStore(tmp_path / "archive"))
    mapping = tmp_path / "map.toml"
    mapping.write_text('[fluorescence.fields.brightness]\ncolumn = "intensity_mean"\n', encoding="utf-8")
    run = ("results", "--archive", str(tmp_path / "archive"), "--reread")
    done = command(*run, "round-1", "--mapping", str(mapping))
    assert done.code == 0, done.err
    assert "LAB-001: read again, version 2 in " in done.out
    assert "d1" in command("results", "--archive", str(tmp_path / "archive"), "--outcome", "measured").out
    assert "LAB-001: unchanged, version 2 in " in command(*run).out
    (one,) = command(*run, "--json").json()["experiments"]
    assert (one["record"]["version"], one["record"]["unchanged"]) == (2, True)


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (["--mapping", "map.toml"], "--mapping would be ignored: it needs --reread"),
        (["--reread", "--limit", "1"], "--limit would be ignored: --reread takes"),
        (["--reread", "--mapping", "map.toml"], "name it, as in"),
        (["--reread", "round-1", "--mapping", "none.toml"], "none.toml"),
        (["--reread", "round-9"], "no archived experiment of campaign round-9"),
    ],
)
def test_reading_again_says_what_is_wrong(archive, options, cause):
    done = command("results", "--archive", archive, *options)
    assert done.code != 0
    assert cause in " ".join(done.err.split())
