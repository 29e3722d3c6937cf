"""A worker whose executions cost milliseconds to start: `python worker.py OPTIONS`, one warm process that forks.

It does what Prefect's runner does around a flow run: asks for scheduled runs, claims one by proposing Pending,
executes it in a process of its own, proposes Crashed when that process ends badly, ends the processes of runs that are
canceled. An import of Prefect costs seconds and a fork milliseconds, so everything is imported once; a fork runs
Prefect's own engine program.

Executions die by SIGKILL: at the points for which traps are set (`support/crash/points.py`), and some at random, which
and at which part of the time that one takes is drawn from the seed.
The parent starts no thread ever, so that a fork is safe: it speaks plain HTTP, and knows neither the Prefect client
nor why a run waits.
"""

import argparse
import json
import os
import random
import runpy
import signal
import statistics
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx

_TURN_SECONDS: Final = 0.004
_CANCEL_SECONDS: Final = 1.0
_PAGE: Final = 200
_LONGEST_SECONDS: Final = 600.0  # an execution that takes longer hangs
_NEEDED: Final = (
    "prefect.task_engine",
    "prefect.utilities.visualization",
    "prefect_assay.service.webhook_signature",
    "eth_account",
    "boto3",
)
_LEFT_BEHIND: Final = ("RUNNING", "PENDING")


class Api:
    """The few calls of the Prefect API that a runner makes. A server that is unreachable is asked again later."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=20, trust_env=False)
        self._flows: dict[str, str] = {}

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The answer, or None while the server is unreachable or too busy."""
        try:
            answer = self._http.post(path, json=body)
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None

    def answers(self) -> bool:
        """Whether the server is there."""
        try:
            return self._http.get("/health").is_success
        except httpx.TransportError:
            return False

    def flow_of(self, run: dict[str, Any]) -> str:
        """The name of a run's flow."""
        flow_id = run["flow_id"]
        if flow_id not in self._flows:
            self._flows[flow_id] = self._http.get(f"/flows/{flow_id}").json()["name"]
        return self._flows[flow_id]

    def set_state(self, run_id: str, kind: str, name: str, *, force: bool = False, message: str = "") -> str:
        """Propose a state; what the server says of it, `UNKNOWN` without an answer."""
        state = {"type": kind, "name": name, "message": message}
        answer = self.post(f"/flow_runs/{run_id}/set_state", {"state": state, "force": force})
        return "UNKNOWN" if answer is None else str(answer["status"])

    def runs(self, *kinds: str, due: bool = False) -> list[dict[str, Any]]:
        """Runs of deployments in one of these states, those that are due first."""
        runs: dict[str, Any] = {
            "state": {"type": {"any_": list(kinds)}},
            "deployment_id": {"is_null_": False},
        }
        if due:
            runs["next_scheduled_start_time"] = {"before_": datetime.now(UTC).isoformat()}
        return (
            self.post(
                "/flow_runs/filter", {"flow_runs": runs, "sort": "EXPECTED_START_TIME_ASC", "limit": _PAGE}
            )
            or []
        )


@dataclass
class Execution:
    """One child process on one run."""

    run_id: str
    flow: str
    began: float
    killed_after: float | None
    killed: bool = False
    canceled: bool = False


