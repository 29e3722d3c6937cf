"""Measurements from a landscape: what the table says comes back within the stated noise, and the rest as asked."""

import io
import json
import math
import statistics
import zipfile

import pytest

from assay_lab.errors import ConfigurationError
from assay_lab.measure import LandscapeRules, consult_landscape, gb1, open_landscape
from lab_support.designs import EGFR, PD_L1, measure, order, sequence

TABLE = """sequence,target,kd_nM,binding,tm_C,expression,yield_mg_per_l,note
MKTAYIAKQR,P00533,20,,61.5,high,80,"best, so far"
MKTAYIAKQW,P00533,,false,55,medium,,
MKTAYIAKQE,P00533,,,,none,,
MKTAYIAKQD,My own target,400,true,,,6,
"""
BINDER, NONE, SILENT, OTHER = (f"MKTAYIAKQ{letter}" for letter in "RWED")
ABSENT = "MKTAYIAKQY"
BOUND = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"  # published, a binder of EGFR


@pytest.fixture(scope="module")
def landscape(tmp_path_factory):
    path = tmp_path_factory.mktemp("landscape") / "mine.csv"
    path.write_text(TABLE)
    return open_landscape(str(path))


def measured(landscape, residues, rules=None, **changes):
    """The summary entries by residues, the metadata and the package of one experiment."""
    fields = order([sequence(f"d{n}", text) for n, text in enumerate(residues)]) | changes
    told = consult_landscape(
        landscape, rules or LandscapeRules(), fields["experiment_type"], fields["target"], residues
    )
    result = measure(**fields, landscape=json.loads(json.dumps(told)))
    [record] = result.result_records
    return dict(zip(residues, record["summary"], strict=True)), record["metadata"], result.package


def test_binding_comes_from_the_table(landscape):
    entries, metadata, package = measured(landscape, [BINDER, NONE, SILENT, ABSENT])
    assert entries[BINDER]["kd_app"]["value"] == pytest.approx(20e-9, rel=0.35)
    assert [entries[key]["binding"] for key in (BINDER, NONE, SILENT, ABSENT)] == [
        "true",
        "false",
        "unknown",
        "unknown",
    ]
    assert entries[SILENT]["expression"] == "none"
    assert {entry["data_source"] for entry in entries.values()} == {"landscape"}
    assert metadata["landscape"]["name"] == "mine.csv"
    assert metadata["not_in_landscape"] == ["d3"]
    assert metadata["modelled_sequences"] == []
    told = json.loads(zipfile.ZipFile(io.BytesIO(package)).read("aux/landscape.json"))
    assert told["kd_noise"] == 0.1


def test_epitope_bins_rest_on_the_calls_of_the_table(landscape):
    residues = [BINDER, NONE, SILENT, ABSENT]
    binned, metadata, _ = measured(landscape, residues, experiment_type="epitope_binning", method=None)
    screened, _, _ = measured(landscape, residues, experiment_type="screening")
    for name in ("binding", "expression", "data_source"):
        assert [binned[key][name] for key in residues] == [screened[key][name] for key in residues]
    assert [binned[key]["binding"] for key in residues] == ["true", "false", "unknown", "unknown"]
    assert [bool(binned[key]["bin"]) for key in residues] == [True, False, False, False]
    assert metadata["modelled_sequences"] == []


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_replicates_scatter_by_the_stated_noise(noise):
    best = [gb1.make_sequence(four) for four in sorted(gb1.load_fitness(), key=gb1.load_fitness().get)[-100:]]
    rules = LandscapeRules(kd_noise=noise)
    changes = {"target": gb1.TARGET, "n_replicates": 5, "antigen_concentrations": [1000.0]}
    entries, _, _ = measured(open_landscape("gb1"), best, rules, **changes)
    errors = [
        math.log10(replicate["kd"] * gb1.load_fitness()[gb1.read_variant(residues)] / 10e-9)
        for residues, entry in entries.items()
        for replicate in entry["replicates"]
    ]
    assert statistics.fmean(errors) == pytest.approx(0, abs=0.05)
    assert statistics.pstdev(errors) == pytest.approx(noise, rel=0.15, abs=1e-9)


def test_the_seed_decides_the_noise(landscape):
    once, again, other = (
        measured(landscape, [BINDER], LandscapeRules(seed=seed))[0][BINDER]["kd_mean"]
        for seed in ("a", "a", "b")
    )
    assert once == again != other


@pytest.mark.parametrize(
    ("missing", "binding", "source"),
    [("unknown", "unknown", "landscape"), ("none", "false", "landscape"), ("model", "true", "measured")],
)
def test_a_design_that_the_table_does_not_have(landscape, missing, binding, source):
    known = BOUND  # published, but not in the landscape of its target
    entries, metadata, _ = measured(landscape, [BINDER, known], LandscapeRules(missing=missing))
    assert (entries[known]["binding"], entries[known]["data_source"]) == (binding, source)
    assert metadata["not_in_landscape"] == ["d1"]
    assert metadata["landscape_sequences"] == ["d0"]


