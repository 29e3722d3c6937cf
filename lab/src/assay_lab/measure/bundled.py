"""The bundled data: eleven measured binders of human EGFR (MIT licence), and a catalog of antigens.

In the catalog, vendor, catalog numbers, purities and prices are invented; UniProt accessions and names are real.
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
NAMESPACE: Final = uuid.UUID("6f1d3c52-6a0e-5c9b-9a44-0b7b3a4f2c10")


@dataclass(frozen=True, slots=True)
class Replicate:
    """One replicate as reported: K_D in M, k_on in 1/(M s), k_off in 1/s; `source` is "measured", "model" or "landscape"."""

    number: int
    expression: str
    binding: str
    binding_strength: str
    kd: float | None
    kon: float | None
    koff: float | None
    source: str
    name: str = ""

    @property
    def binds(self) -> bool:
        """Whether constants were fitted."""
        return self.kon is not None and self.koff is not None


def data_folder() -> Traversable:
    """The folder of the bundled files."""
    return resources.files("assay_lab") / "data"


def _list_catalog() -> Iterator[dict[str, Any]]:
    for record in json.loads((data_folder() / "targets.json").read_text(encoding="utf-8")):
        number = record["catalog_number"]
        names = {"description", "organism", "molecular_weight", "sequence", "conjugated"} & record.keys()
        details = {name: record.pop(name) for name in sorted(names)}
        yield {
            "id": str(uuid.uuid5(NAMESPACE, number)),
            "name": record["name"],
            "vendor_name": VENDOR,
            "catalog_number": number,
            "url": f"https://antigens.example/{number}",
            "uniprot_id": record["uniprot_id"],
            "pricing": record["pricing"],
            "details": {**details, "purity": 95.0},
        }


CATALOG: Final = tuple(_list_catalog())
"""The lab's catalog of antigens (contract 2.11); a record without `pricing` has no self-service price."""


@cache
def measured_binders() -> dict[str, tuple[Replicate, ...]]:
    """Residues to measured replicates, in the order of the table."""
    text = (data_folder() / "egfr_round1" / "egfr_round1_summary.csv").read_text(encoding="utf-8")
    binders: dict[str, tuple[Replicate, ...]] = {}
    for row in csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))):
        called = (row["expression"], row["binding"], row["binding_strength"])
        kd, kon, koff = (None if row[name] == "null" else float(row[name]) for name in ("kd", "kon", "koff"))
        measured = Replicate(int(row["replicate"]), *called, kd, kon, koff, "measured", row["name"])
        binders[row["sequence"]] = (*binders.get(row["sequence"], ()), measured)
    return binders


@cache
def raw_index() -> dict[tuple[str, int, float], Traversable]:
    """(name in the table, replicate, concentration in nM) to the raw sensorgram, where one exists."""
    sensorgrams = {}
    for file in (data_folder() / "egfr_round1" / "raw_data").iterdir():
        if match := _RAW_NAME.match(file.name):
            key = (match["name"], int(match["replicate"]), float(match["concentration"]))
            sensorgrams[key] = file
    return sensorgrams


@cache
def raw_curve(name: str, replicate: int, concentration: float) -> tuple[list[float], list[float]] | None:
    """Times in s and responses in nm of one measured sensorgram, or None."""
    file = raw_index().get((name, replicate, concentration))
    if file is None:
        return None
    rows = list(csv.reader(io.StringIO(file.read_text(encoding="utf-8"))))[1:]
    return [float(row[0]) for row in rows], [float(row[1]) for row in rows]
