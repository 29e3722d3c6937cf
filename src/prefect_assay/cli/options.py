"""Options that several commands share and that are in no model; those of models are made by `model_options`."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from prefect_assay.service.bounds import NUMBER_MAX

MAIN: Final = "main"  # the name that `prefect-assay init` saves an account under


def number_option(text: str, lowest: float = -NUMBER_MAX) -> Any:
    """An option that takes a finite number."""
    return typer.Option(min=lowest, max=NUMBER_MAX, help=text)


def account_option(name: str) -> str:
    """What a command that is printed needs to use this account; nothing for the one that it takes by itself."""
    return "" if name == MAIN else f" --account {name}"


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AccountName = Annotated[
    str,
    typer.Option("--account", metavar="NAME", help="The account: service, token, caps, archive, wallet."),
]
ServiceAccount = Annotated[
    str | None,
    typer.Option(
        "--account",
        metavar="NAME",
        help="The account. Default: PREFECT_ASSAY_BASE_URL and PREFECT_ASSAY_TOKEN, else main.",
    ),
]
ArchiveFolder = Annotated[Path | None, typer.Argument(help="An archive in a folder.")]
ArchiveBlock = Annotated[
    str | None,
    typer.Option(help="Archive block instead: a name, or <slug>/<name>. Default: that of the account main."),
]
ArchiveOrFolder = Annotated[
    str | None,
    typer.Option(
        "--archive",
        help="Archive block: a name, or <slug>/<name>; or a folder, as in ./archive. Default: that of the account main.",
    ),
]
ArchiveAccount = Annotated[
    str | None,
    typer.Option("--account", metavar="NAME", help="An account instead: its archive. Default: main."),
]
Here = Annotated[bool, typer.Option("--here", help="Run in this process, without a deployment, and poll.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for a confirmation.")]
HigherIsBetter = Annotated[
    bool | None,
    typer.Option(
        "--higher-is-better/--lower-is-better",
        help="Of the score that is named. Default: as its title says; needed where that is not known.",
    ),
]
