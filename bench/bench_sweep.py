"""What a sweep costs: requests and seconds, when nothing has changed, in a full check, and after a week's news.

    python bench/bench_sweep.py [--runs 10000] [--idle 5] [--copied]

A Prefect server on its own PostgreSQL, the lab with as many experiments, and one suspended run for each, made through the API
with the tags and parameters of real ones; with --copied only the first, and the others are copies of its rows in the
server's database, which takes seconds. Counted is every request of this process to Prefect and to the service.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from figures import Growth, Ratio, report
from installation import installation
from many_runs import copy_on_postgres
from prefect.logging import disable_run_logger

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from prefect_assay.flows.sweep import _Sweep
from prefect_assay.runs.block_references import as_parameter
from prefect_assay.runs.tags import EXPERIMENT_TAG
from prefect_assay.sweeping.watermarks import SweepState
from support.counting import counted_requests
from support.runs.suspended import suspend_many

FEED_ONLY, TARGET = 10_000, 20
FILL = 250  # experiments for which the lab is asked at a time


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=10_000)
    options.add_argument("--idle", type=int, default=5, help="how many idle sweeps are measured")
    options.add_argument("--growth", action="store_true", help="also with a quarter and half of the runs")
    options.add_argument("--copied", action="store_true")
    chosen = options.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench-sweep-") as folder,
        installation(Path(folder), start_seconds=600) as made,
    ):
        # Later than the runs' start, so that they are not what has happened since the last sweep.
        now = datetime.now(UTC) + timedelta(minutes=30)
        there, points = 0, []
        for runs in (chosen.runs // 4, chosen.runs // 2, chosen.runs) if chosen.growth else (chosen.runs,):
            suspend(made, runs - there, copied=chosen.copied)
            there = runs
            now, requests, seconds = settled(made, now, chosen.idle)
            points.append((float(runs), seconds))
        measured("full check", made, now + timedelta(hours=1), 0)
        made.stack.lab.advance(days=4)
        measured("sweep after four lab days of news for all", made, now + timedelta(hours=2), FEED_ONLY)
    print(f"load {os.getloadavg()[0]:.1f} after")
    report(
        Ratio(
            "sweep",
            f"requests of an idle sweep at {chosen.runs:,} runs",
            ours=requests,
            beside="the limit, whatever the number of runs",
            other=TARGET - 1,
            unit="requests",
            goal=1.0,
        )
    )
    if chosen.growth:
        report(Growth("sweep", "an idle sweep", "suspended runs", "s", tuple(points), goal=0.3))
    if requests >= TARGET:
        raise SystemExit("an idle sweep makes too many requests")


def settled(made, now, times):
    """A full check, two sweeps until the feed settles, then idle ones: when it is, most requests, and median seconds."""
    measured("first sweep, with its full check", made, now, FEED_ONLY)
    for _ in range(2):
        now += timedelta(minutes=15)
        swept(made, now, FEED_ONLY)
    idle = []
    for _ in range(times):
        now += timedelta(minutes=5)
        idle.append(swept(made, now, FEED_ONLY))
    requests, seconds = max(count for _, count, _, _ in idle), statistics.median(s for _, _, s, _ in idle)
    print(f"{requests:8d} requests of an idle sweep at most (target: fewer than {TARGET})")
    print(f"{seconds:8.2f} s, median of {times}")
    for name, occurred in sorted(idle[-1][3].items()):
        print(f"         {occurred} x {name}")
    return now + timedelta(minutes=15), requests, seconds


def suspend(made, runs, *, copied):
    start = time.monotonic()
    ids = []
    while len(ids) < runs:
        ids += made.stack.lab.fill(min(FILL, runs - len(ids)), stage="ordered", sequences=1)
    given = {name: as_parameter(value) for name, value in made.parameters.items()}
    parameters = given | {"campaign_id": "bench", "batch_index": 0, "batch_count": 1, "deadline_days": 45}
    deployment = made.api.read_deployment_by_name("experiment/assay-experiment")
    by_api = ids[:1] if copied else ids
    made_runs = list(suspend_many(made.api, deployment.id, by_api, parameters))
    if copied:
        address = made.stack.database.embedded.url.replace("+asyncpg", "")
        others = [["assay", EXPERIMENT_TAG + one] for one in ids[1:]]
        asyncio.run(copy_on_postgres(address, made_runs[0].id, others))
    print(f"{time.monotonic() - start:8.0f} s to make {runs} suspended runs", flush=True)


def swept(made, now, minutes):
    """The report, the number of requests, the seconds, and the requests by kind."""
    with disable_run_logger(), counted_requests() as requests:
        start = time.perf_counter()
        found = _Sweep(made.api, SweepState.read(made.api), now, minutes).run()
        took = time.perf_counter() - start
    if found.problems:
        raise SystemExit(f"problems: {found.problems}")
    return found, len(requests), took, Counter(requests)


def measured(what, made, now, minutes):
    swept_report, requests, took, _ = swept(made, now, minutes)
    print(
        f"{requests:8d} requests, {took:.1f} s: {what}; {swept_report.updates_seen} updates, {len(swept_report.woken)} woken",
        flush=True,
    )


if __name__ == "__main__":
    main()
