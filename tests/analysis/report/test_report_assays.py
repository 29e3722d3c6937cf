"""Every type of assay has a page: its own values, its own curves, no word about what it does not measure."""

import io
import json
import re
import zipfile
from datetime import UTC, datetime

import pytest

from assay_lab.measure import build_package, measure_records
from lab_support.designs import EGFR, invented_designs, order
from prefect_assay.analysis.report.documents import archive_report, make_report
from prefect_assay.archive import Document, LocalStore, archive_version, read_latest
from prefect_assay.service.assays import METHOD_TYPES
from prefect_assay.service.models.vocabulary import ExperimentType
from support.kinetics.packages import zipped


def without_tables(package):
    """A data package of raw data alone."""
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        return zipped({name: archive.read(name) for name in archive.namelist() if "raw_data/" in name})


def report_of(kind, folder, method="bli", change_package=lambda package: package):
    """Four designs in two replicates, measured by the lab's model."""
    binds = kind in {"affinity", "screening", "epitope_binning"}
    fields = order(
        invented_designs(4),
        experiment_type=kind,
        method=method if kind in METHOD_TYPES else None,
        target=EGFR if binds else None,
        n_replicates=2,
    )
    spec = {
        "experiment_type": kind,
        "method": fields["method"],
        "sequences": {sequence["name"]: sequence["aa_string"] for sequence in fields["sequences"]},
    }
    (record,) = measure_records(**fields)
    result = {"id": "r1", "title": "t", "result_type": kind, **record}
    archive_version(
        LocalStore(folder),
        "",
        campaign_id="c",
        experiment_id="e1",
        experiment_code="LAB-001-001",
        results_status="all",
        documents=[
            Document(
                path="raw/results-0001.json",
                content_type="application/json",
                body=json.dumps({"items": [result], "total": 1}).encode(),
            ),
            Document(
                path="packages/r1.zip",
                content_type="application/zip",
                body=change_package(build_package(**fields)),
            ),
            Document(
                path="spec.json",
                content_type="application/json",
                body=json.dumps(spec).encode(),
            ),
        ],
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return make_report(LocalStore(folder), "", "c")


@pytest.mark.parametrize("kind", ExperimentType)
def test_every_type_of_assay_has_a_page(kind, tmp_path):
    made = report_of(str(kind), tmp_path)
    page = re.sub(r"<svg.*?</svg>", "", made.page.decode(), flags=re.DOTALL)
    assert len(made.summaries) == 4
    for design in made.summaries:
        assert f"<bdi>{design.name}</bdi>" in page
    assert [note for note in made.notes if "cannot be read" in note] == []


@pytest.mark.parametrize("has_package", [False, True])
def test_curves_are_of_their_own_experiment_where_two_share_a_result_id(has_package, tmp_path):
    """A result without an id is `row-1` in each experiment."""
    store = LocalStore(tmp_path)
    first = report_of("affinity", tmp_path, change_package=without_tables)
    version = read_latest(store, "", "c", "LAB-001-001")
    documents = [
        Document(path=path, content_type=file.content_type, body=version.read(path))
        for path, file in version.files.items()
        if has_package or not path.startswith("packages/")
    ]
    archive_version(
        store,
        "",
        campaign_id="c",
        experiment_id="e2",
        experiment_code="LAB-001-002",
        results_status="all",
        documents=documents,
        now=datetime(2026, 1, 2, tzinfo=UTC),
    )
    made = make_report(store, "", "c")
    verdicts = {(design.experiment_code, design.name): design.verdict for design in made.summaries}
    assert any(design.verdict for design in first.summaries)
    for design in first.summaries:
        assert verdicts["LAB-001-001", design.name] == design.verdict
        assert verdicts["LAB-001-002", design.name] == (design.verdict if has_package else None)
    assert archive_report(store, "", made, now=datetime(2026, 1, 3, tzinfo=UTC)).version == 1


@pytest.mark.parametrize(("method", "unit"), [("spr", "RU"), ("bli", "nm")])
def test_curves_have_the_unit_of_the_method_of_the_experiment(method, unit, tmp_path):
    made = report_of("affinity", tmp_path, method, without_tables)
    assert f"response ({unit})" in made.page.decode()


def test_melting_curves_are_shown_with_their_temperatures(tmp_path):
    made = report_of("thermostability", tmp_path)
    body = made.page.decode()
    assert body.count("<title>Melting curve of ") > 3
    assert "highest melting temperature: " in body
    assert "fitted here (95 %)" in body
    assert "two-state" in body
    assert "1:1 model" not in body
