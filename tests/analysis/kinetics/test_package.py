"""From zip to replicates: names, damage, limits, other assays."""

import io
import random
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from assay_lab.measure import build_package
from assay_lab.measure.bundled import CATALOG
from prefect_assay.analysis.kinetics import package, zip_reader
from prefect_assay.analysis.kinetics.analysis import Estimate, PackageAnalysis, Verdict
from prefect_assay.analysis.kinetics.package import analyze
from prefect_assay.analysis.kinetics.replicate import analyze_replicate
from prefect_assay.analysis.kinetics.response import curve
from prefect_assay.errors import InputError
from support.kinetics.packages import curve_files, published_files, summary_file, zipped
from support.kinetics.simulate import CONCENTRATIONS_M, Schedule, measured

SCHEDULE = Schedule(step_s=1.0)
TRUE = ("true", 1e-7, 1e5, 1e-2)


@pytest.fixture(scope="module")
def binder():
    clean = {c: 3.0 * curve(SCHEDULE.times, 1e5, 1e-2, c, 180.0) for c in CONCENTRATIONS_M}
    return measured(clean, np.random.default_rng(4), SCHEDULE)


def lab_package(experiment_type, count=12, method=None, name="design_{0}"):
    chance = random.Random(3)
    residues = ["".join(chance.choices("ACDEFGHIKLMNPQRSTVWY", k=90)) for _ in range(count)]
    target = next(record for record in CATALOG if record["uniprot_id"] != "P00533")
    binding = experiment_type in {"affinity", "screening", "epitope_binning"}
    return build_package(
        experiment_id="x",
        experiment_type=experiment_type,
        method=method,
        target=target if binding else None,
        sequences=[
            {"name": name.format(n), "aa_string": text, "control": False, "metadata": None}
            for n, text in enumerate(residues)
        ],
        n_replicates=2,
        antigen_concentrations=None,
        partial=False,
    )


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("design_7", "design_7"),
        ("design_2_1000", "design_2_1000"),
        (" P01133-971-1023", "_P01133-971-1023"),
        ("P01133-971-1023", "_P01133-971-1023"),
        ("a b|c:1", "a_b_c_1"),
    ],
)
def test_a_name_that_ends_in_numbers_or_has_odd_characters_is_found(binder, name, stem):
    files = curve_files(binder, stem, 2) | summary_file(
        (name, 1, "false", None, None, None), (name, 2, *TRUE)
    )
    (kinetics,) = analyze(zipped(files)).analysis.kinetics
    assert (kinetics.name, kinetics.replicate, kinetics.service.kd_M) == (name, 2, 1e-7)
    assert kinetics.verdict is Verdict.AGREES


def test_names_that_the_tables_lack_are_those_of_the_files(binder):
    (kinetics,) = analyze(zipped(curve_files(binder, "design_7"))).analysis.kinetics
    assert (kinetics.name, kinetics.replicate, kinetics.verdict) == ("design_7", 1, Verdict.REVIEW)
    assert "the service reports no K_D" in kinetics.reasons


@pytest.mark.parametrize("method", ["bli", "spr"])
def test_a_package_of_the_lab_agrees_with_its_summary(method):
    analysis = analyze(lab_package("affinity", method=method, name="v_{0}_3")).analysis
    assert analysis.notes == ()
    assert {item.unit for item in analysis.kinetics} == {"nm" if method == "bli" else "RU"}
    for item in analysis.kinetics:
        if item.service.binding != "true":
            assert (item.verdict, item.fit) == (Verdict.NO_BINDING, None)
    binders = [item for item in analysis.kinetics if item.service.binding == "true"]
    assert len(binders) >= 6
    assert sum(item.verdict is Verdict.AGREES for item in binders) >= 0.8 * len(binders)
    assert all(item.verdict in {Verdict.AGREES, Verdict.REVIEW} for item in binders)


def test_names_made_unique_or_cut_are_assigned_by_the_summary():
    kinetics = analyze(
        lab_package("affinity", count=4, method="bli", name="x" * 120 + "{0}")
    ).analysis.kinetics
    assert {item.name for item in kinetics} == {"x" * 120 + str(number) for number in range(4)}


