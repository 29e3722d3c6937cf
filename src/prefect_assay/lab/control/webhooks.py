"""What a test's handle on the lab can do with webhooks: faults, the delivery journal, redelivery."""

from typing import Any


def given(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


class WebhookControls:
    """Methods of `LocalLab`; they call the control surface, which docs/lab.md describes."""

    def sim(self, method: str, path: str, json: dict[str, Any] | None = None, /, **query: Any) -> Any:
        """Any call of the control surface; its JSON answer."""
        raise NotImplementedError

    def _items(self, path: str, /, **query: Any) -> list[Any]:
        items: list[Any] = self.sim("GET", path, **given(**query))["items"]
        return items

    def deliveries(
        self, after: int = 0, *, experiment_id: str | None = None, update_id: str | None = None
    ) -> list[dict[str, Any]]:
        """Webhook attempts so far, oldest first; of one experiment or update."""
        return self._items("/deliveries", after=after, experiment_id=experiment_id, update_id=update_id)

    def outbox(self) -> list[dict[str, Any]]:
        """Deliveries still to be made, held ones too."""
        return self._items("/outbox")

    def webhook_fault(self, action: str, count: int | None = None, **details: Any) -> None:
        """Ask for a webhook fault: drop, double, reorder, delay, bad_signature, old_secret or stale.

        Args:
            action: what happens.
            count: how many attempts it hits; 1 unless told, and no limit with a `probability`.
            details: `after`, `probability`, `seed`, `organization_id`, `experiment_id`, `webhook_id`, `seconds`.
        """
        self.sim("POST", "/webhook-faults", {"action": action, **given(count=count), **details})

    def webhook_faults(self) -> list[dict[str, Any]]:
        """All webhook faults asked for, with their `hits`."""
        return self._items("/webhook-faults")

    def redeliver(
        self,
        delivery: int | str | None = None,
        *,
        update_id: str | None = None,
        experiment_id: str | None = None,
        identical: bool = False,
    ) -> list[dict[str, Any]]:
        """Send a delivery, an update or an experiment's latest update again; the attempts made at once.

        Args:
            delivery: number or delivery id of an attempt.
            update_id: an update instead.
            experiment_id: an experiment's latest update instead.
            identical: the same bytes and signature again, as a replay would be.
        """
        if delivery is not None:
            answer = self.sim("POST", f"/deliveries/{delivery}/redeliver", {"identical": identical})
        else:
            about = given(update_id=update_id, experiment_id=experiment_id)
            answer = self.sim("POST", "/redeliver", about)
        items: list[dict[str, Any]] = answer["items"]
        return items

    def release(self, experiment_id: str | None = None) -> int:
        """Deliver what `delay` and `reorder` hold back; how many deliveries."""
        about = given(experiment_id=experiment_id)
        released: int = self.sim("POST", "/deliveries/release", about)["released"]
        return released

    def rotate_secret(
        self, secret: str | None, *, experiment_id: str | None = None, organization_id: str | None = None
    ) -> None:
        """Give an experiment or an organisation another webhook secret."""
        whose = given(experiment_id=experiment_id, organization_id=organization_id)
        self.sim("POST", "/webhook-secrets", {"secret": secret, **whose})
