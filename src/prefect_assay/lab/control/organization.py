"""A further organisation of a running lab, for tests that share one: nothing it does touches the others."""

from typing import Any

from prefect_assay.lab.control.controls import Controls
from prefect_assay.lab.control.views import FaultView


class LabOrganization(Controls):
    """An organisation with tokens and a clock of its own. Faults and journals are confined to it.

    Attributes:
        slug: its short name.
    """

    def __init__(self, lab: Controls, slug: str, seeded: dict[str, str]) -> None:
        self._lab = lab
        self.slug = slug
        self.base_url = lab.base_url
        self._adopt(seeded)

    def __repr__(self) -> str:
        return f"LabOrganization({self.slug!r}, {self.organization_id!r})"

    def sim(self, method: str, path: str, json: dict[str, Any] | None = None, /, **query: Any) -> Any:
        """Any call of the control surface; its JSON answer."""
        return self._lab.sim(method, path, json, **query)

    def _whose(self, organization_id: str | None) -> dict[str, str]:
        return super()._whose(organization_id or self.organization_id)

    def faults(self) -> list[FaultView]:
        """The route faults of this organisation since they were cleared, with their counts."""
        return [fault for fault in super().faults() if fault.get("organization_id") == self.organization_id]

    def deliveries(
        self, after: int = 0, *, experiment_id: str | None = None, update_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Webhook attempts of this organisation so far, oldest first; of one experiment or update."""
        items = super().deliveries(after, experiment_id=experiment_id, update_id=update_id)
        return [item for item in items if item["org_id"] == self.organization_id]

    def webhook_fault(self, action: str, count: int | None = None, **details: Any) -> None:
        """Ask for a webhook fault that hits only this organisation's deliveries."""
        super().webhook_fault(action, count, **{**self._whose(None), **details})

    def rotate_secret(
        self, secret: str | None, *, experiment_id: str | None = None, organization_id: str | None = None
    ) -> None:
        """Give this organisation, or one of its experiments, another webhook secret."""
        whose = organization_id or (None if experiment_id else self.organization_id)
        super().rotate_secret(secret, experiment_id=experiment_id, organization_id=whose)
