"""Prices an experiment (contract 2.5). Integer US cents, excluding VAT. Knows no database.

The figures are invented. The parts of an estimate have two published sets of field names; every part carries both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from assay_lab.kernel.settings import LabSettings
from assay_lab.kernel.store import Row, decode_row
from assay_lab.measure.assays import ASSAY_TYPES
from assay_lab.vocabulary import REPLICATES_DEFAULT

# Charged per sequence for a target without self-service price, which staff quote by hand.
_HAND_QUOTED_TARGET_CENTS: Final = 9_500
# Antigen for one sequence, where a target is sold by the lot.
_UG_PER_SEQUENCE: Final = 5


@dataclass(frozen=True, slots=True)
class Price:
    """The parts of a price. `materials` is None for assays without a target and for unpriced targets."""

    assay: dict[str, Any]
    target: dict[str, Any] | None
    materials: dict[str, Any] | None
    n_sequences: int
    warnings: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every part is priced: a target needs materials (contract 2.5)."""
        return self.target is None or self.materials is not None

    @property
    def total_cents(self) -> int:
        """Sum of the known parts; a price only when `complete`."""
        return int(self.assay["subtotal_cents"]) + int((self.materials or {}).get("subtotal_cents", 0))


def name_version(settings: LabSettings) -> str:
    """The pricing rules, shape `v<n>_<date>` (contract 2.5)."""
    return f"v1_{settings.pricing_v1.date().isoformat()}"


def has_pricing(settings: LabSettings, time: datetime) -> bool:
    """Whether there was pricing at that time; nothing older can be estimated (contract 4.2 and 9)."""
    return time >= settings.pricing_v1


def price_spec(spec: Mapping[str, Any], n_sequences: int, target: Row | None) -> Price:
    """Price a checked specification."""
    kind = spec["experiment_type"]
    assay = _price_assay(kind, spec.get("n_replicates"), n_sequences)
    warnings: list[str] = []
    if not ASSAY_TYPES[kind].takes_target or target is None:
        return Price(assay, None, None, n_sequences, tuple(warnings))
    named = {"name": target["name"], "target_catalog_id": target["id"]}
    priced = decode_row(target, "pricing")["pricing"]
    materials = _price_materials(named, priced, n_sequences) if priced else None
    warnings += _material_warnings(materials, priced, n_sequences)
    return Price(assay, named, materials, n_sequences, tuple(warnings))


def _price_assay(kind: str, replicates: int | None, n_sequences: int) -> dict[str, Any]:
    unit, addon = ASSAY_TYPES[kind].unit_cents, ASSAY_TYPES[kind].replicate_cents
    count = (replicates or REPLICATES_DEFAULT) if "n_replicates" in ASSAY_TYPES[kind].takes else 1
    base_cents = unit * n_sequences
    addon_cents = addon * (count - 1) * n_sequences
    return {
        "name": kind,
        "experiment_type": kind,
        "unit_price_cents": unit,
        "replicate_price_cents": addon,
        "n_replicates": count,
        "sequence_count": n_sequences,
        "base_cents": base_cents,
        "replicate_addon_cents": addon_cents,
        "subtotal_cents": base_cents + addon_cents,
    }


