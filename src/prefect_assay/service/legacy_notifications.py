"""Reads the status-change notifications of the earlier interface variant (contract 9.4) as deliveries.

The contract spells none of the fields, so several spellings are accepted. Without a time the same notification wakes
only once, because it could be replayed without end.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from itertools import product
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from prefect_assay.service.models.update import Delivery, DeliveryData
from prefect_assay.service.models.vocabulary import snake_case

EVENT: Final = "status_change"
_EXPERIMENT: Final = ("experiment_id", "experimentId")
_PREVIOUS: Final = ("previous_status", "previousStatus", "old_status", "oldStatus")
_NEW: Final = ("new_status", "newStatus")
_TIME: Final = ("timestamp", "created_at", "createdAt")
_INNER: Final = "data"
_MOMENT: Final = TypeAdapter(datetime)


def status_change(body: bytes, now: datetime) -> tuple[Delivery, bool] | None:
    """Return the notification as a delivery, and whether it has a time; None for any other body. Never raises.

    `body` is the raw body, whose signature has been checked; `now` is the delivery's time where the body has none.
    """
    whole, inner = _parse_body_and_data(body)
    fields = {**whole, **inner}
    experiment_id, new = _text(fields, _EXPERIMENT), _text(fields, _NEW)
    if not experiment_id or not new or "update_id" in fields:
        return None
    previous = snake_case(_text(fields, _PREVIOUS) or "unknown")
    # The same body is the same notification: it has no id of its own.
    key = hashlib.sha256(body).hexdigest()[:32]
    data = DeliveryData(
        experiment_id=experiment_id,
        experiment_code=_text(fields, ("experiment_code", "experimentCode")),
        update_id=f"{EVENT}-{key}",
        name=f"{previous} to {snake_case(new)}",
        update_type=EVENT,
    )
    moment = _moment(inner, whole)
    return Delivery(delivery_id=key, event=EVENT, timestamp=moment or now, data=data), moment is not None


def _parse_body_and_data(body: bytes) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The body's object and its `data` object; empty where they are none."""
    try:
        whole = from_json(body)  # the standard library's nesting depth follows the recursion limit
    except ValueError:
        return {}, {}
    if not isinstance(whole, dict):
        return {}, {}
    inner = whole.get(_INNER)
    return whole, inner if isinstance(inner, dict) else {}


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), None)


def _moment(*objects: Mapping[str, Any]) -> datetime | None:
    for name, fields in product(_TIME, objects):
        try:
            return _MOMENT.validate_python(fields[name])
        except (KeyError, ValidationError):
            continue
    return None
