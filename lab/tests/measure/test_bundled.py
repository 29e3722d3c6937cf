"""Designs that were really measured come back with what was measured."""

import csv
import io
import math
import zipfile

import pytest

from assay_lab.measure import build_package, measure_records
from assay_lab.measure.assays import binding
from assay_lab.measure.bundled import Replicate, data_folder
from assay_lab.measure.request import AssayRequest
from lab_support.designs import PD_L1, invented_designs, measure, order, sequence, submitted_designs

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"  # residues 971 to 1023 of P01133


def published():
    text = (data_folder() / "egfr_round1" / "egfr_round1_summary.csv").read_bytes().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def number(cell):
    return None if cell == "null" else float(cell)


@pytest.fixture(scope="module")
def result():
    return measure(**order(submitted_designs()))


@pytest.fixture(scope="module")
def package(result):
    return zipfile.ZipFile(io.BytesIO(result.package))


def test_every_published_value_comes_back_unchanged(result):
    [record] = result.result_records
    entries = {entry["sequence"]["aa_string"]: entry for entry in record["summary"]}
    assert len(entries) == 11
    assert len(published()) == 33
    for row in published():
        replicate = entries[row["sequence"]]["replicates"][int(row["replicate"]) - 1]
        assert replicate["replicate"] == int(row["replicate"])
        for field in ("kd", "kon", "koff"):
            assert replicate[field] == number(row[field])
        for field in ("expression", "binding", "binding_strength"):
            assert replicate[field] == row[field]
        assert replicate["data_source"] == "measured"


def test_the_binder_has_the_mean_of_its_replicates(result):
    entry = next(e for e in result.result_records[0]["summary"] if e["sequence"]["aa_string"] == BINDER)
    kds = [float(row["kd"]) for row in published() if row["sequence"] == BINDER]
    assert entry["kd_units"] == "M"
    assert entry["kd_mean"] == pytest.approx(sum(kds) / 3)
    assert entry["kd_mean"] == pytest.approx(9.281e-8, rel=1e-3)
    logs = [math.log10(kd) for kd in kds]
    centre = sum(logs) / 3
    assert entry["kd_log_std"] == pytest.approx(math.sqrt(sum((x - centre) ** 2 for x in logs) / 2))
    assert (entry["binding"], entry["binding_strength"], entry["place"]) == ("true", "medium", 1)
    # What the table does not have is not made up.
    assert [entry[name] for name in ("kd_app", "fit_quality", "concentration_value")] == [None] * 3


def test_a_non_binder_has_no_constants_and_an_uncertain_replicate_stays_unknown(result):
    entries = {e["sequence"]["name"].strip(): e for e in result.result_records[0]["summary"]}
    yolo5 = entries["gitter-yolo5"]
    assert [row["binding"] for row in yolo5["replicates"]] == ["false", "unknown", "false"]
    assert (yolo5["binding"], yolo5["binding_strength"]) == ("false", "none")
    assert (yolo5["kd_mean"], yolo5["kd_log_std"], yolo5["place"]) == (None, None, None)
    assert entries["gitter-yolo10"]["expression"] == "medium"  # high, low, medium


def test_names_stay_as_submitted_and_the_source_is_named(result):
    [record] = result.result_records
    names = [row["name"] for row in submitted_designs()]
    assert names[0] == " gitter-yolo2"
    assert [entry["sequence"]["name"] for entry in record["summary"]] == names
    assert record["metadata"]["measured_sequences"] == names
    assert record["metadata"]["modelled_sequences"] == []
    assert "Anthony Gitter" in record["metadata"]["attribution"]


def test_the_packaged_sensorgrams_are_the_measured_ones(package):
    """The submitted names carry a leading space, so even the file names are those of the data set."""
    folder = data_folder() / "egfr_round1" / "raw_data"
    files = list(folder.iterdir())
    assert len(files) == 20
    for file in files:
        real = list(csv.reader(io.StringIO(file.read_text())))
        packed = list(csv.reader(io.StringIO(package.read(f"raw_data/{file.name}").decode())))
        assert packed == real


def test_the_package_has_the_source_of_each_curve(package):
    rows = list(csv.DictReader(io.StringIO(package.read("aux/curve_sources.csv").decode())))
    measured = {row["file"] for row in rows if row["source"] == "measured"}
    folder = data_folder() / "egfr_round1" / "raw_data"
    assert measured == {f"raw_data/{file.name}" for file in folder.iterdir()}
    assert {row["source"] for row in rows} == {"measured", "model"}
    assert all(row["signal_unit"] == "nm" for row in rows)
    assert "MIT License" in package.read("aux/LICENSE-egfr_round1.txt").decode()


