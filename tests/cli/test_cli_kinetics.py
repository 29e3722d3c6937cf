import pytest

from support.command import command
from support.kinetics.packages import published_files, zipped


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("kinetics") / "egfr.zip"
    path.write_bytes(zipped(published_files()))
    return str(path)


def test_the_fit_is_shown_beside_the_services_values(package):
    done = command("kinetics", package)
    assert done.code == 0, done.err
    for part in ("fit", "service", "96.0 nM", "not_1_to_1", "no_binding", "one R_max", "immobilized"):
        assert part in done.out
    assert "20% of all concentrations" in done.out


def test_a_limit_of_the_service_is_shown_as_one(tmp_path):
    files = published_files()
    path = tmp_path / "limits.zip"
    path.write_bytes(
        zipped(
            {name: content for name, content in files.items() if "yolo" not in name}
            | {
                "egfr_round1_summary.csv": "name,replicate,kd\n P01133-971-1023,1,<5e-10\n P01133-971-1023,2,null\n",
                "raw_data/m_1.csv": "T,ratio\n" + "".join(f"{t},0.8\n" for t in range(20, 95)),
                "m_summary.csv": "name,replicate,tm\nm,1,>95\n",
            }
        )
    )
    done = command("kinetics", str(path))
    assert "< 500 pM" in done.out
    assert "> 95.00" in done.out
    assert "K_D beyond the reported limit" in " ".join(done.out.split())
    assert "the service reports a limit, > 95.0 °C" in " ".join(done.out.split())


def test_json_is_the_analysis_of_each_package(package):
    (analysis,) = command("kinetics", package, "--json").json()
    assert analysis["package"] == package
    verdicts = {(r["name"], r["replicate"]): r["verdict"] for r in analysis["kinetics"]}
    assert verdicts["gitter-yolo10", 1] == "no_binding"
    assert analysis["kinetics"][0]["fit"]["misfit"] > 0.03
    assert analysis["kinetics"][2]["fit"] is None


def test_a_file_that_is_no_package_is_named(tmp_path):
    path = tmp_path / "designs.fasta"
    path.write_text(">a\nMKV\n")
    done = command("kinetics", str(path))
    assert done.code == 2
    assert "cannot be read as a data package of the service" in done.err
    missing = command("kinetics", str(tmp_path / "gone.zip"), "--json")
    assert missing.code == 2
    assert "there is no data package" in missing.json()["error"]["message"]


def test_a_path_that_cannot_be_looked_at_is_named(tmp_path):
    done = command("kinetics", str(tmp_path / ("n" * 300)))
    assert done.code == 2
    assert "name the zip of a result" in done.err
    assert "Traceback" not in done.err


def test_without_the_extra_one_line_says_how_to_get_it(tmp_path, package):
    (tmp_path / "scipy.py").write_text("raise ImportError('not installed')\n")
    done = command("kinetics", package, PYTHONPATH=str(tmp_path))
    assert (done.code, done.out) == (1, "")
    assert (
        done.err == "Error: fitting raw curves needs an extra: in a checkout, run pip install '.[kinetics]'\n"
    )
