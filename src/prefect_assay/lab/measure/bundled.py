"""The bundled data: eleven measured binders of human EGFR (data/egfr_round1, MIT licence), and a catalog of antigens.

Measurements are handed on as they are in the files; the string `null` stays None. In the catalog UniProt accessions,
organisms and molecule names are real; vendor, catalog numbers, purities and prices are invented, and marked as such.
"""

import csv
import io
import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final

VENDOR: Final = "Imaginary Antigens (local lab)"
_RAW_NAME = re.compile(r"^_(?P<name>.+)_(?P<replicate>\d+)_(?P<concentration>[\d.]+)\.csv$")
# Fixed namespace: a target keeps its id over restarts, databases and versions.
_NAMESPACE: Final = uuid.UUID("6f1d3c52-6a0e-5c9b-9a44-0b7b3a4f2c10")


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
    """The folder of the bundled files."""
    return resources.files("prefect_assay.lab") / "data"


def read_table(text: str) -> list[dict[str, str | None]]:
    """A table of the data package: an optional byte order mark, quoted cells, the string null for nothing."""
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    return [{key: None if cell == "null" else cell for key, cell in row.items()} for row in rows]


def _catalog() -> Iterator[dict[str, Any]]:
    for record in json.loads((data_folder() / "targets.json").read_text(encoding="utf-8")):
        number = record["catalog_number"]
        details = {name: record.pop(name) for name in ("description", "organism", "molecular_weight")}
        yield {
            "id": str(uuid.uuid5(_NAMESPACE, number)),
            "name": record["name"],
            "vendor_name": VENDOR,
            "catalog_number": number,
            "url": f"https://antigens.example/{number}",
            "uniprot_id": record["uniprot_id"],
            "pricing": record["pricing"],
            "details": {**details, "purity": 95.0},
        }


CATALOG: Final = tuple(_catalog())
"""The lab's catalog of antigens (contract 2.11); a record without `pricing` has no self-service price."""


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
    """Times in s and responses in nm of one measured sensorgram, or None."""
    file = raw_index().get((name, replicate, concentration))
    if file is None:
        return None
    rows = list(csv.reader(io.StringIO(file.read_text(encoding="utf-8"))))[1:]
    return [float(row[0]) for row in rows], [float(row[1]) for row in rows]
