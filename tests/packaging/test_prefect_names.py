"""The package lives in Prefect: it replaces nothing of it. Private names of others are listed, each with its reason."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Private names of other packages, and why no public one does it.
PRIVATE = {
    "_block_document_id": "a block says by no public name as which document it is saved",
    "_block_document_name": "likewise its name",
    "_mounts": "httpx reaches a transport's network, which the limit of a whole answer needs, by no public name",
    "_network_backend": "likewise",
    "_pool": "likewise",
    "_prompter": "botocore asks for an MFA code where nobody can answer, and has no option against it",
    "_session": "boto3 reaches botocore's session, which holds that prompter, by no public name",
    "_sync": "Prefect's documentation names it: a function that serves both gives no coroutine where a loop runs",
    "_transport": "likewise",
    "_load_from_block_document": "`Block.load` asks the server again, and hides whether a document is missing or not valid",
}
TABLES = (
    "flow_run",
    "flow_run_state",
    "task_run",
    "deployment",
    "block_document",
    "concurrency_limit_v2",
    "variable",
)


def product():
    folders = ("src", "flows", "tasks", "blocks", "deployments")
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def own_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node.value) in {"self", "cls"}
        ):
            yield node.attr


def used_of_others(tree):
    """Private attributes, keywords and variables of Prefect that this module does not define."""
    documented = {"_replace", "_fields", "_make"}  # of named tuples
    known_names = {*own_names(tree), *documented}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in {"self", "cls"}:
            yield from {node.attr} - known_names
        elif isinstance(node, ast.keyword):
            yield from {node.arg or ""} - known_names
        elif isinstance(node, ast.Constant) and str(node.value).startswith("PREFECT__"):
            yield "_" + node.value


def test_the_private_names_of_others_are_those_listed():
    used = {name for _, tree in product() for name in used_of_others(tree)}
    assert {name for name in used if is_private(name)} == set(PRIVATE)


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)


def test_nothing_private_is_imported_from_prefect():
    violations = [
        (path.name, module, names)
        for path, tree in product()
        for module, names in imports(tree)
        if module.partition(".")[0].startswith("prefect") and not module.startswith("prefect_assay")
        if any(map(is_private, [*module.split("."), *names]))
    ]
    assert violations == []


def assigned(tree):
    """The names below which an attribute is set: by a statement, or by `setattr`."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute):
                yield ast.unparse(target.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            yield ast.unparse(node.args[0])


@pytest.mark.parametrize("package", ["prefect", "uvicorn", "httpx", "boto3", "botocore"])
def test_no_attribute_of_another_package_is_replaced(package):
    replacements = []
    for path, tree in product():
        theirs = {
            name
            for module, names in imports(tree)
            if module.partition(".")[0] == package
            for name in (*names, module.partition(".")[0])
        }
        replacements += [(path.name, name) for name in assigned(tree) if name.partition(".")[0] in theirs]
    assert replacements == []


def test_no_sql_touches_prefects_tables():
    verbs = rf"(?i)\b(?:from|into|update|join|table)\s+\"?(?:{'|'.join(TABLES)})\b"
    strings = [
        (path.name, node.value)
        for path, tree in product()
        if "lab" not in path.relative_to(ROOT).parts
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [
        (name, text) for name, text in strings if re.search(verbs, text) and re.search(r"[A-Z]{4}", text)
    ] == []
