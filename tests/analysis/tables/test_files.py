"""Files of the all-campaign tables: the newest version of each report and experiment, replaced in place, and checked."""

import io
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prefect_assay.analysis.results.formats import write_parquet
from prefect_assay.analysis.tables.files import (
    MEDIA_TYPE,
    UpdatedTables,
    check_tables,
    update_tables,
    write_newest_table,
)
from prefect_assay.analysis.tables.rows import Query, query_rows
from prefect_assay.analysis.tables.summary import read_designs, read_reported_designs
from prefect_assay.archive import LocalStore, read_latest, verify_versions
from prefect_assay.archive.layout import experiment_folder, is_table, safe_name, table_key
from prefect_assay.errors import ArchiveError, ConfigurationError
from prefect_assay.orders.ledger import check_orders
from support.archive.campaigns import archive_rows, archive_two_campaigns, row
from support.archive.memory_store import MemoryStore

ROUND_2 = safe_name("Round 2")
FILES = [
    "TABLES/designs/round-1.parquet",
    f"TABLES/designs/{ROUND_2}.parquet",
    "TABLES/results/round-1/LAB-001.parquet",
    "TABLES/results/round-1/LAB-002.parquet",
    "TABLES/results/round-1/LAB-004.parquet",
    f"TABLES/results/{ROUND_2}/LAB-003.parquet",
]
KEY = "TABLES/results/c/LAB-001.parquet"


def table_keys(store, prefix=""):
    return sorted(filter(is_table, store.keys(prefix)))


def read(store, key):
    return pq.read_table(io.BytesIO(store.read(key))).to_pylist()


def archive_kd(store, kd_molar, *, day=1, prefix=""):
    archive_rows(store, prefix, "c", "LAB-001", [row("d1", "LAB-001", kd_M=kd_molar)], day=day)


def write(store, prefix=""):
    return write_newest_table(store, prefix, "c", "LAB-001")


def test_a_newer_version_takes_the_place_of_the_older_one(any_store):
    archive_kd(any_store, 1e-9, prefix="lab")
    assert write(any_store, "lab")
    assert not write(any_store, "lab"), "it agrees"
    archive_kd(any_store, 2e-9, day=2, prefix="lab")
    assert write(any_store, "lab")
    assert table_keys(any_store, "lab") == [f"lab/{KEY}"]
    (record,) = read(any_store, f"lab/{KEY}")
    assert (record["version"], record["kd_M"]) == (2, 2e-9)
    assert record["manifest_sha256"] == read_latest(any_store, "lab", "c", "LAB-001").manifest_sha256


def test_one_table_has_the_newest_rows_of_all_campaigns(any_store):
    archive_two_campaigns(any_store, "lab")
    write_newest_table(any_store, "lab", "round-1", "LAB-002")
    assert update_tables(any_store, "lab") == UpdatedTables(files=6, written=5)
    assert table_keys(any_store) == [f"lab/{key}" for key in FILES]
    assert update_tables(any_store, "lab") == UpdatedTables(files=6, written=0)
    assert query_rows(any_store, "lab", Query()).num_rows == 5


def test_the_same_version_gives_the_same_bytes_anywhere(tmp_path):
    contents = []
    for folder in ("a", "b"):
        store = LocalStore(tmp_path / folder)
        archive_two_campaigns(store, "")
        update_tables(store, "")
        contents.append([store.read(key) for key in FILES])
    assert contents[0] == contents[1]


def test_a_prefix_does_not_see_the_archive_beside_it(local_store):
    archive_two_campaigns(local_store, "lab")
    assert update_tables(local_store, "lab").files == 6
    assert all(key.startswith("lab/TABLES/") for key in table_keys(local_store))
    assert update_tables(local_store, "").written == 6


