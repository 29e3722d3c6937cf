"""The requests to the service in the life of one experiment, in order, by execution of its run.

    python bench/bench_requests.py [--wakes 3]

One design, paid by x402-exact, on a real Prefect server and the lab; each execution in this process. It is woken so
many times for nothing, then with all results. The list is the lab's own journal: what other processes ask is also in it.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from prefect.logging import disable_run_logger

from support.runs.held import Held
from support.runs.world import a_world


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--wakes", type=int, default=3)
    wakes = options.parse_args().wakes
    with tempfile.TemporaryDirectory(prefix="bench-requests-") as folder, a_world(Path(folder)) as world:
        with disable_run_logger():
            held = Held(world)
            run = held.experiment("requests")
            lives = [executed("ordered and suspended", world, held, run)]
            for number in range(1, wakes + 1):
                world.api.resume_flow_run(run.id)
                lives.append(executed(f"wake {number}, for nothing", world, held, run))
            world.advance(days=16)
            world.api.resume_flow_run(run.id)
            lives.append(executed("wake with results", world, held, run))
        end = held.state(run)
    for name, paths in lives:
        print(f"\n{name}: {len(paths)} requests")
        for path in paths:
            print(f"  {path}")
    every = Counter(path for _, paths in lives for path in paths)
    print(
        f"\nall: {every.total()} requests, {lives[0][1].__len__()} before the run first slept; it ended {end.name}"
    )
    for path, times in every.most_common():
        print(f"  {times:3} {path}")


def executed(name, world, held, run):
    """One execution, and the requests that the lab has handled meanwhile."""
    before = len(world.journal())
    held.execute(run)
    rows = world.journal()[before:]
    shown = [f"{row['method']} {row['path']}" for row in rows if row["path"].startswith("/api/")]
    for order in world.orders("requests"):
        shown = [path.replace(order.id, "{experiment}") for path in shown]
    return name, shown


if __name__ == "__main__":
    main()
