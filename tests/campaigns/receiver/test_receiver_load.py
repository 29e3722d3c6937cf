"""A shorter form of `bench/bench_receiver.py`, with its judge: Prefect's own states. No time is asserted here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "bench" / "bench_receiver.py"


def test_its_judge_finds_what_is_lost_misanswered_or_woken_by_a_forgery(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH.parent))
    from bench_receiver import judge
    from receiver_load import Shot

    def shot(kind, status, body=b"{}", name=""):
        return Shot(kind, b"", name, status=status, body=body)

    woken = b'{"resumed":1}'
    genuine = [shot("genuine", 200, woken, "a"), shot("genuine", 200, woken, "b")]
    states = {"a": "SCHEDULED", "b": "SCHEDULED", "control": "PAUSED"}
    assert judge([*genuine, shot("forged", 401)], states, genuine, ["control"]) == []
    assert len(judge(genuine, states | {"b": "PAUSED"}, genuine, ["control"])) == 1
    assert len(judge(genuine, states | {"control": "SCHEDULED"}, genuine, ["control"])) == 1
    for wrong in (
        shot("genuine", 503),
        shot("genuine", 200, b'{"resumed":0}'),
        shot("forged", 200),
        shot("old", 503),
        shot("repeated", 200, woken),
        shot("unsigned", 0),
    ):
        assert len(judge([*genuine, wrong], states, genuine, ["control"])) == 1


@pytest.mark.long
@pytest.mark.e2e
@pytest.mark.timeout(280)
def test_every_genuine_delivery_wakes_its_run_in_a_flood_of_forged_ones():
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
