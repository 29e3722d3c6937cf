"""Programs whose tables are known: what identifies them, which columns are the name and the sequence, and what is the parent.

All of it is data; docs/designs.md has the same table for people. Other columns of sequences (the designed residues alone,
the target, nucleotides) are never taken from these tables, and raise no doubt.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from prefect_assay.designs.tables.table import key_of


@dataclass(frozen=True, slots=True)
class Producer:
    """A program and its table.

    `marks` are titles that its table has, all of them. `names` are joined by `_`, `sequences` by `:`; a sequence that ends in
    `#` stands for the columns numbered 1, 2, ... `parent_of` is a pattern whose first group is the parent in the design's
    name.
    """

    name: str
    marks: tuple[str, ...]
    names: tuple[str, ...]
    sequences: tuple[str, ...]
    parent_of: str | None = None
    method: str | None = None

    def parent_in(self, name: str) -> str | None:
        """The parent that a design's name carries."""
        match = re.fullmatch(self.parent_of, name) if self.parent_of else None
        return match[1] if match else None


COLAB: Final = "RFdiffusion in Colab"
_BINDCRAFT: Final = r"(.+)_mpnn\d+"
# In order: a table with the marks of several is of the first.
PRODUCERS: Final = (
    Producer(
        "prefect-assay designs select", ("name", "sequence", "selection_rank"), ("name",), ("sequence",)
    ),
    Producer(
        "BoltzGen, several designed chains",
        ("designed_chain_sequence_1", "designed_chain_sequence_2"),
        ("id",),
        ("designed_chain_sequence_#",),
        method="BoltzGen",
    ),
    Producer(
        "BoltzGen",
        ("designed_sequence", "designed_chain_sequence"),
        ("id",),
        ("designed_chain_sequence",),
        method="BoltzGen",
    ),
    Producer(
        "BindCraft",
        ("Design", "Sequence", "Average_i_pTM"),
        ("Design",),
        ("Sequence",),
        parent_of=_BINDCRAFT,
        method="BindCraft",
    ),
    Producer(
        "BindCraft, trajectories",
        ("Design", "Sequence", "Protocol", "i_pTM"),
        ("Design",),
        ("Sequence",),
        method="BindCraft",
    ),
    Producer(
        "BindCraft, short",
        ("Design", "Sequence", "MPNN_score"),
        ("Design",),
        ("Sequence",),
        parent_of=_BINDCRAFT,
        method="BindCraft",
    ),
    Producer(
        COLAB,
        ("design", "n", "mpnn", "seq"),
        ("design", "n"),
        ("seq",),
        parent_of=r"(.+)_\d+",
        method="RFdiffusion",
    ),
    Producer(
        "AIRR",
        ("sequence_id", "sequence", "sequence_aa"),
        ("sequence_id",),
        ("sequence_aa",),
    ),
    Producer("ProteinGym", ("mutant", "mutated_sequence"), ("mutant",), ("mutated_sequence",)),
    Producer(
        "OAS, paired",
        ("sequence_alignment_aa_heavy", "sequence_alignment_aa_light"),
        ("sequence_id_heavy",),
        ("sequence_alignment_aa_heavy", "sequence_alignment_aa_light"),
    ),
    Producer(
        "Proteinbase",
        ("protein_id", "sequence"),
        ("protein_id",),
        ("sequence",),
    ),
)


def producer_of(titles: Sequence[str]) -> Producer | None:
    """The producer of a table with these titles."""
    keys = set(map(key_of, titles))
    return next(
        (producer for producer in PRODUCERS if all(key_of(mark) in keys for mark in producer.marks)), None
    )
