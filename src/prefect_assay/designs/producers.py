"""Programs whose tables are known: what identifies them, and which columns are the name, the sequence, the parent and the scores.

All of it is data; docs/designs.md has the same table for people. Columns of sequences that are not the design
(the designed residues alone, the target, nucleotides) are named, so they are never taken and raise no doubt.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from prefect_assay.tables import key_of

_AF2: Final = {
    "average_plddt": True,
    "average_i_ptm": True,
    "average_ptm": True,
    "average_pae": False,
    "average_i_pae": False,
    "average_dg": False,
    "average_shapecomplementarity": True,
    "mpnn_score": False,
}
_BOLTZGEN: Final = {
    "design_to_target_iptm": True,
    "design_iptm": True,
    "design_ptm": True,
    "min_design_to_target_pae": False,
    "min_interaction_pae": False,
    "filter_rmsd": False,
    "final_rank": False,
    "quality_score": True,
    "delta_sasa_refolded": True,
}
_DMS: Final = {"dms_score": True}


@dataclass(frozen=True, slots=True)
class Producer:
    """A program and its table.

    `marks` are titles that its table has, all of them. `names` are joined by `_`, `sequences` by `:`; a sequence that ends in
    `#` stands for the columns numbered 1, 2, ... `not_designs` hold sequences of something else. `parent` is a column, and
    `parent_of` a pattern whose first group is the parent in the design's name. `scores` says where more is better.
    """

    name: str
    marks: tuple[str, ...]
    names: tuple[str, ...]
    sequences: tuple[str, ...]
    not_designs: tuple[str, ...] = ()
    parent: str | None = None
    parent_of: str | None = None
    method: str | None = None
    scores: Mapping[str, bool] = field(default_factory=dict)

    def parent_in(self, name: str) -> str | None:
        """The parent that a design's name carries."""
        found = re.fullmatch(self.parent_of, name) if self.parent_of else None
        return found[1] if found else None


_BINDCRAFT: Final = r"(.+)_mpnn\d+"
# In order: a table with the marks of several is of the first.
PRODUCERS: Final = (
    Producer(
        "prefect-assay designs select", ("name", "sequence", "selection_rank"), ("name",), ("sequence",)
    ),
    Producer(
        "BoltzGen",
        ("designed_sequence", "designed_chain_sequence"),
        ("id",),
        ("designed_chain_sequence",),
        ("designed_sequence", "sequence"),
        method="BoltzGen",
        scores=_BOLTZGEN,
    ),
    Producer(
        "BoltzGen, several designed chains",
        ("designed_chain_sequence_1", "designed_chain_sequence_2"),
        ("id",),
        ("designed_chain_sequence_#",),
        ("designed_sequence", "designed_sequence_#", "sequence"),
        method="BoltzGen",
        scores=_BOLTZGEN,
    ),
    Producer(
        "BindCraft",
        ("Design", "Sequence", "Average_i_pTM"),
        ("Design",),
        ("Sequence",),
        parent_of=_BINDCRAFT,
        method="BindCraft",
        scores=_AF2,
    ),
    Producer(
        "BindCraft, trajectories",
        ("Design", "Sequence", "Protocol", "i_pTM"),
        ("Design",),
        ("Sequence",),
        method="BindCraft",
        scores={"i_ptm": True, "plddt": True, "ptm": True, "pae": False, "i_pae": False, "dg": False},
    ),
    Producer(
        "BindCraft, short",
        ("Design", "Sequence", "MPNN_score"),
        ("Design",),
        ("Sequence",),
        parent_of=_BINDCRAFT,
        method="BindCraft",
        scores=_AF2,
    ),
    Producer(
        "RFdiffusion in Colab",
        ("design", "n", "mpnn", "seq"),
        ("design", "n"),
        ("seq",),
        parent="design",
        method="RFdiffusion",
        scores={
            "mpnn": False,
            "plddt": True,
            "ptm": True,
            "i_ptm": True,
            "pae": False,
            "i_pae": False,
            "rmsd": False,
        },
    ),
    Producer(
        "AIRR",
        ("sequence_id", "sequence", "sequence_aa"),
        ("sequence_id",),
        ("sequence_aa",),
        (
            "sequence",
            "sequence_alignment",
            "sequence_alignment_aa",
            "germline_alignment",
            "germline_alignment_aa",
        ),
    ),
    Producer("ProteinGym", ("mutant", "mutated_sequence"), ("mutant",), ("mutated_sequence",), scores=_DMS),
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
        method=None,
        scores={
            "esmfold_plddt": True,
            "proteinmpnn_score": False,
            "boltz2_iptm": True,
            "boltz2_min_ipsae": True,
        },
    ),
)

# Scores by their usual names, without case and separators: is more better?
SCORES: Final[Mapping[str, bool]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "iptm",
                "iptmscore",
                "ptm",
                "plddt",
                "iplddt",
                "meanplddt",
                "complexplddt",
                "ipsae",
                "minipsae",
                "pdockq",
                "pdockq2",
                "lis",
                "seqrecovery",
                "sequencerecovery",
                "seqrec",
                "overallconfidence",
                "ligandconfidence",
                "confidencescore",
                "rankingscore",
                "shapecomplementarity",
                "esmpll",
                "pll",
                "dmsscore",
                "fitness",
            ),
            True,
        ),
        **dict.fromkeys(
            (
                "pae",
                "ipae",
                "paeinteraction",
                "minipae",
                "rmsd",
                "bindrmsd",
                "binderrmsd",
                "designrmsd",
                "dg",
                "ddg",
                "energy",
                "mpnnscore",
                "mpnn",
                "proteinmpnnscore",
                "globalscore",
                "perplexity",
                "clashes",
                "finalrank",
            ),
            False,
        ),
    }
)
# FASTA of ProteinMPNN and LigandMPNN: a mean negative log-likelihood, so that less is better.
MPNN_SCORES: Final[Mapping[str, bool]] = MappingProxyType({"score": False, "globalscore": False})


def producer_of(titles: Sequence[str]) -> Producer | None:
    """The producer of a table with these titles."""
    keys = set(map(key_of, titles))
    return next((each for each in PRODUCERS if all(key_of(mark) in keys for mark in each.marks)), None)


def nearly(titles: Sequence[str]) -> tuple[str, str] | None:
    """A producer whose table this nearly is, and what it lacks: one of three marks or more."""
    keys = set(map(key_of, titles))
    for each in PRODUCERS:
        lacking = [mark for mark in each.marks if key_of(mark) not in keys]
        if len(lacking) == 1 and len(each.marks) > 1 and key_of(each.marks[0]) in keys and _is_telling(each):
            return each.name, lacking[0]
    return None


def _is_telling(producer: Producer) -> bool:
    """Whether its first mark occurs in no table of others."""
    return key_of(producer.marks[0]) not in {"name", "design", "sequenceid", "proteinid", "mutant"}


def more_is_better(title: str, producer: str | None = None) -> bool | None:
    """The direction of a score by its title, and by the producer of its table; None if neither is known."""
    key = key_of(title)
    own = next((each.scores for each in PRODUCERS if each.name == producer), {})
    named = {key_of(name): better for name, better in own.items()}
    if producer in {"ProteinMPNN", "LigandMPNN"}:
        named |= MPNN_SCORES
    return named.get(key, SCORES.get(key))
