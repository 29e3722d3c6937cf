"""What is to be measured, as frozen values; and the seeded chance that every draw of the model uses.

Nothing here may depend on the experiment's id, the clock or the process: the same residues against the same
target give the same answer, always.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from prefect_assay.models.vocabulary import ANTIGEN_CONCENTRATIONS_NM, ExperimentType

EGFR_UNIPROT = "P00533"


def seeded(*parts: object) -> random.Random:
    """A generator that depends on `parts` only."""
    return random.Random("\x1f".join(str(part) for part in parts))  # noqa: S311 - a model's noise, no secret


@dataclass(frozen=True, slots=True)
class Design:
    """One sequence of the experiment. `residues` is upper case, chains separated by a colon."""

    name: str
    residues: str
    control: bool = False
    metadata: Any = None
    id: str | None = None

    def as_sequence(self) -> dict[str, Any]:
        """The `sequence` object of a summary entry (service shapes, Results)."""
        return {
            "name": self.name,
            "aa_string": self.residues,
            "control": self.control,
            "metadata": self.metadata,
        }


@dataclass(frozen=True, slots=True)
class Request:
    """One experiment, ready to be measured.

    Attributes:
        target_key: what the draws are seeded with; empty for assays without a target.
        concentrations: antigen concentrations in nM.
        measured: how many of `designs`, from the first, are measured so far.
    """

    experiment_id: str
    experiment_type: str
    method: str | None
    target_name: str | None
    target_key: str
    designs: tuple[Design, ...]
    n_replicates: int
    concentrations: tuple[float, ...]
    partial: bool
    target: dict[str, Any] | None = field(default=None, compare=False)

    @property
    def against_egfr(self) -> bool:
        """Whether the target is human EGFR, for which measured data are bundled."""
        return self.target_key == EGFR_UNIPROT

    @property
    def measured(self) -> int:
        """A preliminary release covers the first half of the designs, at least one."""
        return max(1, len(self.designs) // 2) if self.partial else len(self.designs)

    @property
    def signal_unit(self) -> str:
        """Nanometres of wavelength shift for BLI, resonance units for SPR."""
        return "RU" if self.method == "spr" else "nm"


def target_key(target: dict[str, Any] | None) -> str:
    """UniProt accession if there is one, else catalog id, else name: the antigen, not the product."""
    if not target:
        return ""
    for field_name in ("uniprot_id", "target_catalog_id", "id", "name"):
        if value := target.get(field_name):
            return str(value)
    return ""


def default_concentrations(experiment_type: str) -> tuple[float, ...]:
    """Contract 2.2 for affinity; a screening call needs the highest concentration and the blank."""
    return ANTIGEN_CONCENTRATIONS_NM if experiment_type == ExperimentType.AFFINITY else (1000.0, 0.0)
