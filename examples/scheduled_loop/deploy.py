"""Deploy a loop with a schedule of its own: each weekday at six it measures a round, if none is in the laboratory.

Needs a Prefect server with the work pool `assay`, a worker that can import `designers`, and a saved account.
"""

from prefect.types.entrypoint import EntrypointType

from prefect_assay.blocks import AssayAccount
from prefect_assay.blocks.block_references import as_parameter
from prefect_assay.flows import design_build_test


def main() -> None:
    """Register the deployment `design-build-test/stability`."""
    design_build_test.to_deployment(
        "stability",
        work_pool_name="assay",
        tags=["assay"],
        cron="0 6 * * 1-5",
        parameters={
            "loop_id": "stability",
            "designer": "designers:propose",
            "assay": {"experiment_type": "thermostability"},
            "account": as_parameter(AssayAccount.load("main")),
            "budget_usd": 5_000,
            "rounds": {"designs_per_round": 4, "max_rounds": 2},
        },
        entrypoint_type=EntrypointType.MODULE_PATH,
    ).apply()


if __name__ == "__main__":
    main()
