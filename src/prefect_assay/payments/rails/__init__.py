"""The two machine payment rails: challenges, terms and credentials. A rail judges nothing and sends nothing."""

from prefect_assay.payments.rails.mpp import MppRail, TokenIssuer, TokenLimits
from prefect_assay.payments.rails.registry import Rail, rail_for
from prefect_assay.payments.rails.x402 import X402Rail

__all__ = ["MppRail", "Rail", "TokenIssuer", "TokenLimits", "X402Rail", "rail_for"]
