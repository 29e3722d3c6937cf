"""The machine payment rails: challenges, and settlement without a chain or a provider.

They must not know storage, requests or experiments.
"""

__all__ = ["credentials", "mpp", "x402"]
