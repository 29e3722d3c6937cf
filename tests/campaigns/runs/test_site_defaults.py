"""What a site sets for all flows and tasks changes none of ours."""

import json
import os
import subprocess
import sys

import pytest

SITE = {
    "PREFECT_FLOWS_DEFAULT_RETRIES": "3",
    "PREFECT_FLOWS_DEFAULT_RETRY_DELAY_SECONDS": "7",
    "PREFECT_TASKS_DEFAULT_RETRIES": "3",
    "PREFECT_TASKS_DEFAULT_RETRY_DELAY_SECONDS": "7",
    "PREFECT_TASKS_DEFAULT_PERSIST_RESULT": "true",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
}
SHOW = """
import importlib, json, pkgutil
from prefect import Flow, Task
import prefect_assay.flows, prefect_assay.tasks
found = {}
for package in (prefect_assay.flows, prefect_assay.tasks):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for name, one in vars(importlib.import_module(module.name)).items():
            if isinstance(one, Flow | Task):
                kept = getattr(one, "cache_policy", None)
                found[one.name] = [
                    type(one).__mro__[-2].__name__, one.retries, one.retry_delay_seconds, repr(one.persist_result), repr(kept), one.timeout_seconds
                ]
print(json.dumps(found))
"""


def declared(settings):
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def here():
    return declared({})


def test_no_default_of_a_site_changes_a_flow_or_a_task(here):
    assert {
        "campaign",
        "decide",
        "design-build-test",
        "sweep",
        "pay-invoice",
        "report-campaign",
    } <= here.keys()
    assert declared(SITE) == here


def test_no_flow_is_tried_again_by_prefect(here):
    for name in ("campaign", "decide", "design-build-test", "sweep"):
        assert here[name][1:3] == [0, 0]
