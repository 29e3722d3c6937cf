"""The machine payment rails: a module and a line of `RAILS` for each. They must not know storage, requests or experiments."""

from typing import Any, Final

from assay_lab.kernel.settings import LabSettings
from assay_lab.rails.mpp import MppRail
from assay_lab.rails.rail import LabRail
from assay_lab.rails.x402 import X402Rail
from assay_lab.vocabulary import PaymentMethod

RAILS: Final[tuple[LabRail[Any], ...]] = (X402Rail(), MppRail())


def get_rail(method: str) -> LabRail[Any] | None:
    """The rail of a payment method; None for a word that is not registered."""
    return next((rail for rail in RAILS if rail.method == method), None)


def require_rail(method: PaymentMethod) -> LabRail[Any]:
    """The rail of a machine payment method.

    Raises:
        LookupError: the method is in the vocabulary and has no rail: a fault of the lab, not of a request.
    """
    rail = get_rail(method)
    if rail is None:
        raise LookupError(f"the payment method {method} has no rail in RAILS of assay_lab.rails")
    return rail


def rail_settings(settings: LabSettings, rail: LabRail[Any]) -> Any:
    """What the lab offers on a rail; its defaults are made once."""
    if rail.method not in settings.rails:
        settings.rails.setdefault(rail.method, rail.make_settings())
    return settings.rails[rail.method]