def test_the_designs_are_the_rows_of_the_summary_table(local_store):
    version = read_latest(local_store, "", "round-1", "REPORT")
    assert write_newest_table(local_store, "", "round-1", "REPORT")
    rows = read(local_store, "TABLES/designs/round-1.parquet")
    assert [(row["name"], row["kd_M"]) for row in rows[:2]] == [("d1", pytest.approx(4.5e-9)), ("=d3", 2e-8)]
    assert {(row["campaign_id"], row["version"], row["manifest_sha256"]) for row in rows} == {
        ("round-1", 1, version.manifest_sha256)
    }
    for kept, design in zip(rows, read_reported_designs(version), strict=True):
        values = design.model_dump(mode="json", exclude={"attributes"})
        assert {name: kept[name] for name in values} == values
        assert json.loads(kept["columns"]) == design.attributes


def test_documents_of_a_campaign_are_in_no_table(local_store):
    assert not write_newest_table(local_store, "", "round-1", "TABLE")
    assert table_keys(local_store) == []


def test_a_version_that_cannot_be_read_is_a_note(local_store):
    table = local_store.root / "round-1/LAB-002/v001/results.csv"
    table.write_bytes(b"experiment_code" + table.read_bytes()[15:].replace(b"1", b"2", 1))
    updated = update_tables(local_store, "")
    assert (updated.files, updated.written) == (5, 5)
    assert len(updated.notes) == 1
    assert "results.csv has changed since it was archived" in updated.notes[0]


def test_a_table_that_another_pyarrow_wrote_stays(local_store):
    update_tables(local_store, "")
    key = FILES[3]
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(local_store.read(key))), sink, compression="zstd")
    local_store.replace(key, sink.getvalue(), MEDIA_TYPE)
    assert update_tables(local_store, "").written == 0
    assert list(check_tables(local_store, "")) == []
    assert local_store.read(key) == sink.getvalue()


def test_a_campaign_whose_name_readers_pass_over_is_in_the_tables(tmp_path):
    """pandas and Polars read no file and no folder whose name begins with `_`."""
    store = LocalStore(tmp_path)
    for campaign in ("_a", "b"):
        archive_rows(store, "", campaign, "_LAB-1", [row("d1", "_LAB-1", kd_M=1e-9)])
    update_tables(store, "")
    table = pq.read_table(tmp_path / "TABLES/results")
    assert table.column("campaign_id").to_pylist() == ["_a", "b"]
    assert query_rows(store, "", Query(campaign="_a")).num_rows == 1
    assert read_designs(store, "").notes == ()


def test_of_two_writers_the_one_with_the_newer_version_stays(monkeypatch):
    """The other has read its version before the newer one came, and writes afterwards."""
    store = MemoryStore()
    archive_kd(store, 1e-9)
    replace = store.replace
    versions_written = []

    def overtaken(key, data, content_type):
        if not versions_written:
            versions_written.append(0)
            archive_kd(store, 2e-9, day=2)
            write(store)
        versions_written.append(pq.read_schema(io.BytesIO(data)).metadata[b"version"])
        replace(key, data, content_type)

    monkeypatch.setattr(store, "replace", overtaken)
    assert write(store)
    assert versions_written == [0, b"2", b"1", b"2"]
    assert [record["kd_M"] for record in read(store, KEY)] == [2e-9]


def test_a_run_that_was_killed_between_version_and_table_is_noticed(local_store):
    update_tables(local_store, "")
    archive_rows(local_store, "", "round-1", "LAB-002", [row("=d3", "LAB-002", kd_M=3e-8)], day=4)
    archive_rows(local_store, "", "round-1", "LAB-005", [row("d6", "LAB-005", kd_M=3e-8)], day=4)
    assert [(finding.kind, finding.key, finding.is_damage) for finding in check_tables(local_store, "")] == [
        ("outdated", FILES[3], False),
        ("outdated", "TABLES/results/round-1/LAB-005.parquet", False),
    ]
    advice = "has results that are not in the tables; run `prefect-assay archive tables`"
    assert read_designs(local_store, "").notes == (
        f"campaign round-1: LAB-002 {advice}",
        f"campaign round-1: LAB-005 {advice}",
    )
    assert update_tables(local_store, "").written == 2
    assert list(check_tables(local_store, "")) == []
    assert read_designs(local_store, "").notes == ()


