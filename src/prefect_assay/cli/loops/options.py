"""Words and options that several commands share. Choices are literals, which a test compares with the vocabulary."""

from typing import Annotated, Literal

import typer

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
PolicyWord = Literal["top_score", "method_history", "gp", "random"]

NameColumn = Annotated[str | None, typer.Option(help="The table's column of names, by its title.")]
SequenceColumn = Annotated[str | None, typer.Option(help="The table's column of sequences, by its title.")]
KeepNative = Annotated[
    bool, typer.Option("--keep-native", help="Also measure the native inputs in files of ProteinMPNN.")
]
