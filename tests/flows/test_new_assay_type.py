"""An assay type is added as one module and its registration, here and in the lab; a type without one is never given a number."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from breaks.play import ROOT, Copy
from prefect_assay.analysis.report.documents import make_report
from prefect_assay.analysis.results.tidy import list_unread_values, read_rows
from prefect_assay.archive import Document, LocalStore, archive_version
from prefect_assay.service.models.result import Result

PRODUCT = "src/prefect_assay/service"
LAB = "lab/src/assay_lab"
MODULE = '''
"""Mass photometry: the mass of a protein in solution."""

from typing import Final

from prefect_assay.service.assays.assay_type import AssayType, QuantityKind
from prefect_assay.service.models.vocabulary import ExperimentType

MASS: Final = QuantityKind(
    "the mass", "mass_kDa", ("mass_mean", "mass"), {"kDa": 1.0, "Da": 1e3}, ("kDa", "Da"), 1.0, 5000.0,
    title="Mass", description="molecular mass", unit_text="kDa",
)
MASS_PHOTOMETRY: Final = AssayType(
    experiment_type=ExperimentType.MASS_PHOTOMETRY,
    title="Mass photometry",
    measures="molecular mass",
    takes={},
    columns=(MASS,),
    measured=(MASS,),
    main=MASS,
)
'''
LAB_MODULE = '''
"""Mass photometry, as the lab makes it up."""

from assay_lab.measure.assays.assay_type import AssayType
from assay_lab.vocabulary import ExperimentType


def list_masses(request):
    """One entry per design, in Da."""
    return [
        {
            "result_type": "mass_photometry", "sequence": design.as_sequence(), "mass_mean": 110.0 * 1000 * place,
            "mass_units": "Da", "data_source": "model",
        }
        for place, design in enumerate(request.designs, 1)
    ]


MASS_PHOTOMETRY = AssayType(
    experiment_type=ExperimentType.MASS_PHOTOMETRY,
    title="Mass photometry",
    unit_cents=2_500,
    takes={},
    list_entries=list_masses,
    make_files=lambda request: iter(()),
    columns=(("Mass, Da", "mass_mean", "{:.0f}"),),
)
'''
WORD = '    ENZYME_ACTIVITY = "enzyme_activity"\n'
PLAY = """
import json, sys
from datetime import UTC, datetime
from pathlib import Path
from assay_lab.measure import measure_records
from assay_lab.testing import LocalLab
from prefect_assay.analysis.report.documents import make_report
from prefect_assay.analysis.results import to_csv, write_summary_csv
from prefect_assay.analysis.results.tidy import read_rows
from prefect_assay.archive import Document, LocalStore, archive_version
from prefect_assay.designs.campaign import split_into_batches
from prefect_assay.orders.purchase import describe_assay
from prefect_assay.service.models.result import Result
from prefect_assay.service.models.sequences import ProteinSequence, Sequences
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from prefect_assay.service.models.spec_rules import check_spec

designs = tuple(ProteinSequence(name=name, aa_string="MKVLAAGTWYHHEEDD" + name * 3) for name in "ACD")
assay = Assay(experiment_type="mass_photometry")
(batch,) = split_into_batches(Sequences(items=designs, source="x"), assay, 96)
spec = ExperimentSpec.of(assay, batch, None)
wrong = spec.model_copy(update={"n_replicates": 2, "method": "bli"})
with LocalLab() as lab, lab.http() as http:
    priced = http.post("/experiments/cost-estimate", json={"experiment_spec": spec.wire()}).json()
    refused = http.post("/experiments/cost-estimate", json={"experiment_spec": {**spec.wire(), "n_replicates": 2}})
