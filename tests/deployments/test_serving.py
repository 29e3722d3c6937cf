"""Schedules, limits and polling intervals of a served process and of the worker."""

import pytest

from prefect_assay.deployments.serve import served_deployments
from prefect_assay.deployments.setup import shipped_deployments
from support.command import printed

PRINTS_INTERVAL = """
from prefect_assay.deployments.worker import poll_every_second
poll_every_second()
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


def test_served_deployments_say_what_the_shipped_ones_say_about_themselves():
    shipped = shipped_deployments()["deployments"]
    told = {entry["description"]: entry["tags"] for entry in shipped}
    assert {made.description: made.tags for made in served_deployments()} == told
    assert sum(text.startswith("Start here") for text in told) == 2
    assert len(told) == len(shipped) == 4


@pytest.mark.parametrize(
    ("profile", "environment", "seconds"),
    [
        ("", {}, 1),
        ('PREFECT_WORKER_QUERY_SECONDS = "15"\n', {}, 15),
        ("", {"PREFECT_WORKER_QUERY_SECONDS": "20"}, 20),
    ],
    ids=["default", "profile", "environment"],
)
def test_the_worker_polls_once_a_second_unless_configured_otherwise(tmp_path, profile, environment, seconds):
    assert float(printed(PRINTS_INTERVAL, tmp_path, profile, **environment)) == seconds
