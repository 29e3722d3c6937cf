"""A test's handle on one organization of a running lab. Sends the commands of `commands` (lab/docs/lab.md)."""

import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Self, TypeVar, Unpack

import httpx

from assay_lab.control import commands
from assay_lab.control.commands import (
    ClockView,
    Command,
    Delays,
    FaultView,
    JournalEntry,
    Record,
    Reply,
)

Item = TypeVar("Item", bound=Mapping[str, Any])

# For plain HTTP on loopback: loading the system's certificates takes longer than most requests.
NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def plain_client(base_url: str, token: str, *, seconds: float) -> httpx.Client:
    """An HTTP client with a bearer token that ignores proxy settings."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=base_url, headers=headers, timeout=seconds, trust_env=False, verify=NO_TLS)


def drop_none(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


class PlacedFault:
    """A route fault in the lab's queue, known by its `id`. As a context manager it is removed at the end."""

    def __init__(self, controls: "Controls", number: int) -> None:
        self._controls = controls
        self.id = number

    def view(self) -> FaultView:
        """The fault as requested, with its counts."""
        return next(fault for fault in self._controls.faults() if fault["id"] == self.id)

    @property
    def used(self) -> int:
        """How many requests it has hit."""
        return self.view()["used"]

    def remove(self) -> None:
        """Remove it from the queue."""
        self._controls._send(commands.REMOVE_FAULT, fault_id=self.id)  # noqa: SLF001 - one module

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Controls:
    """One organization's tokens and its part of the control surface."""

    _confined = False

    base_url: str  # address of the service, without /api/v1
    token: str  # a member's token
    viewer_token: str  # a read-only token
    partner_token: str  # a partner's token
    organization_id: str  # the tokens' organization

    def sim(self, method: str, path: str, json: Record | None = None, /, **query: Any) -> Any:
        """Any call of the control surface; its JSON answer."""
        raise NotImplementedError

    def _send(self, command: Command[Reply], /, **fields: Any) -> Reply:
        """Send a command. A field that its path names goes there, the others into the body or the query."""
        path = command.path.format_map(fields)
        rest = {name: value for name, value in fields.items() if f"{{{name}}}" not in command.path}
        if command.method == "POST":
            reply: Reply = self.sim(command.method, path, rest)
        else:
            reply = self.sim(command.method, path, **rest)
        return reply

    def _adopt(self, seeded: dict[str, str]) -> None:
        self.organization_id = seeded["organization_id"]
        self.token, self.viewer_token = seeded["member_token"], seeded["viewer_token"]
        self.partner_token = seeded["partner_token"]

    def _whose(self, organization_id: str | None) -> dict[str, str]:
        """The organization that a call names; without one the lab takes the default one, or all."""
        return drop_none(
            organization_id=organization_id or (self.organization_id if self._confined else None)
        )

    def _own(self, items: list[Item], field: str) -> list[Item]:
        """The items that belong to this handle; `field` names their organization."""
        return [item for item in items if not self._confined or item.get(field) == self.organization_id]

    def http(self, token: str | None = None) -> httpx.Client:
        """A plain HTTP client for the API, by default with the member's token."""
        return plain_client(f"{self.base_url}/api/v1", token or self.token, seconds=30)

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        until: str | None = None,
        organization_id: str | None = None,
    ) -> ClockView:
        """Move the clock by the sum of the spans, or `until` "next", "idle" or a time; returns when all is delivered."""
        span = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
        body = span if until is None else {"until": until}
        return self._send(commands.ADVANCE_CLOCK, **body, **self._whose(organization_id))

    def clock(self, organization_id: str | None = None) -> ClockView:
        """Lab time and mode."""
        return self._send(commands.CLOCK, **self._whose(organization_id))

    def set_clock(
        self,
        mode: Literal["manual", "scaled", "auto"],
        *,
        seconds_per_day: float | None = None,
        organization_id: str | None = None,
    ) -> ClockView:
        """Set the mode: `manual` waits for `advance`, `scaled` takes `seconds_per_day`, `auto` jumps to each step."""
        rate = drop_none(seconds_per_day=seconds_per_day)
        return self._send(commands.SET_CLOCK, mode=mode, **rate, **self._whose(organization_id))

    def plan(
        self,
        *,
        experiment_id: str | None = None,
        organization_id: str | None = None,
        **delays: Unpack[Delays],
    ) -> Delays:
        """Fix delays of one experiment, or of all that the organization orders from now on; absent delays are drawn."""
        whose = self._whose(organization_id) if experiment_id is None else {"experiment_id": experiment_id}
        return self._send(commands.FIX_DELAYS, **delays, **whose)

    def fault(
        self,
        action: str,
        path: str = "*",
        method: str = "*",
        *,
        organization_id: str | None = None,
        **details: Any,
    ) -> PlacedFault:
        """Queue a route fault (lab/docs/lab.md has the table of actions) for a `path` with `*`, with or without /api/v1.

        Details are `count`, `after`, `probability`, `seed`, `status`, `seconds`, `retry_after`, `error`, `fields` and
        `keep_bytes`.
        """
        fields = {"action": action, "path": path, "method": method, **details, **self._whose(organization_id)}
        return PlacedFault(self, self._send(commands.ADD_FAULT, **fields)["id"])

    def faults(self) -> list[FaultView]:
        """All route faults since they were cleared, with their counts."""
        return self._own(self._send(commands.FAULTS)["items"], "organization_id")

    def clear_faults(self, organization_id: str | None = None) -> None:
        """Drop all faults, of routes, webhooks and payments."""
        self._send(commands.CLEAR_FAULTS, **self._whose(organization_id))

    def event(self, event: str, experiment_id: str | None = None, **details: Any) -> Record:
        """Trigger an event at the lab's side (lab/docs/lab.md); an experiment's status and results_status after it."""
        return self._send(
            commands.TRIGGER_EVENT, event=event, **drop_none(experiment_id=experiment_id), **details
        )

    def journal(
        self, after: int = 0, *, method: str = "*", path: str = "*", organization_id: str | None = None
    ) -> list[JournalEntry]:
        """Requests to the API with a number above `after`, oldest first; `path` is a pattern as in `fault`."""
        query = {"after": after, "method": method, "path": path, **self._whose(organization_id)}
        return self._send(commands.JOURNAL, **query)["items"]

    def fill(
        self,
        experiments: int,
        *,
        stage: Literal["draft", "submitted", "ordered"] = "draft",
        sequences: int = 1,
        organization_id: str | None = None,
    ) -> Sequence[str]:
        """Make many experiments of so many sequences without requests; they proceed from their `stage`. Their ids."""
        fields = {"experiments": experiments, "stage": stage, "sequences": sequences}
        return self._send(commands.FILL, **fields, **self._whose(organization_id))["experiment_ids"]

    def rail(self, method: str) -> Record:
        """What the lab offers on a payment rail, by its wire word: for `x402-exact` its `network`, `asset` and so on."""
        return self._send(commands.RAIL, method=method)

    def payment_fault(self, action: str, **details: Any) -> None:
        """Add a payment fault. Details are `rail`, `count` (default any), `after`, `organization_id`, `invoice_id`."""
        self._send(commands.ADD_PAYMENT_FAULT, action=action, **self._whose(None) | details)

    def payment_faults(self) -> list[Record]:
        """All payment faults, with their counts."""
        return self._own(self._send(commands.PAYMENT_FAULTS)["items"], "organization_id")

    def end_payment_faults(self) -> None:
        """Drop all payment faults."""
        self._send(commands.CLEAR_PAYMENT_FAULTS, **self._whose(None))

    def deliveries(
        self, after: int = 0, *, experiment_id: str | None = None, update_id: str | None = None
    ) -> list[Record]:
        """Webhook attempts so far, oldest first; of one experiment or update."""
        about = drop_none(experiment_id=experiment_id, update_id=update_id)
        return self._own(self._send(commands.DELIVERIES, after=after, **about)["items"], "org_id")

    def outbox(self) -> list[Record]:
        """Deliveries still to be made, held ones too."""
        return self._own(self._send(commands.OUTBOX)["items"], "org_id")

    def webhook_fault(self, action: str, count: int | None = None, **details: Any) -> None:
        """Add a webhook fault: drop, double, reorder, delay, bad_signature, old_secret or stale.

        `count` is 1 by default, or unlimited with a `probability`. Details are `after`, `probability`, `seed`,
        `organization_id`, `experiment_id`, `webhook_id` and `seconds`.
        """
        fields = {"action": action, **drop_none(count=count), **self._whose(None), **details}
        self._send(commands.ADD_WEBHOOK_FAULT, **fields)

    def webhook_faults(self) -> list[Record]:
        """All webhook faults, with their counts."""
        return self._own(self._send(commands.WEBHOOK_FAULTS)["items"], "organization_id")

    def redeliver(self, delivery: int | str, *, identical: bool = False) -> list[Record]:
        """Send an attempt (number or delivery id) again, `identical` with its signature; the new attempts."""
        return self._send(commands.REDELIVER, number=delivery, identical=identical)["items"]

    def release(self, experiment_id: str | None = None) -> int:
        """Deliver what `delay` and `reorder` hold back; how many deliveries."""
        return self._send(commands.RELEASE, **drop_none(experiment_id=experiment_id))["released"]


class LabOrganization(Controls):
    """A further organization of a running lab. Its clock, faults and journals are confined to it."""

    _confined = True

    def __init__(self, lab: Controls, slug: str, seeded: dict[str, str]) -> None:
        self._lab = lab
        self.slug = slug
        self.base_url = lab.base_url
        self._adopt(seeded)

    def __repr__(self) -> str:
        return f"LabOrganization({self.slug!r}, {self.organization_id!r})"

    def sim(self, method: str, path: str, json: Record | None = None, /, **query: Any) -> Any:
        """Any call of the control surface; its JSON answer."""
        return self._lab.sim(method, path, json, **query)
