"""One campaign, or a loop over a folder of design files, in a process of its own, without a deployment: `python here.py '<JSON>'`, one JSON line out.

Each process has a Prefect home, and so a Prefect server, of its own: a notebook or `run --here`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


def _environment(home: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return env | {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    }


def template(home: Path) -> Path:
    """A home with an empty database; making its tables takes longer than most tests."""
    home.mkdir(parents=True)
    command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "-y"]
    subprocess.run(command, env=_environment(home), check=True, capture_output=True)
    return home


def start(home: Path, empty: Path, **job: Any) -> "subprocess.Popen[str]":
    """Start it in a new home like `empty`; `read_answer` waits for its answer."""
    shutil.copytree(empty, home)
    env = _environment(home)
    return subprocess.Popen(
        [sys.executable, str(Path(__file__)), json.dumps(job)],
        env=env,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(process: "subprocess.Popen[str]") -> None:
    """SIGKILL it and the server that it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def read_answer(process: "subprocess.Popen[str]", seconds: float = 280) -> dict[str, Any]:
    """Its answer: the campaign or the loop and how it ended, or the error."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        kill(process)
        raise
    lines = out.strip().splitlines()
    assert lines, err[-4000:]
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer | {"log": err}


def main(job: dict[str, Any]) -> dict[str, Any]:
    """Run the flow, the loop `loop_id` if the job has one; pauses between two looks are short, their order is what counts."""
    from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy, X402Wallet
    from prefect_assay.errors import AssayError
    from prefect_assay.flows import campaign, design_build_test
    from prefect_assay.orders.create import find_or_create
    from prefect_assay.orders.payments.settle import settle
    from support.accounts import AMOUNT_USD, flow_parameters

    find_or_create.__kwdefaults__["patience"] = (0.2,) * job.get("looks", 3)
    settle.__kwdefaults__["read_delays"] = (0.0, 0.2)
    wallet = X402Wallet(**job["wallet"]) if job["wallet"] else None
    shared = {
        "credentials": AssayCredentials(base_url=job["base_url"], token=job["token"]),
        "policy": SpendingPolicy(
            per_experiment_usd=20_000,
            per_campaign_usd=50_000,
            accept_quotes=True,
            machine_payments=True,
            rolling_usd=10**10,
        ),
        "archive": LocalArchive(root=job["archive"]),
        "payment_method": "x402-exact" if wallet else "async_invoice",
        "request_quote": job.get("request_quote", False),
        "wallet": wallet,
        "poll_seconds": 0.5,
        "spend_up_to_usd": AMOUNT_USD,
    }
    try:
        if "loop_id" in job:
            loop = design_build_test(
                **flow_parameters(
                    shared
                    | {name: job[name] for name in ("loop_id", "source", "assay")}
                    | {"settle_seconds": 0}
                )
            )
            return {"stop": str(loop.stop_reason), "rounds": [entry.campaign_id for entry in loop.rounds]}
        report = campaign(
            **flow_parameters(shared | {name: job[name] for name in ("designs", "assay", "campaign_id")})
        )
    except AssayError as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {"rows": report.rows, "problems": list(report.problems)}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