def test_a_published_design_that_the_table_has_is_measured_from_the_table(tmp_path):
    (tmp_path / "t.csv").write_text(f"sequence,kd_pM\n{BOUND},900\n")
    entries, metadata, package = measured(open_landscape(str(tmp_path / "t.csv")), [BOUND])
    assert entries[BOUND]["kd_mean"] == pytest.approx(0.9e-9, rel=0.35)
    assert metadata["measured_sequences"] == []
    assert "aux/LICENSE-egfr_round1.txt" not in zipfile.ZipFile(io.BytesIO(package)).namelist()


def test_what_the_table_does_not_cover_stays_as_it_is(landscape):
    for changes in ({"target": PD_L1}, {"experiment_type": "fluorescence", "method": None, "target": None}):
        fields = order([sequence("a", BINDER)]) | changes
        assert (
            consult_landscape(
                landscape, LandscapeRules(), fields["experiment_type"], fields["target"], [BINDER]
            )
            is None
        )


def test_melting_comes_from_the_table(landscape):
    changes = {"experiment_type": "thermostability", "method": None, "target": None}
    rules = LandscapeRules(tm_noise=0)
    entries, _, package = measured(landscape, [BINDER, NONE, SILENT, ABSENT], rules, **changes)
    assert [entries[key]["tm"] for key in (BINDER, NONE, SILENT, ABSENT)] == [61.5, 55.0, None, None]
    assert entries[SILENT]["replicates"] == []
    assert "aux/landscape.json" in zipfile.ZipFile(io.BytesIO(package)).namelist()
    scattered, _, _ = measured(landscape, [BINDER], LandscapeRules(tm_noise=2), **changes)
    assert 0 < scattered[BINDER]["tm_std"] < 8


@pytest.mark.parametrize(("missing", "expression"), [("unknown", None), ("none", "none")])
def test_expression_comes_from_the_table(landscape, missing, expression):
    changes = {"experiment_type": "expression", "method": None, "target": None}
    rules = LandscapeRules(missing=missing)
    entries, _, _ = measured(landscape, [BINDER, NONE, SILENT, OTHER, ABSENT], rules, **changes)
    assert entries[BINDER]["yield_mean"] == pytest.approx(80, rel=0.3)
    assert [entries[key].get("expression") for key in (BINDER, NONE, SILENT, OTHER)] == [
        "high",
        "medium",
        "none",
        "low",
    ]
    assert entries[ABSENT].get("expression") == expression


def test_a_target_of_the_table_is_added_to_the_catalog(landscape):
    [added] = landscape.targets
    assert (added["name"], added["pricing"]["type"]) == ("My own target", "per_sequence")
    entries, _, _ = measured(landscape, [OTHER], target=added)
    assert entries[OTHER]["kd_mean"] == pytest.approx(400e-9, rel=0.35)


def test_binders_are_binned_as_the_table_has_them(landscape):
    changes = {"experiment_type": "epitope_binning", "method": None}
    entries, _, _ = measured(landscape, [BINDER, NONE, SILENT, ABSENT], **changes)
    assert [bool(entries[key]["bin"]) for key in (BINDER, NONE, SILENT, ABSENT)] == [
        True,
        False,
        False,
        False,
    ]


def test_gb1_is_whole_and_read_at_its_first_use_only():
    gb1.load_fitness.cache_clear()
    open_landscape("gb1")
    assert gb1.load_fitness.cache_info().currsize == 0
    assert len(gb1.load_fitness()) == 149_361
    assert gb1.load_fitness()["VDGV"] == 1
    assert max(gb1.load_fitness(), key=gb1.load_fitness().get) == "FWAA"


def test_gb1_is_ten_nanomolar_over_fitness():
    wild = open_landscape("gb1").lookup("affinity", gb1.TARGET)
    assert wild(gb1.WILD_TYPE) == {"binding": "true", "kd_M": 1e-8}
    assert wild(gb1.make_sequence("FWAA"))["kd_M"] == pytest.approx(1e-8 / 8.76, rel=1e-3)
    assert wild(gb1.make_sequence("AAAH")) == {"binding": "false"}
    absent = next(four for four in ("".join(p) for p in _fours()) if four not in gb1.load_fitness())
    assert wild(gb1.make_sequence(absent)) is None
    assert wild(gb1.WILD_TYPE[1:]) is None
    assert wild(gb1.WILD_TYPE.replace("MQYK", "MQYA")) is None
    assert open_landscape("gb1").lookup("affinity", EGFR) is None
    assert open_landscape("gb1").lookup("thermostability", None) is None


def _fours():
    letters = "ACDEFGHIKLMNPQRSTVWY"
    return ((a, b, c, d) for a in letters for b in letters for c in letters for d in letters)


@pytest.mark.parametrize("noise", [-0.1, math.nan, math.inf])
def test_noise_that_is_no_deviation_is_refused(noise):
    with pytest.raises(ConfigurationError, match="--landscape-kd-noise"):
        LandscapeRules(kd_noise=noise)
