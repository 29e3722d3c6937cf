"""One experiment to measure, and the seeded generator of all draws. The id, clock and process change no result."""

import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from assay_lab.measure.files import safe_names
from assay_lab.vocabulary import ANTIGEN_CONCENTRATIONS_NM, Method

EGFR_UNIPROT: Final = "P00533"


def make_random(*parts: object) -> random.Random:
    """A generator that depends on `parts` only."""
    return random.Random("\x1f".join(str(part) for part in parts))  # noqa: S311 - a model's noise, no secret


@dataclass(frozen=True, slots=True)
class Design:
    """One sequence: residues in upper case, colons between chains; `stem` begins its file names."""

    name: str
    residues: str
    stem: str
    control: bool = False
    metadata: Any = None
    id: str | None = None
    measured: bool = True  # else it is in progress

    def as_sequence(self) -> dict[str, Any]:
        """The `sequence` object of a summary entry (service shapes, Results)."""
        return {
            "name": self.name,
            "aa_string": self.residues,
            "control": self.control,
            "metadata": self.metadata,
        }


@dataclass(frozen=True)
class AssayRequest:
    """One validated experiment, and what the assays derive from it."""

    experiment_id: str  # names the package's table; nothing else depends on it
    experiment_type: str
    method: str | None  # `bli` or `spr` for affinity and screening, else None
    # A catalog record; None for assays without a target
    target: dict[str, Any] | None
    # `{name, aa_string, control, metadata}`, `id` where known, and `measured` where it is False
    sequences: list[dict[str, Any]]
    n_replicates: int  # 1 to 5; epitope binning has no replicates
    antigen_concentrations: list[float] | None  # nM; None for the default of the type
    partial: bool  # a preliminary release
    # What `landscape.consulted` gave; None where none covers the experiment
    landscape: dict[str, Any] | None = None
    default_concentrations: tuple[float, ...] = ANTIGEN_CONCENTRATIONS_NM  # nM, of the type

    @cached_property
    def designs(self) -> tuple[Design, ...]:
        """The sequences, in order."""
        # The wire allows a sequence without a name.
        names = [str(row.get("name") or f"sequence {n}") for n, row in enumerate(self.sequences, 1)]
        return tuple(
            Design(
                name=name,
                stem=stem,
                residues=str(sequence["aa_string"]).strip().upper(),
                control=bool(sequence.get("control")),
                metadata=sequence.get("metadata"),
                id=sequence.get("id"),
                measured=sequence.get("measured", True),
            )
            for name, stem, sequence in zip(names, safe_names(names), self.sequences, strict=True)
        )

    @cached_property
    def concentrations(self) -> tuple[float, ...]:
        """Antigen concentrations in nM."""
        # The same concentration twice is one curve: a file name has name, replicate and concentration.
        return tuple(
            dict.fromkeys(
                float(value) for value in self.antigen_concentrations or self.default_concentrations
            )
        )

    @property
    def target_summary(self) -> dict[str, Any] | None:
        """The target as results show it."""
        if not self.target:
            return None
        return {"name": self.target["name"], "target_catalog_id": self.target["id"]}

    @cached_property
    def target_key(self) -> str:
        """The antigen, not the product: UniProt accession if there is one, else catalog id, else empty."""
        target = self.target or {}
        return str(target.get("uniprot_id") or target.get("id") or "")

    @property
    def against_egfr(self) -> bool:
        """Whether the target is human EGFR, for which measured data are bundled."""
        return self.target_key == EGFR_UNIPROT

    def facts(self, residues: str) -> dict[str, Any] | None:
        """What the landscape says of a design, in place of published data and model; None where it leaves it to them."""
        return self.landscape["facts"].get(residues) if self.landscape else None

    def source(self, residues: str) -> str:
        """The `data_source` of a design without published data."""
        return "model" if self.facts(residues) is None else "landscape"

    @cached_property
    def measured_designs(self) -> tuple[Design, ...]:
        """The designs that have a result; the others are in progress."""
        return tuple(design for design in self.designs if design.measured)

    @property
    def signal_unit(self) -> str:
        """Nanometres of wavelength shift for BLI, resonance units for SPR."""
        return "RU" if self.method == Method.SPR else "nm"
