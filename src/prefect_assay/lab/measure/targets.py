"""The lab's catalog of antigens (contract 2.11).

UniProt accessions, organisms and molecule names are real; vendor, catalog numbers, purities and prices are
invented and say so. A record without `pricing` has no self-service price: an estimate for it is incomplete and
its experiments need a quote (contract 2.5). This module must not know requests, storage or measurements.
"""

import uuid
from typing import Any, Final

VENDOR: Final = "Imaginary Antigens (local lab)"

# Fixed namespace: a target keeps its id over restarts, databases and versions.
_NAMESPACE: Final = uuid.UUID("6f1d3c52-6a0e-5c9b-9a44-0b7b3a4f2c10")


def _per_sequence(cents: int) -> dict[str, Any]:
    return {"type": "per_sequence", "price_per_sequence_cents": cents}


def _per_lot(*lots: tuple[int, int]) -> dict[str, Any]:
    return {
        "type": "per_broken_lot",
        "lot_prices": [{"num_sequences": count, "price_usdcent": cents} for count, cents in lots],
    }


def _target(
    number: int,
    name: str,
    uniprot_id: str,
    description: str,
    *,
    pricing: dict[str, Any] | None,
    organism: str = "Homo sapiens",
    molecular_weight_kda: float,
) -> dict[str, Any]:
    catalog_number = f"LOCAL-{number:03d}"
    return {
        "id": str(uuid.uuid5(_NAMESPACE, catalog_number)),
        "name": name,
        "vendor_name": VENDOR,
        "catalog_number": catalog_number,
        "url": f"https://antigens.example/{catalog_number}",
        "uniprot_id": uniprot_id,
        "pricing": pricing,
        "details": {
            "description": description,
            "organism": organism,
            "molecular_weight": f"{molecular_weight_kda:g} kDa",
            "purity": 95.0,
        },
    }


CATALOG: Final[tuple[dict[str, Any], ...]] = (
    _target(
        1,
        "Human EGFR, extracellular domain",
        "P00533",
        "Epidermal growth factor receptor, extracellular domain",
        pricing=_per_sequence(4_000),
        molecular_weight_kda=69.0,
    ),
    _target(
        2,
        "Human PD-L1, extracellular domain",
        "Q9NZQ7",
        "Programmed cell death 1 ligand 1, extracellular domain",
        pricing=_per_sequence(3_500),
        molecular_weight_kda=25.8,
    ),
    _target(
        3,
        "Human HER2, extracellular domain",
        "P04626",
        "Receptor tyrosine-protein kinase erbB-2, extracellular domain",
        pricing=_per_lot((12, 54_000), (24, 96_000), (48, 168_000), (96, 288_000)),
        molecular_weight_kda=70.5,
    ),
    _target(
        4,
        "Human IL-7 receptor alpha, extracellular domain",
        "P16871",
        "Interleukin-7 receptor subunit alpha, extracellular domain",
        pricing=_per_sequence(4_500),
        molecular_weight_kda=26.2,
    ),
    _target(
        5,
        "SARS-CoV-2 spike RBD",
        "P0DTC2",
        "Spike glycoprotein, receptor-binding domain",
        pricing=_per_sequence(3_000),
        organism="Severe acute respiratory syndrome coronavirus 2",
        molecular_weight_kda=25.9,
    ),
    _target(
        6,
        "Human TNF-alpha",
        "P01375",
        "Tumor necrosis factor, soluble form",
        pricing=_per_lot((24, 72_000), (96, 240_000)),
        molecular_weight_kda=17.4,
    ),
    _target(
        7,
        "Human IL-6",
        "P05231",
        "Interleukin-6",
        pricing=_per_sequence(3_200),
        molecular_weight_kda=20.8,
    ),
    _target(
        8,
        "Human VEGF-A",
        "P15692",
        "Vascular endothelial growth factor A",
        pricing=_per_sequence(3_800),
        molecular_weight_kda=19.2,
    ),
    _target(
        9,
        "Human insulin receptor, extracellular domain",
        "P06213",
        "Insulin receptor, extracellular domain; bought to order",
        pricing=None,
        molecular_weight_kda=105.0,
    ),
    _target(
        10,
        "Human transferrin receptor 1, extracellular domain",
        "P02786",
        "Transferrin receptor protein 1, extracellular domain; bought to order",
        pricing=None,
        molecular_weight_kda=75.6,
    ),
    _target(
        11,
        "Hen egg-white lysozyme",
        "P00698",
        "Lysozyme C; bought to order",
        pricing=None,
        organism="Gallus gallus",
        molecular_weight_kda=14.3,
    ),
)
