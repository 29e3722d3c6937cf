"""The data package: readable, safe to unpack, honest about its curves, and quick to build."""

import csv
import io
import json
import re
import zipfile
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_lab.measure import build_package, measure_records
from assay_lab.measure.files import LENGTH_MAX, safe_names
from assay_lab.measure.model import binding_signal
from lab_support.designs import PD_L1, invented_designs, measure, order, sequence


def opened(content):
    archive = zipfile.ZipFile(io.BytesIO(content))
    assert archive.testzip() is None
    return archive


def rows(archive, name):
    return list(csv.DictReader(io.StringIO(archive.read(name).decode("utf-8"))))


def binder(count=40):
    """An invented design that binds, with its entry."""
    designs = invented_designs(count)
    [record] = measure_records(**order(designs))
    return next(
        (design, entry)
        for design, entry in zip(designs, record["summary"], strict=True)
        if entry["binding_strength"] == "medium"
    )


def test_the_layout_is_the_published_one():
    design, _ = binder()
    archive = opened(build_package(**order([design], n_replicates=2)))
    name = design["name"]
    names = archive.namelist()
    assert len(names) == len(set(names))
    concentrations = ["1000.0", "316.2", "100.0", "31.6", "0.0"]
    assert [n for n in names if n.startswith("raw_data/")] == [
        f"raw_data/{name}_{replicate}_{c}.csv" for replicate in (1, 2) for c in concentrations
    ]
    assert f"fit_data/{name}_1_100.0.csv" in names
    assert {"LAB-001-001_summary.csv", "aux/replicate_info.csv"} <= set(names)
    head = archive.read("aux/replicate_info.csv").decode().splitlines()[0]
    assert head == '"name","replicate","method","MAE","rel_MAE","rmax_estimate","source"'


def test_the_table_has_a_byte_order_mark_and_the_string_null():
    result = measure(**order(invented_designs(30)))
    raw = opened(result.package).read("LAB-001-001_summary.csv")
    assert raw.startswith(b"\xef\xbb\xbf")
    assert b',"null","null","null",' in raw
    table = list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"))))
    told = [(e["sequence"]["name"], r) for e in result.result_records[0]["summary"] for r in e["replicates"]]
    assert len(table) == len(told) == 90
    for row, (name, replicate) in zip(table, told, strict=True):
        assert row["name"] == name
        assert row["kd"] == ("null" if replicate["kd"] is None else str(replicate["kd"]))


def test_raw_curves_follow_the_reported_constants():
    design, entry = binder()
    archive = opened(build_package(**order([design])))
    info = rows(archive, "aux/replicate_info.csv")
    for replicate, fit in zip(entry["replicates"], info, strict=True):
        stem = f"raw_data/{design['name']}_{replicate['replicate']}"
        blank = [float(row["y"]) for row in rows(archive, f"{stem}_0.0.csv")]
        curve = rows(archive, f"{stem}_100.0.csv")
        times = [float(row["t"]) for row in curve]
        assert times[1] - times[0] == pytest.approx(0.2)
        assert times[-1] == 479.0
        rmax = float(fit["rmax_estimate"])
        expected = binding_signal(
            times, concentration_m=1e-7, kon=replicate["kon"], koff=replicate["koff"], rmax=rmax
        )
        errors = [abs(float(row["y"]) - b - y) for row, b, y in zip(curve, blank, expected, strict=True)]
        assert sum(errors) / len(errors) < 0.02 * rmax
        assert max(expected) > 0.05 * rmax
        assert float(fit["rel_MAE"]) < 0.02


def test_a_non_binder_has_a_flat_curve_and_no_fit():
    [record] = measure_records(**order(invented_designs(20)))
    design = next(
        d for d, e in zip(invented_designs(20), record["summary"], strict=True) if e["binding"] == "false"
    )
    archive = opened(build_package(**order([design], n_replicates=1)))
    assert not [name for name in archive.namelist() if name.startswith("fit_data/")]
    values = [float(row["y"]) for row in rows(archive, f"raw_data/{design['name']}_1_1000.0.csv")]
    assert max(map(abs, values)) < 0.3
    [info] = rows(archive, "aux/replicate_info.csv")
    assert (info["MAE"], info["rmax_estimate"]) == ("null", "null")


