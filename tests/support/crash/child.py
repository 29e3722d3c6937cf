"""The process that runs what is to be killed: `python child.py`, one JSON line in, one JSON line out.

It imports Prefect and the flows once and forks for every execution, because a fork costs milliseconds and an
import seconds. The fork executes a flow run exactly as Prefect's own `python -m prefect.engine RUN` does. Nothing
in the product knows about this: seams of httpx and of the interpreter are watched from outside.

A point is a moment right before a request is sent, right after its answer has arrived, or right before a file
is written; each is named and numbered in the order in which it is reached. At the chosen one the fork sends
itself SIGKILL, which nothing can catch.
"""

import base64
import hashlib
import json
import os
import re
import runpy
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

LONGEST_SLEEP: Final = 0.005  # product pauses (back-off, patience) take minutes; their order is what counts

# Prefect's logs and events come from threads of their own, at any time.
_NOISE: Final = (
    "/api/logs",
    "/api/events",
    "/api/csrf-token",
    "/api/admin",
    "/api/v2/concurrency_limits/leases",
)
_IDS: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{16,}|(?<=/packages/)\w+|\d+\.[0-9a-f]{16}"
)


# Organisation and campaign, or all of the budget's log, whose numbers go on from story to story.
_LOG: Final = re.compile(r"(?<=/BOOKS/)[^/]+/(BUDGET/\d+|[^/]+)")


def _name(path: str) -> str:
    """A path that is the same in every story."""
    return _IDS.sub("*", _LOG.sub("*", path))


class Points:
    """Writes down every point and kills the process at one of them."""

    def __init__(self, trace: Path, kill: int | list[Any] | None, names: Mapping[str, str]) -> None:
        self._trace = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._kill = kill  # a number, or a name and how often it has been reached before
        self._names = names  # who listens at an origin, or what a folder is
        self._reached: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._inside = threading.local()

    def reach(self, name: str) -> None:
        with self._lock:
            here = (self._reached.total(), [name, self._reached[name]])
            self._reached[name] += 1
            os.write(self._trace, f"{name}\n".encode())
            if self._kill in here:
                os.kill(os.getpid(), signal.SIGKILL)

    def request(self, method: str, url: str) -> str | None:
        """The name of a request; None for one that does not count."""
        parts = urlsplit(url)
        who = self._names.get(f"{parts.scheme}://{parts.netloc}")
        if who is None or parts.path.startswith(_NOISE):
            return None
        return f"{who} {method} {_name(parts.path)}"

    def credential(self, headers: Mapping[str, str]) -> None:
        """Note which means of payment goes out: by x402 its nonce, by mpp its token, both as a digest."""
        for header in ("PAYMENT-SIGNATURE", "Payment-Authorization"):
            if header in headers:
                packed = headers[header].removeprefix("Payment ").replace("-", "+").replace("_", "/")
                payload = json.loads(base64.b64decode(packed + "=" * (-len(packed) % 4)))["payload"]
                means = payload["spt"] if "spt" in payload else payload["authorization"]["nonce"]
                digest = hashlib.sha256(means.encode()).hexdigest()[:16]
                os.write(self._trace, f"credential {digest}\n".encode())

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The interpreter's own report of what is about to be done."""
        if event not in {"open", "os.rename", "os.link", "os.remove"} or getattr(self._inside, "yes", False):
            return
        if event == "open" and not self._writes(arguments):
            return
        self._inside.yes = True
        try:
            path = str(arguments[1] if event in {"os.rename", "os.link"} else arguments[0])
            for folder, what in self._names.items():
                if path.startswith(f"{folder}/"):
                    self.reach(f"before {what} {event} {_name(path.removeprefix(folder))}")
        finally:
            self._inside.yes = False

    @staticmethod
    def _writes(arguments: tuple[Any, ...]) -> bool:
        return bool(isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR))


def watch(points: Points) -> None:
    """Around every request of httpx, sync and async, and of boto3."""
    import httpx
    from botocore.httpsession import URLLib3Session

    plain, awaited = httpx.HTTPTransport.handle_request, httpx.AsyncHTTPTransport.handle_async_request

    def handle_request(self: Any, request: httpx.Request) -> httpx.Response:
        name = points.request(request.method, str(request.url))
        if name:
            points.reach(f"before {name}")
        points.credential(request.headers)
        answer = plain(self, request)
        if name:
            points.reach(f"after {name}")
        return answer

    async def handle_async_request(self: Any, request: httpx.Request) -> httpx.Response:
        name = points.request(request.method, str(request.url))
        if name:
            points.reach(f"before {name}")
        answer = await awaited(self, request)
        if name:
            points.reach(f"after {name}")
        return answer

    send = URLLib3Session.send

    def send_to_bucket(self: Any, request: Any) -> Any:
        name = points.request(request.method, request.url)
        if name:
            points.reach(f"before {name}")
        answer = send(self, request)
        if name:
            points.reach(f"after {name}")
        return answer

    URLLib3Session.send = send_to_bucket  # type: ignore[method-assign]
    httpx.HTTPTransport.handle_request = handle_request  # type: ignore[method-assign]
    httpx.AsyncHTTPTransport.handle_async_request = handle_async_request  # type: ignore[method-assign]
    sys.addaudithook(points.audit)


def shorten_pauses() -> None:
    """The main thread never sleeps long; the product's own constants stay as they are."""
    real = time.sleep

    def sleep(seconds: float) -> None:
        main = threading.current_thread() is threading.main_thread()
        real(min(seconds, LONGEST_SLEEP) if main else seconds)

    time.sleep = sleep


def run_flow(job: Mapping[str, Any]) -> None:
    """One execution of a flow run."""
    sys.argv = ["prefect.engine", job["flow_run_id"]]
    os.environ["PREFECT__FLOW_RUN_ID"] = job["flow_run_id"]
    runpy.run_module("prefect.engine", run_name="__main__")


def run_core(job: Mapping[str, Any]) -> None:
    """Order and pay without a flow."""
    from support.crash.core import order_and_pay

    order_and_pay(job)


def execute(job: Mapping[str, Any]) -> int:
    """In the fork: point standard output at the log, watch, run."""
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    watch(Points(Path(job["trace"]), job.get("kill"), job["names"]))
    run: Callable[[Mapping[str, Any]], None] = run_flow if "flow_run_id" in job else run_core
    try:
        run(job)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - the parent reads the log
        import traceback

        traceback.print_exc()
        return 1
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Import everything, then fork for every line."""
    os.nice(5)
    shorten_pauses()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from prefect_assay import tasks
    from support.runs.forking import warm_up

    for name in tasks.__all__:
        getattr(tasks, name).retry_delay_seconds = 0
    warm_up("boto3", "eth_account")  # the second takes half a second
    _say("ready")
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            sys.stdin.close()
            code = execute(job)
            sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(pid, 0)
        _say(json.dumps({"code": os.waitstatus_to_exitcode(status)}))


if __name__ == "__main__":
    main()
