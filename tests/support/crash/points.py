"""Points of a process, and what happens at them: a moment right before a request is sent, right after its answer has arrived,
or right before a file is written. Nothing in the product knows about this: seams of httpx, boto3 and of the interpreter
are watched from outside.

Each point is named and numbered in the order in which it is reached. At the chosen one the process sends itself SIGKILL,
which nothing can catch, or waits.
"""

import base64
import hashlib
import json
import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

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


# Organization and campaign, or all of the budget's log, whose numbers go on from story to story.
_LOG: Final = re.compile(r"(?<=/LEDGERS/)[^/]+/(BUDGET/\d+|[^/]+)")


def _name(path: str) -> str:
    """A path that is the same in every story."""
    return _IDS.sub("*", _LOG.sub("*", path))


class Reached(Protocol):
    """What happens at a point."""

    def __call__(self, number: int, name: str, before: int) -> None:
        """At the point of this number, whose name has been reached so often before."""


def kill_at(chosen: int | list[Any] | None) -> Reached:
    """SIGKILL at a number, or at a name and how often it has been reached before."""

    def reached(number: int, name: str, before: int) -> None:
        if chosen in (number, [name, before]):
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


class Traps:
    """A folder of files, each with a pattern: `kill-*` for a SIGKILL, `hold-*` for a wait until the file is gone.

    The first process that reaches a matching point springs the trap; the file is renamed to `sprung-*`. A point is matched
    as `<name>#<how often its process has reached it before>`.
    """

    _SECONDS: Final = 0.02

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, number: int, name: str, before: int) -> None:
        for file in sorted(self._folder.glob("[kh]*")):
            try:
                if not re.search(file.read_text(), f"{name}#{before}"):
                    continue
                sprung = file.with_name(f"sprung-{file.name}")
                file.rename(sprung)
            except FileNotFoundError:  # another process was first
                continue
            if file.name.startswith("kill"):
                os.kill(os.getpid(), signal.SIGKILL)
            while sprung.exists():
                _sleep(self._SECONDS)


_sleep: Final = time.sleep  # processes of the crash tests shorten it


class Points:
    """Writes down every point, and says that it is reached."""

    def __init__(self, trace: Path, reached: Reached, names: Mapping[str, str]) -> None:
        self._trace = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._happens = reached
        self._names = names  # who listens at an origin, or what a folder is
        self._times: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._inside = threading.local()

    def reach(self, name: str) -> None:
        with self._lock:
            number, before = self._times.total(), self._times[name]
            self._times[name] += 1
            os.write(self._trace, f"{name}\n".encode())
        self._happens(number, name, before)

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
