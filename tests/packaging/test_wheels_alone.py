"""Each of the two distributions works without the other, with the packages that it declares and no more."""

import json
import subprocess

import pytest

from support.wheels import build_wheel, install_alone, list_tracked

pytestmark = pytest.mark.timeout(300)


def run(python, *arguments, folder=None):
    return subprocess.run(
        [python, "-P", *arguments], capture_output=True, text=True, check=False, timeout=120, cwd=folder
    )


def command(python, name, *arguments):
    return run(python, python.parent / name, *arguments)


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    wheel = build_wheel(".", tmp_path_factory.mktemp("product"))
    return install_alone(wheel, tmp_path_factory.mktemp("environment") / "product")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    wheel = build_wheel("lab", tmp_path_factory.mktemp("lab"))
    return install_alone(wheel, tmp_path_factory.mktemp("environment") / "lab", ["pytest"])


def test_the_product_works_without_the_lab(product):
    assert run(product, "-c", "import assay_lab").returncode == 1
    rooms = "prefect_assay.flows, prefect_assay.tasks, prefect_assay.blocks, prefect_assay.deployments"
    imported = run(product, "-c", f"import {rooms}")
    assert imported.returncode == 0, imported.stderr
    shown = command(product, "prefect-assay", "--help")
    assert shown.returncode == 0, shown.stderr
    assert "campaign" in shown.stdout


def test_a_command_that_needs_the_lab_says_where_it_is(product):
    asked = command(product, "prefect-assay", "lab")
    assert asked.returncode == 1
    assert "pip install ./lab" in " ".join(asked.stderr.split())


TEST = """
pytest_plugins = ["assay_lab.fixture"]

def test_days_pass(local_lab):
    with local_lab.http() as http:
        assert http.get("/whoami").is_success
    before = local_lab.clock()["now"]
    local_lab.advance(days=15)
    assert local_lab.clock()["now"] > before

def test_an_organisation_of_a_shared_lab(shared_lab):
    with shared_lab.http() as http:
        assert http.get("/experiments").json()["total"] == 0
"""


def test_the_lab_works_without_the_product_and_prefect(lab, tmp_path):
    for name in ("prefect", "prefect_assay"):
        assert run(lab, "-c", f"import {name}").returncode == 1
    assert command(lab, "assay-lab", "--help").returncode == 0
    (tmp_path / "test_here.py").write_text(TEST)
    played = run(lab, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path)
    assert played.returncode == 0, played.stdout + played.stderr


def test_the_labs_command_prints_where_it_answers(lab):
    process = subprocess.Popen(
        [lab, "-P", lab.parent / "assay-lab", "--until-input-ends"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(line)["base_url"].startswith("http://127.0.0.1:")


def test_the_labs_wheel_has_the_files_of_the_tree(tmp_path):
    import zipfile

    wheel = build_wheel("lab", tmp_path)
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("assay_lab/")}
    assert packed == {name.removeprefix("lab/src/") for name in list_tracked("lab/src")}