def _price_materials(target: dict[str, Any], priced: dict[str, Any], n_sequences: int) -> dict[str, Any]:
    if priced["type"] == "per_sequence":
        cents = priced["price_per_sequence_cents"]
        return {
            "type": "per_sequence",
            **_view_target(target),
            "price_per_sequence_cents": cents,
            "sequence_count": n_sequences,
            "subtotal_cents": cents * n_sequences,
        }
    lots = _choose_lots(priced["lot_prices"], n_sequences)
    subtotal = sum(lot["lot_price_cents"] * lot["quantity"] for lot in lots)
    return {
        "type": "per_broken_lot",
        **_view_target(target),
        "lots": lots,
        # contract 2.5 has one price per sequence: here the average, rounded up
        "price_per_sequence_cents": -(-subtotal // n_sequences),
        "sequence_count": n_sequences,
        "subtotal_cents": subtotal,
    }


def _view_target(target: dict[str, Any] | None) -> dict[str, Any]:
    """The target in the contract's field names (2.5), and in the other published ones."""
    if target is None:
        return {}
    return {"target": target, "target_id": target["target_catalog_id"], "target_name": target["name"]}


def _choose_lots(lots: list[dict[str, int]], n_sequences: int) -> list[dict[str, int]]:
    """The lots opened: whole largest lots, then the smallest that covers the rest."""
    ordered = sorted(lots, key=lambda lot: lot["num_sequences"])
    whole, rest = divmod(n_sequences, ordered[-1]["num_sequences"])
    opened = [(ordered[-1], whole)] if whole else []
    if rest:
        opened.append((next(lot for lot in ordered if lot["num_sequences"] >= rest), 1))
    return [
        {
            "lot_size_ug": lot["num_sequences"] * _UG_PER_SEQUENCE,
            "lot_price_cents": lot["price_usdcent"],
            "quantity": quantity,
        }
        for lot, quantity in opened
    ]


def _material_warnings(
    materials: dict[str, Any] | None, priced: dict[str, Any] | None, n_sequences: int
) -> list[str]:
    if materials is None or priced is None:
        return ["this is not a price: the target has no self-service pricing"]
    if materials["type"] == "per_sequence":
        return []
    covered = sum(lot["lot_size_ug"] * lot["quantity"] for lot in materials["lots"]) // _UG_PER_SEQUENCE
    if covered == n_sequences:
        return []
    return [
        f"the target is sold by the lot: the lots are enough for {covered} sequences, not only {n_sequences}"
    ]


def view_estimate(price: Price, pricing_version: str) -> dict[str, Any]:
    """The cost estimate response (contract 2.5)."""
    return {
        "breakdown": _view_breakdown(price, pricing_version) if price.complete else None,
        "incomplete": None if price.complete else _view_incomplete(price, pricing_version),
        "warnings": list(price.warnings),
    }


def _view_breakdown(price: Price, pricing_version: str) -> dict[str, Any]:
    body: dict[str, Any] = {"pricing_version": pricing_version, "assay": price.assay}
    if price.materials is not None:
        body["materials"] = price.materials
    return body | {"total_cents": price.total_cents}


def _view_incomplete(price: Price, pricing_version: str) -> dict[str, Any]:
    reason = "the target has no self-service pricing; submit the experiment to get a quote"
    return {
        "pricing_version": pricing_version,
        "assay": price.assay,
        "materials_unavailable": {**_view_target(price.target), "reason": reason},
    }


def view_costs(price: Price, pricing_version: str) -> dict[str, Any]:
    """`costs` of an experiment that has no quote yet."""
    if price.complete:
        return {"type": "estimate", "breakdown": _view_breakdown(price, pricing_version)}
    return {"type": "incomplete_estimate", **_view_incomplete(price, pricing_version), "total_cents": None}


def line_items(price: Price) -> list[dict[str, Any]]:
    """The lines of a quote: as estimated, or at the staff price for a target without self-service pricing."""
    count = price.n_sequences
    addon = int(price.assay["replicate_addon_cents"] or 0)
    lines = [_make_line(f"{price.assay['name']} assay", count, int(price.assay["subtotal_cents"]) - addon)]
    if addon:
        lines.append(_make_line("replicates", count, addon))
    if price.target is not None:
        unpriced = {"subtotal_cents": _HAND_QUOTED_TARGET_CENTS * count}
        subtotal = int((price.materials or unpriced)["subtotal_cents"])
        lines.append(_make_line(f"target: {price.target['name']}", count, subtotal))
    return lines


def _make_line(description: str, quantity: int, total_cents: int) -> dict[str, Any]:
    return {
        "description": description,
        "quantity": quantity,
        "unit_price_cents": -(-total_cents // quantity),
        "total_cents": total_cents,
    }
