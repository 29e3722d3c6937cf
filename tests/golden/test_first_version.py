"""The archive that version 0.1.0 wrote, one campaign of each assay type, is read by every later version.

`archive-0.1.0.zip` is kept as it is and never made again: what fails here would fail for users with their archives. The
expected values stand in the archive itself, in the tables that 0.1.0 wrote, and in `PAID_CENTS`.
"""

import csv
import io
import zipfile

import pytest
from pyarrow.dataset import dataset

from prefect_assay.analysis.report.contents import collect_contents
from prefect_assay.analysis.results import to_csv
from prefect_assay.archive import LocalStore, read_latest
from prefect_assay.archive.layout import REPORT_CODE, TABLE_CODE, TABLE_PATH
from prefect_assay.service.models.vocabulary import ExperimentType
from support.command import command
from support.pages import ROOT

PAID_CENTS = {
    "affinity": 151_200,
    "enzyme-activity": 45_600,
    "epitope-binning": 75_600,
    "expression": 19_200,
    "fluorescence": 22_000,
    "screening": 51_600,
    "thermostability": 24_400,
}

kinds = pytest.mark.parametrize("kind", list(ExperimentType))


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first-version")
    zipfile.ZipFile(ROOT / "tests" / "golden" / "archive-0.1.0.zip").extractall(folder)
    return folder


def campaign_of(kind):
    return f"golden-{kind.replace('_', '-')}"


def read_csv(body):
    return list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"))))


def test_each_file_is_intact(archive):
    done = command("archive", "verify", str(archive))
    assert done.code == 0
    assert "intact; 168 files in 28 versions" in done.out


@kinds
def test_the_laboratorys_answers_give_the_rows_that_were_archived(archive, kind):
    store, campaign = LocalStore(archive), campaign_of(kind)
    kept = read_csv(read_latest(store, "", campaign, TABLE_CODE).read(TABLE_PATH))
    rows = read_csv(to_csv(collect_contents(store, "", campaign).rows))
    assert kept
    assert [{column: row[column] for column in kept[0]} for row in rows] == kept


@kinds
def test_the_results_command_shows_the_designs_of_the_archived_summary(archive, kind):
    version = read_latest(LocalStore(archive), "", campaign_of(kind), REPORT_CODE)
    shown = command("results", campaign_of(kind), "--archive", str(archive), "--json").json()["results"]
    columns = ("name", "outcome", "kd_M", "tm_C", "verdict", "aa_string")

    def pick_columns(rows):
        return [tuple(str(row[column] or "") for column in columns) for row in rows]

    summary = pick_columns(read_csv(version.read("summary.csv")))
    assert len(summary) > 2
    assert sorted(pick_columns(shown)) == sorted(summary)


def test_every_order_is_known_as_paid_once_with_its_amount(archive):
    orders = command("spending", "--archive", str(archive), "--json").json()["orders"]
    assert {row["campaign_id"]: (row["state"], row["rail"], row["amount_cents"]) for row in orders} == {
        f"golden-{name}": ("paid", "x402-exact", cents) for name, cents in PAID_CENTS.items()
    }
    assert len(orders) == len(PAID_CENTS)


def test_the_tables_are_read_with_one_pattern(archive):
    table = dataset(sorted(map(str, archive.glob("TABLES/designs/*.parquet")))).to_table()
    assert set(table["campaign_id"].to_pylist()) == {campaign_of(kind) for kind in ExperimentType}
