"""A run is called what it carries: on the page Runs people look for their campaign."""

from types import SimpleNamespace

import pytest

from prefect_assay.campaigns.runs import tags
from prefect_assay.campaigns.runs.tags import name_run
from prefect_assay.flows import sweep


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("fantastic-goose", "egfr"),
        ("egfr, 40 designs", "egfr"),
        ("egfr-2", "egfr"),
        ("egfr", "egfr"),
        ("egfr 2", "egfr 2"),  # the sweep has started it in the place of another
    ],
)
def test_a_run_gets_the_name_of_its_campaign(monkeypatch, before, after):
    changes = []

    class Client:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def set_flow_run_name(self, run_id, name):
            changes.append((run_id, name))

    monkeypatch.setattr(tags, "get_client", lambda **_: Client())
    run = SimpleNamespace(id=7, name=before)
    name_run(run, "egfr")
    assert run.name == after
    assert changes == ([(7, after)] if before != after else [])


def test_the_runs_of_the_sweep_have_a_name_with_their_time():
    assert sweep.flow_run_name
    name = sweep.flow_run_name()
    assert name.startswith("sweep 20")
    assert len(name) == len("sweep 2026-11-28 10:05")
