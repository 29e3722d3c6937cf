"""A worker for thousands of executions: `python worker.py OPTIONS`, one warm process that forks.

It does what Prefect's runner does around a flow run: asks for scheduled runs, claims one by proposing Pending,
executes it in a process of its own, proposes Crashed when that process ends badly. An import of Prefect costs
seconds and a fork milliseconds, so everything is imported once; a fork runs Prefect's own engine program.

A run that was left Running or Pending by a worker that died is declared crashed at once, where the sweep waits ten
minutes for a heartbeat. Crashed runs are scheduled again after a while, as the sweep would do later. Both are counted.

Some executions are ended by SIGKILL: which, and at which part of the time that one takes, is drawn from the seed.
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

_POLL_SECONDS: Final = 1.0  # the shipped interval is 2 (deployments/runner.env)
_TURN_SECONDS: Final = 0.004
_RECOVER_SECONDS: Final = 3.0
_PAGE: Final = 200
_LONGEST_SECONDS: Final = 600.0  # an execution that takes longer hangs
_NEEDED: Final = (
    "prefect.task_engine",
    "prefect.utilities.visualization",
    "prefect_assay.webhooks",
    "eth_account",
)
_LEFT_BEHIND: Final = ("RUNNING", "PENDING", "CRASHED")


class Api:
    """The few calls of the Prefect API that a runner makes. A server that is away is asked again later."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=20, trust_env=False)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The answer, or None while the server is away or too busy."""
        try:
            answer = self._http.post(path, json=body)
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None

    def set_state(self, run_id: str, kind: str, name: str, *, force: bool = False, message: str = "") -> str:
        """Propose a state; what the server says of it, `UNKNOWN` without an answer."""
        state = {"type": kind, "name": name, "message": message}
        said = self.post(f"/flow_runs/{run_id}/set_state", {"state": state, "force": force})
        return "UNKNOWN" if said is None else str(said["status"])

    def scheduled(self, deployments: list[str]) -> list[dict[str, Any]]:
        """Runs that are due, the oldest first."""
        now = datetime.now(UTC).isoformat()
        body = {"deployment_ids": deployments, "scheduled_before": now, "limit": _PAGE}
        return self.post("/deployments/get_scheduled_flow_runs", body) or []

    def in_states(self, deployments: list[str], kinds: tuple[str, ...]) -> list[dict[str, Any]]:
        """Runs of the deployments in one of these states."""
        body = {
            "deployments": {"id": {"any_": deployments}},
            "flow_runs": {"state": {"type": {"any_": list(kinds)}}},
            "limit": _PAGE,
        }
        return self.post("/flow_runs/filter", body) or []


@dataclass
class Execution:
    """One child process on one run."""

    run_id: str
    flow: str
    began: float
    killed_after: float | None
    killed: bool = False


class Worker:
    """Claims, forks, kills, reaps, reports."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._api = Api(options.api)
        self._names: dict[str, str] = json.loads(options.deployments.read_text())  # id -> flow
        self._children: dict[int, Execution] = {}
        self._most = options.children
        self._kill_share = options.kill_share
        self._took: deque[float] = deque([1.0], maxlen=50)  # seconds that executions have taken lately
        self._draw = random.Random(options.seed)
        self._journal = os.open(options.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._log = options.log
        self._grace = options.grace
        self._crashed: dict[str, float] = {}  # state -> since when it is known
        self._queue: list[dict[str, Any]] = []
        self._polled = self._recovered = 0.0

    def run(self) -> None:
        """Until the process is ended."""
        self._note(event="worker", pid=os.getpid())
        while True:
            self._reap()
            self._strike()
            now = time.monotonic()
            if now - self._recovered > _RECOVER_SECONDS:
                self._recovered = now
                self._recover()
            if len(self._children) < self._most:
                self._start_next(now)
            time.sleep(_TURN_SECONDS)

    def _start_next(self, now: float) -> None:
        if not self._queue and now - self._polled > _POLL_SECONDS:
            self._polled = now
            due = self._api.scheduled(list(self._names))
            # The sweep is alone in life as well: it does not stand behind a thousand experiments.
            self._queue = sorted(due, key=lambda run: self._names[run["deployment_id"]] != "sweep")
        if self._queue:
            run = self._queue.pop(0)
            if self._api.set_state(run["id"], "PENDING", "Pending") == "ACCEPT":
                self._fork(run["id"], self._names[run["deployment_id"]])

    def _fork(self, run_id: str, flow: str) -> None:
        assert threading.active_count() == 1, threading.enumerate()
        dies = self._draw.random() < self._kill_share
        within = self._draw.uniform(0, 1.2 * statistics.median(self._took))
        pid = os.fork()
        if pid == 0:
            os._exit(execute(run_id, self._log))
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
            if code != 0:
                self._api.set_state(child.run_id, "CRASHED", "Crashed", message=f"Process exited with {code}")

    def _recover(self) -> None:
        """Declare crashed what nobody executes; schedule crashed runs again.

        A sweep that has died stays crashed: the next one is due.
        """
        mine = {child.run_id for child in self._children.values()}
        now = time.monotonic()
        left = self._api.in_states(list(self._names), _LEFT_BEHIND)
        waiting = [run for run in left if run["id"] not in mine]
        self._crashed = {run["state_id"]: self._crashed.get(run["state_id"], now) for run in waiting}
        for run in waiting:
            if run["state_type"] != "CRASHED":
                said = self._api.set_state(run["id"], "CRASHED", "Crashed", message="Its worker is gone")
                self._note(event="zombie", run=run["id"], was=run["state_name"], said=said)
            elif (
                self._names[run["deployment_id"]] != "sweep"
                and now - self._crashed[run["state_id"]] > self._grace
            ):
                said = self._api.set_state(run["id"], "SCHEDULED", "AwaitingRetry", force=True)
                self._note(event="again", run=run["id"], said=said)

    def _note(self, **what: Any) -> None:
        os.write(self._journal, (json.dumps({"at": round(time.time(), 3), **what}) + "\n").encode())


def execute(run_id: str, log: str) -> int:
    """In the fork: `python -m prefect.engine RUN`."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    random.seed()  # else every fork draws the same
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
    parser.add_argument("--deployments", required=True, type=Path, help="JSON file: flow by deployment id")
    parser.add_argument("--journal", required=True, type=Path)
    parser.add_argument("--log", required=True)
    parser.add_argument("--children", type=int, default=3)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--kill-share", type=float, default=0.0)
    parser.add_argument("--grace", type=float, default=20.0, help="seconds before a crashed run is scheduled")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from support.runs.forking import warm_up

    warm_up(*_NEEDED)
    while not options.deployments.exists():  # the imports need not wait for the server
        time.sleep(0.05)
    Worker(options).run()


if __name__ == "__main__":
    main()
