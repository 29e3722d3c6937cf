"""Genuine deliveries that must wake their runs, in the middle of forged, replayed and malformed ones.

For a minute 20 genuine deliveries a second arrive, each for an experiment with a suspended run of its own on a real
Prefect server (SQLite, shipped settings), and 500 a second that must be refused. Prefect's own states are the judge.
A bare Starlette app that reads the body and answers 401 is asked at the same time, on the same machine.

Duration: the minute, the preparation (some 20 ms per run) and at most a minute of waiting.
"""

import argparse
import asyncio
import gc
import json
import os
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta

from figures import Ratio, report
from receiver_load import Shot, Stream, percentile, request
from receiver_stage import SIGNING_KEY, order_of, stage, states, suspend_runs

from prefect_assay.local.environment import HOST
from prefect_assay.service.webhook_signature import derive_secret, sign

CONTROLS = 50  # suspended runs that nothing genuine is ever sent for
EXPECTED = {
    "genuine": (200, b'{"resumed":1}'),
    "repeated": (200, b'{"resumed":0}'),
    "forged": (401, None),
    "unsigned": (401, None),
    "old": (401, None),
    "malformed": (400, None),
    "nowhere": (404, None),
}
#: Of ten that are refused. An old one is a replay of what was genuine an hour ago.
MIX = ["forged"] * 4 + ["old"] * 3 + ["unsigned", "malformed", "nowhere"]
REPEATED = 0.1  # share of repeated deliveries, which must wake no run


def delivery(kind: str, experiment: str) -> bytes:
    """A request of a kind, as it goes over the wire. Made without the code under test, but for the signature."""
    order = order_of(experiment)
    stamp = datetime.now(UTC) - timedelta(hours=1 if kind == "old" else 0)
    made = {
        "delivery_id": str(uuid.uuid4()),
        "event": 7 if kind == "malformed" else "experiment_update",
        "timestamp": stamp.isoformat(),
        "api_version": "2026-01",
        "data": {
            "type": "experiment.update",
            "experiment_id": experiment,
            "experiment_code": "ORG-001-002",
            "organization_id": str(uuid.uuid4()),
            "update_id": str(uuid.uuid4()),
            "name": "Results available",
            "description": "All results of the experiment are available for download in the portal.",
            "update_type": "status_change",
        },
    }
    body = json.dumps(made).encode()
    secret = "f" * 64 if kind == "forged" else derive_secret(SIGNING_KEY, order)
    headers = {
        "Content-Type": "application/json",
        "X-Service-Event": "experiment_update",
        "X-Service-Delivery-Id": made["delivery_id"],
    }
    if kind != "unsigned":
        headers["X-Service-Signature"] = sign(body, secret)
    return request(f"/assay/{order[:7] if kind == 'nowhere' else order}", body, headers)


