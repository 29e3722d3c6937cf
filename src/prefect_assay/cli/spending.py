"""`prefect-assay spending`: the ledger of machine payments, and what counts against the rolling cap. Reads only."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table

from prefect_assay.cli.prefect_api import api_errors, load_block
from prefect_assay.payments import LedgerEntry
from prefect_assay.payments.ledger import COUNTED
from prefect_assay.payments.terms import dollars

if TYPE_CHECKING:
    from prefect_assay.blocks import SpendingPolicy

DEFAULT_DAYS: Final = 30
_SHOWN: Final = (
    "invoice_id",
    "rail",
    "state",
    "amount_cents",
    "recorded_at",
    "sent_at",
    "expires_at",
    "base_url",
    "network",
    "asset",
    "pay_to",
    "nonce",
    "experiment_id",
    "campaign_id",
    "receipt",
)


@dataclass(frozen=True, slots=True)
class Window:
    """What counts against the rolling cap.

    Attributes:
        days: its length.
        since: its beginning, in ISO 8601.
        counted_cents: what has cost money in it, or may have.
        cap_cents: the policy's cap; None without a policy, or when the policy has none.
        left_cents: what the cap still allows, never negative.
    """

    days: int
    since: str
    counted_cents: int
    cap_cents: int | None
    left_cents: int | None


def show_spending(policy: str | None, *, days: int | None, as_json: bool) -> None:
    """Print the ledger of the Prefect API in use.

    Raises:
        ConfigurationError: the policy block does not exist, or an entry cannot be read.
        ServiceUnavailable: the API does not answer.
    """
    with api_errors():
        from prefect_assay.blocks import SpendingPolicy
        from prefect_assay.tasks.ledger import PrefectLedger

        chosen = load_block(SpendingPolicy, policy) if policy else None
        entries = PrefectLedger().entries()
    window = window_of(entries, chosen, days=days, now=datetime.now(UTC))
    if as_json:
        payments = [entry.model_dump(mode="json", include=set(_SHOWN)) for entry in entries]
        print(json.dumps({"payments": payments, "window": asdict(window)}, indent=2))
        return
    console = Console(highlight=False)
    if entries:
        console.print(table(entries))
    console.print(sentence(window, any_payment=bool(entries)), markup=False)


def window_of(
    entries: Sequence[LedgerEntry], policy: "SpendingPolicy | None", *, days: int | None, now: datetime
) -> Window:
    """The sum of the window, and how it stands to the policy's cap."""
    length = days or (policy.rolling_days if policy else DEFAULT_DAYS)
    since = now - timedelta(days=length)
    counted = sum(e.amount_cents for e in entries if e.state in COUNTED and e.recorded_at >= since)
    cap = policy.rolling_cents if policy else None
    return Window(
        days=length,
        since=since.isoformat(timespec="seconds"),
        counted_cents=counted,
        cap_cents=cap,
        left_cents=None if cap is None else max(cap - counted, 0),
    )


def table(entries: Sequence[LedgerEntry]) -> Table:
    """One line per invoice, oldest first."""
    shown = Table()
    for name in ("When (UTC)", "Invoice", "Rail", "State"):
        shown.add_column(name, no_wrap=name == "When (UTC)", overflow="fold")
    shown.add_column("Amount", justify="right", no_wrap=True)
    shown.add_column("For", overflow="fold")
    shown.add_column("Good until (UTC)", no_wrap=True)
    for entry in entries:
        shown.add_row(*_cells(entry))
    return shown


def sentence(window: Window, *, any_payment: bool) -> str:
    """The sum in words."""
    if not any_payment:
        return "No machine payment is in the ledger."
    told = f"{dollars(window.counted_cents)} counted in the last {window.days} days"
    if window.cap_cents is None:
        return f"{told}."
    return f"{told}, of {dollars(window.cap_cents)} allowed: {dollars(window.left_cents or 0)} left."


def _cells(entry: LedgerEntry) -> tuple[Any, ...]:
    what = entry.campaign_id or entry.experiment_id or ""
    return (
        f"{entry.recorded_at:%Y-%m-%d %H:%M}",
        entry.invoice_id,
        entry.rail.value,
        entry.state.value,
        dollars(entry.amount_cents),
        what,
        f"{entry.expires_at:%Y-%m-%d %H:%M}",
    )
