"""What an idle sweep costs: requests and seconds, however many campaigns wait and however many are over.

    python bench/bench_sweep.py [--open 20] [--finished 1000] [--idle 5] [--growth]

A Prefect server, the lab, and campaigns in one archive: open ones with a suspended run each, made through the API, and others that
are over. Counted is every request of this process to Prefect and to the service.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from figures import Growth, Ratio, report
from installation import installation
from prefect.logging import disable_run_logger

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG
from prefect_assay.campaigns.sweep.watermarks import SweepState
from prefect_assay.flows.sweep import _Sweep
from support.counting import counted_requests
from support.runs.sweeps import SweptHome

SELDOM, TARGET = 10_000, 15  # minutes between two full checks; requests


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--open", type=int, default=20, help="campaigns that wait")
    options.add_argument("--finished", type=int, default=1000, help="campaigns that are over")
    options.add_argument("--idle", type=int, default=5, help="how many idle sweeps are measured")
    options.add_argument(
        "--growth", action="store_true", help="also with a quarter and half of the finished ones"
    )
    chosen = options.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench-sweep-") as folder,
        installation(Path(folder), start_seconds=600) as made,
    ):
        lab = made.stack.lab
        home = SweptHome(made.api, Path(folder), base_url=lab.base_url, token=lab.token)
        for number in range(chosen.open):
            home.run(home.start(f"open-{number}"), tags=(EXPERIMENT_TAG + str(uuid4()),))
        there, points, requests = 0, [], 0
        now = datetime.now(UTC)
        counts = (chosen.finished // 4, chosen.finished // 2, chosen.finished)
        for finished in counts if chosen.growth else (chosen.finished,):
            for number in range(there, finished):
                home.start(f"over-{number}").finish("measured", complete=True)
            there = finished
            now, requests, seconds = settled(made, now + timedelta(minutes=15), chosen.idle)
            points.append((float(finished), seconds))
        measured("full check", made, now + timedelta(hours=1), 0)
    print(f"load {os.getloadavg()[0]:.1f} after")
    report(
        Ratio(
            "sweep",
            f"requests of an idle sweep, {chosen.open:,} campaigns open, {chosen.finished:,} over",
            ours=requests,
            beside="the limit, whatever their number",
            other=TARGET,
            unit="requests",
            goal=1.0,
        )
    )
    if chosen.growth:
        report(Growth("sweep", "an idle sweep", "campaigns that are over", "s", tuple(points), goal=0.3))
    if requests > TARGET:
        raise SystemExit("an idle sweep makes too many requests")


def settled(made, now, times):
    """A full check, a sweep until the feed settles, then idle ones: when it is, most requests, and median seconds."""
    measured("first sweep, with its full check", made, now, 0)
    now += timedelta(minutes=5)
    swept(made, now, SELDOM)
    idle = []
    for _ in range(times):
        now += timedelta(minutes=5)
        idle.append(swept(made, now, SELDOM))
    requests, seconds = max(count for _, count, _, _ in idle), statistics.median(s for _, _, s, _ in idle)
    print(f"{requests:8d} requests of an idle sweep at most (target: {TARGET})")
    print(f"{seconds:8.2f} s, median of {times}")
    for name, occurred in sorted(idle[-1][3].items()):
        print(f"         {occurred} x {name}")
    return now, requests, seconds


def swept(made, now, minutes):
    """The report, the number of requests, the seconds, and the requests by kind."""
    with disable_run_logger(), counted_requests() as requests:
        start = time.perf_counter()
        done = _Sweep(made.api, SweepState.read(made.api), now, minutes).run()
        took = time.perf_counter() - start
    if done.problems:
        raise SystemExit(f"problems: {done.problems}")
    return done, len(requests), took, Counter(requests)


def measured(what, made, now, minutes):
    done, requests, took, _ = swept(made, now, minutes)
    print(
        f"{requests:8d} requests, {took:.1f} s: {what}; {done.open_campaigns} open campaigns, {len(done.woken)} woken",
        flush=True,
    )


if __name__ == "__main__":
    main()
