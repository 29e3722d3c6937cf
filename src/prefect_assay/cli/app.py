"""The command line: the commands of all rooms in one program.

`prefect-assay --help` must not import Prefect, httpx or boto3: each command imports its module when it runs, and
choices are literals, which a test compares with the vocabulary.
"""

from pathlib import Path
from typing import Annotated

import typer

from prefect_assay.cli.archives.app import archive_app, archives
from prefect_assay.cli.campaigns.app import campaigns
from prefect_assay.cli.designs.app import designs_app, sequences_app
from prefect_assay.cli.failures import reported
from prefect_assay.cli.loops.app import loop_app
from prefect_assay.cli.options import AsJson
from prefect_assay.cli.services.app import services

app = typer.Typer(
    help="Measure protein designs: order once, pay once, wait without a process, archive.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(services)
app.add_typer(campaigns)
app.add_typer(loop_app)
app.add_typer(archives)
app.add_typer(archive_app, name="archive")
app.add_typer(sequences_app, name="sequences")
app.add_typer(designs_app, name="designs")


@app.command()
def drift(
    document: Annotated[
        Path | None, typer.Argument(help="A saved openapi.json, instead of asking the service.")
    ] = None,
    *,
    base_url: Annotated[
        str | None, typer.Option(help="Address of the service. Default: PREFECT_ASSAY_BASE_URL.")
    ] = None,
    credentials: Annotated[
        str | None, typer.Option(help="Name of an AssayCredentials block with address, token and words.")
    ] = None,
    provider_word: Annotated[
        str, typer.Option(help="How the deployment spells the payment provider.")
    ] = "provider",
    service_word: Annotated[str, typer.Option(help="How the deployment spells the service.")] = "Service",
    as_json: AsJson = False,
) -> None:
    """Compare the service's openapi.json with what the client knows; exit code 1 when something would break."""
    with reported(as_json=as_json):
        from prefect_assay.cli.drift import show_drift, wire_words

        words = wire_words(provider_word, service_word)
        show_drift(document, base_url=base_url, credentials=credentials, words=words, as_json=as_json)


def main() -> None:
    """Entry point of `prefect-assay`."""
    app()
