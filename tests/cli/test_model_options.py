"""Options that are made from models: names, help, bounds and choices from the fields; the command gets instances."""

import shlex

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from prefect_assay.cli.model_options import option_name, takes_models
from prefect_assay.designs.options import CampaignOptions, LoopOptions, ReadingOptions
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import ExperimentType, Method, PaymentMethod


class Rounds(Model):
    selection: SelectionSettings | None = None
    goal_kd_nM: float | None = Field(default=None, gt=0, le=10)  # noqa: N815 - the unit


@pytest.fixture
def typed():
    """Types a command line; gives what the command was called with."""
    app, calls = typer.Typer(), []

    @app.command()
    @takes_models()
    def run(
        file: str, *, assay: Assay, options: CampaignOptions, rounds: Rounds, as_json: bool = False
    ) -> None:
        calls.append((file, assay, options, rounds, as_json))

    def type_line(line):
        done = CliRunner().invoke(app, line if isinstance(line, list) else shlex.split(line))
        return done, (calls[-1] if calls else None)

    return type_line


def test_nothing_typed_is_the_defaults_of_the_models(typed):
    done, call = typed("designs.fasta")
    assert done.exit_code == 0, done.output
    assert call == ("designs.fasta", Assay(), CampaignOptions(), Rounds(), False)
    assert call[2].model_fields_set == set()


def test_what_is_typed_becomes_the_models_fields_in_their_types(typed):
    _, call = typed(
        "designs.fasta --type screening --method spr --replicates 2 --antigen-concentrations 100,31.6,0 "
        "--name-column id --keep-native --deadline-days 3 --payment x402-exact --goal-kd-nm 0.5 "
        "--policy top_score --score-column ipTM --lower-is-better --parameters '{\"temperature\": 25}'"
    )
    _, assay, options, rounds, _ = call
    assert assay == Assay(
        experiment_type=ExperimentType.SCREENING,
        method=Method.SPR,
        n_replicates=2,
        antigen_concentrations=(100, 31.6, 0),
        parameters={"temperature": 25},
    )
    assert options.reading == ReadingOptions(name_column="id", keep_native=True)
    assert options.reading.model_fields_set == {"name_column", "keep_native"}
    assert options.waiting.deadline_days == 3
    assert options.spending.payment_method is PaymentMethod.X402_EXACT
    assert rounds.selection == SelectionSettings(
        policy="top_score", score_column="ipTM", higher_is_better=False
    )
    assert rounds.goal_kd_nM == 0.5


@pytest.mark.parametrize(
    ("typed_options", "words"),
    [
        (["--designs-per-experiment", "385"], "less than or equal to 384"),
        (["--replicates", "0"], "greater than or equal to 1"),
        (["--type", "color"], "color"),
        (["--antigen-concentrations", "100,many"], "--antigen-concentrations: "),
        (["--goal-kd-nm", "0"], "--goal-kd-nm: "),
        (["--chain", "A\x00"], "--chain: contains a NUL"),
        (["--parameters", "[1]"], "JSON"),
        (["--lower-is-better"], "--higher-is-better has no effect without a --score-column"),
    ],
)
def test_what_a_model_refuses_is_exit_code_2_and_calls_nothing(typed, typed_options, words):
    done, call = typed(["designs.fasta", *typed_options])
    assert (done.exit_code, call) == (2, None)
    assert words in " ".join(done.output.replace("│", " ").split())


def test_help_default_and_bounds_are_the_fields(typed):
    shown = " ".join(
        CliRunner().invoke(_app_of(ReadingOptions), ["--help"], env={"COLUMNS": "300"}).output.split()
    )
    for name, field in ReadingOptions.model_fields.items():
        assert option_name(ReadingOptions, name) in shown
        assert field.description.replace("Empty:", "Default:") in shown
    assert "[1<=x<=384]" in shown
    assert "(96)" in shown


def test_an_optional_model_shows_what_is_done_without_it():
    shown = " ".join(
        CliRunner().invoke(_app_of(LoopOptions), ["--help"], env={"COLUMNS": "300"}).output.split()
    )
    assert "[default: (the first ones, in their order)]" in shown
    assert "(gp)" not in shown


def _app_of(model):
    app = typer.Typer()

    def show(*, options) -> None:
        """Show."""

    show.__annotations__["options"] = model
    app.command()(takes_models()(show))
    return app
