"""The choices of a user about how a source is read."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is read.

    `name_column` and `sequence_column` are titles of a table; several titles of sequences, with commas between them, are
    chains. `keep_native` keeps the native inputs of ProteinMPNN. `chain` takes one chain of each design, or several, by their
    numbers from 1 or their names. `target_sequence` is what the designs bind, which must not be in them. `keep_shared` orders
    what all designs share, and records that look like chains of a complex. `as_protein` takes letters that look like
    nucleotides as amino acids.
    """

    name_column: str | None = None
    sequence_column: str | None = None
    keep_native: bool = False
    chain: str | None = None
    target_sequence: str | None = None
    keep_shared: bool = False
    as_protein: bool = False


AS_WRITTEN: Final = Reading()