@pytest.mark.parametrize("kept", [0, 1])
def test_without_its_row_a_replicate_has_the_method_of_the_experiment(kept):
    with zipfile.ZipFile(io.BytesIO(lab_package("affinity", count=2, method="spr"))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    rows = files.pop("aux/replicate_info.csv").splitlines()
    files |= {"aux/replicate_info.csv": b"\n".join(rows[: 1 + kept])} if kept else {}
    units = {item.unit for item in analyze(zipped(files), method=None if kept else "spr").analysis.kinetics}
    assert units == {"RU"}


@pytest.mark.parametrize(
    "experiment_type", ["expression", "fluorescence", "enzyme_activity", "epitope_binning"]
)
def test_packages_of_other_assays_are_empty(experiment_type):
    assert analyze(lab_package(experiment_type)).analysis == PackageAnalysis()


def test_a_screening_package_has_calls_and_no_affinity():
    replicates = analyze(lab_package("screening", method="bli")).analysis.kinetics
    assert {item.verdict for item in replicates} == {Verdict.AGREES, Verdict.NO_BINDING}
    assert all(item.fit is None for item in replicates)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"t,y\nnot,numbers\n", "not numeric"),
        (b"t,y\n0,1\n", "only 1 points"),
        (b"t,y\n", "no rows"),
        (b"t,y\n0,1,2\n0,1,2\n", "rows of 3 columns"),
        (b"t,y\n" + b"".join(b"%d,1\n" % (200 * n) for n in range(20)), "points 200 s apart"),
        (b"t,y\n" + b"".join(b"%f,1\n" % (n / 300) for n in range(2000)), "points 0.00333 s apart"),
        (b"t,y\n" + b"".join(b"%d,1\n" % n for n in range(20)) + b"4000000,1\n", "too uneven"),
        (b"\xff\xfe\x00", None),
    ],
)
def test_a_file_that_cannot_be_read_is_noted_and_the_rest_analysed(binder, content, cause):
    files = curve_files(binder, "good") | {"raw_data/bad_1_100.0.csv": content}
    analysis = analyze(zipped(files)).analysis
    assert [item.name for item in analysis.kinetics] == ["good"]
    assert len(analysis.notes) == (cause is not None)
    assert all("raw_data/bad_1_100.0.csv" in note and cause in note for note in analysis.notes)


@pytest.mark.parametrize(
    "written",
    [
        lambda text: text.replace("\n", "\r"),
        lambda text: text + "500.0,\n501.0,null\n502.0,nan\n",
        lambda text: "\n".join(
            ",".join(f'"{cell}"' for cell in line.split(",")) for line in text.splitlines()
        ),
    ],
    ids=["old line ends", "missing values", "quoted cells"],
)
def test_other_ways_to_write_a_table_are_read(binder, written):
    raw = {path: written(text) for path, text in curve_files(binder, "d").items()}
    analysis = analyze(zipped(raw | summary_file(("d", 1, *TRUE)))).analysis
    assert (analysis.notes, analysis.kinetics[0].verdict) == ((), Verdict.AGREES)


@pytest.mark.parametrize("baseline_s", [60, 600])
def test_readings_before_the_association_change_neither_fit_nor_curves(binder, baseline_s):
    rows = "".join(f"{second},0.01\n" for second in range(-baseline_s, 0))
    plain = curve_files(binder, "d")
    early = {path: text.replace("\n", f"\n{rows}", 1) for path, text in plain.items()}
    expected, analyzed = analyze(zipped(plain)), analyze(zipped(early))
    assert analyzed.analysis == expected.analysis
    for item in analyzed.replicates[0].curves:
        assert item.curve.time_s[0] == 0
        assert item.fitted.min() >= -0.1


def test_a_curve_that_ends_before_the_association_is_noted(binder):
    rows = "".join(f"{second},0.01\n" for second in range(-600, 0))
    files = curve_files(binder, "good") | {"raw_data/bad_1_100.0.csv": f"t,y\n{rows}"}
    analysis = analyze(zipped(files)).analysis
    assert [item.name for item in analysis.kinetics] == ["good"]
    assert analysis.notes == ("raw_data/bad_1_100.0.csv has only 0 points",)