(record,) = measure_records(
    experiment_id="e1", experiment_type="mass_photometry", method=None, target=None, n_replicates=3,
    sequences=[{"name": one.name, "aa_string": one.aa_string} for one in designs],
    antigen_concentrations=None, partial=False,
)
result = {"id": "r1", **record}
store = LocalStore(Path(sys.argv[1]))
archive_version(
    store, "", campaign_id="c", experiment_id="e1", experiment_code="LAB-001-001", results_status="all",
    documents=[Document(
        path="raw/results-0001.json", content_type="application/json",
        body=json.dumps({"items": [result], "total": 1}).encode(),
    )],
    now=datetime(2026, 1, 1, tzinfo=UTC),
)
report = make_report(store, "", "c")
table = read_rows([Result.model_validate({"experiment_id": "e1", **result})], ordered=designs)
page = report.page.decode()
print(json.dumps({
    "broken rules": list(check_spec(wrong)),
    "good": list(check_spec(spec)),
    "form": Assay.model_fields["experiment_type"].description.count("mass_photometry: molecular mass"),
    "words": describe_assay(assay, None),
    "price": priced["breakdown"]["total_cents"],
    "refused": [refused.status_code, "n_replicates: not applicable to mass_photometry" in refused.text],
    "rows": [[row.name, row.outcome, row.mass_kDa] for row in table],
    "in the table": "mass_kDa" in to_csv(table).decode().splitlines()[0],
    "summary": [[design.name, design.outcome, design.mass_kDa] for design in report.summaries],
    "in the summary": "mass_kDa" in write_summary_csv(report.summaries).decode().splitlines()[0],
    "page": ["Mass photometry" in page, "330 kDa" in page, "highest molecular mass" in page],
}))
"""


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, path
    path.write_text(text.replace(old, new), encoding="utf-8")


def register(root):
    """Here and in the lab: the word, the module, and its entry in the table."""
    for place, package, module in (
        (PRODUCT, "prefect_assay.service", MODULE),
        (LAB, "assay_lab.measure", LAB_MODULE),
    ):
        vocabulary = root / place / ("models/vocabulary.py" if place == PRODUCT else "vocabulary.py")
        change(vocabulary, WORD, WORD + '    MASS_PHOTOMETRY = "mass_photometry"\n')
        folder = root / place / ("assays" if place == PRODUCT else "measure/assays")
        (folder / "mass_photometry.py").write_text(module.lstrip(), encoding="utf-8")
        line = f"from {package}.assays.mass_photometry import MASS_PHOTOMETRY\n"
        change(
            folder / "__init__.py",
            f"from {package}.assays.fluorescence",
            f"{line}from {package}.assays.fluorescence",
        )
        change(folder / "__init__.py", "\n)\nASSAY_TYPES", "\n    MASS_PHOTOMETRY,\n)\nASSAY_TYPES")


def test_an_assay_type_is_one_module_beside_its_registration(tmp_path):
    copy = Copy.make(ROOT, tmp_path / "copy")
    register(copy.root)
    played = subprocess.run(
        [sys.executable, "-c", PLAY, str(tmp_path / "archive")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(copy.root / "build" / "package")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stderr
    measured = [["A", "measured", 110.0], ["C", "measured", 220.0], ["D", "measured", 330.0]]
    assert json.loads(played.stdout.splitlines()[-1]) == {
        "broken rules": [
            "method: mass_photometry takes none; leave it out",
            "n_replicates: mass_photometry takes none; leave it out",
        ],
        "good": [],
        "form": 1,
        "words": "mass photometry",
        "price": 7500,
        "refused": [400, True],
        "rows": measured,
        "in the table": True,
        "summary": measured[::-1],
        "in the summary": True,
        "page": [True, True, True],
    }


ENTRY = {"sequence": {"name": "a", "aa_string": "MKV", "control": False}, "kd_mean": 1e-9, "mass_mean": 110.0}


@pytest.fixture
def result():
    return {"id": "r1", "title": "t", "result_type": "mass_photometry", "summary": [ENTRY], "metadata": {}}


def test_a_type_without_an_entry_is_archived_as_it_came_and_given_no_number(result, tmp_path):
    raw = json.dumps({"items": [result], "total": 1}).encode()
    store = LocalStore(tmp_path)
    record = archive_version(
        store,
        "",
        campaign_id="c",
        experiment_id="e1",
        experiment_code="LAB-001-001",
        results_status="all",
        documents=[Document(path="raw/results-0001.json", content_type="application/json", body=raw)],
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    (kept,) = tmp_path.rglob("results-0001.json")
    assert kept.read_bytes() == raw
    (design,) = make_report(store, "", "c").summaries
    (row,) = read_rows([Result.model_validate({"experiment_id": "e1", **result})])
    for shown in (design, row):
        assert (shown.outcome, shown.kd_M, shown.tm_C, shown.concentration_nM) == (
            "unknown",
            None,
            None,
            None,
        )
    assert json.loads(row.extra)["mass_mean"] == 110.0
    (line,) = list_unread_values([Result.model_validate({"experiment_id": "e1", **result})])
    assert "kd_mean" in line
    assert "the unknown type 'mass_photometry'" in line
    assert record.experiment_code == "LAB-001-001"
