"""The client compared with plain httpx and `response.json()`: a list of 2,000 experiments, and reading one experiment.

A process of its own answers with bytes made beforehand, so that the ratio is the client's. Plain httpx has the same
connection settings, asks for the same pages, and checks and converts nothing.
"""

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
from figures import Ratio, report

from prefect_assay.service.client import AssayClient

ROWS, PAGE, ROUNDS, READS = 2000, 100, 11, 100
TOKEN = "bench-token-0123456789"
# From a profile of the list, 2026-11-29, and timers around 100 reads, 2026-11-25
MISSES = {
    "list": "A row takes some 30 µs longer. Two thirds of them clean its texts and check its three links before anybody sees "
    "or opens them; the rest checks its fields, reads within limits of size and time, and loses no row while the list changes.",
    "read": "A read takes 0.05 ms longer, most of it for reading the answer within limits of size and time. The rest checks "
    "its fields.",
}


@contextmanager
def canned_service():
    """Address of a service that answers `/experiments` and `/experiments/<id>`."""
    script = Path(__file__).with_name("canned_service.py")
    with subprocess.Popen([sys.executable, str(script), str(ROWS)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def plain_list(http, base):
    rows = []
    for offset in range(0, ROWS - PAGE + 1, PAGE - 1):  # the overlap of one row that a moving list needs
        page = http.get(f"{base}/api/v1/experiments", params={"limit": PAGE, "offset": offset}).json()
        rows += page["items"]
    return rows


def measure(base):
    """Seconds per round of each side, in turns."""
    taken = {name: [] for name in ("list, client", "list, plain", "read, client", "read, plain")}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with AssayClient(base, token=TOKEN) as client, httpx.Client(headers=headers, trust_env=False) as http:
        first = next(client.experiments.iterate()).id

        def client_list():
            assert len(list(client.experiments.iterate())) == ROWS

        def client_read():
            for _ in range(READS):
                client.experiments.get(first)

        def plain_read():
            for _ in range(READS):
                json.loads(http.get(f"{base}/api/v1/experiments/{first}").content)

        sides = {
            "list, client": client_list,
            "list, plain": lambda: plain_list(http, base),
            "read, client": client_read,
            "read, plain": plain_read,
        }
        for _ in range(ROUNDS + 1):
            for name, side in sides.items():
                start = time.perf_counter()
                side()
                taken[name].append(time.perf_counter() - start)
    return {name: sorted(values[1:])[ROUNDS // 2] for name, values in taken.items()}


if __name__ == "__main__":
    with canned_service() as address:
        medians = measure(address)
    for name, value in medians.items():
        print(f"{name:14} {value * 1000:8.1f} ms")
    for what, described in (("list", f"a list of {ROWS:,}"), ("read", f"{READS} reads of one experiment")):
        report(
            Ratio(
                "client",
                described,
                ours=medians[f"{what}, client"],
                beside="httpx and json, which check nothing",
                other=medians[f"{what}, plain"],
                unit="s",
                goal=0.95,
                as_speed=True,
                miss=MISSES[what],
            )
        )
