"""The wheel holds every package of the tree, and importing the package stays cheap."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from support.wheels import build_wheel, list_tracked

ROOT = Path(__file__).parents[2]
TOP_LEVEL = ("flows", "tasks", "blocks", "deployments")


def tree_files() -> set[str]:
    """Every file that should be in the wheel, by its name there."""
    names = set()
    for name in list_tracked():
        if name.startswith("src/prefect_assay/"):
            names.add(name.removeprefix("src/"))
        elif name.split("/")[0] in TOP_LEVEL:
            names.add(f"prefect_assay/{name}")
    return names


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(".", tmp_path_factory.mktemp("product"))


def test_the_wheel_and_the_tree_hold_the_same_files(wheel):
    in_wheel = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("prefect_assay/")}
    assert in_wheel == tree_files()


def test_the_wheel_declares_command_and_collection(wheel):
    archive = zipfile.ZipFile(wheel)
    entry = next(name for name in archive.namelist() if name.endswith("entry_points.txt"))
    text = archive.read(entry).decode()
    assert "prefect-assay = prefect_assay.cli:main" in text
    assert "[prefect.collections]\nprefect_assay = prefect_assay.blocks" in text


def test_the_description_of_an_index_has_no_link_into_the_repository(wheel):
    archive = zipfile.ZipFile(wheel)
    text = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
    assert "\n# prefect-assay\n" in text
    assert "from assay_lab.testing import LocalLab" in text
    assert re.findall(r"\]\((?!https://)[^)]*\)", text) == []


def test_the_lock_pins_versions_with_hashes_and_names_no_address():
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines) if not line.startswith(("#", " "))]
    assert len(starts) > 50
    assert [lines[number] for number in starts if "==" not in lines[number].split(";")[0]] == []
    assert [
        lines[number] for number in starts if not lines[number + 1].startswith("    --hash=sha256:")
    ] == []
    assert [line for line in lines if "://" in line or line.startswith("-")] == []


def test_tools_of_development_are_in_no_metadata(wheel):
    archive = zipfile.ZipFile(wheel)
    text = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
    assert "Author: The prefect-assay developers" in text
    assert "Requires-Dist: prefect" in text
    assert [line for line in text.splitlines() if "pytest" in line or "hypothesis" in line] == []


def test_every_runtime_dependency_has_a_floor():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [d for d in project["dependencies"] if ">=" not in d] == []


def modules_after(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_else():
    before = modules_after("import importlib")
    after = modules_after("import prefect_assay")
    assert {m for m in after - before if m.startswith("prefect_assay")} == {"prefect_assay"}
    assert not after & {"prefect", "httpx", "pydantic", "boto3"}


def test_the_collection_entry_point_loads_no_client_and_no_heavy_library():
    loaded = modules_after("import prefect_assay.blocks")
    heavy = {
        "boto3",
        "eth_account",
        "pyarrow",
        "prefect_assay.service.client",
        "assay_lab",
        "prefect_assay.flows",
    }
    assert not loaded & heavy


def test_the_lab_never_loads_prefect():
    loaded = modules_after("import assay_lab.__main__")
    assert "assay_lab" in loaded
    assert not {m for m in loaded if m == "prefect" or m.startswith("prefect.")}
