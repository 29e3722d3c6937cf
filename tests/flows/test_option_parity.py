"""An option is written once: in its model. Forms, flows, jobs and loops have the models themselves."""

import inspect
import re
from pathlib import Path

import pytest
from prefect.utilities.callables import parameter_schema
from typer.main import get_command

from prefect_assay.blocks import AssayExperiment
from prefect_assay.campaigns.loops.loop import Loop
from prefect_assay.campaigns.plan import CampaignInput
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.cli.app import app
from prefect_assay.cli.model_options import option_name
from prefect_assay.designs.options import CampaignOptions, LoopOptions, ReadingOptions
from prefect_assay.flows import campaign, design_build_test

ROOT = Path(__file__).resolve().parents[2]
GROUPS = {name: field.annotation for name, field in CampaignOptions.model_fields.items()}
FLAT = [name for model in (*GROUPS.values(), LoopOptions) for name in model.model_fields]
PLACES = ("flows", "tasks", "blocks", "deployments", "src/prefect_assay/cli", "src/prefect_assay/campaigns")


def parameters(function):
    return inspect.signature(function).parameters


@pytest.mark.parametrize("flow", [campaign, design_build_test], ids=lambda flow: flow.name)
def test_no_flow_and_no_job_has_an_option_of_its_own(flow):
    shared = {"assay", "account", "options"}
    specific_names = {"designs", "spend_up_to_usd", "campaign_id"} | {
        "source",
        "designer",
        "loop_id",
        "budget_usd",
        "rounds",
    }
    assert shared <= parameters(flow.fn).keys() <= shared | specific_names
    assert not parameters(flow.fn).keys() & set(FLAT)


def test_a_job_is_made_of_the_parameters_of_its_flow():
    assert AssayExperiment.model_fields.keys() == parameters(campaign.fn).keys()


@pytest.mark.parametrize(
    ("schema", "name", "model"),
    [
        *((campaign, name, model) for name, model in GROUPS.items()),
        *((design_build_test, name, model) for name, model in GROUPS.items()),
        (design_build_test, "rounds", LoopOptions),
    ],
)
def test_a_form_has_every_option_with_its_help(schema, name, model):
    definitions = parameter_schema(schema).model_dump_for_openapi()["definitions"]
    shown = definitions[model.__name__]["properties"]
    assert shown.keys() == model.model_fields.keys()
    for field, option in model.model_fields.items():
        assert shown[field]["description"] == option.description, f"{name}.{field}"


def test_the_rounds_of_a_loop_get_the_models_and_no_option_by_itself():
    for carrier in (Loop, CampaignInput, CampaignSetup):
        assert not parameters(carrier).keys() & set(FLAT), carrier
    assert parameters(Loop)["reading"].annotation in {ReadingOptions, "ReadingOptions"}
    assert parameters(Loop)["options"].annotation in {LoopOptions, "LoopOptions"}


@pytest.mark.parametrize(
    "option", ["chain", "name_column", "sequence_column", "keep_native", "as_is", "as_protein"]
)
def test_a_request_field_is_in_no_other_place_than_its_model_and_its_reader(option):
    """So a new field is two places: the model, and the line that acts on it."""
    pattern = re.compile(rf"\b{option}\b\s*[:=]|[\"']{option}[\"']")
    mentions = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for place in PLACES
        for path in sorted((ROOT / place).rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if pattern.search(line)
    ]
    assert mentions == []


@pytest.mark.parametrize("command", ["run", "loop"])
def test_a_command_has_every_option_of_the_models(command):
    """The selection is a model within `LoopOptions`, whose fields are options themselves."""
    options = {option for parameter in get_command(app).commands[command].params for option in parameter.opts}
    models = [*GROUPS.values(), *([LoopOptions] if command == "loop" else [])]
    missing = {
        f"{model.__name__}.{name}"
        for model in models
        for name in model.model_fields
        if name != "selection" and not options & set(option_name(model, name).split("/"))
    }
    assert missing == set()
