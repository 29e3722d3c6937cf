"""Files of the lake: one per version, named by content, never twice, and checked by `verify`."""

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from prefect_assay.analysis import lake
from prefect_assay.archive import LocalStore, latest, verify
from prefect_assay.archive.layout import designs_part, lake_folder, lake_part, safe_name
from prefect_assay.errors import ArchiveError
from prefect_assay.orders.ledger import check_orders
from support.archive.campaigns import archive_rows, archive_two_campaigns, row
from support.archive.memory_store import MemoryStore


def parts(store, prefix=""):
    return sorted(key for key in store.keys(prefix) if lake_part(key) or designs_part(key))


def test_a_part_is_added_once_and_named_by_its_content(any_store):
    archive_rows(any_store, "lab", "Round 1", "LAB-001", [row("d1", "LAB-001", kd_M=1e-9)])
    version = latest(any_store, "lab", "Round 1", "LAB-001")
    address = lake.add(any_store, "lab", version)
    (key,) = parts(any_store)
    assert address == any_store.location(key)
    assert key.startswith(f"lab/LAKE/results/campaign={safe_name('Round 1')}/experiment=LAB-001/part-v001-")
    assert lake_part(key).sha256 == hashlib.sha256(any_store.read(key)).hexdigest()
    assert lake.add(any_store, "lab", version) == address
    assert parts(any_store) == [key]


def test_the_same_version_gives_the_same_bytes_anywhere(tmp_path):
    names = set()
    for folder in ("a", "b"):
        store = LocalStore(tmp_path / folder)
        archive_two_campaigns(store, "")
        assert lake.rebuild(store, "") == lake.Rebuilt(parts=8, added=8)
        names.add(tuple(parts(store)))
    assert len(names) == 1
    assert len(*names) == 8


def test_rebuild_writes_only_what_is_missing(any_store):
    archive_two_campaigns(any_store, "lab")
    lake.add(any_store, "lab", latest(any_store, "lab", "round-1", "LAB-002"))
    assert lake.rebuild(any_store, "lab") == lake.Rebuilt(parts=8, added=7)
    before = parts(any_store)
    assert lake.rebuild(any_store, "lab") == lake.Rebuilt(parts=8, added=0)
    assert parts(any_store) == before
    assert lake.query(any_store, "lab", lake.Query()).num_rows == 5


def test_a_prefix_does_not_see_the_archive_beside_it(local_store):
    archive_two_campaigns(local_store, "lab")
    assert lake.rebuild(local_store, "lab").parts == 8
    assert all(key.startswith("lab/LAKE/") for key in parts(local_store))
    assert lake.rebuild(local_store, "").added == 8


def test_a_report_is_a_part_with_the_rows_of_its_summary_table(local_store):
    version = latest(local_store, "", "round-1", "REPORT")
    address = lake.add(local_store, "", version)
    assert address.startswith(f"{local_store.root}/LAKE/designs/campaign=round-1/part-v001-")
    rows = pq.read_table(address, partitioning=None).to_pylist()
    assert [(row["name"], row["kd_M"]) for row in rows[:2]] == [("d1", pytest.approx(4.5e-9)), ("=d3", 2e-8)]
    assert {(row["campaign_id"], row["version"], row["manifest_sha256"]) for row in rows} == {
        ("round-1", 1, version.manifest_sha256)
    }
    for kept, design in zip(rows, lake.reported_designs(version), strict=True):
        values = design.model_dump(mode="json", exclude={"attributes"})
        assert {name: kept[name] for name in values} == values
        assert json.loads(kept["columns"]) == design.attributes


def test_documents_of_a_campaign_are_no_part(local_store):
    assert lake.add(local_store, "", latest(local_store, "", "round-1", "TABLE")) is None
    assert parts(local_store) == []


def test_a_version_that_cannot_be_read_is_a_note(local_store):
    table = local_store.root / "round-1/LAB-002/v001/results.csv"
    table.write_bytes(b"experiment_code" + table.read_bytes()[15:].replace(b"1", b"2", 1))
    done = lake.rebuild(local_store, "")
    assert (done.parts, done.added) == (7, 7)
    assert len(done.notes) == 1
    assert "results.csv has changed since it was archived" in done.notes[0]


def test_a_version_that_another_pyarrow_wrote_has_no_second_part(local_store):
    version = latest(local_store, "", "round-1", "LAB-002")
    other = b"other bytes of the same rows"
    folder = lake_folder("", "round-1", "LAB-002")
    key = f"{folder}/part-v001-{hashlib.sha256(other).hexdigest()}.parquet"
    local_store.put_if_absent(key, other, "application/vnd.apache.parquet")
    assert lake.add(local_store, "", version) == local_store.location(key)
    assert parts(local_store) == [key]


def test_an_archive_with_a_lake_is_intact(any_store):
    archive_two_campaigns(any_store, "lab")
    before = verify(any_store, "lab")
    lake.rebuild(any_store, "lab")
    report = verify(any_store, "lab")
    assert (report.findings, report.versions) == (before.findings, before.versions)
    assert report.checked == before.checked + 8
    assert list(check_orders(any_store, "lab")) == []


def test_a_changed_part_is_found_and_is_made_again(local_store):
    lake.rebuild(local_store, "")
    (key,) = (key for key in parts(local_store) if "LAB-002" in key)
    path = Path(local_store.location(key))
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (finding,) = verify(local_store).findings
    assert (finding.kind, finding.key) == ("changed", key)
    with pytest.raises(ArchiveError, match="not what was written; delete it"):
        lake.query(local_store, "", lake.Query())
    path.unlink()
    assert verify(local_store).ok
    assert lake.rebuild(local_store, "").added == 1
    assert path.read_bytes() == content


def test_a_foreign_file_in_the_lake_is_named(local_store):
    path = local_store.root / "LAKE/results/campaign=x/notes.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert [(finding.kind, finding.is_damage) for finding in verify(local_store).findings] == [
        ("foreign", False)
    ]


@pytest.mark.parametrize("campaign", ["lake", "LAKE", "Lake", "LAKE/results"])
def test_no_campaign_has_the_folder_of_the_lake(tmp_path, campaign):
    store = LocalStore(tmp_path)
    archive_rows(store, "", campaign, "LAB-001", [row("d1", "LAB-001", kd_M=1e-9)])
    assert not (tmp_path / "LAKE").exists()
    lake.rebuild(store, "")
    assert lake.query(store, "", lake.Query(campaign=campaign)).num_rows == 1
    assert verify(store).ok


def test_two_writers_make_one_part():
    store = MemoryStore()
    archive_rows(store, "", "c", "LAB-001", [row("d1", "LAB-001", kd_M=1e-9)])
    version = latest(store, "", "c", "LAB-001")
    writing = []

    def other_writer(key):
        if lake_part(key) and not writing:
            writing.append(key)
            lake.add(store, "", version)

    store.before_put = other_writer
    lake.add(store, "", version)
    assert parts(store) == writing


def test_a_missing_extra_is_named_before_anything_is_read(local_store, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    for call in (
        lambda: lake.rebuild(local_store, ""),
        lambda: lake.add(local_store, "", latest(local_store, "", "round-1", "LAB-002")),
        lambda: lake.query(local_store, "", lake.Query()),
    ):
        with pytest.raises(Exception, match=r"\[parquet\]"):
            call()
    assert parts(local_store) == []
