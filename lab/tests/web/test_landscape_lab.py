"""A lab with a landscape: from an order to results that are the table's within the stated noise."""

import math

import pytest

from assay_lab.errors import ConfigurationError
from assay_lab.measure import gb1
from assay_lab.testing import LocalLab
from lab_support.core import advance
from lab_support.sim_client import served

TABLE = "sequence,target,kd_nM,binding,tm_C\nMKTAYIAKQR,My own target,20,,61.5\nMKTAYIAKQW,My own target,,false,55\n"
VARIANTS = ("FWAA", "VDGV", "AAAA", "AAAH")


def result_of(lab, target=None, **spec):
    """Order, let the lab's days pass, and read the result."""
    if target:
        query = {"search": target, "selfservice_only": True}
        spec["target_id"] = lab.api("GET", "/targets", params=query).json()["items"][0]["id"]
    body = {"name": "simulated", "experiment_spec": spec, "skip_draft": True}
    experiment_id = lab.api("POST", "/experiments", json=body).json()["experiment_id"]
    advance(lab.core, hours=1)
    assert lab.api("POST", f"/experiments/{experiment_id}/quote/confirm", json={}).status_code == 200
    advance(lab.core, days=16)
    (result,) = lab.api("GET", f"/experiments/{experiment_id}/results").json()["items"]
    return result


def test_results_are_the_tables_and_stay_so_when_the_lab_starts_again(tmp_path):
    (tmp_path / "mine.csv").write_text(TABLE)
    kept = {"database": tmp_path / "lab.sqlite", "member_token": "lab-token"}
    quiet = {"landscape_kd_noise": 0, "landscape_tm_noise": 0, "landscape": str(tmp_path / "mine.csv")}
    designs = {"binder": "MKTAYIAKQR", "none": "MKTAYIAKQW", "absent": "MKTAYIAKQY"}
    with served(**quiet, **kept) as lab:
        binding = {"experiment_type": "affinity", "method": "bli", "n_replicates": 2, "sequences": designs}
        result = result_of(lab, "My own target", **binding)
        entries = {entry["sequence"]["name"]: entry for entry in result["summary"]}
        assert entries["binder"]["kd_mean"] == pytest.approx(20e-9)
        assert [entries[name]["binding"] for name in ("none", "absent")] == ["false", "unknown"]
        assert result["metadata"]["not_in_landscape"] == ["absent"]
        melting = result_of(lab, experiment_type="thermostability", sequences={"binder": "MKTAYIAKQR"})
        assert melting["summary"][0]["tm"] == 61.5
    # What was released is stored: another table changes no result.
    with served(**kept) as lab:
        (again,) = lab.api("GET", f"/experiments/{result['experiment_id']}/results").json()["items"]
        assert again["summary"] == result["summary"]
        assert lab.http.get(again["data_package_url"]).status_code == 200


def test_gb1_is_measured_within_its_noise():
    designs = {four: gb1.make_sequence(four) for four in VARIANTS}
    with served(landscape="gb1") as lab:
        binding = {"experiment_type": "affinity", "method": "bli", "n_replicates": 5, "sequences": designs}
        result = result_of(lab, "IgG-Fc", **binding)
    for entry in result["summary"]:
        fitness = gb1.load_fitness()[entry["sequence"]["name"]]
        assert entry["binding"] == ("true" if fitness else "false")
        for replicate in entry["replicates"] if fitness else ():
            assert abs(math.log10(replicate["kd"] * fitness / gb1.WILD_TYPE_KD_M)) < 5 * 0.1
    assert "eLife 5:e16965" in result["metadata"]["attribution"]


def test_a_lab_process_that_cannot_start_shows_what_it_printed(tmp_path):
    path = tmp_path / "unclear.csv"
    path.write_text("sequence,kd\nMKTAYIAKQR,20\n")
    with pytest.raises(
        ConfigurationError, match=r"(?s)ended before.*unclear.csv, line 1, column 'kd'.*kd_nM"
    ):
        LocalLab(landscape=path).start()
