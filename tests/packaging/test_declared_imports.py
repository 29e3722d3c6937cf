"""Each pyproject.toml declares every third-party package that its code imports; an optional one in an extra."""

import ast
import sys
import tomllib
from collections import defaultdict
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytest.importorskip("mypy_boto3_s3", reason="the development group is not installed")

ROOT = Path(__file__).parents[2]
FILES = [
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")) for folder in ("", "lab")
]
PROJECT, LAB = (file["project"] for file in FILES)
PRODUCT = ("src", "flows", "tasks", "blocks", "deployments")
FOLDERS_OF_EXTRAS = {
    "kinetics": (
        "src/prefect_assay/analysis/kinetics/",
        "src/prefect_assay/analysis/plots/",
        "src/prefect_assay/analysis/threads.py",
    ),
    "design": ("src/prefect_assay/analysis/selection/", "src/prefect_assay/analysis/threads.py"),
    "report": ("src/prefect_assay/analysis/report/",),
    "demo": ("src/prefect_assay/cli/demo/",),
}
ONLY_ANNOTATIONS = ("src/prefect_assay/archive/s3.py",)  # import from the development group, for types
ANYWHERE = (
    "x402",
    "parquet",
    "server",
    "spreadsheets",
)  # imported where they are used, with a message when missing


def names(requirements):
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def extra(name):
    """The distributions of an extra, with those of the extras that it includes."""
    distributions = set()
    for text in PROJECT["optional-dependencies"][name]:
        requirement = Requirement(text)
        if requirement.name == PROJECT["name"]:
            distributions |= set().union(*(extra(other) for other in requirement.extras))
        else:
            distributions.add(canonicalize_name(requirement.name))
    return distributions


def imported(path):
    """Top-level modules that a file imports, wherever the statement is."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def third_party(folders, first_party):
    """Each imported third-party module with the files that import it."""
    importers = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for module in imported(path):
                if module not in sys.stdlib_module_names and module not in first_party:
                    importers.setdefault(module, set()).add(path.relative_to(ROOT).as_posix())
    return importers


def test_every_imported_package_is_declared():
    always = names(PROJECT["dependencies"]).union(*(extra(name) for name in ANYWHERE))
    distributions = packages_distributions()
    undeclared = []
    for module, files in third_party(PRODUCT, {"prefect_assay", "assay_lab"}).items():
        provided_by = {canonicalize_name(name) for name in distributions[module]}
        for file in sorted(files):
            declared = always.union(
                *(extra(name) for name, folders in FOLDERS_OF_EXTRAS.items() if file.startswith(folders))
            )
            if file in ONLY_ANNOTATIONS:
                declared |= names(
                    text for text in FILES[0]["dependency-groups"]["dev"] if isinstance(text, str)
                )
            if not provided_by & declared:
                undeclared.append(f"{file}: declare {' or '.join(sorted(provided_by))} in pyproject.toml")
    assert undeclared == []


def test_the_lab_declares_every_imported_package():
    distributions = packages_distributions()
    declared = names(LAB["dependencies"])
    undeclared = {
        module
        for module in third_party(["lab/src"], {"assay_lab"})
        if not declared & {canonicalize_name(name) for name in distributions[module]}
    }
    assert undeclared == {"pytest"}  # of `assay_lab.fixture`, a pytest plugin


def test_the_labs_own_tests_need_neither_prefect_nor_the_product():
    """So that `cd lab && pytest` works where only the lab is installed."""
    needing = {
        path.relative_to(ROOT).as_posix(): modules
        for path in sorted((ROOT / "lab" / "tests").rglob("*.py"))
        if (modules := {"prefect", "prefect_assay", "support"}.intersection(imported(path)))
    }
    assert needing == {}


@pytest.mark.parametrize("project", [PROJECT, LAB], ids=lambda project: project["name"])
def test_neither_distribution_requires_the_other(project):
    """The lab is on no index: whoever registered its name would run code beside a wallet."""
    both = {"prefect-assay", "assay-lab"}
    declared = names(chain(project["dependencies"], *project.get("optional-dependencies", {}).values()))
    assert declared & both <= {project["name"]}


def test_the_lock_satisfies_what_is_declared():
    pins = defaultdict(list)  # several of one name, for different systems
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", " ")):
            requirement = Requirement(line.removesuffix("\\"))
            pins[canonicalize_name(requirement.name)] += [pin.version for pin in requirement.specifier]
    declared = chain(
        *(file["project"]["dependencies"] for file in FILES),
        *chain(*(file["project"].get("optional-dependencies", {}).values() for file in FILES)),
        *chain(*(file["dependency-groups"].values() for file in FILES)),
    )
    requirements = [Requirement(text) for text in declared if isinstance(text, str)]
    others = [requirement for requirement in requirements if requirement.name != PROJECT["name"]]
    unlocked = [str(other) for other in others if not pins[canonicalize_name(other.name)]]
    assert unlocked == []
    assert [
        (str(other), version)
        for other in others
        for version in pins[canonicalize_name(other.name)]
        if not other.specifier.contains(version)
    ] == []