def test_an_archive_with_tables_is_intact(any_store):
    archive_two_campaigns(any_store, "lab")
    assert list(check_tables(any_store, "lab")) == [], "there are none"
    before = verify_versions(any_store, "lab")
    update_tables(any_store, "lab")
    assert verify_versions(any_store, "lab") == before
    assert list(check_tables(any_store, "lab")) == []
    assert list(check_orders(any_store, "lab")) == []


def flip_a_bit(content):
    position = content.index(b"=d3")
    return content[:position] + b"=d4" + content[position + 3 :]


def other_value(content):
    table = pq.read_table(io.BytesIO(content))
    values = pa.array([1e-12] * table.num_rows)
    return write_parquet(
        table.set_column(table.schema.get_field_index("kd_M"), table.schema.field("kd_M"), values)
    )


@pytest.mark.parametrize("damage", [flip_a_bit, other_value, lambda content: content[:-1], lambda _: b""])
def test_a_changed_table_is_found_and_is_written_again(local_store, damage):
    update_tables(local_store, "")
    key = FILES[3]
    content = local_store.read(key)
    local_store.replace(key, damage(content), MEDIA_TYPE)
    (finding,) = check_tables(local_store, "")
    assert (finding.kind, finding.key) == ("changed", key)
    assert "run `prefect-assay archive tables`" in finding.detail
    if damage is not other_value:  # which is a readable file
        with pytest.raises(ArchiveError, match=r"cannot be read: .*; run `prefect-assay archive tables`"):
            query_rows(local_store, "", Query())
    assert update_tables(local_store, "").written == 1
    assert local_store.read(key) == content


def test_a_table_without_a_version_is_refused(local_store):
    update_tables(local_store, "")
    bare = pq.read_table(io.BytesIO(local_store.read(FILES[3]))).replace_schema_metadata(None)
    local_store.replace(FILES[3], write_parquet(bare), MEDIA_TYPE)
    with pytest.raises(ArchiveError, match="does not say of what version it is"):
        query_rows(local_store, "", Query())
    assert [finding.kind for finding in check_tables(local_store, "")] == ["changed"]


def test_rows_of_a_campaign_that_was_moved_away_are_named(local_store):
    update_tables(local_store, "")
    (local_store.root / ROUND_2).rename(local_store.root.parent / "elsewhere")
    assert [(finding.kind, finding.key) for finding in check_tables(local_store, "")] == [
        ("foreign", FILES[1]),
        ("foreign", FILES[5]),
    ]


def test_a_foreign_file_in_the_tables_is_named(local_store):
    path = local_store.root / "TABLES/results/notes.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert [(finding.kind, finding.is_damage) for finding in verify_versions(local_store).findings] == [
        ("foreign", False)
    ]


@pytest.mark.parametrize("campaign", ["tables", "TABLES", "Tables", "TABLES/results"])
def test_no_campaign_has_the_folder_of_the_tables(tmp_path, campaign):
    store = LocalStore(tmp_path)
    archive_rows(store, "", campaign, "LAB-001", [row("d1", "LAB-001", kd_M=1e-9)])
    assert not (tmp_path / "TABLES").exists() or campaign == "tables"
    update_tables(store, "")
    assert query_rows(store, "", Query(campaign=campaign)).num_rows == 1


def test_without_pyarrow_the_extra_is_named(local_store, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for use in (
        lambda: update_tables(local_store, ""),
        lambda: write_newest_table(local_store, "", "round-1", "LAB-002"),
        lambda: query_rows(local_store, "", Query()),
    ):
        with pytest.raises(ConfigurationError, match=r"\[parquet\]"):
            use()
    assert table_keys(local_store) == []


def test_the_key_of_a_table_follows_from_the_folder_of_its_version():
    assert table_key(experiment_folder("lab", "Round 2", "LAB-003")) == f"lab/{FILES[5]}"
    assert table_key(experiment_folder("", "round-1", "REPORT")) == FILES[0]
