"""Reading the rows of all campaigns: the newest version only, filters, order, and the columns that say where a row comes from."""

import io
import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyarrow import parquet

from prefect_assay.analysis.results import COLUMNS, Outcome
from prefect_assay.analysis.results.formats import write_parquet
from prefect_assay.analysis.tables.designs import read_measured_designs
from prefect_assay.analysis.tables.files import MEDIA_TYPE, make_results_schema, update_tables
from prefect_assay.analysis.tables.rows import Query, query_rows, read_earlier_replicates
from prefect_assay.archive import LocalStore, read_latest
from prefect_assay.archive.layout import is_table
from prefect_assay.errors import ArchiveError
from support.archive.campaigns import TARGET, archive_rows, archive_two_campaigns, row


@pytest.fixture
def filled(any_store):
    archive_two_campaigns(any_store, "lab")
    update_tables(any_store, "lab")
    return any_store


def names(store, **fields):
    return query_rows(store, "lab", Query(**fields)).column("name").to_pylist()


def test_the_newest_version_counts_and_measured_designs_come_first(filled):
    table = query_rows(filled, "lab", Query())
    rows = [(record["name"], record["outcome"], record["version"]) for record in table.to_pylist()]
    assert rows == [
        ("d1", "measured", 2),
        ("=d3", "measured", 1),
        ("d4", "measured", 1),
        ("d2", "no_binding", 2),
        ("d5", "no_binding", 2),
    ]


def test_a_row_says_where_it_comes_from(filled):
    (record,) = query_rows(filled, "lab", Query(experiment="lab-002")).to_pylist()
    version = read_latest(filled, "lab", "round-1", "LAB-002")
    assert {name: record[name] for name in record if name not in COLUMNS} == {
        "campaign_id": "round-1",
        "experiment_id": "id-LAB-002",
        "version": 1,
        "results_status": "all",
        "manifest_sha256": version.manifest_sha256,
        "archived_at": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "target": TARGET["name"],
        "target_id": TARGET["target_catalog_id"],
    }
    assert {name: record[name] for name in COLUMNS} == row(
        "=d3", "LAB-002", kd_M=2e-8, extra='{"a": 1}'
    ).model_dump(mode="json")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"campaign": "Round 2"}, ["d4"]),
        ({"target": "egfr"}, ["d1", "=d3", "d2", "d5"]),
        ({"name": "D3"}, ["=d3"]),
        ({"result_type": "thermostability"}, ["d4"]),
        ({"outcome": Outcome.NO_BINDING}, ["d2", "d5"]),
        ({"outcome": Outcome.PENDING}, []),
        ({"replicates": True, "experiment": "LAB-001"}, ["d1", "d1", "d2"]),
        ({"limit": 2}, ["d1", "=d3"]),
    ],
)
def test_filters_and_order(local_store, fields, expected):
    update_tables(local_store, "")
    table = query_rows(local_store, "", Query(**fields))
    design_names = table.column("name").to_pylist()
    assert sorted(design_names) == sorted(expected) if fields.get("replicates") else design_names == expected


def test_what_cannot_be_read_is_named(local_store):
    with pytest.raises(ArchiveError, match="archive tables"):
        query_rows(local_store, "", Query())
    update_tables(local_store, "")
    with pytest.raises(ArchiveError, match="no results of campaign elsewhere"):
        query_rows(local_store, "", Query(campaign="elsewhere"))


def test_an_experiment_without_a_readable_target(local_store):
    archive_rows(local_store, "", "c", "LAB-009", [row("x", "LAB-009", kd_M=1e-9)], target="odd")
    update_tables(local_store, "")
    (record,) = query_rows(local_store, "", Query(campaign="c")).to_pylist()
    assert (record["target"], record["target_id"]) == (None, None)


def test_limits_and_zeros_are_no_affinities(local_store):
    """As in `summarize`: first what was measured, then what is only known to be above a value."""
    rows = [
        row("above", "LAB-001", kd_M=1e-12, qualifier=">"),
        row("zero", "LAB-001", kd_M=0.0),
        row("none", "LAB-001"),
        row("worse", "LAB-001", kd_M=5e-9),
        row("below", "LAB-001", kd_M=1e-9, qualifier="<"),
    ]
    archive_rows(local_store, "", "limits", "LAB-001", rows)
    update_tables(local_store, "")
    best = query_rows(local_store, "", Query(campaign="limits")).to_pylist()
    assert [record["name"] for record in best] == ["below", "worse", "above", "none", "zero"]


