"""A lab with a landscape over HTTP: from an order to results that are the table's within the stated noise."""

import math

import pytest

from assay_lab.errors import ConfigurationError
from assay_lab.measure import gb1
from assay_lab.testing import LocalLab

pytest_plugins = ["assay_lab.fixture"]

TABLE = "sequence,target,kd_nM,binding,tm_C\nMKTAYIAKQR,My own target,20,,61.5\nMKTAYIAKQW,My own target,,false,55\n"
VARIANTS = ("FWAA", "VDGV", "AAAA", "AAAH")


def target_of(http, name):
    [found] = http.get("/targets", params={"search": name, "selfservice_only": True}).json()["items"]
    return found["id"]


def results_of(lab, http, spec):
    """Order, let the lab's days pass, and read the summary."""
    body = {"name": "simulated", "experiment_spec": spec, "skip_draft": True}
    answer = http.post("/experiments", json=body).raise_for_status()
    experiment_id = answer.json()["experiment_id"]
    lab.advance(hours=1)
    http.post(f"/experiments/{experiment_id}/quote/confirm", json={}).raise_for_status()
    lab.advance(days=16)
    [result] = http.get(f"/experiments/{experiment_id}/results").raise_for_status().json()["items"]
    return result


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("landscape") / "mine.csv"
    path.write_text(TABLE)
    return path


def test_results_are_the_tables_and_stay_so_when_the_lab_starts_again(table, tmp_path):
    spec = {
        "experiment_type": "affinity",
        "method": "bli",
        "n_replicates": 2,
        "sequences": {"binder": "MKTAYIAKQR", "none": "MKTAYIAKQW", "absent": "MKTAYIAKQY"},
    }
    kept = {"database": tmp_path / "lab.sqlite", "token": "lab-token", "sim_token": "lab-sim-token"}
    quiet = ("--landscape-kd-noise", "0", "--landscape-tm-noise", "0")
    with LocalLab(landscape=table, options=quiet, **kept) as lab, lab.http() as http:
        spec["target_id"] = target_of(http, "My own target")
        result = results_of(lab, http, spec)
        entries = {entry["sequence"]["name"]: entry for entry in result["summary"]}
        assert entries["binder"]["kd_mean"] == pytest.approx(20e-9)
        assert [entries[name]["binding"] for name in ("none", "absent")] == ["false", "unknown"]
        assert result["metadata"]["not_in_landscape"] == ["absent"]
        melting = {"experiment_type": "thermostability", "sequences": {"binder": "MKTAYIAKQR"}}
        [melted] = results_of(lab, http, melting)["summary"]
        assert melted["tm"] == 61.5
    # What was released is stored: another table changes no result.
    with LocalLab(**kept) as lab, lab.http() as http:
        again = http.get(f"/experiments/{result['experiment_id']}/results").json()["items"]
        assert again[0]["summary"] == result["summary"]
        package = http.get(again[0]["data_package_url"])
        assert package.status_code == 200


@pytest.fixture(scope="session")
def lab_landscape():
    return "gb1"


def test_gb1_is_measured_within_its_noise(local_lab):
    with local_lab.http() as http:
        spec = {
            "experiment_type": "affinity",
            "method": "bli",
            "n_replicates": 5,
            "target_id": target_of(http, "IgG-Fc"),
            "sequences": {four: gb1.sequence(four) for four in VARIANTS},
        }
        result = results_of(local_lab, http, spec)
        for entry in result["summary"]:
            fitness = gb1.fitness()[entry["sequence"]["name"]]
            assert entry["binding"] == ("true" if fitness else "false")
            for replicate in entry["replicates"] if fitness else ():
                assert abs(math.log10(replicate["kd"] * fitness / gb1.WILD_TYPE_KD_M)) < 5 * 0.1
        assert "eLife 5:e16965" in result["metadata"]["attribution"]


def test_a_lab_does_not_start_on_an_unclear_table(tmp_path):
    path = tmp_path / "unclear.csv"
    path.write_text("sequence,kd\nMKTAYIAKQR,20\n")
    with pytest.raises(ConfigurationError, match=r"unclear.csv, line 1, column 'kd'.*kd_nM"):
        LocalLab(landscape=path).start()
