"""The machine payment rails: challenges, and settlement without a chain or a provider.

They must not know storage, requests or experiments.
"""