def test_the_scatter_of_earlier_campaigns_is_what_they_had_by_then(any_store):
    def replicates(code, *kds):
        return [row("d", code, level="replicate", replicate=n, kd_M=kd) for n, kd in enumerate(kds, start=1)]

    archive_rows(any_store, "lab", "round-0", "LAB-010", replicates("LAB-010", 1e-9), day=1)
    replaced = [made.model_copy(update={"result_id": "r-0"}) for made in replicates("LAB-010", 4e-9, 5e-9)]
    both = [row("d", "LAB-010", result_id="r-0"), *replaced, row("d", "LAB-010")]
    archive_rows(any_store, "lab", "round-0", "LAB-010", [*both, *replicates("LAB-010", 1e-9, 2e-9)], day=3)
    archive_rows(any_store, "lab", "round-0", "LAB-010", replicates("LAB-010", 1e-9, 2e-9, 3e-9), day=9)
    archive_rows(any_store, "lab", "round-1", "LAB-011", replicates("LAB-011", 5e-9, 6e-9), day=2)
    noon = datetime(2026, 3, 5, tzinfo=UTC)
    assert read_earlier_replicates(any_store, "lab", "round-1", noon) == (), "there is no table yet"
    update_tables(any_store, "lab")
    assert len(query_rows(any_store, "lab", Query(campaign="round-0", replicates=True))) == 3
    earlier = read_earlier_replicates(any_store, "lab", "round-1", noon)
    assert sorted(replicate.kd_M for replicate in earlier) == [1e-9, 2e-9]
    assert read_earlier_replicates(any_store, "lab", "round-0", datetime(2026, 3, 1, tzinfo=UTC)) == ()


def test_real_intervals_know_no_simulated_scatter_and_simulated_ones_no_real(tmp_path):
    store = LocalStore(tmp_path / "archive")

    def experiment(code, source, kds, *, is_said_of_replicates):
        extra = json.dumps({"data_source": source}) if source else None
        of_replicates = extra if is_said_of_replicates else None
        parts = (
            row(f"d{code}", code, level="replicate", replicate=n, kd_M=kd, extra=of_replicates)
            for n, kd in enumerate(kds, start=1)
        )
        return [row(f"d{code}", code, extra=extra), *parts]

    sources = [("real", None), ("lab-1", "model"), ("lab-2", "landscape"), ("lab-3", "measured")]
    for number, (campaign, source) in enumerate(sources):
        code = f"LAB-{number:03}"
        for version, day in enumerate((1, 9)):  # the later version is not read
            kds = [1e-9, (2 + number + version) * 1e-9]
            rows = experiment(code, source, kds, is_said_of_replicates=number % 2 == 0)
            archive_rows(store, "", campaign, code, rows, day=day)
    update_tables(store, "")
    noon = datetime(2026, 3, 5, tzinfo=UTC)
    for simulated, expected in ((False, {1, 2}), (True, {1, 3, 4, 5})):
        earlier = read_earlier_replicates(store, "", "new", noon, simulated=simulated)
        assert {round(replicate.kd_M * 1e9) for replicate in earlier} == expected


def rewrite_tables(store, change):
    """Write every file of `results` as another version of this package had written it."""
    for key in filter(is_table, store.keys("TABLES/results")):
        table = parquet.read_table(io.BytesIO(store.read(key)))
        store.replace(key, write_parquet(change(table)), MEDIA_TYPE)


ALL_COLUMNS = [field.name for field in make_results_schema()]


@pytest.mark.parametrize(
    "left_out", [name for name in ALL_COLUMNS if name not in {"name", "level", "outcome"}]
)
def test_tables_of_another_version_are_read(tmp_path, left_out):
    """A column less in each file, and in one of them a column more."""
    store = LocalStore(tmp_path / "archive")
    archive_two_campaigns(store, "")
    update_tables(store, "")
    rewrite_tables(store, lambda table: table.drop_columns([left_out]))
    first = True

    def add_one(table):
        nonlocal first
        more = [f"v{n}" if first else n for n in range(table.num_rows)]  # also of another type
        first = False
        return table.append_column("later_column", pa.array(more))

    if left_out == "tm_C":
        rewrite_tables(store, add_one)
    every = query_rows(store, "", Query(replicates=True))
    assert {*every.column("name").to_pylist()} == {"d1", "d2", "=d3", "d4", "d5"}
    assert {*every.column(left_out).to_pylist()} == {None}
    assert len(query_rows(store, "", Query())) == 5
    read_earlier_replicates(store, "", "another", datetime(2027, 1, 1, tzinfo=UTC))
    assert read_measured_designs(store, "").designs
    assert update_tables(store, "").written == 4, "and this version completes them"
    assert update_tables(store, "").written == 0


def test_a_value_that_does_not_fit_its_column_is_named(local_store):
    update_tables(local_store, "")
    rewrite_tables(
        local_store,
        lambda table: table.drop_columns(["kd_M"]).append_column("kd_M", pa.array(["much"] * table.num_rows)),
    )
    with pytest.raises(ArchiveError, match=r"TABLES/results/.* cannot be read"):
        query_rows(local_store, "", Query())
