"""`prefect-assay register` and `deploy`: what the flows need on a Prefect server."""

import json
from datetime import timedelta

from prefect_assay.cli.prefect_api import api_errors


def run_register(*, as_json: bool) -> None:
    """Register block types and limits."""
    with api_errors():
        from prefect_assay.deployments.setup import register

        slugs = register()
    if as_json:
        print(json.dumps({"block_types": list(slugs)}, indent=2))
    else:
        print("Registered the block types: " + ", ".join(slugs))
        print("Next: create blocks in the Prefect UI, then `prefect-assay deploy`.")


def run_deploy() -> None:
    """Deploy to the work pool."""
    with api_errors():
        from prefect_assay.deployments.setup import WORK_POOL, deploy

        deploy()
    print(f"Deployed experiment, campaign, design_build_test and sweep to the work pool {WORK_POOL}.")
    print(f"Next: prefect worker start --pool {WORK_POOL}")


def run_serve(sweep_seconds: float) -> None:
    """Register, then serve the flows until stopped."""
    with api_errors():
        from prefect import serve

        from prefect_assay.deployments.serve import served_deployments
        from prefect_assay.deployments.setup import register

        register()
        serve(*served_deployments(timedelta(seconds=sweep_seconds)))
