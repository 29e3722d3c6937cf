"""What a payment rail is to all that pays: its word, its names for people, its challenge, its limits, its credential."""

from abc import ABC, abstractmethod
from typing import ClassVar

from prefect_assay.orders.payments.terms import Offers, SettlementNotice, Terms
from prefect_assay.service.models.billing import PayAnswer
from prefect_assay.service.models.vocabulary import PaymentMethod


class Rail(ABC):
    """One wallet that is ready to pay by one machine rail. No repr, error, ledger entry or log contains its secret.

    A subclass is a kind of rail; `RAILS` of `orders.payments.rails` lists them. It sends nothing itself.
    """

    method: ClassVar[PaymentMethod]  # the wire word
    title: ClassVar[str]  # for people
    wallet_block: ClassVar[str]  # the name of the block that it pays from
    challenge_header: ClassVar[str]  # of the 402 answer that asks for a payment
    is_repeatable: ClassVar[
        bool
    ]  # a second credential with the same nonce cannot be settled besides the first

    payer: str  # the address of the wallet, or another name for it

    @abstractmethod
    def make_nonce(self, base_url: str, invoice_id: str, terms: Terms) -> str:
        """What identifies this payment of the invoice in the ledger and, where the payer chooses it, in the credential."""

    @abstractmethod
    def read_offers(self, answer: PayAnswer) -> Offers:
        """The offers of a 402; PaymentRefused when it cannot be read."""

    @abstractmethod
    def find_problems(self, terms: Terms, *, invoice_id: str, pay_url: str) -> tuple[str, ...]:
        """What the limits of the wallet do not allow in an offer, apart from its amount and validity; empty limits allow nothing."""

    @abstractmethod
    def make_credential(self, terms: Terms, *, nonce: str, valid_before: int) -> dict[str, str]:
        """The request header that pays, valid until these Unix seconds; PaymentRefused when it cannot be made."""

    @abstractmethod
    def read_settlement(self, answer: PayAnswer) -> SettlementNotice:
        """What an answer states about the payment; never fails."""
