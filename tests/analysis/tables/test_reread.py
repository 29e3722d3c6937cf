"""Reading raw answers again: a new version from the same bytes, with the mapping that it was made with."""

import json
from datetime import UTC, datetime

import pytest

from prefect_assay.analysis.results import Outcome, from_csv
from prefect_assay.analysis.results.mapping import read_mapping
from prefect_assay.analysis.tables.reread import reread_experiments
from prefect_assay.analysis.tables.rows import Query, query_rows
from prefect_assay.archive import list_versions, read_latest, verify_versions
from prefect_assay.errors import ArchiveError, InputError
from support.archive.campaigns import archive_odd_answer

NOW = datetime(2026, 5, 1, tzinfo=UTC)
MAPPING = read_mapping(b'[fluorescence.fields.brightness]\ncolumn = "intensity_mean"', "map.toml")


def again(store, **options):
    (one,) = reread_experiments(store, "lab", now=NOW, **options)
    return one


def outcomes(store):
    version = read_latest(store, "lab", "round-1", "LAB-001")
    return {row.name: row.outcome for row in from_csv(version.read("results.csv"))}


def test_a_mapping_makes_a_version_from_the_same_bytes(any_store):
    archive_odd_answer(any_store, "lab")
    plain = again(any_store)
    assert (plain.record.version, plain.record.unchanged) == (2, False)
    assert outcomes(any_store) == {"d1": Outcome.UNKNOWN, "d2": Outcome.MISSING}

    mapped = again(any_store, campaign_id="round-1", mapping=MAPPING)
    assert (mapped.record.version, mapped.record.unchanged) == (3, False)
    assert outcomes(any_store) == {"d1": Outcome.MEASURED, "d2": Outcome.MISSING}

    kept = again(any_store)  # a later upgrade reads with the mapping that is there
    assert (kept.record.version, kept.record.unchanged) == (3, True)

    first, *_, last = (latest_files(any_store, number) for number in (1, 3))
    same = {path: file for path, file in first.items() if path != "results.csv"}
    assert {path: file for path, file in last.items() if path in same} == same
    assert {*last} - {*first} == {"mapping.json", "ro-crate-metadata.json"}
    assert verify_versions(any_store, "lab").ok


def latest_files(store, number):
    body = json.loads(store.read(f"lab/round-1/LAB-001/v{number:03d}/manifest.json"))
    return {file["path"]: file for file in body["files"]}


def test_the_table_shows_the_new_version(any_store):
    archive_odd_answer(any_store, "lab")
    again(any_store, mapping=MAPPING)
    table = query_rows(any_store, "lab", Query(outcome=Outcome.MEASURED))
    assert table.column("name").to_pylist() == ["d1"]


def test_only_what_is_asked_for_is_read(any_store):
    for campaign, code in (("round-1", "LAB-001"), ("round-1", "LAB-002"), ("round 2", "LAB-003")):
        archive_odd_answer(any_store, "lab", campaign=campaign, code=code)
    assert [
        one.experiment_code for one in reread_experiments(any_store, "lab", now=NOW, campaign_id="round 2")
    ] == ["LAB-003"]
    assert [
        one.experiment_code
        for one in reread_experiments(any_store, "lab", now=NOW, experiment_code="LAB-002")
    ] == ["LAB-002"]
    assert len(list_versions(any_store, "lab", "round-1", "LAB-001")) == 1
    assert len(reread_experiments(any_store, "lab", now=NOW)) == 3
    with pytest.raises(InputError, match="no archived experiment of campaign another"):
        reread_experiments(any_store, "lab", now=NOW, campaign_id="another")


def test_a_raw_answer_that_has_changed_is_not_read(local_store):
    archive_odd_answer(local_store, "lab")
    path = local_store.root / "lab/round-1/LAB-001/v001/raw/results-0001.json"
    path.chmod(0o644)
    path.write_bytes(b"{}")
    with pytest.raises(ArchiveError, match="has changed since it was archived"):
        reread_experiments(local_store, "lab", now=NOW)
