"""Many campaigns woken in bursts on one database: what is lost, and which requests fail.

    python bench/bench_bursts.py [--campaigns 50] [--on sqlite|embedded] [--workers 4]

Campaigns of 4 experiments, paid by machine, without a sweep: a wake-up that is lost leaves its campaign waiting. The lab's days
pass in jumps, so that the webhooks of all experiments come at once. Meanwhile a browser asks for the pages of the interface,
without repeating a request, and a person runs `prefect-assay status`. Counted is every answer of the server by its status.
Executions are forks of a warm process, which load the server more than processes that start for seconds.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx

BENCH = Path(__file__).parent
sys.path[:0] = [str(BENCH.parent / "tests"), str(BENCH)]

from bench_campaign import counting  # noqa: E402

from support.stories import stack as stacks  # noqa: E402
from support.stories.world import a_world, fasta  # noqa: E402

RESIDUES = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"
EXPERIMENTS = 4
JUMPS = (2, 3, 3, 4, 5, 8)  # days of the lab; nothing takes longer than their sum
STATUS_SECONDS = 20
PAGES = (  # of the dashboard, the page of runs and the page of one run
    ("POST", "/flow_runs/filter", {"limit": 50, "sort": "START_TIME_DESC"}),
    ("POST", "/flow_runs/count", {}),
    ("POST", "/flow_runs/filter", {"flow_runs": {"state": {"type": {"any_": ["PAUSED"]}}}, "limit": 50}),
    ("POST", "/task_runs/count", {"task_runs": {"state": {"type": {"any_": ["COMPLETED"]}}}}),
    ("POST", "/deployments/filter", {"limit": 50}),
    ("POST", "/artifacts/latest/filter", {"limit": 50}),
    ("POST", "/events/filter", {"filter": {"event": {"prefix": ["assay."]}}, "limit": 50}),
    ("GET", "/health", None),
)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--campaigns", type=int, default=50)
    options.add_argument("--on", choices=["sqlite", "embedded"], default="sqlite")
    options.add_argument("--workers", type=int, default=4, help="executions at once")
    options.add_argument(
        "--jumps", type=int, default=len(JUMPS), help="only the first jumps; what waits then is not lost"
    )
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-bursts-") as name:
        folder = Path(name)
        requests = folder / "requests.log"
        env = {"PYTHONPATH": str(counting(folder / "hook")), "BENCH_REQUESTS": str(requests)}
        if chosen.on == "sqlite":
            env["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = f"sqlite+aiosqlite:///{folder / 'prefect.db'}"
        arguments = stacks.StoryStack.arguments_of_worker
        stacks.StoryStack.arguments_of_worker = lambda stack: [
            *arguments(stack),
            "--children",
            str(chosen.workers),
        ]
        print(f"{chosen.on}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
        with a_world(folder / "world", env=env) as world, world.story("bursts") as story:
            played(world, story, chosen.campaigns, JUMPS[: chosen.jumps])
            judge(story, chosen.campaigns)
        report(requests)
        print(f"load {os.getloadavg()[0]:.1f} after")


def played(world, story, campaigns, jumps):
    """Start all campaigns, and let the days pass until each is over or waits for something that was lost."""
    person, end = Person(world), threading.Event()
    threads = [threading.Thread(target=work, args=(end,)) for work in (person.browse, person.ask)]
    for thread in threads:
        thread.start()
    try:
        start = time.monotonic()
        runs = [story.start(campaign_id=f"burst-{n}", designs=designs(n)).id for n in range(campaigns)]
        print(
            f"{rest(world, runs)}; {time.monotonic() - start:.0f} s until all are ordered and suspended",
            flush=True,
        )
        for days in jumps:
            start = time.monotonic()
            story.lab.advance(days=days)
            states = rest(world, runs)
            print(f"{states}; {time.monotonic() - start:.0f} s after {days} more days", flush=True)
        if len(jumps) < len(JUMPS):
            return
        lost = [run for run in runs if world.api.read_flow_run(run).state.name == "Suspended"]
        print(f"{len(lost)} campaigns wait though the laboratory is done: their wake-ups were lost")
        if lost:
            print(world.sweep(), rest(world, runs), "after one sweep")
    finally:
        end.set()
        for thread in threads:
            thread.join()
        person.report()


def designs(number):
    """Four designs that no other campaign has."""
    letters = "ACDEFGHIKLMNPQRSTVWY"
    tail = letters[number // 20 % 20] + letters[number % 20]
    return fasta({f"d{n}": RESIDUES + tail + letters[n] for n in range(EXPERIMENTS)})


def rest(world, runs):
    """The states of the runs, once none has had anything to do for five seconds; by their names."""
    since = None
    while since is None or time.monotonic() - since < 5:
        states = Counter(world.api.read_flow_run(run).state.name for run in runs)
        is_calm = not set(states) - {"Suspended", "Completed", "CompletedWithGaps", "Failed", "Cancelled"}
        since = (since or time.monotonic()) if is_calm else None
        time.sleep(1)
    return dict(states)


class Person:
    """A browser that repeats nothing, and a shell."""

    def __init__(self, world):
        self._world = world
        self._pages, self._seconds, self._commands = Counter(), [], Counter()

    def browse(self, end):
        with httpx.Client(base_url=self._world.stack.api_url, timeout=30, trust_env=False) as browser:
            while not end.wait(0.2):
                for method, path, body in PAGES:
                    start = time.monotonic()
                    try:
                        answer = browser.request(method, path, json=body).status_code
                    except httpx.HTTPError as error:
                        answer = type(error).__name__
                    self._pages[answer] += 1
                    self._seconds.append(time.monotonic() - start)

    def ask(self, end):
        status = [sys.executable, "-P", "-m", "prefect_assay.cli", "status"]
        while not end.wait(STATUS_SECONDS):
            done = subprocess.run(status, env=self._world.stack.env, capture_output=True, check=False)
            self._commands[done.returncode] += 1
            if done.returncode:
                print(done.stderr.decode()[-500:])

    def report(self):
        worst = sorted(self._seconds)[int(len(self._seconds) * 0.99)]
        print(
            f"interface: {dict(self._pages)}; median {statistics.median(self._seconds):.2f} s, 99 % {worst:.1f} s"
        )
        print(f"`prefect-assay status`: {dict(self._commands)} by exit code")


def judge(story, campaigns):
    """Nothing is ordered or paid twice, and everything is measured."""
    creates = [
        entry for entry in story.lab.journal(path="/experiments", method="POST") if entry["status"] < 300
    ]
    experiments = story.get("/experiments", limit=1)["total"]
    settled = len(story.world.stack.lab.settlements())
    print(
        f"{len(creates)} creates, {experiments} experiments, {settled} payments; {campaigns * EXPERIMENTS} were planned"
    )
    states = [ledger.read() for ledger in story.ledgers()]
    paid, measured = (
        sum(one.settled is not None for one in states),
        sum(one.delivered is not None for one in states),
    )
    print(f"{len(states)} ledgers of orders, {paid} paid, {measured} measured")
    outbox = story.world.stack.lab.outbox()
    print(f"{len(outbox)} deliveries are still to be sent")


def report(requests):
    statuses, failed = Counter(), Counter()
    for line in requests.read_text().splitlines():
        method, path, status = line.split()
        statuses[status] += 1
        if status.startswith("5") or status == "0":
            failed[f"{method} {'/'.join(path.split('/')[:4])} {status}"] += 1
    print(f"answers of the server by status: {dict(statuses)}")
    print(f"failed: {dict(failed)}")


if __name__ == "__main__":
    main()
