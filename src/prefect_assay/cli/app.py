"""The command line: the commands of all groups in one program.

`prefect-assay --help` must not import Prefect, httpx or boto3. Each command imports its module when it runs, and choices
are literals, which a test compares with the vocabulary.
"""

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from prefect_assay.cli.archives.app import archive_app, archives
from prefect_assay.cli.campaigns.app import campaigns
from prefect_assay.cli.designs.app import catalog, custom_target_app, designs_app
from prefect_assay.cli.failures import report_errors
from prefect_assay.cli.loops.app import loop_app
from prefect_assay.cli.model_options import takes_models
from prefect_assay.cli.options import MAIN, AccountName, AsJson
from prefect_assay.cli.services.app import services
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.service.models.spec import Assay

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
interface = typer.Typer()


def _print_version(is_requested: bool) -> None:  # noqa: FBT001 - the callback of an option
    if is_requested:
        from importlib.metadata import version

        print(f"prefect-assay {version('prefect-assay')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Measure protein designs: order once, pay once, wait without a process, archive."""
    del version
    # While a command ends, Prefect counts the events that it still sends: nothing for a person to do.
    logging.getLogger("EventsWorker").setLevel(logging.ERROR)


@interface.command()
def drift(
    document: Annotated[
        Path | None, typer.Argument(help="A saved openapi.json, instead of asking the service.")
    ] = None,
    *,
    base_url: Annotated[
        str | None, typer.Option(help="Address of the service. Default: PREFECT_ASSAY_BASE_URL.")
    ] = None,
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="An account, which has address, token and words.")
    ] = None,
    provider_word: Annotated[
        str, typer.Option(help="How the service spells the payment provider.")
    ] = "provider",
    service_word: Annotated[str, typer.Option(help="How the service spells itself.")] = "Service",
    as_json: AsJson = False,
) -> None:
    """Compare the service's openapi.json with what the client knows; exit code 1 when something would break."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.drift import show_drift, wire_words

        words = wire_words(provider_word, service_word)
        show_drift(document, base_url=base_url, account=account, words=words, as_json=as_json)


@interface.command()
@takes_models()
def rehearse(
    designs: Annotated[str, typer.Argument(help="FASTA file, table or workbook, or an s3:// address.")],
    *,
    account: AccountName = MAIN,
    assay: Assay,
    reading: ReadingOptions,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The zip file to write. Default: rehearsal-<time>.zip here."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Go through everything up to the order against the service, spend nothing, and write a bundle for the maintainers.

    Without --target, designs for an assay with a target are priced against the first target that has a price.
    """
    with report_errors(as_json=as_json):
        from prefect_assay.cli.rehearse import run_rehearsal

        run_rehearsal(account, designs, assay, reading, bundle, as_json=as_json)


_CAMPAIGNS, _RESULTS, _DESIGNS, _INSTALLATION = "Campaigns", "Results", "Designs", "Installation"
for _room, _panel in (
    (campaigns, _CAMPAIGNS),
    (loop_app, _CAMPAIGNS),
    (archives, _RESULTS),
    (catalog, _DESIGNS),
    (services, _INSTALLATION),
    (interface, _INSTALLATION),
):
    for _command in _room.registered_commands:
        _command.rich_help_panel = _panel
    app.add_typer(_room)
app.add_typer(archive_app, name="archive", rich_help_panel=_RESULTS)
app.add_typer(custom_target_app, name="custom-target", rich_help_panel=_DESIGNS)
app.add_typer(designs_app, name="designs", rich_help_panel=_DESIGNS)


def main() -> None:
    """Entry point of `prefect-assay`. It sends nothing to Prefect's makers, unless the user wants it."""
    if any("\ud800" <= letter <= "\udfff" for argument in sys.argv for letter in argument):
        print(
            "Error: an argument is not UTF-8, so that no run could keep it; rename the file.", file=sys.stderr
        )
        raise SystemExit(2)
    os.environ.setdefault("DO_NOT_TRACK", "1")  # read when Prefect is imported, and by every process below
    # Processes below start with `python -m`, Prefect's own among them, and would import files of the current folder.
    os.environ["PYTHONSAFEPATH"] = "1"
    app()
