"""What is about to be ordered, written down before it is: a campaign's cap counts it, and a crash cannot hide it.

One Prefect variable per order, `assay_order_<campaign>_<order key>`, the campaign as a digest. Several runs of one
campaign, and campaigns beside them, see the same sum. No secret stands in it, and the service stays the truth: an
intent says only that an experiment may exist, never that it does.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from pydantic import AwareDatetime

from prefect_assay.errors import BudgetExceeded
from prefect_assay.models.base import Model
from prefect_assay.payments.api import address
from prefect_assay.payments.terms import dollars
from prefect_assay.tasks.ledger import VariableStore

# A create that was sent this long ago is listed by now, or never was handled.
_IN_FLIGHT: Final = timedelta(minutes=10)


class OrderIntent(Model):
    """One order of a campaign, in US cents without VAT.

    Attributes:
        campaign_id: the campaign.
        order_key: the order.
        amount_cents: what it commits the campaign to; 0 while its quote is still to come.
        campaign_cap_cents: what the campaign was allowed to come to with it.
        sent_at: when the create was about to be sent; None when the service has refused it since.
    """

    campaign_id: str
    order_key: str
    amount_cents: int
    campaign_cap_cents: int
    sent_at: AwareDatetime | None = None


class CampaignIntents:
    """The intents of one campaign at one service."""

    def __init__(self, base_url: str, campaign_id: str) -> None:
        self._campaign_id = campaign_id
        digest = sha256(f"{len(campaign_id)}:{campaign_id}{address(base_url)}".encode()).hexdigest()[:16]
        self._store = VariableStore(f"assay_order_{digest}_")

    def of(self, order_key: str) -> OrderIntent | None:
        """The intent of an order."""
        text = self._store.read(order_key)
        return None if text is None else OrderIntent.model_validate_json(text)

    def sending(self, order_key: str, amount_cents: int, cap_cents: int) -> bool:
        """Note that a create is about to be sent; True when an earlier one may be on its way.

        Raises:
            BudgetExceeded: the campaign would pass its cap; nothing is noted.
        """
        now = datetime.now(UTC)
        before = self._put(order_key, amount_cents, cap_cents, lambda _: now)
        return bool(before and before.sent_at and now - before.sent_at < _IN_FLIGHT)

    def commit(self, order_key: str, amount_cents: int, cap_cents: int) -> None:
        """Note what an order is about to cost, before its quote is accepted.

        Raises:
            BudgetExceeded: the campaign would pass its cap; nothing is noted.
        """
        self._put(order_key, amount_cents, cap_cents, lambda before: before.sent_at if before else None)

    def withdraw(self, order_key: str) -> None:
        """The service has refused the order for certain, or its quote has come to nothing: it costs nothing."""
        with self._store.locked():
            before = self.of(order_key)
            if before is not None:
                free = before.model_copy(update={"amount_cents": 0, "sent_at": None})
                self._store.replace(order_key, free.model_dump_json())

    def _put(
        self,
        order_key: str,
        amount_cents: int,
        cap_cents: int,
        sent_at: Callable[[OrderIntent | None], datetime | None],
    ) -> OrderIntent | None:
        """Write first and sum up then: of two that race without a lock, at least one sees the other."""
        with self._store.locked():
            before = self.of(order_key)
            intent = OrderIntent(
                campaign_id=self._campaign_id,
                order_key=order_key,
                amount_cents=amount_cents,
                campaign_cap_cents=max(cap_cents, before.campaign_cap_cents if before else 0),
                sent_at=sent_at(before),
            )
            if before is None:
                self._store.create(order_key, intent.model_dump_json())
            else:
                self._store.replace(order_key, intent.model_dump_json())
            total = sum(OrderIntent.model_validate_json(text).amount_cents for text in self._store.values())
            if total > cap_cents and amount_cents > (before.amount_cents if before else 0):
                back = before or intent.model_copy(update={"amount_cents": 0, "sent_at": None})
                self._store.replace(order_key, back.model_dump_json())
                raise BudgetExceeded(
                    f"order {order_key} of {dollars(amount_cents)} would pass the cap of campaign "
                    f"{self._campaign_id}: {dollars(total - amount_cents)} of {dollars(cap_cents)} is committed",
                    cap="campaign",
                    total_cents=total,
                    cap_cents=cap_cents,
                )
            return before
