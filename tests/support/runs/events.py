"""Events as a Prefect server keeps them."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from prefect.client.orchestration import get_client


@dataclass(frozen=True)
class Stored:
    """One event of the server, without what Prefect adds."""

    id: str
    event: str
    resource: dict[str, str]
    related: list[dict[str, str]]
    payload: dict[str, Any]

    def roles(self) -> dict[str, str]:
        """The first resource of each role."""
        return {r["prefect.resource.role"]: r["prefect.resource.id"] for r in reversed(self.related)}


def stored_events(prefix: str = "assay.") -> list[Stored]:
    """All events of the last hour whose name begins with a prefix, oldest first."""
    now = datetime.now(UTC)
    query = {
        "filter": {
            "event": {"prefix": [prefix]},
            "occurred": {
                "since": (now - timedelta(hours=1)).isoformat(),
                "until": (now + timedelta(minutes=1)).isoformat(),
            },
            "order": "ASC",
        },
        "limit": 50,
    }
    with get_client(sync_client=True) as client:
        page = client.request("POST", "/events/filter", json=query).json()
        rows = list(page["events"])
        while page.get("next_page"):
            page = client._client.get(page["next_page"]).json()
            rows += page["events"]
    return [Stored(**{name: row[name] for name in Stored.__annotations__}) for row in rows]


def of_campaign(campaign_id: str) -> list[Stored]:
    """The events of one campaign."""
    return [e for e in stored_events() if e.payload.get("campaign_id") == campaign_id]


def names(events: list[Stored]) -> Counter[str]:
    """How many events of each kind there are."""
    return Counter(event.event for event in events)
