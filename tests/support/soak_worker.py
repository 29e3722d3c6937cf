"""A worker for thousands of executions: `python soak_worker.py OPTIONS`, one warm process that forks.

It does what Prefect's runner does around a flow run: asks for scheduled runs, claims one by proposing Pending,
executes it in a process of its own, proposes Crashed when that process ends badly. An import of Prefect costs
seconds and a fork milliseconds, so everything is imported once; a fork runs Prefect's own engine program.

Two things stand in for Prefect's automations, which other tests try: a run that crashed, or that was left
Running or Pending by a worker that died, is scheduled again as AwaitingRetry.

Some executions are ended by SIGKILL, at a moment drawn from the seed. The parent starts no thread ever, so that a
fork is safe: it speaks plain HTTP, and knows neither the Prefect client nor why a run waits.
"""

import argparse
import gc
import json
import os
import random
import runpy
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx

_POLL_SECONDS: Final = 0.25
_TURN_SECONDS: Final = 0.004
_RECOVER_SECONDS: Final = 3.0
_PAGE: Final = 200
_LONGEST_SECONDS: Final = 120.0  # an execution that takes longer hangs
_NEEDED: Final = (
    "prefect.engine",
    "prefect.flow_engine",
    "prefect_assay.flows",
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
        self._names: dict[str, str] = json.loads(options.deployments)  # id -> flow
        self._children: dict[int, Execution] = {}
        self._most = options.children
        self._kill_share = options.kill_share
        self._kill_within = options.kill_within
        self._draw = random.Random(options.seed)
        self._journal = os.open(options.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._log = options.log
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
        within = self._draw.uniform(0, self._kill_within)
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
            self._note(
                event="execution",
                run=child.run_id,
                flow=child.flow,
                code=code,
                killed=child.killed and code < 0,
                seconds=round(time.monotonic() - child.began, 4),
                cpu=round(used.ru_utime + used.ru_stime, 4),
            )
            if code != 0:
                self._api.set_state(
                    child.run_id, "CRASHED", "Crashed", message=f"Process exited with {code}"
                )

    def _recover(self) -> None:
        """As the automations do: crashed runs, and those that nobody executes, are scheduled again."""
        mine = {child.run_id for child in self._children.values()}
        for run in self._api.in_states(list(self._names), _LEFT_BEHIND):
            if run["id"] not in mine:
                said = self._api.set_state(run["id"], "SCHEDULED", "AwaitingRetry", force=True)
                self._note(event="again", run=run["id"], was=run["state"]["name"], said=said)

    def _note(self, **what: Any) -> None:
        os.write(self._journal, (json.dumps({"at": round(time.time(), 3), **what}) + "\n").encode())


def execute(run_id: str, log: str) -> int:
    """In the fork: what `python -m prefect.engine RUN` does."""
    global _BEFORE
    _BEFORE = set(sys.modules)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    random.seed()  # else every fork draws the same
    sys.argv = ["prefect.engine", run_id]
    os.environ["PREFECT__FLOW_RUN_ID"] = run_id
    profile = _profiled() if os.environ.get("SOAK_PROFILE") else None
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
    if profile is not None:
        profile()
        print("LATE", " ".join(sorted(set(sys.modules) - _BEFORE)))
    # As an interpreter that ends does: what waits for the end, such as the sender of events, is let finish.
    threading._shutdown()
    import atexit

    atexit._run_exitfuncs()
    sys.stdout.flush()
    return code


def _profiled() -> Callable[[], None]:
    import cProfile

    profile = cProfile.Profile()
    profile.enable()

    def end() -> None:
        profile.disable()
        profile.dump_stats(f"{os.environ['SOAK_PROFILE']}/{os.getpid()}.prof")

    return end


def main() -> None:
    """Import everything, then work."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--api", required=True)
    parser.add_argument("--deployments", required=True, help="JSON: flow by deployment id")
    parser.add_argument("--journal", required=True, type=Path)
    parser.add_argument("--log", required=True)
    parser.add_argument("--children", type=int, default=3)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--kill-share", type=float, default=0.0)
    parser.add_argument("--kill-within", type=float, default=1.0)
    options = parser.parse_args()
    warm_up()
    Worker(options).run()


def warm_up() -> None:
    """Do once what every fork would do again: import, and build pydantic's deferred models."""
    import importlib

    import pydantic
    from prefect.plugins import load_prefect_collections

    load_prefect_collections()
    for name in _NEEDED:
        importlib.import_module(name)
    del sys.modules["prefect.engine"]  # it is run as a program in the forks
    kinds = [pydantic.BaseModel]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        with suppress(Exception):  # some name what exists nowhere; nobody uses those
            kind.model_rebuild()
    gc.collect()
    gc.freeze()  # else every collection of a fork copies the memory of all that was imported


if __name__ == "__main__":
    main()
