"""The options of a command are the fields of the models and the parameters of its flow: none is in one place only."""

import inspect

import pytest
import typer.main
from pydantic import BaseModel

from prefect_assay.cli.app import app
from prefect_assay.cli.model_options import option_name
from prefect_assay.designs.options import (
    CampaignOptions,
    LoopOptions,
    ReadingOptions,
    SpendingOptions,
)
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.flows import campaign, design_build_test
from prefect_assay.service.models.spec import Assay

PROGRAM = typer.main.get_command(app)
# How a person starts, confirms and follows, which no flow has as a parameter.
ABOUT_THE_COMMAND = {"--account", "--yes", "-y", "--json", "--here", "--reopen"}


def options_of(*names):
    command = PROGRAM
    for name in names:
        command = command.commands[name]
    shown = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    return {text for parameter in shown for text in (*parameter.opts, *parameter.secondary_opts)} - {"--help"}


def fields_of(model, leave_out=()):
    for name, field in model.model_fields.items():
        inner = next(
            (kind for kind in (field.annotation, *_parts(field.annotation)) if _is_model(kind)), None
        )
        if inner:
            yield from fields_of(inner, leave_out)
        elif name not in leave_out:
            yield from option_name(model, name).split("/")


def _parts(annotation):
    return getattr(annotation, "__args__", ())


def _is_model(kind):
    return isinstance(kind, type) and issubclass(kind, BaseModel)


@pytest.mark.parametrize(
    ("command", "models", "others"),
    [
        (["run"], [Assay, CampaignOptions], {*ABOUT_THE_COMMAND, "--max-usd", "--campaign-id", "--wait"}),
        (
            ["loop"],
            [Assay, CampaignOptions, LoopOptions],
            {*ABOUT_THE_COMMAND, "--designer", "--budget-usd", "--cron", "--timezone"},
        ),
        (["estimate"], [Assay, ReadingOptions, SpendingOptions], {"--account", "--campaign-id", "--json"}),
        (["rehearse"], [Assay, ReadingOptions], {"--account", "--bundle", "--json"}),
        (["designs", "check"], [ReadingOptions], {"--type", "--json"}),
    ],
    ids=["run", "loop", "estimate", "rehearse", "designs check"],
)
def test_a_command_has_each_field_of_its_models_as_an_option_and_no_other(command, models, others):
    fields = [option for model in models for option in fields_of(model)]
    assert len(fields) == len(set(fields)), "two fields have the same option"
    assert options_of(*command) == {*fields, *others}


def test_designs_are_selected_by_all_settings_of_a_selection():
    fields = {*fields_of(SelectionSettings), *fields_of(ReadingOptions, {"designs_per_experiment"})}
    assert fields <= options_of("designs", "select")


@pytest.mark.parametrize(
    ("flow", "command", "models", "spellings"),
    [
        (campaign, "run", {"assay", "options"}, {"spend_up_to_usd": "--max-usd"}),
        (design_build_test, "loop", {"assay", "options", "rounds"}, {}),
    ],
)
def test_each_parameter_of_a_flow_can_be_given_to_its_command(flow, command, models, spellings):
    arguments = {p.name for p in PROGRAM.commands[command].params if p.param_type_name == "argument"}
    for name in inspect.signature(flow.fn).parameters:
        if name not in models | arguments:
            option = spellings.get(name, f"--{name.replace('_', '-')}")
            assert option in options_of(command), name
