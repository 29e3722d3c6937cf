"""What one campaign costs Prefect and the service: 11 designs in 4 experiments, paid by machine, woken by webhooks.

    python bench/bench_campaign.py [--before 10c09cdb] [--json figures.json]

Counted on one stack with Prefect's SQLite: requests to the Prefect server and to the service, executions, runs, rows, and the
CPU time of the flows' processes, from the start until the report. With `--before`, the tree of that commit is measured
first, side by side with this one; both are put together in a folder of their own and run in this environment.
"""

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from figures import Ratio, report
from rich.console import Console
from rich.table import Table

BENCH = Path(__file__).parent
ROOT = BENCH.parent
MAPPED = ("flows", "tasks", "blocks", "deployments")  # top-level folders that are packages of prefect_assay
# What the same campaign took when each experiment was a run (docs/decisions.md)
LIMITS = {"prefect_requests": 936, "executions": 29, "rows": 6_369, "cpu_seconds": 133.4}
LINES = {
    "prefect_requests": "Prefect requests",
    "prefect_requests_first": "of them in the first execution",
    "service_requests": "service requests",
    "service_requests_first": "of them in the first execution",
    "executions": "executions",
    "flow_runs": "flow runs",
    "task_runs": "task runs",
    "rows": "new rows in Prefect's database",
    "cpu_seconds": "CPU seconds of flow processes",
    "cpu_seconds_first": "of them in the first execution",
    "lab_days": "days of the lab",
}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--before", help="a commit to compare with this tree")
    options.add_argument("--json", type=Path, help="also write the figures there")
    chosen = options.parse_args()
    columns = {}
    with tempfile.TemporaryDirectory(prefix="bench-campaign-") as folder:
        if chosen.before:
            columns[chosen.before] = measure(Path(folder) / "before", chosen.before)
        columns["this tree"] = measure(Path(folder) / "now", None)
    show(columns)
    figures = columns["this tree"]
    for key, limit in LIMITS.items():
        report(
            Ratio(
                "campaign",
                f"{LINES[key]}, 11 designs in 4 experiments",
                ours=figures[key],
                beside="those of a run per experiment (2026-11-27)",
                other=limit,
                unit="",
                goal=1.0,
            )
        )
    if chosen.json:
        chosen.json.write_text(json.dumps(columns, indent=2) + "\n")


def measure(folder, revision):
    """The figures of one tree, taken by a process that imports it."""
    folder.mkdir()
    path = os.pathsep.join([str(tree(folder / "tree", revision)), str(counting(folder / "hook"))])
    env = os.environ | {"PYTHONPATH": path, "BENCH_REQUESTS": str(folder / "requests.log")}
    probe = [sys.executable, str(BENCH / "campaign_probe.py"), str(folder)]
    done = subprocess.run(probe, env=env, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{revision or 'this tree'} could not be measured")
    calls, figures = map(json.loads, done.stdout.splitlines()[-2:])
    print(
        f"{revision or 'this tree'}: {', '.join(f'{number} x {call}' for call, number in calls)}", flush=True
    )
    return figures


def tree(folder, revision):
    """A folder to import the package from, as of a commit, or as it is now."""
    folder.mkdir()
    if revision is None:
        for name in ("src", *MAPPED):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        archive = ["git", "-C", str(ROOT), "archive", revision, "src", *MAPPED]
        packed = subprocess.run(archive, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
    for name in MAPPED:
        (folder / name).rename(folder / "src" / "prefect_assay" / name)
    return folder / "src"


def counting(folder):
    """A folder whose `sitecustomize` has the Prefect server write a line for each request."""
    folder.mkdir()
    shutil.copy(BENCH / "count_requests.py", folder / "sitecustomize.py")
    return folder


def show(columns):
    table = Table("", *columns, *(["ratio"] if len(columns) > 1 else []))
    for key, words in LINES.items():
        values = [figures[key] for figures in columns.values()]
        cells = [f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" for value in values]
        if len(values) > 1:
            cells.append(f"{values[-1] / values[0]:.2f}" if values[0] else "")
        table.add_row(words, *cells)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    main()
