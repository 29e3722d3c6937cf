"""The RO-Crate beside a manifest: read by the public library, sealed with the version, and no reason for a new one."""

import hashlib
import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from rocrate.rocrate import ROCrate

from prefect_assay.archive import (
    Document,
    LocalStore,
    Measurement,
    archive_version,
    campaign_crate,
    read_latest,
    ro_crate,
    verify_versions,
)
from prefect_assay.archive.archived import Manifest
from prefect_assay.errors import ArchiveError
from support.archive.stores import DyingStore

NAME = "ro-crate-metadata.json"
ABOUT = Measurement(experiment_type="affinity", method="bli", target="EGFR", designs=2)
CRATE = partial(ro_crate, about=ABOUT)
LATER = datetime(2026, 5, 1, tzinfo=UTC)
FILES = {
    "results.csv": b"name,kd_M\na,1e-9\n",
    "raw/experiment.json": b'{"stripe_quote_url": "https://pay.example/q/open-to-all"}',
    "packages/r-1.zip": b"zip",
    "packages/r-2.absent.json": b"{}",
    "receipt.json": b"{}",
}


def archive(store, files=FILES, now=datetime(2026, 1, 1, 12, tzinfo=UTC), crate=CRATE):
    return archive_version(
        store,
        "lab",
        campaign_id="c",
        experiment_id="e-1",
        experiment_code="E-1",
        results_status="all",
        documents=[
            Document(path=path, content_type="application/json", body=body, links=("stripe_quote_url",))
            for path, body in files.items()
        ],
        now=now,
        crate=crate,
    )


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "archive")


def entities(store, record):
    graph = json.loads((Path(record.location) / NAME).read_text())["@graph"]
    return {entity["@id"]: entity for entity in graph}


def test_the_public_library_reads_the_crate_with_all_its_files(store):
    record = archive(store)
    crate = ROCrate(record.location)
    assert crate.name == "E-1, version 1"
    assert crate.root_dataset["identifier"] == "e-1"
    assert crate.root_dataset["measurementTechnique"] == "bio-layer interferometry (BLI)"
    assert crate.root_dataset["datePublished"] == "2026-01-01T12:00:00+00:00"
    named = {entity.id for entity in crate.data_entities}
    in_folder = {p.relative_to(record.location).as_posix() for p in Path(record.location).rglob("*.*")}
    assert named == in_folder - {NAME}
    for path, body in FILES.items():
        entity = crate.get(path)
        assert entity["sha256"] == hashlib.sha256(body).hexdigest()
        assert entity["contentSize"] == str(len(body))
        assert entity["description"]


def test_every_reference_leads_to_an_entity_and_quantities_have_units(store):
    crate_entities = entities(store, archive(store))
    root = crate_entities["./"]
    for reference in (*root["hasPart"], *root["variableMeasured"]):
        assert reference["@id"] in crate_entities
    assert crate_entities[NAME]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert {crate_entities[v["@id"]]["name"] for v in root["variableMeasured"]} == {
        "kd_M",
        "kon_per_M_s",
        "koff_per_s",
    }
    assert crate_entities["#kd_M"]["unitCode"].endswith("UO_0000062")
    assert "license" not in root
    assert "creator" not in root


def test_an_assay_without_a_method_is_described_in_a_persons_words(store):
    about = Measurement(experiment_type="epitope_binning", designs=1, licence="CC-BY-4.0")
    root = entities(store, archive(store, crate=partial(ro_crate, about=about)))["./"]
    assert root["description"].startswith("epitope binning measurement of 1 protein designs")
    assert (root["measurementTechnique"], root["license"]) == ("epitope binning", "CC-BY-4.0")
    assert "variableMeasured" not in root


def test_no_link_of_an_answer_is_repeated(store):
    text = (Path(archive(store).location) / NAME).read_text()
    assert "pay.example" not in text
    assert "quote_url" not in text


def test_the_crate_is_sealed_with_its_version(store):
    record = archive(store)
    manifest = read_latest(store, "lab", "c", "E-1").manifest
    assert [file.path for file in manifest.files][-1] == NAME
    assert record.files == len(FILES) + 1
    assert verify_versions(store).ok
    path = Path(record.location) / NAME
    path.write_text(path.read_text().replace("EGFR", "HER2"))
    assert [(f.kind, f.key.rpartition("/")[2]) for f in verify_versions(store).findings] == [
        ("changed", NAME)
    ]
    path.unlink()
    assert [f.kind for f in verify_versions(store).findings] == ["missing"]


def test_a_second_run_later_changes_nothing(store):
    first = archive(store)
    assert archive(store, now=LATER) == first.model_copy(update={"unchanged": True})


def test_a_crate_that_describes_the_same_files_otherwise_is_no_reason_for_a_version(store):
    archive(store)
    other = ABOUT.model_copy(update={"target": "HER2"})
    assert archive(store, crate=partial(ro_crate, about=other)).unchanged


def test_a_lost_crate_is_archived_again_with_the_next_version(store):
    (Path(archive(store).location) / NAME).unlink()
    assert archive(store).version == 2


@pytest.mark.parametrize("writes", [1, 3, 6, 7])
def test_an_interrupted_version_is_finished_with_the_crate_it_began_with(store, writes):
    with pytest.raises(KeyboardInterrupt):
        archive(DyingStore(store, writes))
    record = archive(store, now=LATER)
    assert record.version == 1
    assert ROCrate(record.location).root_dataset["datePublished"] == "2026-01-01T12:00:00+00:00"
    assert verify_versions(store).findings == ()


def test_a_version_begun_with_another_description_is_left(store):
    with pytest.raises(KeyboardInterrupt):
        archive(DyingStore(store, 2))
    reworded = ABOUT.model_copy(update={"target": "HER2"})
    assert archive(store, crate=partial(ro_crate, about=reworded)).version == 2
    assert verify_versions(store).ok


def test_the_name_is_reserved(store):
    with pytest.raises(ArchiveError, match="rename one"):
        archive(store, {NAME: b"{}"}, crate=None)


def test_the_crate_of_a_campaign_names_its_experiments(store):
    experiments = (archive(store), archive(store, {"results.csv": b"2"}))
    folders = [Path(experiment.location) for experiment in experiments]
    sources = tuple(Manifest.model_validate_json((f / "manifest.json").read_bytes()) for f in folders)
    record = archive_version(
        store,
        "lab",
        campaign_id="c",
        experiment_id="c",
        experiment_code="REPORT",
        results_status="all",
        documents=[Document(path="report.html", content_type="text/html", body=b"<p>")],
        now=LATER,
        crate=partial(campaign_crate, sources=sources),
    )
    crate = ROCrate(record.location)
    assert crate.name == "Campaign c"
    crate_entities = entities(store, record)
    for reference, folder in zip(crate_entities["./"]["mentions"], folders, strict=True):
        assert (Path(record.location) / crate_entities[reference["@id"]]["url"]).resolve() == folder
    assert verify_versions(store).ok
