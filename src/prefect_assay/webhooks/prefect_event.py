"""Tells Prefect's automations about an update: one `assay.experiment.update` event per update, best effort.

Nothing relies on it. Prefect buffers events and swallows their errors, so an event is no basis for an answer to
the service; the wake-up is.
"""

from typing import Final
from uuid import UUID, uuid5

from prefect_assay.models.update import Delivery

EVENT: Final = "assay.experiment.update"
_NAMESPACE: Final = UUID("1c0f9d52-6a0b-5d5e-9a53-8f6f3a0c7f11")


def event_id(delivery: Delivery) -> UUID:
    """The same update gives the same id, and Prefect keeps an event id once."""
    return uuid5(_NAMESPACE, f"{delivery.data.experiment_id}/{delivery.data.update_id}")


def announce(delivery: Delivery) -> None:
    """Emit the event. `occurred` stays the wall time: Prefect hides events in the future, and a lab's clock may run ahead."""
    from prefect.events import emit_event  # noqa: PLC0415 - a second of start-up that the receiver pays once

    data = delivery.data
    emit_event(
        event=EVENT,
        resource={
            "prefect.resource.id": f"assay.experiment.{data.experiment_id}",
            "prefect.resource.name": data.experiment_code or data.experiment_id,
        },
        payload={
            **data.model_dump(mode="json", exclude_none=True),
            "service_time": delivery.timestamp.isoformat(),
        },
        id=event_id(delivery),
    )
