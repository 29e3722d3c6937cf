"""The commands of the workers, by the pool's type; deploying itself is played end to end in `tests/e2e`."""

from prefect_assay.deployments.setup import in_work_pool, shipped_deployments
from prefect_assay.deployments.work_pool import worker_commands


def test_only_process_workers_have_a_limit_and_a_second_one_for_the_sweep():
    assert [command.split(" --limit")[0] for command in worker_commands("assay", "process")] == [
        "prefect worker start --pool assay --type process --work-queue default",
        "prefect worker start --pool assay --type process --work-queue sweep",
    ]
    assert worker_commands("containers", "docker") == ["prefect worker start --pool containers --type docker"]


def test_another_pool_keeps_the_queues_and_everything_else():
    shipped = shipped_deployments()
    changed = in_work_pool(shipped, "containers")
    assert [entry["work_pool"] for entry in changed["deployments"]] == [
        {**entry["work_pool"], "name": "containers"} for entry in shipped["deployments"]
    ]
    assert in_work_pool(changed, "assay")["deployments"] == shipped["deployments"]
