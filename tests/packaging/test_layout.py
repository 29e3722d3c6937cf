"""docs/developing.md, the import rules of pyproject.toml and the folders show the same packages."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
PAGE = (ROOT / "docs" / "developing.md").read_text(encoding="utf-8")
LAB = ROOT / "lab"
BELOW_ALL = {"errors", "foreign_text"}
PACKAGE_DIR = PYPROJECT["setuptools"]["package-dir"]


def folder_of(package):
    parts = package.split(".")
    for length in range(len(parts), 0, -1):
        mapped = PACKAGE_DIR.get(".".join(parts[:length]))
        if mapped:
            return ROOT.joinpath(mapped, *parts[length:])
    raise AssertionError(package)


def documented(page):
    """The packages of the lab's table, level by level."""
    levels = {}
    for level, package in re.findall(r"^\| (\d+) \| `(\w+)` \|", page, re.MULTILINE):
        levels.setdefault(int(level), set()).add(package)
    return [levels[level] for level in sorted(levels)]


def enforced(tool, prefix):
    contracts = tool["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["name"] == "imports run one way"]
    return [{name.strip().removeprefix(prefix) for name in layer.split("|")} for layer in layers]


def packages_of_the_page():
    """From below to above, as the page's line shows them."""
    (line,) = re.findall(r"^`(service < .*)`$", PAGE, re.MULTILINE)
    return [set(level.split(" | ")) for level in line.split(" < ")]


SHOWN = set().union(*packages_of_the_page())


def test_the_page_lists_the_packages_in_the_order_that_the_import_rules_enforce():
    order = [level for level in enforced(PYPROJECT, "prefect_assay.") if not level & BELOW_ALL]
    assert list(reversed(order)) == packages_of_the_page()
    section = PAGE.partition("## Packages")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == SHOWN


def test_the_labs_page_lists_its_packages_in_the_order_that_its_import_rules_enforce():
    page = (LAB / "README.md").read_text(encoding="utf-8")
    rules = tomllib.loads((LAB / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert documented(page) == enforced(rules, "assay_lab.")
    source = LAB / "src" / "assay_lab"
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    modules = {path.stem for path in source.glob("*.py")} - {"__init__"}
    assert set().union(*documented(page)) == packages | modules


def test_every_package_is_in_the_import_rules():
    packages = {name.split(".")[1] for name in PYPROJECT["setuptools"]["packages"] if "." in name}
    modules = {path.stem for path in (ROOT / "src" / "prefect_assay").glob("*.py")} - {"__init__"}
    assert set().union(*enforced(PYPROJECT, "prefect_assay.")) == packages | modules


def test_every_package_describes_itself_and_lists_its_public_names():
    silent = []
    for package in PYPROJECT["setuptools"]["packages"]:
        text = (folder_of(package) / "__init__.py").read_text(encoding="utf-8")
        of_modules_only = "import " not in text.rpartition('"""')[2]
        if not text.startswith('"""') or not (of_modules_only or "__all__" in text):
            silent.append(package)
    assert silent == []


def test_every_module_that_the_page_sends_a_reader_to_exists():
    start = PAGE.partition("## Where to look first")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w/]+\.py)`", start)
    assert named
    source = ROOT / "src" / "prefect_assay"
    assert [name for name in named if not (ROOT / name).exists() and not (source / name).exists()] == []