def refusals(count: int, names: list[str]) -> list[Shot]:
    """What must be refused, for experiments that are waited for."""
    prepared = {kind: [delivery(kind, names[i % len(names)]) for i in range(200)] for kind in set(MIX)}
    return [Shot(kind := MIX[i % len(MIX)], prepared[kind][i // len(MIX) % 200]) for i in range(count)]


def repetitions(count: int, rate: float, genuine: list[Shot], genuine_rate: float) -> list[Shot]:
    """Byte for byte a delivery of 2 s before. The service may repeat one, so it is acknowledged and wakes no run.

    On connections of their own: one whose original still waits for Prefect waits with it.
    """
    shots = []
    for number in range(count):
        before = int((number / rate - 2.0) * genuine_rate)
        shots.append(
            Shot("repeated", genuine[before].request) if before >= 0 else Shot("old", delivery("old", "x"))
        )
    return shots


async def fire(streams: list[Stream], settle: float) -> None:
    start = time.monotonic() + 0.5
    await asyncio.gather(*(stream.run(start) for stream in streams))
    await asyncio.gather(*(stream.settle(settle) for stream in streams))


def judge(shots: list[Shot], woken: dict[str, str], genuine: list[Shot], controls: list[str]) -> list[str]:
    """What is wrong, in words; Prefect's states and the answers."""
    problems = [
        f"{shot.kind}: answered {shot.status or 'nothing'} {shot.body[:60]!r}"
        for shot in shots
        for status, body in [EXPECTED[shot.kind]]
        if shot.status != status or (body is not None and shot.body != body)
    ]
    problems += [
        f"lost: the run of {s.name} is {woken.get(s.name)}"
        for s in genuine
        if woken.get(s.name) != "SCHEDULED"
    ]
    return problems + [f"woken by a forgery: {name}" for name in controls if woken.get(name) != "PAUSED"]


def milliseconds(shots: list[Shot]) -> dict[str, float]:
    delays = [shot.delay * 1000 for shot in shots if shot.answered]
    return {
        "p50": percentile(delays, 0.5),
        "p99": percentile(delays, 0.99),
        "max": max(delays, default=float("nan")),
    }


def measure(options: argparse.Namespace) -> dict:
    seconds = options.seconds
    names = [str(uuid.uuid4()) for _ in range(int(options.genuine * seconds))]
    controls = [str(uuid.uuid4()) for _ in range(CONTROLS)]
    with stage() as place:
        print(f"making {len(names) + len(controls)} suspended runs ...", file=sys.stderr, flush=True)
        flow = suspend_runs(place.api, names + controls)
        genuine = [Shot("genuine", delivery("genuine", name), name) for name in names]
        refused_rate, repeated_rate = (1 - REPEATED) * options.harmless, REPEATED * options.harmless
        refused = refusals(int(refused_rate * seconds), controls + names)
        repeated = repetitions(int(repeated_rate * seconds), repeated_rate, genuine, options.genuine)
        bare = [Shot("bare", delivery("forged", "x")) for _ in range(int(options.bare * seconds))]
        gc.collect()
        gc.disable()  # the generator's own pauses are not the receiver's
        before, began = place.cpu_seconds(), time.monotonic()
        print(f"{seconds} s of deliveries ...", file=sys.stderr, flush=True)
        asyncio.run(
            fire(
                [
                    Stream(HOST, place.receiver_port, options.genuine, 20, genuine),
                    Stream(HOST, place.receiver_port, refused_rate, 25, refused),
                    Stream(HOST, place.receiver_port, repeated_rate, 10, repeated),
                    Stream(HOST, place.bare_port, options.bare, 5, bare),
                ],
                settle=40,
            )
        )
        taken, after = time.monotonic() - began, place.cpu_seconds()
        wrong = judge(genuine + refused + repeated, states(place.api, flow), genuine, controls)
        if wrong:
            print(*place.receiver_log.read_text().splitlines()[-20:], sep="\n", file=sys.stderr)
    cores = {name: (after[name] - before[name]) / taken for name in after}
    delays = {
        "genuine": milliseconds(genuine),
        "refused": milliseconds(refused),
        "repeated": milliseconds(repeated),
        "bare": milliseconds(bare),
    }
    return {
        "seconds": seconds,
        "genuine": len(genuine),
        "must_wake_nobody": len(refused) + len(repeated),
        "wrong": wrong,
        "ms": delays,
        "ratio_p50": delays["refused"]["p50"] / delays["bare"]["p50"],
        "ratio_p99": delays["refused"]["p99"] / delays["bare"]["p99"],
        "lag_p99_ms": percentile([shot.lag * 1000 for shot in refused if shot.sent], 0.99),
        "wait_p99_ms": percentile([shot.wait * 1000 for shot in refused if shot.answered], 0.99),
        "cores": cores,
        "others_cores": cores["whole machine"] - sum(v for k, v in cores.items() if k != "whole machine"),
    }


def show(figures: dict, options: argparse.Namespace) -> None:
    print(
        f"{figures['seconds']} s: {figures['genuine']} genuine ({options.genuine}/s), "
        f"{figures['must_wake_nobody']} forged, replayed or malformed ({options.harmless}/s), bare at {options.bare}/s"
    )
    for name, ms in figures["ms"].items():
        print(f"{name:8} p50 {ms['p50']:7.1f} ms   p99 {ms['p99']:7.1f} ms   max {ms['max']:7.1f} ms")
    print(f"refused / bare: p50 {figures['ratio_p50']:.2f}, p99 {figures['ratio_p99']:.2f}")
    print(
        f"refused, p99 of its parts: sent late (busy connection, busy generator) {figures['lag_p99_ms']:.1f} ms, "
        f"from sending to the answer {figures['wait_p99_ms']:.1f} ms"
    )
    print("cores: " + ", ".join(f"{name} {used:.2f}" for name, used in figures["cores"].items()))
    print(
        f"of {os.cpu_count()} cores, {figures['others_cores']:.2f} went to processes that are not part of this"
    )
    print(f"refused p99 under 50 ms: {'yes' if figures['ms']['refused']['p99'] < 50 else 'NO'}")
    print(f"lost, misanswered or woken by a forgery: {len(figures['wrong'])}")
    for line in figures["wrong"][:10]:
        print(f"  {line}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, choices=range(1, 601), metavar="1..600")
    parser.add_argument("--genuine", type=int, default=20, help="genuine deliveries a second")
    parser.add_argument(
        "--harmless", type=int, default=500, help="forged, replayed and malformed ones a second"
    )
    parser.add_argument("--bare", type=int, default=100, help="requests a second to the bare app")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    figures = measure(options)
    if options.json:
        print(json.dumps(figures))
    else:
        show(figures, options)
        for share in ("p50", "p99"):
            report(
                Ratio(
                    "receiver",
                    f"a refused delivery, {share}",
                    ours=figures["ms"]["refused"][share],
                    beside="a bare Starlette app that answers 401",
                    other=figures["ms"]["bare"][share],
                    unit="ms",
                    goal=2.0,
                )
            )
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