def test_what_is_not_expressed_has_no_curves():
    [record] = measure_records(**order(invented_designs(60)))
    design = next(
        d for d, e in zip(invented_designs(60), record["summary"], strict=True) if e["expression"] == "none"
    )
    archive = opened(build_package(**order([design])))
    assert not [name for name in archive.namelist() if name.startswith("raw_data/")]


def test_spr_is_in_response_units():
    design, _ = binder()
    archive = opened(build_package(**order([design], method="spr", n_replicates=1)))
    assert {row["signal_unit"] for row in rows(archive, "aux/curve_sources.csv")} == {"RU"}


def test_own_concentrations_name_the_files_once_each():
    design, _ = binder()
    archive = opened(build_package(**order([design], n_replicates=1, antigen_concentrations=[50, 50.0, 2.5])))
    raw = [name for name in archive.namelist() if name.startswith("raw_data/")]
    assert raw == [f"raw_data/{design['name']}_1_{c}.csv" for c in ("50.0", "2.5")]


HARD_NAMES = [
    " lead", "a/b", "a|b", "a:b", "A/B", "../../etc/passwd", "..", ".", "x\\y", 'q"uote', "tab\t", "Käse", "",
]  # fmt: skip


@pytest.mark.parametrize("experiment_type", ["affinity", "thermostability", "enzyme_activity"])
def test_any_name_makes_safe_distinct_files_and_stays_readable_in_the_table(experiment_type):
    designs = [sequence(n, d["aa_string"]) for n, d in zip(HARD_NAMES, invented_designs(13), strict=True)]
    binding = experiment_type == "affinity"
    archive = opened(
        build_package(
            **order(
                designs,
                experiment_id="a/b:c",
                experiment_type=experiment_type,
                method="bli" if binding else None,
                target=PD_L1 if binding else None,
                n_replicates=1,
            )
        )
    )
    names = archive.namelist()
    assert len({name.casefold() for name in names}) == len(names)
    for name in names:
        assert re.fullmatch(r"([a-z_]+/)?[A-Za-z0-9_-][A-Za-z0-9._-]*", name)
        assert ".." not in PurePosixPath(name).parts
    table = list(csv.DictReader(io.StringIO(archive.read("a_b_c_summary.csv").decode("utf-8-sig"))))
    assert {row["name"] for row in table} <= {name or "sequence 13" for name in HARD_NAMES}
    assert len(table) > 5


@given(st.lists(st.text(max_size=150), max_size=12))
@settings(max_examples=100)
def test_safe_names_are_safe_and_distinct(names):
    stems = safe_names(names)
    assert len(stems) == len(names) == len({stem.casefold() for stem in stems})
    for stem in stems:
        assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", stem)
        assert len(stem) <= LENGTH_MAX + 4


def test_plain_names_are_kept():
    assert safe_names(["gitter-yolo2", "x_1.5", " gitter-yolo2"]) == (
        "gitter-yolo2",
        "x_1.5",
        "_gitter-yolo2",
    )


def test_the_packages_of_other_assays_can_be_read():
    designs = invented_designs(8)
    thermo = opened(
        build_package(**order(designs, experiment_type="thermostability", method=None, target=None))
    )
    curve = rows(thermo, next(n for n in thermo.namelist() if n.startswith("raw_data/")))
    assert (curve[0]["T"], curve[-1]["T"]) == ("20.0", "95.0")
    assert float(curve[-1]["ratio"]) > float(curve[0]["ratio"])
    binning = opened(
        build_package(**order(designs, experiment_type="epitope_binning", method=None, target=PD_L1))
    )
    matrix = rows(binning, "raw_data/competition_matrix.csv")
    assert [row["name"] for row in matrix] == [design["name"] for design in designs]


@pytest.mark.parametrize(("count", "step"), [(13, "0.2"), (14, "1.0")])
def test_a_large_package_is_sampled_more_coarsely(count, step):
    archive = opened(build_package(**order(invented_designs(count))))
    assert {row["step_s"] for row in rows(archive, "aux/curve_sources.csv")} == {step}


def test_records_are_plain_json():
    json.dumps(measure_records(**order(invented_designs(4))), allow_nan=False)
