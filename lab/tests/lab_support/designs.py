"""Designs for the tests of the lab's measurements."""

import random
from types import SimpleNamespace

from assay_lab.measure import CATALOG, build_package, measure_records
from assay_lab.measure.bundled import data_folder

EGFR = next(target for target in CATALOG if target["uniprot_id"] == "P00533")
PD_L1 = next(target for target in CATALOG if target["uniprot_id"] == "Q9NZQ7")


def sequence(name, residues, *, control=False, metadata=None):
    return {"name": name, "aa_string": residues, "control": control, "metadata": metadata or {}}


def submitted_designs():
    """The bundled FASTA as it was submitted, leading spaces of the names included."""
    lines = (data_folder() / "egfr_round1_designs.fasta").read_text(encoding="utf-8").splitlines()
    return [
        sequence(head.removeprefix(">"), residues)
        for head, residues in zip(lines[::2], lines[1::2], strict=True)
    ]


def invented_designs(count, *, seed=1, length=70):
    chance = random.Random(seed)
    return [
        sequence(f"design-{index}", "".join(chance.choices("ACDEFGHIKLMNPQRSTVWY", k=length)))
        for index in range(count)
    ]


def order(sequences, **changes):
    """The fields of an affinity experiment against EGFR by BLI, with changes."""
    return {
        "experiment_id": "LAB-001-001", "experiment_type": "affinity", "method": "bli", "target": EGFR,
        "sequences": sequences, "n_replicates": 3, "antigen_concentrations": None, "partial": False,
    } | changes  # fmt: skip


def measure(**fields):
    """Records and package of one experiment."""
    return SimpleNamespace(result_records=measure_records(**fields), package=build_package(**fields))
