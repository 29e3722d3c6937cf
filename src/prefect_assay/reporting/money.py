"""How amounts are shown to people."""

from prefect_assay.payments.terms import dollars


def usd(cents: int | None) -> str:
    """`123450` becomes `1,234.50 USD`; None is an amount that nobody knows yet."""
    return "unknown" if cents is None else dollars(cents)
