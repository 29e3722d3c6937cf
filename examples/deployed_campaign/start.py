"""Start a deployed campaign; its run suspends while the laboratory works, and the webhook receiver wakes it.

Needs `prefect-assay up` in another terminal and an account that `prefect-assay init` has saved.
"""

import sys

from prefect_assay import Assay
from prefect_assay.blocks import AssayAccount
from prefect_assay.blocks.deployment_runs import start_run


def main(designs: str, campaign_id: str, max_usd: float) -> str:
    """Start the campaign and return the id of its run."""
    run = start_run(
        "campaign/assay-campaign",
        {
            "designs": designs,
            "assay": Assay(experiment_type="affinity", target="Human EGFR, extracellular domain"),
            "account": AssayAccount.load("main"),  # stored as a reference, without its secrets
            "spend_up_to_usd": max_usd,
            "campaign_id": campaign_id,
        },
    )
    return str(run.id)


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
