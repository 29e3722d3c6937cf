"""docs/layout.md, the import rules of pyproject.toml and the folders show the same rooms."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
PAGE = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
CONTRACTS = {contract["name"]: contract for contract in PYPROJECT["importlinter"]["contracts"]}
PACKAGE_DIR = PYPROJECT["setuptools"]["package-dir"]
MODULES_MAX = 14


def folder_of(package):
    parts = package.split(".")
    for length in range(len(parts), 0, -1):
        mapped = PACKAGE_DIR.get(".".join(parts[:length]))
        if mapped:
            return ROOT.joinpath(mapped, *parts[length:])
    raise AssertionError(package)


def documented_levels():
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE, re.MULTILINE)
    levels = {}
    for level, room in rows:
        levels.setdefault(int(level), set()).add(room)
    return [levels[level] for level in sorted(levels)]


def test_the_page_lists_the_rooms_in_the_order_that_the_import_rules_enforce():
    layers = CONTRACTS["imports run one way"]["layers"]
    enforced = [
        {name.strip().removeprefix("prefect_assay.") for name in layer.split("|")} for layer in layers
    ]
    assert documented_levels() == enforced


def test_every_room_is_in_the_import_rules():
    packages = {name.split(".")[1] for name in PYPROJECT["setuptools"]["packages"] if "." in name}
    modules = {path.stem for path in (ROOT / "src" / "prefect_assay").glob("*.py")} - {"__init__"}
    assert set().union(*documented_levels()) == (packages | modules) - {"lab"}


def test_the_page_lists_the_rooms_of_the_lab():
    listed = re.findall(r"^\| `lab/(\w+)` \|", PAGE, re.MULTILINE)
    lab = ROOT / "src" / "prefect_assay" / "lab"
    assert sorted(listed) == sorted(path.parent.name for path in lab.glob("*/__init__.py"))


def test_the_lab_is_forbidden_every_room():
    """But the vocabulary: of `models` single modules are forbidden."""
    forbidden = set(CONTRACTS["the lab shares only the vocabulary"]["forbidden_modules"])
    rooms = set().union(*documented_levels()) - {"models", "errors"}
    assert {f"prefect_assay.{room}" for room in rooms} - forbidden == set()


def test_no_folder_is_too_full_to_read():
    """`models` holds one module per noun, at paths that stored results name."""
    full = {}
    for package in PYPROJECT["setuptools"]["packages"]:
        modules = set(folder_of(package).glob("*.py")) - {folder_of(package) / "__init__.py"}
        if package != "prefect_assay.models" and len(modules) > MODULES_MAX:
            full[package] = len(modules)
    assert full == {}