def test_tables_with_semicolons_are_noted_and_not_guessed(binder):
    files = {
        path: text.replace(",", ";").replace(".", ",") for path, text in curve_files(binder, "d").items()
    }
    analysis = analyze(zipped(files)).analysis
    assert analysis.kinetics == ()
    assert "1 columns instead of 2" in analysis.notes[0]


def test_copies_of_macos_and_capital_endings_do_not_matter(binder):
    files = {path.replace(".csv", ".CSV"): text for path, text in curve_files(binder, "d").items()}
    copies = {"__MACOSX/" + path.replace("/", "/._"): "\0\5\26\7" for path in files}
    analysis = analyze(zipped(files | copies | summary_file(("d", 1, *TRUE)))).analysis
    assert (analysis.notes, analysis.kinetics[0].verdict) == ((), Verdict.AGREES)


def test_a_damaged_member_is_noted_and_the_rest_analysed(binder):
    data = bytearray(zipped(curve_files(binder, "good") | curve_files(binder[:1], "worse")))
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        info = archive.getinfo("raw_data/worse_1_0.0.csv")
    data[info.header_offset + 30 + len(info.filename) + 20] ^= 0xFF
    analysis = analyze(bytes(data)).analysis
    assert [item.name for item in analysis.kinetics] == ["good"]
    assert len(analysis.notes) == 1
    assert analysis.notes[0].startswith("raw_data/worse_1_0.0.csv cannot be read")


def test_a_file_that_decodes_to_more_than_the_limit_is_not_read(binder, monkeypatch):
    monkeypatch.setattr(zip_reader, "MEMBER_BYTES_MAX", 100_000)
    files = curve_files(binder, "good") | {"raw_data/bomb_1_100.0.csv": "t,y\n" + "0,0\n" * 100_000}
    analysis = analyze(zipped(files)).analysis
    assert [item.name for item in analysis.kinetics] == ["good"]
    assert "larger than the limit" in analysis.notes[0]


def test_no_more_is_decoded_than_the_limit_of_a_package(binder, monkeypatch):
    monkeypatch.setattr(zip_reader, "TOTAL_BYTES_MAX", 40_000)
    analysis = analyze(zipped(curve_files(binder, "good") | curve_files(binder, "zlast"))).analysis
    assert len(analysis.notes) >= 5
    assert all("larger than the limit" in note for note in analysis.notes)


def test_a_zip_of_too_many_files_is_refused(monkeypatch):
    monkeypatch.setattr(zip_reader, "MEMBERS_MAX", 3)
    with pytest.raises(InputError, match="4 files, over the limit of 3"):
        analyze(zipped({f"{n}": b"" for n in range(4)}))


def test_what_is_no_zip_is_refused(tmp_path):
    for table in (b"no zip", b"Time,Data1\n0,0.1\n", b"", b"PK\x03\x04 cut off"):
        with pytest.raises(InputError, match=r"the file cannot be read as a data package.*download it"):
            analyze(table)
        (tmp_path / "table.csv").write_bytes(table)
        with pytest.raises(InputError, match=r"table\.csv cannot be read as a data package"):
            analyze(tmp_path / "table.csv")
        with pytest.raises(InputError, match="cannot be read as a data package"):
            analyze(io.BytesIO(table))
    with pytest.raises(InputError, match=r"missing\.zip"):
        analyze(tmp_path / "missing.zip")


def test_temperatures_in_kelvin_are_noted_and_not_read():
    rows = "".join(f"{293 + n / 2},{1 / (1 + np.exp(-(n - 80) / 5))}\n" for n in range(160))
    analysis = analyze(zipped({"raw_data/d1_1.csv": f"T,ratio\n{rows}".encode()})).analysis
    assert analysis.melting == ()
    (note,) = analysis.notes
    assert "raw_data/d1_1.csv has temperatures up to 372.5" in note
    assert "kelvin" in note