def test_the_packaged_table_equals_the_published_one(package):
    packed = list(csv.DictReader(io.StringIO(package.read("LAB-001-001_summary.csv").decode("utf-8-sig"))))

    def comparable(rows):
        return sorted(
            [tuple(v if k in {"kd", "kon", "koff"} else v.strip() for k, v in r.items()) for r in rows]
        )

    def numbers(rows):
        return [tuple(None if c == "null" else c for c in r) for r in rows]

    ours, theirs = numbers(comparable(packed)), numbers(comparable(published()))
    assert list(packed[0]) == list(published()[0])
    for a, b in zip(ours, theirs, strict=True):
        assert a[:4] == b[:4]
        assert a[7:] == b[7:]
        assert [x and float(x) for x in a[4:7]] == [x and float(x) for x in b[4:7]]


def test_added_replicates_are_marked_and_change_no_summary():
    three = measure_records(**order(submitted_designs()))[0]
    five = measure_records(**order(submitted_designs(), n_replicates=5))[0]
    name = " P01133-971-1023"
    assert five["metadata"]["modelled_replicates"][name] == [4, 5]
    assert three["metadata"]["modelled_replicates"] == {}
    before = next(e for e in three["summary"] if e["sequence"]["name"] == name)
    after = next(e for e in five["summary"] if e["sequence"]["name"] == name)
    assert after["replicates"][:3] == before["replicates"]
    assert [row["data_source"] for row in after["replicates"][3:]] == ["model", "model"]
    for row in after["replicates"][3:]:
        assert 2e-8 < row["kd"] < 4e-7
        assert row["kd"] == pytest.approx(row["koff"] / row["kon"])
    for field in ("kd_mean", "kd_log_std", "kon_mean", "koff_mean", "binding", "expression"):
        assert after[field] == before[field]


def test_fewer_replicates_are_the_first_measured_ones():
    [record] = measure_records(**order([sequence("x", BINDER)], n_replicates=1))
    [entry] = record["summary"]
    assert entry["kd_mean"] == 9.59821745799102e-8
    assert entry["kd_log_std"] is None


def test_residues_decide_not_the_name():
    [record] = measure_records(**order([sequence("anything", BINDER.lower())]))
    assert record["summary"][0]["data_source"] == "measured"


@pytest.mark.parametrize(
    "changes", [{"target": PD_L1}, {"method": "spr"}, {"experiment_type": "thermostability", "target": None}]
)
def test_other_conditions_are_the_model(changes):
    [record] = measure_records(**order([sequence("x", BINDER)], **changes))
    assert record["summary"][0]["data_source"] == "model"
    assert record["metadata"]["modelled_sequences"] == ["x"]
    assert "attribution" not in record["metadata"]


def test_spr_of_the_measured_binder_is_near_its_measured_constant():
    [record] = measure_records(**order([sequence("x", BINDER)], method="spr", n_replicates=5))
    assert 4e-8 < record["summary"][0]["kd_mean"] < 2e-7


def test_spr_packages_no_bli_sensorgram():
    archive = zipfile.ZipFile(io.BytesIO(build_package(**order([sequence("x", BINDER)], method="spr"))))
    rows = list(csv.DictReader(io.StringIO(archive.read("aux/curve_sources.csv").decode())))
    assert len(rows) == 15
    assert {(row["source"], row["signal_unit"]) for row in rows} == {("model", "RU")}


def test_modelled_replicates_never_outvote_measured_ones():
    def row(number, source, called):
        return Replicate(number, *called, None, None, None, source)

    measured = [row(n, "measured", ("low", "false", "none")) for n in (1, 2)]
    added = [row(n, "model", ("high", "true", "strong")) for n in (3, 4, 5)]
    request = AssayRequest(**order([sequence("x", BINDER)]))
    told = binding.make_call(request, request.designs[0], (*measured, *added), "affinity")
    assert [told[name] for name in ("binding", "binding_strength", "expression")] == ["false", "none", "low"]
    assert told["data_source"] == "measured+model"


def test_a_screening_call_is_measured_too_and_is_no_affinity():
    [record] = measure_records(**order(submitted_designs(), experiment_type="screening"))
    calls = {e["sequence"]["name"].strip(): e["binding"] for e in record["summary"]}
    assert calls["P01133-971-1023"] == "true"
    assert calls["gitter-yolo2"] == "false"
    assert all("kd_mean" not in entry for entry in record["summary"])
    assert record["metadata"]["modelled_sequences"] == []


def test_a_package_without_measured_designs_has_no_licence_file():
    packed = zipfile.ZipFile(io.BytesIO(build_package(**order(invented_designs(2)))))
    assert not [name for name in packed.namelist() if "LICENSE" in name]
