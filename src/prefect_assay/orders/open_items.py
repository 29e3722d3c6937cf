"""Open money of orders: to be paid, to be billed, or to be decided. Amounts are US cents without VAT."""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime

from prefect_assay.service.models.base import StoredModel
from prefect_assay.service.models.billing import usd


class OpenKind(StrEnum):
    """Why money is open. The values are labels of a metric, so they never change."""

    TO_PAY = "to_pay"
    TO_DELIVER = "to_deliver"
    QUOTE = "quote"
    TO_REFUND = "to_refund"
    TO_VOID = "to_void"
    UNSURE = "unsure"


WORDS: Final = {
    OpenKind.TO_PAY: "ordered, not paid",
    OpenKind.TO_DELIVER: "paid, not delivered",
    OpenKind.QUOTE: "quote waits",
    OpenKind.TO_REFUND: "canceled and paid",
    OpenKind.TO_VOID: "billed, must not be paid",
    OpenKind.UNSURE: "outcome unknown",
}


class OpenItem(StoredModel):
    """One sum. `amount_cents` is in US cents without VAT; None is not known yet. `url` is where a person acts on it.

    `surplus` if it is an experiment that was made in addition to the order's own.
    """

    kind: OpenKind
    campaign_id: str
    order_key: str
    experiment_id: str | None = None
    experiment_code: str | None = None
    amount_cents: int | None = None
    since: AwareDatetime
    until: AwareDatetime | None = None  # when a quote expires
    url: str | None = None
    remark: str | None = None  # what else is known, and what to do
    surplus: bool = False

    @property
    def name(self) -> str:
        """The experiment's code or id, or the order's key."""
        return self.experiment_code or self.experiment_id or f"order {self.order_key}"


class OpenMoney(StoredModel):
    """A list of open sums. `notes` say what could not be read; without `complete` items may be missing."""

    items: tuple[OpenItem, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True
    paid: dict[str, int] = {}  # noqa: RUF012 - pydantic copies it; what was paid by campaign, in US cents

    def cents(self, kind: OpenKind) -> int:
        """The sum of a kind, as far as its amounts are known."""
        return sum(item.amount_cents or 0 for item in self.items if item.kind is kind)

    def select_campaigns(self, campaigns: Iterable[str]) -> "OpenMoney":
        """The part of some campaigns."""
        wanted = set(campaigns)
        items = tuple(item for item in self.items if item.campaign_id in wanted)
        paid = {name: cents for name, cents in self.paid.items() if name in wanted}
        return self.model_copy(update={"items": items, "paid": paid})

    @property
    def line(self) -> str:
        """All sums in one line; empty if nothing is open."""
        return "; ".join(self._format_sums())

    def _format_sums(self) -> Iterator[str]:
        for kind, words in WORDS.items():
            found = [item for item in self.items if item.kind is kind]
            if not found:
                continue
            vague = sum(1 for item in found if item.amount_cents is None)
            if vague == len(found):
                yield f"{vague} {words}"
            else:
                more = f" and {vague} without an amount" if vague else ""
                yield f"{usd(self.cents(kind))}{more} {words}"


def merge_open_money(parts: Iterable[OpenMoney]) -> OpenMoney:
    """Several lists as one, the oldest first."""
    parts = list(parts)
    items = sorted((item for part in parts for item in part.items), key=lambda item: item.since)
    paid: Counter[str] = Counter()
    for part in parts:
        paid.update(part.paid)
    return OpenMoney(
        items=tuple(items),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        complete=all(part.complete for part in parts),
        paid=dict(paid),
    )
