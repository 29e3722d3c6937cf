"""What a served process and the worker say to Prefect about schedules, limits and how often they look for runs."""

import pytest

from prefect_assay.deployments.serve import served_deployments
from prefect_assay.deployments.setup import shipped_deployments
from support.command import printed

LOOKS = """
from prefect_assay.deployments.worker import look_often
look_often()
from prefect.settings import get_current_settings
print(get_current_settings().worker.query_seconds)
"""


def test_a_scheduled_sweep_is_limited_as_on_the_work_pool():
    served = {deployment.flow_name: deployment for deployment in served_deployments()}
    (shipped,) = (e for e in shipped_deployments()["deployments"] if e["entrypoint"].endswith(":sweep"))
    assert served["sweep"].concurrency_limit == shipped["concurrency_limit"]["limit"]
    assert (
        served["sweep"].concurrency_options.collision_strategy
        == shipped["concurrency_limit"]["collision_strategy"]
    )
    assert {name for name, deployment in served.items() if deployment.concurrency_limit} == {"sweep"}


@pytest.mark.parametrize(
    ("profile", "environment", "seconds"),
    [
        ("", {}, 1),
        ('PREFECT_WORKER_QUERY_SECONDS = "15"\n', {}, 15),
        ("", {"PREFECT_WORKER_QUERY_SECONDS": "20"}, 20),
    ],
    ids=["nobody says", "a profile says", "the environment says"],
)
def test_the_worker_looks_once_a_second_unless_told_otherwise(tmp_path, profile, environment, seconds):
    assert float(printed(LOOKS, tmp_path, profile, **environment)) == seconds
