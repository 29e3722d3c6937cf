"""Options that several commands share and that are in no model; those of models are made by `model_options`."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from prefect_assay.models.bounds import NUMBER_MAX

MAIN: Final = "main"  # the name that `prefect-assay init` saves an account under

BLOCKS: Final = MAIN
TypeWord = Literal[
    "affinity",
    "screening",
    "thermostability",
    "fluorescence",
    "expression",
    "epitope_binning",
    "enzyme_activity",
]
MethodWord = Literal["bli", "spr"]
PaymentWord = Literal["async_invoice", "x402-exact", "mpp-spt"]
PolicyWord = Literal["gp", "top_score", "random"]
OutcomeWord = Literal["measured", "binding", "no_binding", "no_expression", "unknown", "pending", "missing"]
ObjectiveWord = Literal["affinity", "melting", "expression"]
AimWord = Literal["hits", "best"]
KdUnitWord = Literal["M", "mM", "uM", "nM", "pM", "fM"]


def number(text: str, lowest: float = -NUMBER_MAX) -> Any:
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
Here = Annotated[bool, typer.Option("--here", help="Run in this process, without a deployment, and poll.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for a confirmation.")]
HigherIsBetter = Annotated[
    bool | None,
    typer.Option(
        "--higher-is-better/--lower-is-better",
        help="Of the score that is named. Default: as its title says; needed where that is not known.",
    ),
]
NameColumn = Annotated[str | None, typer.Option(help="The table's column of names, by its title.")]
SequenceColumn = Annotated[str | None, typer.Option(help="The table's column of sequences, by its title.")]
KeepNative = Annotated[
    bool, typer.Option("--keep-native", help="Also measure the native inputs in files of ProteinMPNN.")
]
Chain = Annotated[
    str | None,
    typer.Option(help="Order only this chain of each design: its number from 1 or its name; several as 1,2."),
]
TargetSequence = Annotated[
    str | None,
    typer.Option(help="Residues of the target, which must not be ordered; beside the service's catalog."),
]
KeepShared = Annotated[
    bool,
    typer.Option(
        "--keep-shared", help="Order what is in doubt as it is, such as a chain that all designs share."
    ),
]
AsProtein = Annotated[
    bool, typer.Option("--as-protein", help="Take residues that look like nucleotides as amino acids.")
]
CredentialsName = Annotated[str, typer.Option(help="Name of the AssayCredentials block.")]
PolicyName = Annotated[str, typer.Option(help="Name of the SpendingPolicy block.")]
ArchiveName = Annotated[
    str, typer.Option(help="Archive block: a name, or <slug>/<name> as in assay-s3-archive/main.")
]
Type = Annotated[TypeWord, typer.Option("--type", help="What is measured.")]
TargetName = Annotated[str | None, typer.Option(help="Catalog target: id, catalog number or exact name.")]
Method = Annotated[MethodWord | None, typer.Option(help="For affinity and screening. Default: bli.")]
Replicates = Annotated[
    int | None, typer.Option(min=1, max=5, help="Replicates per design. Default: the service's 3.")
]
Payment = Annotated[
    PaymentWord, typer.Option(help="How the invoice is paid: by a person, or by a machine rail.")
]
WalletName = Annotated[
    str | None,
    typer.Option(help="Name of the X402Wallet block, or for mpp-spt of the SharedPaymentTokens block."),
]
WebhookName = Annotated[str | None, typer.Option(help="Name of the WebhookEndpoint block.")]
PerExperiment = Annotated[
    int,
    typer.Option(
        "--designs-per-experiment", min=1, max=384, help="Designs that one experiment takes at most."
    ),
]
