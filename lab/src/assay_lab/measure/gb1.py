"""The bundled landscape `gb1`: four sites of protein G domain B1, complete, binding IgG-Fc (data/gb1/README.md).

Fitness becomes an affinity by a model, not by a measurement: K_D = K_D(wild type) / fitness, and no binding at 0.
"""

import gzip
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from assay_lab.measure.assays import BINDING_TYPES
from assay_lab.measure.bundled import data_folder
from assay_lab.measure.landscape import Facts, Lookup, target_record

WILD_TYPE: Final = "MQYKLILNGKTLKGETTTEAVDAATAEKVFKQYANDNGVDGEWTYDDATKTFTVTE"
SITES: Final = (39, 40, 41, 54)
"""The varied positions, counted from 1; VDGV in the wild type."""
WILD_TYPE_KD_M: Final = 10e-9
TARGET: Final = target_record(
    "LANDSCAPE-GB1",
    "Human IgG-Fc",
    description="Fc region of human immunoglobulin G1; the target of the landscape gb1",
    uniprot_id="P01857",
)
_INDEXES: Final = tuple(site - 1 for site in SITES)


def read_variant(residues: str) -> str | None:
    """The four residues at the sites; None for anything but the domain with changes there only."""
    four = "".join(residues[index] for index in _INDEXES) if len(residues) == len(WILD_TYPE) else ""
    return four if four and make_sequence(four) == residues else None


def make_sequence(four: str) -> str:
    """The domain with these residues at the four sites."""
    letters = list(WILD_TYPE)
    for index, letter in zip(_INDEXES, four, strict=True):
        letters[index] = letter
    return "".join(letters)


@cache
def load_fitness() -> Mapping[str, float]:
    """Variant to measured fitness, wild type 1; 149,361 of the 160,000 variants. Read at the first call."""
    packed = (data_folder() / "gb1" / "gb1_four_sites.csv.gz").read_bytes()
    rows = gzip.decompress(packed).decode("ascii").splitlines()[1:]
    return {four: float(value) for four, value, _ in (row.split(",", 2) for row in rows)}


class Gb1:
    """The landscape as `lab --landscape gb1` measures it."""

    name: str = "gb1"
    attribution: str | None = (
        "landscape gb1: Wu, Dai, Olson, Lloyd-Smith, Sun (2016), eLife 5:e16965, doi 10.7554/eLife.16965, CC BY 4.0; "
        "K_D is a model, 10 nM / fitness"
    )
    targets: tuple[dict[str, Any], ...] = (TARGET,)

    def lookup(self, experiment_type: str, target: Mapping[str, Any] | None) -> Lookup | None:
        """Binding to IgG-Fc only."""
        known = experiment_type in BINDING_TYPES and (target or {}).get("uniprot_id") == TARGET["uniprot_id"]
        return _find_facts if known else None


def _find_facts(residues: str) -> Facts | None:
    value = load_fitness().get(read_variant(residues) or "")
    if value is None:
        return None
    return {"binding": "true", "kd_M": WILD_TYPE_KD_M / value} if value > 0 else {"binding": "false"}
