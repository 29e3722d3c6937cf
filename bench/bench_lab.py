"""The lab's speed: create + get compared with a bare FastAPI service, and a full schedule.

Both servers run side by side for the whole time, each in its own process, and are asked in turn over eight
keep-alive connections, so that other load on the machine affects both alike.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from figures import Growth, Ratio, report

from assay_lab.kernel.settings import LabSettings
from assay_lab.measure import CATALOG
from assay_lab.service.core import LabCore
from assay_lab.testing import LocalLab

CONNECTIONS = 8
PAIRS = 40  # create + get pairs per connection and round
ROUNDS = 5
TARGET = next(target for target in CATALOG if (target["pricing"] or {}).get("type") == "per_sequence")
ORDER = {
    "name": "bench",
    "experiment_spec": {
        "experiment_type": "affinity",
        "method": "bli",
        "target_id": TARGET["id"],
        "sequences": {"a": "MKTAYIAKQR", "b": "GSHMKLVFFA", "c": "ACDEFGHIKL"},
    },
}
BODY = json.dumps(ORDER).encode()
EPOCH = datetime(2026, 3, 2, 9, tzinfo=UTC)
SCHEDULED, LAB_DAYS = 500, 16


async def ask(reader, writer, method, path, token, body=b""):
    """One request on an open connection; its status and JSON body."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"\r\n" + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in answer.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    )
    return int(answer[9:12]), json.loads(await reader.readexactly(length))


async def worker(port, token, pairs):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(pairs):
        status, made = await ask(reader, writer, "POST", "/api/v1/experiments", token, BODY)
        assert status == 201, made
        key = made.get("experiment_id") or made["id"]
        status, shown = await ask(reader, writer, "GET", f"/api/v1/experiments/{key}", token)
        assert status == 200, shown
    writer.close()


async def requests_per_second(port, token, pairs=PAIRS):
    start = time.perf_counter()
    await asyncio.gather(*(worker(port, token, pairs) for _ in range(CONNECTIONS)))
    return 2 * pairs * CONNECTIONS / (time.perf_counter() - start)


@contextmanager
def bare(port):
    """The bare service in its own process."""
    server = subprocess.Popen([sys.executable, str(Path(__file__).with_name("bare_service.py")), str(port)])
    try:
        for _ in range(100):
            try:
                asyncio.run(requests_per_second(port, "bare", 1))
                break
            except OSError:
                time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


def create_and_get():
    with LocalLab() as lab, bare(8899):
        port = int(lab.base_url.rsplit(":", 1)[1])
        sides = {"bare FastAPI": (8899, "bare"), "lab": (port, lab.token)}
        for where, token in sides.values():
            asyncio.run(requests_per_second(where, token))
        figures = {name: [] for name in sides}
        for _ in range(ROUNDS):
            for name, (where, token) in sides.items():
                figures[name].append(asyncio.run(requests_per_second(where, token)))
    medians = {name: statistics.median(values) for name, values in figures.items()}
    for name, value in medians.items():
        print(f"create + get, {name:14} {value:8.0f} req/s")
    report(
        Ratio(
            "lab",
            "create + get, one request",
            ours=1000 / medians["lab"],
            beside="a bare FastAPI service on SQLite, without rules",
            other=1000 / medians["bare FastAPI"],
            unit="ms",
            goal=0.5,
            as_speed=True,
        )
    )


def schedule(count=SCHEDULED):
    """Every experiment from its order to its released results, the lab in this process: seconds."""
    taken = []
    for _ in range(3):
        with closing(LabCore(LabSettings(epoch=EPOCH))) as core:
            for _ in range(count):
                core.request("POST", "/experiments", json_body=ORDER | {"auto_accept_quote": True})
            start = time.perf_counter()
            core.clock_driver.advance(core.seeded.organization_id, EPOCH + timedelta(days=LAB_DAYS))
            taken.append(time.perf_counter() - start)
            done = core.request("GET", "/experiments", query={"status": "done"}).body["total"]
            assert done == count, done
    print(
        f"{count} experiments through {LAB_DAYS} days: {statistics.median(taken) * 1000:8.0f} ms", flush=True
    )
    return statistics.median(taken)


if __name__ == "__main__":
    create_and_get()
    points = tuple((float(count), schedule(count)) for count in (SCHEDULED // 5, SCHEDULED // 2, SCHEDULED))
    report(Growth("lab", f"{LAB_DAYS} days of its schedule", "experiments", "s", points, goal=1.15))
