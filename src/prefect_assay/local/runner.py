"""The served flows as a child process: `python -m prefect_assay.local.runner`.

It imports everything while the Prefect server is still starting, then waits for it.
"""

import argparse
import os
import time
from datetime import timedelta
from typing import Final

from prefect_assay.deployments.serve import SWEEP_INTERVAL, serve_flows
from prefect_assay.deployments.setup import register_all

_STEP_SECONDS: Final = 0.1


def main() -> None:
    """Wait for the API, register what the flows need, serve."""
    options = argparse.ArgumentParser(description="Serve the assay flows.")
    options.add_argument("--wait-seconds", type=float, default=0.0, help="how long to wait for the API")
    options.add_argument("--sweep-seconds", type=float, default=SWEEP_INTERVAL.total_seconds())
    options.add_argument("--no-sweep", action="store_true", help="leave the sweep unscheduled")
    chosen = options.parse_args()
    _wait_for_api(chosen.wait_seconds)
    register_all(with_automations=False)
    serve_flows(None if chosen.no_sweep else timedelta(seconds=chosen.sweep_seconds))


def _wait_for_api(seconds: float) -> None:
    """Wait until the API answers, or the time is over: then Prefect's own error says so."""
    from prefect_assay.local.loopback import is_answering

    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not is_answering(f"{os.environ['PREFECT_API_URL']}/health"):
        time.sleep(_STEP_SECONDS)


if __name__ == "__main__":
    main()
