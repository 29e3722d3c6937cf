"""What an experiment costs (contract 2.5). Integer US cents, excluding VAT.

The figures are invented; the shape and the rule "no self-service price, no total" are the contract's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from prefect_assay.lab.store import Row, load
from prefect_assay.models.vocabulary import BINDING_TYPES, REPLICATES_DEFAULT, ExperimentType

PRICING_VERSION: Final = "v1_2025-01-01"

# Per sequence: one replicate, and every further replicate.
_ASSAY_CENTS: Final[dict[str, tuple[int, int]]] = {
    ExperimentType.AFFINITY: (11_900, 3_000),
    ExperimentType.SCREENING: (6_900, 2_000),
    ExperimentType.THERMOSTABILITY: (4_900, 1_200),
    ExperimentType.FLUORESCENCE: (4_500, 1_000),
    ExperimentType.EXPRESSION: (3_900, 900),
    ExperimentType.EPITOPE_BINNING: (14_900, 0),
    ExperimentType.ENZYME_ACTIVITY: (8_900, 2_500),
}
# What staff charge per sequence when a target has no self-service price and is quoted by hand.
_HAND_QUOTED_TARGET_CENTS: Final = 9_500


@dataclass(frozen=True, slots=True)
class Price:
    """The parts of a price. `materials` is None for assays without a target and for unpriced targets."""

    assay: dict[str, Any]
    target: dict[str, Any] | None
    materials: dict[str, Any] | None
    n_sequences: int

    @property
    def complete(self) -> bool:
        """Whether this is a price at all: an estimate without materials is not (contract 2.5)."""
        return self.target is None or self.materials is not None

    @property
    def total_cents(self) -> int:
        """Sum of the known parts; a price only when `complete`."""
        return int(self.assay["subtotal_cents"]) + int((self.materials or {}).get("subtotal_cents", 0))


def price(spec: Mapping[str, Any], n_sequences: int, target: Row | None) -> Price:
    """Price a checked specification."""
    kind = spec["experiment_type"]
    unit, addon = _ASSAY_CENTS[kind]
    replicates = spec.get("n_replicates") or REPLICATES_DEFAULT
    base_cents = unit * n_sequences
    addon_cents = addon * (replicates - 1) * n_sequences
    assay = {
        "name": kind,
        "base_cents": base_cents,
        "replicate_addon_cents": addon_cents,
        "subtotal_cents": base_cents + addon_cents,
    }
    if kind not in BINDING_TYPES or target is None:
        return Price(assay, None, None, n_sequences)
    named = {"name": target["name"], "target_catalog_id": target["id"]}
    return Price(
        assay, named, _materials(named, load(target, "pricing")["pricing"], n_sequences), n_sequences
    )


def _materials(
    target: dict[str, Any], pricing: dict[str, Any] | None, n_sequences: int
) -> dict[str, Any] | None:
    if pricing is None:
        return None
    if pricing["type"] == "per_sequence":
        cents = pricing["price_per_sequence_cents"]
        return {"target": target, "price_per_sequence_cents": cents, "subtotal_cents": cents * n_sequences}
    subtotal = _lots(pricing["lot_prices"], n_sequences)
    return {
        "target": target,
        "price_per_sequence_cents": -(-subtotal // n_sequences),
        "subtotal_cents": subtotal,
    }


def _lots(lots: list[dict[str, int]], n_sequences: int) -> int:
    """Cents of the lots opened: whole largest lots, then the smallest that covers the rest."""
    ordered = sorted(lots, key=lambda lot: lot["num_sequences"])
    largest = ordered[-1]
    whole, rest = divmod(n_sequences, largest["num_sequences"])
    cents = whole * largest["price_usdcent"]
    if rest:
        cents += next(lot["price_usdcent"] for lot in ordered if lot["num_sequences"] >= rest)
    return cents


def estimate(price: Price) -> dict[str, Any]:
    """The cost estimate response (contract 2.5)."""
    return {
        "breakdown": _breakdown(price) if price.complete else None,
        "incomplete": None if price.complete else _incomplete(price),
        "warnings": [],
    }


def _breakdown(price: Price) -> dict[str, Any]:
    body: dict[str, Any] = {"pricing_version": PRICING_VERSION, "assay": price.assay}
    if price.materials is not None:
        body["materials"] = price.materials
    return body | {"total_cents": price.total_cents}


def _incomplete(price: Price) -> dict[str, Any]:
    reason = "the target has no self-service pricing; submit the experiment to get a quote"
    return {
        "pricing_version": PRICING_VERSION,
        "assay": price.assay,
        "materials_unavailable": {"target": price.target, "reason": reason},
    }


def costs(price: Price) -> dict[str, Any]:
    """`costs` of an experiment that has no quote yet."""
    if price.complete:
        return {"type": "estimate", "breakdown": _breakdown(price)}
    return {"type": "incomplete_estimate", **_incomplete(price), "total_cents": None}


def line_items(price: Price) -> list[dict[str, Any]]:
    """The lines of a quote: as estimated, or with staff's price for a target without self-service pricing."""
    count = price.n_sequences
    lines = [_line(f"{price.assay['name']} assay", count, int(price.assay["subtotal_cents"]))]
    if price.target is not None:
        unpriced = {"subtotal_cents": _HAND_QUOTED_TARGET_CENTS * count}
        subtotal = int((price.materials or unpriced)["subtotal_cents"])
        lines.append(_line(f"target: {price.target['name']}", count, subtotal))
    return lines


def _line(description: str, quantity: int, total_cents: int) -> dict[str, Any]:
    return {
        "description": description,
        "quantity": quantity,
        "unit_price_cents": -(-total_cents // quantity),
        "total_cents": total_cents,
    }