@pytest.mark.parametrize(
    ("head", "scale", "cause"),
    [
        ("T,ratio", 4_000, "are they counts?"),
        ("T,F350", 1, "the columns T,F350"),
        ("Temperature,ratio", 1, "T in °C"),
    ],
)
def test_melting_curves_in_another_shape_are_noted_and_not_read(head, scale, cause):
    rows = "".join(f"{20 + n / 2},{scale / (1 + np.exp(-(n - 80) / 5)) + scale}\n" for n in range(150))
    analysis = analyze(zipped({"raw_data/d1_1.csv": f"{head}\n{rows}".encode()})).analysis
    assert analysis.melting == ()
    (note,) = analysis.notes
    assert cause in note


@pytest.mark.parametrize(
    "celsius", [np.linspace(25, 29.5, 50), np.r_[25 + np.arange(100) * 0.001, 95.0]], ids=["short", "held"]
)
def test_one_odd_melting_curve_leaves_the_others(celsius):
    good = np.arange(25, 95, 0.5)

    def write(temperatures):
        noise = np.random.default_rng(0).normal(0, 0.001, len(temperatures))
        ratios = 0.8 + 0.4 / (1 + np.exp(-(temperatures - 60) / 1.5)) + noise
        rows = (f"{one},{ratio}" for one, ratio in zip(temperatures, ratios, strict=True))
        return "\n".join(("T,ratio", *rows)).encode()

    analysis = analyze(
        zipped({"raw_data/odd_1.csv": write(celsius), "raw_data/good_1.csv": write(good)})
    ).analysis
    assert "good" in {melt.name for melt in analysis.melting}
    assert len(analysis.melting) + len(analysis.notes) >= 2


def test_curves_that_a_fit_refuses_are_noted_and_the_rest_analysed(binder, monkeypatch):
    def refuse(name, *rest):
        if name == "odd":
            raise ValueError("`x0` is infeasible")
        return analyze_replicate(name, *rest)

    monkeypatch.setattr(package, "analyze_replicate", refuse)
    analysis = analyze(zipped(curve_files(binder, "good") | curve_files(binder, "odd"))).analysis
    assert [item.name for item in analysis.kinetics] == ["good"]
    assert analysis.notes == ("the curves of odd, replicate 1, cannot be analysed: `x0` is infeasible",)


def test_what_the_service_reports_is_read_as_its_results_are(binder):
    def service(*cells):
        table = "name,replicate,binding,kd,kon,koff\nd1,1," + ",".join(cells)
        (item,) = analyze(zipped({**curve_files(binder, "d1"), "x_summary.csv": table})).analysis.kinetics
        return item.service

    service_values = service("binder", "1e-7", "1e5", "1e-2")
    assert (service_values.binding, service_values.kd_M) == ("true", 1e-7)
    assert service("Non binder", "", "", "").binding == "false"
    limited = service("true", ">1e-6", "0", "1_0")
    assert limited.model_dump(include={"kd_M", "kon_per_M_s", "koff_per_s"}) == {
        "kd_M": None,
        "kon_per_M_s": None,
        "koff_per_s": None,
    }
    assert limited.limits == {"kd_M": Estimate(value=None, low=1e-6)}
    assert service("true", "<5e-10", "", "").limits == {"kd_M": Estimate(value=None, high=5e-10)}


def test_path_bytes_and_open_file_give_the_same(tmp_path, binder):
    data = zipped(curve_files(binder, "good"))
    path = tmp_path / "package.zip"
    path.write_bytes(data)
    with path.open("rb") as file:
        assert analyze(data).analysis == analyze(path).analysis == analyze(file).analysis


def test_the_same_package_gives_the_same_bytes_in_another_process(tmp_path, published):
    path = tmp_path / "package.zip"
    path.write_bytes(zipped(published_files()))
    program = (
        "import sys, pathlib; from prefect_assay.analysis.kinetics.package import analyze; "
        "print(analyze(pathlib.Path(sys.argv[1])).analysis.model_dump_json())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == published.analysis.model_dump_json()
    assert PackageAnalysis.model_validate_json(done.stdout) == published.analysis
