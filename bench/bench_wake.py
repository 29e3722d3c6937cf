"""The time from a webhook delivery to the first line of the woken flow, and where it goes.

    python bench/bench_wake.py [--wakes 20] [--kind serve] [--kind worker]

One campaign is suspended on a real installation (server on SQLite, receiver, lab, served flows or process
worker, with the shipped settings). Signed deliveries wake it one after the other; each time it looks at the service
and suspends again. Takes about five seconds per wake.
"""

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

from figures import Ratio
from figures import report as report_figure
from installation import installation
from prefect.client.orchestration import get_client
from side_by_side import compare, python

TARGET_SECONDS = 2.5
# From the steps below, 2026-11-29
MISS = (
    "Of 7.2 s, the worker takes 3.7 s to see the run and to start two processes, and the imports of Prefect and the flow "
    "3.0 s. This is Prefect's own worker, and short compared with waits of days."
)
# Where a wake passes, in order. What does not occur on a way is left out.
STEPS = (
    ("answered", "receiver: check, find the run, resume it"),
    ("Pending", "runner: poll, see the run, claim it (Pending)"),
    ("process made", "runner: start a process"),
    ("interpreter up", "process: interpreter"),
    ("imports done", "process: import Prefect"),
    ("engine begun", "process: import and load the flow"),
    ("Running", "engine: read the run, Running"),
    ("first line", "engine: hooks, blocks, parameters, first line"),
)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--wakes", type=int, default=20)
    options.add_argument("--kind", action="append", choices=["serve", "worker"])
    options.add_argument("--raw", action="store_true", help="print every mark")
    chosen = options.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    for kind in chosen.kind or ("serve", "worker"):
        with tempfile.TemporaryDirectory(prefix="bench-wake-") as folder:
            report(kind, measure(kind, Path(folder), chosen.wakes, chosen.raw))
    print(f"load {os.getloadavg()[0]:.1f} after")


def measure(kind, folder, wakes, raw):
    """The marks of each wake: name of the step, seconds after the delivery was sent."""
    marks = folder / "marks"
    marks.touch()
    timings = []
    with installation(
        folder,
        runner=kind,
        env={"BENCH_WAKE_MARKS": str(marks)},
        python_path=Path(__file__).parent / "wake_probe",
    ) as made:
        run = made.suspended_campaign("bench-wake")
        key = made.order_key(run)
        for _ in range(wakes + 1):
            time.sleep(random.uniform(0.5, 2.5))  # not in step with the polls, one in two seconds
            before = marks.stat().st_size
            sent, answered = made.wake(run, key)
            time.sleep(1)
            made.asleep(run)
            lines = [json.loads(line) for line in marks.read_text()[before:].splitlines()]
            if raw:
                for line in lines:
                    print(f"   {line['at'] - sent:7.3f} {line['pid']} {line['what']}, CPU {line['cpu']:.2f}")
            timings.append(steps(run, sent, answered, lines))
    return timings[1:]  # the first one warms what is warm ever after


def steps(run, sent, answered, lines):
    """Seconds after the delivery of each step of one wake."""
    runner = [line for line in lines if line["what"] == "first line"][-1]["pid"]
    moments = {line["what"]: line["at"] for line in lines if line["pid"] == runner}
    with get_client(sync_client=True) as api:
        states = [state for state in api.read_flow_run_states(run.id) if state.timestamp.timestamp() > sent]
    for state in sorted(states, key=lambda state: state.timestamp, reverse=True):
        moments[state.name] = state.timestamp.timestamp()
    return {what: moment - sent for what, moment in (moments | {"answered": answered}).items()}


def report(kind, wakes):
    print(f"\n{kind}, {len(wakes)} wakes, milliseconds: median of each step")
    reached = 0.0
    for name, what in STEPS:
        if all(name in wake for wake in wakes):
            median = statistics.median(wake[name] for wake in wakes)
            print(f"{(median - reached) * 1000:8.0f}  to {median * 1000:6.0f}  {what}")
            reached = median
    whole = sorted(wake["first line"] for wake in wakes)
    p90 = whole[min(len(whole) - 1, int(len(whole) * 0.9))]
    started = compare(
        {"process": python("import prefect.flow_engine, prefect_assay.flows.campaign")}, rounds=3
    )
    report_figure(
        Ratio(
            "wake",
            f"delivery to the flow's first line, {kind}, median of {len(whole)}",
            ours=statistics.median(whole),
            beside="a new process that imports Prefect and the flow",
            other=started["process"],
            unit="s",
            goal=1.0,
            miss=MISS,
        )
    )
    verdict = "within" if statistics.median(whole) <= TARGET_SECONDS else "OVER"
    print(
        f"delivery to first line: median {statistics.median(whole):.2f} s, p90 {p90:.2f} s, "
        f"longest {whole[-1]:.2f} s; {verdict} the target of {TARGET_SECONDS} s"
    )


if __name__ == "__main__":
    main()
