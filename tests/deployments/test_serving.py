"""Schedules, limits and polling intervals of a served process and of the worker."""

from contextlib import nullcontext
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.deployments import runner

from prefect_assay.cli.services import setup as cli
from prefect_assay.deployments import serve
from prefect_assay.deployments.serve import served_deployments
from prefect_assay.deployments.setup import Registration, shipped_deployments
from support.command import printed

SERVES = """
from prefect_assay.deployments import serve
serve.served_deployments = lambda sweep_interval: []
serve.serve = lambda *flows, query_seconds, pause_on_shutdown: print(query_seconds)
serve.serve_flows(with_automations=False)
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
    assert sum(text.startswith("Start here") for text in told) == 3
    assert len(told) == len(shipped) == 4


@pytest.mark.parametrize("flow", ["campaign", "design-build-test", "decide", "sweep"])
def test_serving_again_keeps_what_operators_have_changed(monkeypatch, flow):
    sent = {}
    server = SimpleNamespace(
        read_deployment_by_name=lambda _name: SimpleNamespace(id=uuid4()),
        update_deployment=lambda _id, deployment: sent.update(deployment.model_dump(exclude_unset=True)),
        delete_resource_owned_automations=lambda _resource: None,
    )
    monkeypatch.setattr(runner, "get_client", lambda **_: nullcontext(server))
    (served,) = (made for made in served_deployments() if made.flow_name == flow)
    served.apply()
    owned = {"schedules", "concurrency_limit", "concurrency_options"} if flow == "sweep" else set()
    choices = {
        "schedules",
        "parameters",
        "paused",
        "job_variables",
        "concurrency_limit",
        "concurrency_options",
    }
    assert sent.keys() & choices == owned
    assert {"entrypoint", "description", "tags"} <= sent.keys()


def test_the_automation_names_the_deployment_that_is_served(monkeypatch):
    """It needs the deployment's id, so that is made before the process serves."""
    done = []
    for made in served_deployments():
        monkeypatch.setattr(type(made), "apply", lambda one: done.append(one.flow_name))
    monkeypatch.setattr(serve, "register_cancellation_automation", lambda _client: done.append("automation"))
    monkeypatch.setattr(serve, "get_client", lambda **_: nullcontext())
    monkeypatch.setattr(serve, "set_defaults", lambda _: None)
    monkeypatch.setattr(serve, "serve", lambda *_, **__: done.append("serves"))
    serve.serve_flows()
    assert done == ["decide", "automation", "serves"]
    done.clear()
    serve.serve_flows(with_automations=False)
    assert done == ["serves"]


def test_serving_a_paused_sweep_is_advised_against(monkeypatch, capsys):
    sweep = SimpleNamespace(paused=True, schedules=[])
    server = SimpleNamespace(read_deployment_by_name=lambda _name: sweep)
    monkeypatch.setattr(serve, "get_client", lambda **_: nullcontext(server))
    monkeypatch.setattr(cli, "require_api", lambda: None)
    registered = Registration((), (), work_pool=None, deployments={})
    monkeypatch.setattr("prefect_assay.deployments.setup.register_all", lambda **_: registered)
    served = []
    monkeypatch.setattr(serve, "serve_flows", lambda interval, **_: served.append(interval))
    for sweep.paused in (True, False):  # the schedule is the serving process's own
        cli.run_serve(300, with_automations=False)
        assert ("nothing starts the sweep" in capsys.readouterr().out) == sweep.paused
    assert len(served) == 2


@pytest.mark.parametrize(
    ("profile", "environment", "seconds"),
    [("", None, 2), ("15", None, 15), ("", "20", 20)],
    ids=["default", "profile", "environment"],
)
def test_it_polls_every_two_seconds_unless_configured_otherwise(tmp_path, profile, environment, seconds):
    setting = "PREFECT_RUNNER_POLL_FREQUENCY"
    configured = f'{setting} = "{profile}"\n' if profile else ""
    printed_seconds = printed(SERVES, tmp_path, configured, **({setting: environment} if environment else {}))
    assert float(printed_seconds) == seconds
