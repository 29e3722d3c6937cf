"""What a test's handle on the lab can do with machine payments: faults of the pay path, and what the rails offer."""

from typing import Any


class PaymentControls:
    """Methods of `LocalLab`; they call the control surface, which docs/lab.md describes."""

    def sim(self, method: str, path: str, json: dict[str, Any] | None = None, /, **query: Any) -> Any:
        """Any call of the control surface; its JSON answer."""
        raise NotImplementedError

    @property
    def mpp(self) -> dict[str, Any]:
        """What the lab offers on the mpp-spt rail: `method`, `network_id` and so on."""
        terms: dict[str, Any] = self.sim("GET", "/mpp")
        return terms

    def payment_fault(self, action: str, **details: Any) -> None:
        """Ask for a payment fault, such as always_402 or wrong_amount; it lasts until it is dropped.

        Args:
            action: what is wrong.
            details: `rail`, `count`, `after`, `organization_id`, `invoice_id`.
        """
        self.sim("POST", "/payment-faults", {"action": action, **details})

    def payment_faults(self) -> list[dict[str, Any]]:
        """All payment faults asked for, with their `hits`."""
        items: list[dict[str, Any]] = self.sim("GET", "/payment-faults")["items"]
        return items

    def end_payment_faults(self) -> None:
        """Drop all payment faults."""
        self.sim("DELETE", "/payment-faults")
