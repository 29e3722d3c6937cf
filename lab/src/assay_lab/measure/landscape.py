"""A landscape: a table in place of nature, so that a campaign can be simulated before it is paid for.

What a landscape says is looked up when results are released, and stored with the release: no later change of the table
alters a result. Units: K_D in M, k_on in 1/(M s), degrees Celsius, mg per litre. Must not know of experiments and stores.
"""

import math
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Protocol

from assay_lab.errors import ConfigurationError
from assay_lab.measure.assays import ASSAY_TYPES
from assay_lab.measure.bundled import NAMESPACE, VENDOR

Facts = Mapping[str, Any]
"""Of one design: `binding`, `kd_M`, `kon_per_M_s`, `tm_C`, `yield_mg_per_l`, `expression`, as far as they are known."""
Lookup = Callable[[str], Facts | None]
"""Residues to facts; None for a design that the landscape does not have."""
Missing = Literal["unknown", "none", "model"]

PRICE_CENTS: Final = 4000


class Landscape(Protocol):
    """Where the facts come from."""

    name: str  # as results show it
    attribution: str | None  # source and licence of bundled data, for every result
    targets: tuple[dict[str, Any], ...]  # records of targets that the catalog lacks

    def lookup(self, experiment_type: str, target: Mapping[str, Any] | None) -> Lookup | None:
        """How to look a design up; None where the landscape says nothing about such experiments."""


@dataclass(frozen=True, slots=True)
class LandscapeRules:
    """How the lab measures from a landscape.

    `kd_noise` is the standard deviation of log10 K_D between replicates, in decades; `tm_noise` that of T_m in degrees
    Celsius. `missing` is what becomes of a design that the table does not have: no clear outcome (`unknown`), a failure
    (`none`), or what the lab measures without a landscape (`model`). `seed` decides the noise.
    """

    missing: Missing = "unknown"
    kd_noise: float = 0.1
    tm_noise: float = 0.35
    seed: str = "lab"

    def __post_init__(self) -> None:
        for option, value in (
            ("--landscape-kd-noise", self.kd_noise),
            ("--landscape-tm-noise", self.tm_noise),
        ):
            if not (math.isfinite(value) and value >= 0):
                raise ConfigurationError(f"{option} is {value:g}; give a standard deviation of 0 or more")


def consult_landscape(
    landscape: Landscape,
    rules: LandscapeRules,
    experiment_type: str,
    target: Mapping[str, Any] | None,
    designs: Iterable[str],
) -> dict[str, Any] | None:
    """What an `AssayRequest` carries of the landscape, as JSON; None where it says nothing about such experiments.

    `designs` are residues. A design without facts is left to the lab's own data and model.
    """
    lookup = landscape.lookup(experiment_type, target)
    if lookup is None:
        return None
    instead = ASSAY_TYPES[experiment_type].facts_if_missing.get(rules.missing)
    facts_by_residues = {residues: lookup(residues) for residues in dict.fromkeys(designs)}
    return {
        "name": landscape.name,
        "attribution": landscape.attribution,
        **asdict(rules),
        "facts": {
            residues: dict(facts if facts is not None else instead or {})
            for residues, facts in facts_by_residues.items()
            if facts is not None or instead is not None
        },
        "not_in_table": [residues for residues, facts in facts_by_residues.items() if facts is None],
    }


def target_record(
    number: str, name: str, *, description: str, uniprot_id: str | None = None
) -> dict[str, Any]:
    """A catalog record with a self-service price, so that the target can be ordered."""
    return {
        "id": str(uuid.uuid5(NAMESPACE, f"{number}/{name}")),
        "name": name,
        "vendor_name": VENDOR,
        "catalog_number": number,
        "url": f"https://antigens.example/{number}",
        "uniprot_id": uniprot_id,
        "pricing": {"type": "per_sequence", "price_per_sequence_cents": PRICE_CENTS},
        "details": {"description": description},
    }
