"""The machine payment rails: a module and a line of `RAILS` for each. Everything else asks this table.

A rail reads challenges, judges them by its limits and makes credentials; it sends no payment. `docs/developing.md` shows how
to add one.
"""

from typing import Final

from prefect_assay.errors import ConfigurationError
from prefect_assay.orders.payments.rails.mpp import MppRail
from prefect_assay.orders.payments.rails.rail import Rail
from prefect_assay.orders.payments.rails.x402 import X402Rail
from prefect_assay.service.models.vocabulary import PaymentMethod

__all__ = ["RAILS", "Rail", "can_pay_again", "get_rail_kind", "name_rail"]

RAILS: Final[tuple[type[Rail], ...]] = (X402Rail, MppRail)


def get_rail_kind(method: PaymentMethod) -> type[Rail]:
    """The rail of a payment method. Call it before anything is ordered or paid.

    Raises:
        ConfigurationError: the method is not a registered machine rail.
    """
    for kind in RAILS:
        if kind.method is method:
            return kind
    words = ", ".join(kind.method.value for kind in RAILS)
    raise ConfigurationError(
        f"{method.value} is not a machine rail of this installation, and nothing is paid by it. Choose one of {words}, or "
        f"{PaymentMethod.ASYNC_INVOICE.value}: then a person pays at the invoice's hosted page"
    )


def can_pay_again(method: PaymentMethod) -> bool:
    """Whether a payment with an unknown outcome may be repeated, because both credentials cannot be settled."""
    return any(kind.method is method and kind.is_repeatable for kind in RAILS)


def name_rail(method: PaymentMethod) -> str:
    """How an invoice is paid, for people; the word itself for a method that is not registered."""
    if method is PaymentMethod.ASYNC_INVOICE:
        return "hosted invoice, paid by a person"
    return next((f"{kind.title} ({method.value})" for kind in RAILS if kind.method is method), method.value)
