"""The bundled measurements: eleven binders against human EGFR by BLI (data/egfr_round1, MIT licence).

Numbers are handed on as they stand in the files. Nothing is imputed: the string `null` stays None.
"""

import csv
import io
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

_RAW_NAME = re.compile(r"^_(?P<name>.+)_(?P<replicate>\d+)_(?P<concentration>[\d.]+)\.csv$")


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured replicate. K_D in M, k_on in 1/(M s), k_off in 1/s."""

    name: str
    replicate: int
    expression: str
    binding: str
    binding_strength: str
    kd: float | None
    kon: float | None
    koff: float | None


def data_folder() -> Traversable:
    """Where the bundled files lie."""
    return resources.files("prefect_assay.lab") / "data"


def read_table(text: str) -> list[dict[str, str | None]]:
    """A table of the data package: an optional byte order mark, quoted cells, the string null for nothing."""
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    return [{key: None if cell == "null" else cell for key, cell in row.items()} for row in rows]


@cache
def measured_binders() -> dict[str, tuple[Measured, ...]]:
    """Residues to measured replicates, in the order of the table."""
    text = (data_folder() / "egfr_round1" / "egfr_round1_summary.csv").read_text(encoding="utf-8")
    found: dict[str, list[Measured]] = {}
    for row in read_table(text):
        found.setdefault(str(row["sequence"]), []).append(
            Measured(
                name=str(row["name"]),
                replicate=int(str(row["replicate"])),
                expression=str(row["expression"]),
                binding=str(row["binding"]),
                binding_strength=str(row["binding_strength"]),
                kd=_number(row["kd"]),
                kon=_number(row["kon"]),
                koff=_number(row["koff"]),
            )
        )
    return {residues: tuple(rows) for residues, rows in found.items()}


def _number(cell: str | None) -> float | None:
    return None if cell is None else float(cell)


@cache
def raw_index() -> dict[tuple[str, int, float], Traversable]:
    """(name in the table, replicate, concentration in nM) to the raw sensorgram, where one exists."""
    found = {}
    for file in (data_folder() / "egfr_round1" / "raw_data").iterdir():
        if match := _RAW_NAME.match(file.name):
            key = (match["name"], int(match["replicate"]), float(match["concentration"]))
            found[key] = file
    return found


@cache
def raw_curve(name: str, replicate: int, concentration: float) -> tuple[list[float], list[float]] | None:
    """Times in s and responses in nm of one measured sensorgram, or None when there is none."""
    file = raw_index().get((name, replicate, concentration))
    if file is None:
        return None
    rows = list(csv.reader(io.StringIO(file.read_text(encoding="utf-8"))))[1:]
    return [float(row[0]) for row in rows], [float(row[1]) for row in rows]
