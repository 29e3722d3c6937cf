"""docs/lab.md agrees with the lab."""

import re
from pathlib import Path

import pytest

from prefect_assay.lab import __main__ as command
from prefect_assay.lab import plan, sim, sim_actions
from prefect_assay.lab.faults import ACTIONS, WEBHOOK_ACTIONS
from prefect_assay.lab.web import create_app
from support.lab_core import lab_core

PAGE = (Path(__file__).parents[2] / "docs" / "lab.md").read_text(encoding="utf-8")


def test_every_option_and_variable_stands_in_the_page():
    options = {option for action in command._parser()._actions for option in action.option_strings}
    assert options - {"-h", "--help"} == set(re.findall(r"`(--[a-z-]+)`", PAGE))
    for variable in (command.TOKEN_VARIABLE, command.VIEWER_TOKEN_VARIABLE, command.SIM_TOKEN_VARIABLE):
        assert f"`{variable}`" in PAGE


@pytest.mark.parametrize("word", [*ACTIONS, *WEBHOOK_ACTIONS, *sim_actions.EVENTS])
def test_every_fault_and_event_stands_in_the_page(word):
    assert f"`{word}`" in PAGE


def test_every_control_call_stands_in_the_page():
    calls = {f"{method} /_sim{route.path}" for route in sim.router.routes for method in route.methods}
    assert calls == set(re.findall(r"`((?:GET|POST|DELETE) /_sim/[a-z0-9/-]+)`", PAGE))


def test_the_milestones_stand_in_the_page():
    for share, kind, detail in plan.MILESTONES:
        assert f"| {share:.2f} | {f'`{detail}`' if kind == 'status' else 'a progress update'}" in PAGE


def test_the_routes_of_the_table_are_the_routes_of_the_application():
    core = lab_core()
    try:
        app = create_app(core)._app
        described = {
            (method.upper(), path)
            for path, calls in __import__("prefect_assay.lab.openapi", fromlist=["document"])
            .document(app)["paths"]
            .items()
            for method in calls
        }
    finally:
        core.close()
    from prefect_assay.lab.routes import ROUTES

    table = {(route.method, f"/api/v1{route.path}") for route in ROUTES}
    assert described == table | {("GET", "/api/v1/info/health")}
