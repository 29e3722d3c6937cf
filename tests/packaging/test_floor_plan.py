"""The floor plan of docs/layout.md: where modules are, how many there are, and which way the lab's rooms import."""

import ast
import subprocess
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "prefect_assay"
TOP_LEVEL = ("flows", "tasks", "blocks", "deployments")
# 290 files held some 40,000 lines when this bound was set. It grows with the product, not with the number of fragments.
LINES_OF_A_FILE = 138
EDGES_OF_THE_LAB = 60


def product_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "src/*.py", *(f"{folder}/*.py" for folder in TOP_LEVEL)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]


def modules(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def test_the_package_is_not_cut_into_fragments():
    files = product_files()
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    assert len(files) <= lines / LINES_OF_A_FILE


def test_flows_are_the_four_flows_and_their_steps():
    found = modules(ROOT / "flows")
    assert {"experiment", "campaign", "design_build_test", "sweep"} <= set(found)
    assert len(found) <= 9


def test_every_module_of_tasks_has_a_task():
    def has_task(path: Path) -> bool:
        functions = [
            n for n in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(n, ast.FunctionDef)
        ]
        return any("task" in ast.unparse(decorator) for f in functions for decorator in f.decorator_list)

    folder = ROOT / "tasks"
    assert [name for name in modules(folder) if not has_task(folder / f"{name}.py")] == []


def test_the_root_of_the_lab_holds_its_entrances_only():
    assert set(modules(SOURCE / "lab")) <= {"__main__", "testing", "fixture"}


def imports_of_the_lab() -> dict[str, set[str]]:
    """Each room of the lab with the rooms that it imports; the root is `lab`."""
    prefix = "prefect_assay.lab"
    rooms = {path.parent.name for path in (SOURCE / "lab").glob("*/__init__.py")}
    graph = defaultdict(set)
    for path in (SOURCE / "lab").rglob("*.py"):
        room = path.relative_to(SOURCE / "lab").parts[0] if path.parent != SOURCE / "lab" else "lab"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(prefix):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names if alias.name.startswith(prefix)]
            for name in names:
                first = name.removeprefix(prefix).lstrip(".").split(".")[0]
                graph[room].add(first if first in rooms else "lab")
        graph[room].discard(room)
    return graph


def test_the_rooms_of_the_lab_import_one_way():
    graph = imports_of_the_lab()
    assert len(graph) > 10
    list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert sum(map(len, graph.values())) <= EDGES_OF_THE_LAB
