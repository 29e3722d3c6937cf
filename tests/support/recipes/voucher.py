"""The `voucher` rail: a code that one shop takes for one invoice. A test adds it to a copy of the package."""

from datetime import datetime, timedelta
from typing import ClassVar

from prefect_assay.errors import PaymentRefused
from prefect_assay.orders.payments.interfaces import read_header
from prefect_assay.orders.payments.rails.rail import Rail
from prefect_assay.orders.payments.terms import Offers, SettlementNotice, Terms
from prefect_assay.service.models.billing import PayAnswer
from prefect_assay.service.models.vocabulary import PaymentMethod

_VALID_SECONDS = 60


class VoucherTerms(Terms):
    kind: ClassVar[str] = "voucher"

    def valid_seconds(self, now: datetime) -> int:
        return _VALID_SECONDS

    def until(self, now: datetime) -> datetime:
        return now + timedelta(seconds=_VALID_SECONDS)

    def summary(self) -> str:
        return f"{self.amount} at {self.pay_to}"


class VoucherRail(Rail):
    method = PaymentMethod.VOUCHER  # type: ignore[attr-defined]  # the copy's vocabulary has it
    title = "voucher"
    wallet_block = "VoucherBook"
    challenge_header = "Voucher-Required"
    is_repeatable = False
    payer = "vouchers"

    def __init__(self, code: str, shops: tuple[str, ...]) -> None:
        self._code, self._shops = code, shops

    def make_nonce(self, base_url: str, invoice_id: str, terms: Terms) -> str:
        return f"voucher-{invoice_id}"

    def read_offers(self, answer: PayAnswer) -> Offers:
        stated = read_header(answer, self.challenge_header)
        if stated is None:
            raise PaymentRefused("the service asks for payment, but not by voucher")
        cents, shop = stated.split(";")
        return Offers.of([VoucherTerms(network="shop", asset="usd", pay_to=shop, amount_units=int(cents))])

    def find_problems(self, terms: Terms, *, invoice_id: str, pay_url: str) -> tuple[str, ...]:
        return () if terms.pay_to in self._shops else (f"shop {terms.pay_to!r} is not in shops",)

    def make_credential(self, terms: Terms, *, nonce: str, valid_before: int) -> dict[str, str]:
        return {"Payment-Voucher": self._code}

    def read_settlement(self, answer: PayAnswer) -> SettlementNotice:
        return SettlementNotice(success=answer.status_code == 200 or None)
