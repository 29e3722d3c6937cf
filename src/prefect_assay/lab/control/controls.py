"""What a test can do to one organisation of a running lab: move its clock, break its requests, read its journal."""

import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Literal, Self, Unpack

import httpx

from prefect_assay.lab.control.views import ClockView, Delays, FaultView, JournalEntry
from prefect_assay.lab.control.webhooks import WebhookControls, given

# A lab on loopback speaks plain http; reading the certificates of the world takes longer than a test.
_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def plain_client(base_url: str, token: str, *, seconds: float) -> httpx.Client:
    """An HTTP client with a bearer token that ignores proxy settings."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=base_url, headers=headers, timeout=seconds, trust_env=False, verify=_NO_TLS)


class PlacedFault:
    """A route fault in the lab's queue. As a context manager it is dropped at the end.

    Attributes:
        id: its number.
    """

    def __init__(self, controls: "Controls", number: int) -> None:
        self._controls = controls
        self.id = number

    def view(self) -> FaultView:
        """What was asked for, and what came of it."""
        return next(fault for fault in self._controls.faults() if fault["id"] == self.id)

    @property
    def used(self) -> int:
        """How many requests it has hit."""
        return self.view()["used"]

    def remove(self) -> None:
        """Drop it."""
        self._controls.sim("DELETE", f"/faults/{self.id}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class Controls(WebhookControls):
    """One organisation's tokens and its part of the control surface.

    Attributes:
        base_url: address of the service, without /api/v1.
        token: a member's token.
        viewer_token: a read-only token.
        partner_token: a partner's token.
        organization_id: the tokens' organisation.
    """

    base_url: str
    token: str
    viewer_token: str
    partner_token: str
    organization_id: str

    def _adopt(self, seeded: dict[str, str]) -> None:
        self.organization_id = seeded["organization_id"]
        self.token, self.viewer_token = seeded["member_token"], seeded["viewer_token"]
        self.partner_token = seeded["partner_token"]

    def _whose(self, organization_id: str | None) -> dict[str, str]:
        """The organisation that a call names; none means the default one, or all."""
        return given(organization_id=organization_id)

    def http(self, token: str | None = None) -> httpx.Client:
        """A plain HTTP client for the API, with the member's token unless told otherwise."""
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
        """Move the clock; returns when all that fell due has happened and is delivered.

        Args:
            days: lab days, and so on; they add up.
            hours: lab hours.
            minutes: lab minutes.
            seconds: lab seconds.
            until: instead of a span `"next"` (whatever the lab does next), `"idle"` or a time in ISO 8601.
            organization_id: whose clock.
        """
        span = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
        body = span if until is None else {"until": until}
        moved: ClockView = self.sim("POST", "/clock/advance", {**body, **self._whose(organization_id)})
        return moved

    def clock(self, organization_id: str | None = None) -> ClockView:
        """Lab time and mode."""
        view: ClockView = self.sim("GET", "/clock", **self._whose(organization_id))
        return view

    def set_clock(
        self,
        mode: Literal["manual", "scaled", "auto"],
        *,
        seconds_per_day: float | None = None,
        organization_id: str | None = None,
    ) -> ClockView:
        """Choose how the clock runs; lab time goes on from where it is.

        Args:
            mode: `manual` stands, `scaled` runs, `auto` jumps to whatever the lab does next.
            seconds_per_day: real seconds that a lab day takes when `scaled`.
            organization_id: whose clock.
        """
        body = given(mode=mode, seconds_per_day=seconds_per_day, **self._whose(organization_id))
        view: ClockView = self.sim("POST", "/clock/mode", body)
        return view

    def plan(
        self,
        *,
        experiment_id: str | None = None,
        organization_id: str | None = None,
        **delays: Unpack[Delays],
    ) -> Delays:
        """Fix delays of one experiment, or of all that the organisation orders from now on.

        Args:
            experiment_id: only this experiment.
            organization_id: whose experiments.
            **delays: `quote_minutes`, `review_minutes`, `window_days`, `hold_quote`, `hold_review`; what is absent
                is drawn as ever, so a call without any undoes an earlier one.
        """
        whose = self._whose(organization_id) if experiment_id is None else {"experiment_id": experiment_id}
        fixed: Delays = self.sim("POST", "/plan", {**delays, **whose})
        return fixed

    def fault(
        self,
        action: str,
        path: str = "*",
        method: str = "*",
        *,
        organization_id: str | None = None,
        **details: Any,
    ) -> PlacedFault:
        """Queue a route fault.

        Args:
            action: what happens, see the table in docs/lab.md.
            path: pattern with `*`, with or without /api/v1 in front.
            method: HTTP method, or `*`.
            organization_id: hits only requests with this organisation's tokens.
            **details: `count`, `after`, `probability`, `seed`, `status`, `seconds`, `retry_after`, `error`, `fields`,
                `keep_bytes`.

        Returns:
            The fault, which knows how often it struck.
        """
        body = {"action": action, "path": path, "method": method, **details, **self._whose(organization_id)}
        return PlacedFault(self, self.sim("POST", "/faults", body)["id"])

    def faults(self) -> list[FaultView]:
        """All route faults since they were cleared, with their counts."""
        return self._items("/faults")

    def clear_faults(self, organization_id: str | None = None) -> None:
        """Drop the faults."""
        self.sim("DELETE", "/faults", **self._whose(organization_id))

    def event(self, event: str, experiment_id: str | None = None, **details: Any) -> dict[str, Any]:
        """Make something happen at the lab's side.

        Args:
            event: see the table in docs/lab.md.
            experiment_id: which experiment; events of tokens and custom targets take none.
            **details: the event's own fields.

        Returns:
            An experiment's `status` and `results_status` afterwards.
        """
        body = {"event": event, **given(experiment_id=experiment_id), **details}
        outcome: dict[str, Any] = self.sim("POST", "/events", body)
        return outcome

    def journal(
        self, after: int = 0, *, method: str = "*", path: str = "*", organization_id: str | None = None
    ) -> list[JournalEntry]:
        """Requests to the API so far, oldest first.

        Args:
            after: only those with a higher number.
            method: only this HTTP method.
            path: only paths like this pattern, with or without /api/v1 in front.
            organization_id: only requests with this organisation's tokens.
        """
        whose = self._whose(organization_id)
        return self._items("/journal", after=after, method=method, path=path, **whose)

    def fill(
        self,
        experiments: int,
        *,
        stage: Literal["draft", "submitted", "ordered"] = "draft",
        sequences: int = 1,
        organization_id: str | None = None,
    ) -> Sequence[str]:
        """Make many experiments at once, without requests; their ids.

        Args:
            experiments: how many.
            stage: how far they are; from there on everything takes its course.
            sequences: how many each has.
            organization_id: whose they are.
        """
        body = {"experiments": experiments, "stage": stage, "sequences": sequences}
        made: list[str] = self.sim("POST", "/experiments", {**body, **self._whose(organization_id)})[
            "experiment_ids"
        ]
        return made

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
        return self._items("/payment-faults")

    def end_payment_faults(self) -> None:
        """Drop all payment faults."""
        self.sim("DELETE", "/payment-faults")
