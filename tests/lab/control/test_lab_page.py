"""docs/lab.md agrees with the lab."""

import re
from pathlib import Path
from typing import get_args

import pytest

from prefect_assay.lab import __main__ as command
from prefect_assay.lab.control import commands, events
from prefect_assay.lab.experiments import delays
from prefect_assay.lab.kernel.faults import PaymentAction, WebhookAction
from prefect_assay.lab.service.faults import ACTIONS

PAGE = (Path(__file__).parents[3] / "docs" / "lab.md").read_text(encoding="utf-8")


def test_every_option_and_variable_is_on_the_page():
    options = {option for action in command._parser()._actions for option in action.option_strings}
    assert options - {"-h", "--help"} == set(re.findall(r"`(--[a-z-]+)`", PAGE))
    for variable in (
        command.TOKEN_VARIABLE,
        command.VIEWER_TOKEN_VARIABLE,
        command.PARTNER_TOKEN_VARIABLE,
        command.SIM_TOKEN_VARIABLE,
    ):
        assert f"`{variable}`" in PAGE


@pytest.mark.parametrize(
    "word", [*ACTIONS, *get_args(WebhookAction), *get_args(PaymentAction), *events.EVENTS]
)
def test_every_fault_and_event_is_on_the_page(word):
    assert f"`{word}`" in PAGE


def test_every_control_call_is_on_the_page():
    table = [entry for entry in vars(commands).values() if isinstance(entry, commands.Command)]
    calls = {f"{command.method} /_sim{command.path}" for command in table}
    assert calls == set(re.findall(r"`((?:GET|POST|DELETE) /_sim/[a-z0-9/{}_-]+)`", PAGE))


def test_the_milestones_are_on_the_page():
    for share, kind, detail in delays.MILESTONES:
        assert f"| {share:.2f} | {f'`{detail}`' if kind == 'status' else 'a progress update'}" in PAGE
