"""A shorter form of `bench/bench_receiver.py`, with its judge: Prefect's own states. No time is asserted here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "bench_receiver.py"


@pytest.mark.long
@pytest.mark.e2e
@pytest.mark.timeout(280)
def test_every_genuine_delivery_wakes_its_run_in_a_flood_that_wakes_nobody():
    done = subprocess.run(
        [sys.executable, BENCH, "--seconds", "5", "--genuine", "10", "--harmless", "200", "--json"],
        capture_output=True,
        text=True,
        timeout=270,
        check=False,
    )
    figures = json.loads(done.stdout or "{}")
    assert figures.get("wrong") == [], done.stderr
    assert (figures["genuine"], figures["must_wake_nobody"]) == (50, 1000)
