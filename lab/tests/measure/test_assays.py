"""All seven assays: shapes, units, the three kinds of no answer, and the same answer every time."""

import hashlib
import json
import math
import subprocess
import sys

import pytest

from assay_lab.measure import CATALOG, measure_records
from assay_lab.measure.assays import BINDING_TYPES, METHOD_TYPES
from assay_lab.measure.assays.expression import molecular_weight
from assay_lab.vocabulary import ExperimentType
from lab_support.designs import PD_L1, invented_designs, measure, order, sequence

MANY = invented_designs(96)


def fields(experiment_type, sequences, **changes):
    return order(
        sequences,
        experiment_type=str(experiment_type),
        method="bli" if experiment_type in METHOD_TYPES else None,
        target=PD_L1 if experiment_type in BINDING_TYPES else None,
        **changes,
    )


def half_measured(designs):
    return [{**row, "measured": place < len(designs) // 2} for place, row in enumerate(designs)]


def name_of(entry):
    """Of a melting experiment, `sequence` is the residues alone."""
    return entry["sequence_name"] if "sequence_name" in entry else entry["sequence"]["name"]


@pytest.mark.parametrize("experiment_type", ExperimentType)
@pytest.mark.parametrize("partial", [False, True])
def test_every_assay_gives_an_entry_per_design(experiment_type, partial):
    designs = invented_designs(8)
    sent = half_measured(designs) if partial else designs
    result = measure(**fields(experiment_type, sent, partial=partial))
    [record] = result.result_records
    assert set(record) == {"result_type", "title", "summary", "metadata"}
    assert [name_of(entry) for entry in record["summary"]] == [row["name"] for row in designs]
    assert {entry["result_type"] for entry in record["summary"]} == {experiment_type}
    if experiment_type in BINDING_TYPES:
        for entry in record["summary"]:
            assert entry["target"] == {"name": PD_L1["name"], "target_catalog_id": PD_L1["id"]}
    assert result.package.startswith(b"PK")
    waiting = [e for e in record["summary"] if "in_progress" in {e.get("binding"), e.get("state")}]
    assert len(waiting) == (4 if partial else 0)
    assert record["metadata"]["preliminary"] is partial


@pytest.mark.parametrize("experiment_type", ExperimentType)
def test_what_a_preliminary_release_has_measured_stays(experiment_type):
    designs = invented_designs(8)
    [early] = measure_records(**fields(experiment_type, half_measured(designs), partial=True))
    [late] = measure_records(**fields(experiment_type, designs))
    for before, after in zip(early["summary"][:4], late["summary"][:4], strict=True):
        assert before.get("replicates") == after.get("replicates")


EVERY_TYPE = """
import json
from measure.test_assays import digests

print(json.dumps(digests()))
"""


def digests():
    """The answer of every assay, in short."""
    hashes = {}
    for kind in ExperimentType:
        made = measure(**fields(kind, invented_designs(4)))
        hashes[kind] = hashlib.sha256(repr(made.result_records).encode() + made.package).hexdigest()
    return hashes


def test_the_same_request_gives_the_same_answer_in_another_process():
    env = {"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(part for part in sys.path if part)}
    command = [sys.executable, "-c", EVERY_TYPE]
    other = subprocess.run(command, check=True, capture_output=True, timeout=120, env=env)
    assert json.loads(other.stdout) == digests()
    assert len(set(digests().values())) == len(ExperimentType)


def test_a_sequence_keeps_its_result_in_any_company():
    first, *others = invented_designs(5)
    [alone] = measure_records(**order([first], experiment_id="a"))
    [among] = measure_records(**order([*others, {**first, "name": "renamed"}], experiment_id="b"))
    assert among["summary"][-1]["replicates"] == alone["summary"][0]["replicates"]


def test_another_antigen_gives_another_answer():
    [egfr] = measure_records(**order(MANY))
    [pd_l1] = measure_records(**order(MANY, target=PD_L1))
    differ = [a["kd_mean"] != b["kd_mean"] for a, b in zip(egfr["summary"], pd_l1["summary"], strict=True)]
    assert sum(differ) > 30
    # Expression belongs to the sequence.
    assert [e["expression"] for e in egfr["summary"]] == [e["expression"] for e in pd_l1["summary"]]


def test_the_three_kinds_of_no_result_are_distinguished():
    [record] = measure_records(**order(MANY))
    kinds = {(e["expression"] == "none", e["binding"], e["binding_strength"]) for e in record["summary"]}
    assert (True, "unknown", "unknown") in kinds  # not expressed
    assert (False, "unknown", "unknown") in kinds  # no clear call
    assert (False, "false", "none") in kinds  # does not bind
    for entry in record["summary"]:
        if entry["binding"] != "true":
            assert (entry["kd_mean"], entry["kon_mean"], entry["koff_mean"], entry["kd_app"]) == (None,) * 4
        if entry["expression"] == "none":
            assert entry["concentration_display"] == "<5.0"


def test_shares_and_constants_are_realistic():
    [record] = measure_records(**order(invented_designs(600, seed=5)))
    entries = record["summary"]
    assert 0.06 < sum(e["expression"] == "none" for e in entries) / 600 < 0.15
    assert 0.33 < sum(e["binding"] == "true" for e in entries) / 600 < 0.53
    rows = [row for e in entries for row in e["replicates"] if row["kd"]]
    assert {row["binding_strength"] for row in rows} == {"strong", "medium", "weak"}
    for row in rows:
        assert row["kd"] == pytest.approx(row["koff"] / row["kon"])
        assert 1e-11 < row["kd"] < 1e-4
        assert 1e3 < row["kon"] < 1e7
        assert 1e-6 < row["koff"] < 10


def test_kd_mean_averages_strong_replicates_else_medium_ones_and_never_weak():
    [record] = measure_records(**order(invented_designs(600, seed=5)))
    seen = set()
    for entry in record["summary"]:
        kds = {name: [] for name in ("strong", "medium", "weak")}
        for row in entry["replicates"]:
            if row["kd"]:
                kds[row["binding_strength"]].append(row["kd"])
        chosen = kds["strong"] or kds["medium"]
        assert entry["kd_mean"] == (pytest.approx(sum(chosen) / len(chosen)) if chosen else None)
        seen.add(tuple(bool(kds[name]) for name in kds))
    assert (False, False, True) in seen  # weak only: constants in the replicates, no mean
    assert (True, True, False) in seen  # mixed: the medium replicate does not count


def test_replicates_scatter_log_normally_around_the_design():
    [record] = measure_records(**order(invented_designs(400, seed=9), n_replicates=5))
    deviations = []
    for entry in record["summary"]:
        logs = [math.log10(row["kon"]) for row in entry["replicates"] if row["kon"]]
        deviations += [x - sum(logs) / 5 for x in logs]
    assert len(deviations) > 500
    spread = math.sqrt(sum(x * x for x in deviations) / (len(deviations) * 4 / 5))
    assert spread == pytest.approx(0.08, rel=0.1)


def test_places_and_controls():
    designs = [{**row, "control": index < 3} for index, row in enumerate(MANY[:40])]
    [record] = measure_records(**order(designs))
    placed = [e for e in record["summary"] if e["place"]]
    assert sorted(e["place"] for e in placed) == list(range(1, len(placed) + 1))
    assert len(placed) > 5
    best = min(placed, key=lambda e: e["place"])
    assert best["kd_mean"] == min(e["kd_mean"] for e in placed)
    controls = [e for e in record["summary"] if e["positive_control"]]
    assert [e["sequence"]["name"] for e in controls] == ["design-0", "design-1", "design-2"]
    assert all(e["place"] is None and e["performance"] == {} for e in controls)
    for entry in placed:
        assert set(entry["performance"]) == {"design-0", "design-1", "design-2"}
        for control in controls:
            verdict = entry["performance"][control["sequence"]["name"]]
            if control["kd_mean"] is None:
                assert verdict is None
            else:
                assert verdict == ("better" if entry["kd_mean"] < control["kd_mean"] else "worse")


def test_melting_temperatures_are_celsius_and_absent_where_nothing_melts():
    [record] = measure_records(**fields("thermostability", [{**d, "id": d["name"]} for d in MANY]))
    tms = [e["tm"] for e in record["summary"] if e["tm"] is not None]
    assert 60 < len(tms) < 96
    assert all(35 < tm < 92 for tm in tms)
    for entry in record["summary"]:
        assert entry["sequence_id"] == entry["sequence_name"]
        if entry["tm"] is None:
            assert entry["onset_pts_for_ratio"] == entry["inflection_pts_for_ratio"] == []
        else:
            assert entry["onset_pts_for_ratio"][0] < entry["tm"]
            assert entry["inflection_pts_for_ratio"] == [entry["tm"]]
    assert any(e["expression"] == "none" and e["initial_330nm"] is None for e in record["summary"])


def test_epitope_bins_agree_with_who_blocks_whom():
    [record] = measure_records(**fields("epitope_binning", MANY[:28]))
    bins = {e["sequence"]["name"]: e["bin"] for e in record["summary"]}
    called = {(e["expression"] == "none", e["binding"], bool(e["bin"])) for e in record["summary"]}
    assert called == {
        (False, "true", True),
        (False, "false", False),
        (False, "unknown", False),
        (True, "unknown", False),
    }
    assert len({value for value in bins.values() if value}) > 1
    for entry in record["summary"]:
        same = {n for n, b in bins.items() if b and b == entry["bin"] and n != entry["sequence"]["name"]}
        assert set(entry["blocks"]) == same


def test_expression_is_a_yield_and_its_concentration():
    [record] = measure_records(**fields("expression", MANY))
    for entry in record["summary"]:
        expected = entry["yield_mean"] / entry["molecular_weight_da"] * 1e6
        assert (entry["concentration_value"] or 0.0) == pytest.approx(expected, rel=1e-3, abs=0.1)
    assert {e["expression"] for e in record["summary"]} == {"high", "medium", "low", "none"}


def test_molecular_weight_of_human_insulin():
    insulin = "GIVEQCCTSICSLYQLENYCN:FVNQHLCGSHLVEALYLVCGERGFFYTPKT"
    # 5807.6 Da with its three disulfide bonds, 6 x 1.008 more without.
    assert molecular_weight(insulin) == pytest.approx(5807.6 + 6.05, abs=0.5)


def test_inactive_enzymes_have_no_constants():
    [record] = measure_records(**fields("enzyme_activity", MANY))
    assert {e["active"] for e in record["summary"]} == {"true", "false", "unknown"}
    for entry in record["summary"]:
        assert (entry["kcat_mean"] is None) == (entry["active"] != "true")


def test_nameless_sequences_get_a_name():
    [record] = measure_records(**order([sequence(None, "ACDE"), sequence(None, "ACDF")]))
    assert [e["sequence"]["name"] for e in record["summary"]] == ["sequence 1", "sequence 2"]


def test_the_catalog():
    assert len({target["id"] for target in CATALOG}) == len(CATALOG)
    assert CATALOG[0]["uniprot_id"] == "P00533"
    assert CATALOG[0]["pricing"] == {"type": "per_sequence", "price_per_sequence_cents": 4_000}
    assert {(t["pricing"] or {}).get("type") for t in CATALOG} == {"per_sequence", "per_broken_lot", None}
    assert sum(target["pricing"] is None for target in CATALOG) >= 2
    # Written down in databases and notebooks: an id never changes.
    assert CATALOG[0]["id"] == "a152981a-9bee-5f99-8978-d6ebfda0b88f"
    for target in CATALOG:
        assert "Imaginary" in target["vendor_name"]
        assert target["url"].startswith("https://antigens.example/")
