"""What a sweep costs: requests and seconds, when nothing has changed, in a full check, and after a week's news.

    python bench/bench_sweep.py [--runs 10000] [--idle 5] [--copied]

A Prefect server on SQLite, the lab with as many experiments, and one suspended run for each, made through the API
with the tags and parameters of real ones; with --copied only the first, and the others are copies of its rows in the
server's database, which takes seconds. Counted is every request of this process to Prefect and to the service.
Ends by itself.
"""

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from installation import installation
from prefect.logging import disable_run_logger

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from prefect_assay.flows.memory import Memory
from prefect_assay.flows.sweep import _Sweep
from prefect_assay.waiting.runs import as_parameter
from support.counting import counted_requests
from support.suspended import suspend_many

FEED_ONLY, TARGET = 10_000, 20
FILL = 250  # experiments for which the lab is asked at a time


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=10_000)
    options.add_argument("--idle", type=int, default=5, help="how many idle sweeps are measured")
    options.add_argument("--copied", action="store_true")
    chosen = options.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench-sweep-") as folder,
        installation(Path(folder), start_seconds=600) as made,
    ):
        suspend(made, chosen.runs, Path(folder) if chosen.copied else None)
        # Later than the runs' start, so that they are not what has happened since the last sweep.
        now = datetime.now(UTC) + timedelta(minutes=30)
        measured("first sweep, with its full check", made, now, FEED_ONLY)
        for _ in range(2):  # the feed settles
            now += timedelta(minutes=15)
            swept(made, now, FEED_ONLY)
        idle = []
        for _ in range(chosen.idle):
            now += timedelta(minutes=5)
            idle.append(swept(made, now, FEED_ONLY))
        requests = [count for _, count, _, _ in idle]
        print(f"{max(requests):8d} requests of an idle sweep at most (target: fewer than {TARGET})")
        print(f"{statistics.median(s for _, _, s, _ in idle):8.2f} s, median of {chosen.idle}")
        for name, times in sorted(idle[-1][3].items()):
            print(f"         {times} x {name}")
        measured("full check", made, now + timedelta(hours=1), 0)
        made.stack.lab.advance(days=4)
        measured("sweep after four lab days of news for all", made, now + timedelta(hours=2), FEED_ONLY)
    print(f"load {os.getloadavg()[0]:.1f} after")
    if max(requests) >= TARGET:
        raise SystemExit("an idle sweep makes too many requests")


def suspend(made, runs, folder):
    start = time.monotonic()
    ids = []
    while len(ids) < runs:
        ids += made.stack.lab.fill(min(FILL, runs - len(ids)), stage="ordered", sequences=1)
    given = {name: as_parameter(value) for name, value in made.parameters.items()}
    parameters = given | {"campaign_id": "bench", "batch_index": 0, "batch_count": 1, "deadline_days": 45}
    deployment = made.api.read_deployment_by_name("experiment/prefect-assay")
    by_api = ids if folder is None else ids[:1]
    made_runs = list(suspend_many(made.api, deployment.id, by_api, parameters))
    if folder is not None:
        copy_rows(next(folder.rglob("prefect.db")), str(made_runs[0].id), ids[0], ids[1:])
    print(f"{time.monotonic() - start:8.0f} s to make {runs} suspended runs", flush=True)


def copy_rows(database, run_id, first, others):
    """More of the same: its row and its state's, with ids and a tag of their own."""
    with sqlite3.connect(database, timeout=60) as db:
        db.row_factory = sqlite3.Row
        run = dict(db.execute("SELECT * FROM flow_run WHERE id = ?", [run_id]).fetchone())
        state = dict(db.execute("SELECT * FROM flow_run_state WHERE id = ?", [run["state_id"]]).fetchone())
        for number, experiment_id in enumerate(others):
            its, its_state = str(uuid4()), str(uuid4())
            details = state["state_details"].replace(run_id, its)
            changed = {"id": its, "name": f"copy-{number}", "state_id": its_state}
            insert(db, "flow_run", run | changed | {"tags": run["tags"].replace(first, experiment_id)})
            insert(
                db, "flow_run_state", state | {"id": its_state, "flow_run_id": its, "state_details": details}
            )


def insert(db, table, row):
    marks = ", ".join("?" for _ in row)
    db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def swept(made, now, minutes):
    """The report, the number of requests, the seconds, and the requests by kind."""
    with disable_run_logger(), counted_requests() as requests:
        start = time.perf_counter()
        report = _Sweep(made.api, Memory.read(made.api), now, minutes).run()
        took = time.perf_counter() - start
    if report.problems:
        raise SystemExit(f"problems: {report.problems}")
    return report, len(requests), took, Counter(requests)


def measured(what, made, now, minutes):
    report, requests, took, _ = swept(made, now, minutes)
    print(
        f"{requests:8d} requests, {took:.1f} s: {what}; {report.updates_seen} updates, {len(report.woken)} woken",
        flush=True,
    )


if __name__ == "__main__":
    main()
