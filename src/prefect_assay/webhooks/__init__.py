"""The service's signed updates: secrets, signatures, and the receiver that turns a delivery into a wake-up.

Nothing here knows why a run waits, and nothing imports Prefect before it is needed.
"""

from prefect_assay.webhooks.signature import Proof, delivery_url, derive_secret, prove, sign, verify

__all__ = ["Proof", "delivery_url", "derive_secret", "prove", "sign", "verify"]