class Worker:
    """Claims, forks, kills, reaps, reports."""

    def __init__(self, options: argparse.Namespace, api: Api) -> None:
        self._options = options
        self._api = api
        self._children: dict[int, Execution] = {}
        self._took: deque[float] = deque([1.0], maxlen=50)  # seconds that executions have taken lately
        self._draw = random.Random(options.seed)
        self._journal = os.open(options.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._queue: list[dict[str, Any]] = []
        self._polled = self._looked = 0.0
        self._number = 0

    def run(self) -> None:
        """Until the process is ended."""
        self._note(event="worker", pid=os.getpid())
        if self._options.declare_crashed:
            self._declare_crashed()
        while True:
            self._reap()
            self._strike()
            now = time.monotonic()
            if self._children and now - self._looked > _CANCEL_SECONDS:
                self._looked = now
                self._cancel()
            if len(self._children) < self._options.children:
                self._start_next(now)
            time.sleep(_TURN_SECONDS)

    def _start_next(self, now: float) -> None:
        if not self._queue and now - self._polled > self._options.poll_seconds:
            self._polled = now
            due = self._api.runs("SCHEDULED", due=True)
            # The sweep is alone in life as well: it does not stand behind a thousand campaigns.
            self._queue = sorted(due, key=lambda run: self._api.flow_of(run) != "sweep")
        if self._queue:
            run = self._queue.pop(0)
            if self._api.set_state(run["id"], "PENDING", "Pending") == "ACCEPT":
                self._fork(run["id"], self._api.flow_of(run))

    def _fork(self, run_id: str, flow: str) -> None:
        assert threading.active_count() == 1, threading.enumerate()
        dies = self._draw.random() < self._options.kill_share
        within = self._draw.uniform(0, 1.2 * statistics.median(self._took))
        self._number += 1
        pid = os.fork()
        if pid == 0:
            os._exit(execute(run_id, self._options, self._number))
        self._children[pid] = Execution(run_id, flow, time.monotonic(), within if dies else None)

    def _strike(self) -> None:
        """SIGKILL to those whose moment has come."""
        now = time.monotonic()
        for pid, child in self._children.items():
            age = now - child.began
            if child.killed or age < (_LONGEST_SECONDS if child.killed_after is None else child.killed_after):
                continue
            child.killed = True
            if child.killed_after is None:
                self._note(event="hangs", run=child.run_id, flow=child.flow)
            os.kill(pid, signal.SIGKILL)

    def _cancel(self) -> None:
        """End the processes of runs that a person cancels, as Prefect's runner does."""
        canceling = {run["id"] for run in self._api.runs("CANCELLING")}
        for pid, child in self._children.items():
            if child.run_id in canceling and not child.canceled:
                child.canceled = True
                os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        while self._children:
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - child.began
            if code == 0:
                self._took.append(seconds)
            self._note(
                event="execution",
                run=child.run_id,
                flow=child.flow,
                code=code,
                killed=child.killed and code < 0,
                seconds=round(seconds, 4),
                cpu=round(used.ru_utime + used.ru_stime, 4),
            )
            if child.canceled:
                self._api.set_state(child.run_id, "CANCELLED", "Cancelled")
            elif code != 0:
                self._api.set_state(child.run_id, "CRASHED", "Crashed", message=f"Process exited with {code}")

    def _declare_crashed(self) -> None:
        """Runs that a worker before this one has left behind: the sweep would wait minutes for their heartbeats."""
        for run in self._api.runs(*_LEFT_BEHIND):
            answer = self._api.set_state(run["id"], "CRASHED", "Crashed", message="Its worker is gone")
            self._note(event="zombie", run=run["id"], was=run["state_name"], answer=answer)

    def _note(self, **what: Any) -> None:
        os.write(self._journal, (json.dumps({"at": round(time.time(), 3), **what}) + "\n").encode())


def execute(run_id: str, options: argparse.Namespace, number: int) -> int:
    """In the fork: `python -m prefect.engine RUN`."""
    output = os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    random.seed()  # else every fork draws the same
    if options.traps:
        from support.crash.points import Points, Traps, watch

        traces = options.traps / "traces"
        traces.mkdir(exist_ok=True)
        names = json.loads(options.names)
        watch(Points(traces / f"{os.getppid()}-{number}-{run_id}", Traps(options.traps), names))
    sys.argv = ["prefect.engine", run_id]
    os.environ["PREFECT__FLOW_RUN_ID"] = run_id
    try:
        runpy.run_module("prefect.engine", run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the log is for people
        import traceback

        traceback.print_exc()
        code = 1
    else:
        code = 0
    # As an interpreter that ends does: what waits for the end, such as the sender of events, is let finish.
    threading._shutdown()
    import atexit

    atexit._run_exitfuncs()
    sys.stdout.flush()
    return code


def main() -> None:
    """Import everything, then work."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--api", required=True)
    parser.add_argument("--journal", required=True, type=Path)
    parser.add_argument("--log", required=True)
    parser.add_argument("--children", type=int, default=3)
    parser.add_argument("--poll-seconds", type=float, default=1.0)  # the shipped interval is 2 (runner.env)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--kill-share", type=float, default=0.0)
    parser.add_argument("--declare-crashed", action="store_true")
    parser.add_argument(
        "--traps", type=Path, help="folder of traps, and of what was reached by each execution"
    )
    parser.add_argument("--names", default="{}", help="JSON: who listens at an origin, or what a folder is")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from support.runs.forking import shorten_pauses, warm_up

    shorten_pauses()
    warm_up(*_NEEDED)
    api = Api(options.api)
    while not api.answers():  # the imports need not wait for the server
        time.sleep(0.05)
    Worker(options, api).run()


if __name__ == "__main__":
    main()
