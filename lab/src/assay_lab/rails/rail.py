"""What a payment rail of the lab is to the pay path: its words, its terms, its challenge and its settlement."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from assay_lab.rails.credentials import CredentialVerdict
from assay_lab.vocabulary import PaymentMethod

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Bill:
    """The invoice to be paid, and the pay request."""

    invoice_id: str
    amount_cents: int
    currency: str  # lower case
    pay_url: str
    realm: str  # the service, as `host[:port]`
    body: bytes  # of the pay request
    fault: str | None = None  # a wrong term in the challenge, to test a client's guard


@dataclass(frozen=True, slots=True)
class Challenge:
    """The 402 answer that asks for a payment."""

    body: dict[str, Any]
    headers: dict[str, str]


class Settlements(Protocol):
    """What was settled before."""

    def has_both(self, payer: str, nonce: str) -> bool:
        """Whether this payer has settled something with this nonce."""
        ...

    def has_either(self, payer: str, nonce: str) -> bool:
        """Whether this payer, or this nonce, has settled something."""
        ...


class LabRail(ABC, Generic[S]):
    """A kind of rail; `RAILS` lists them. It keeps nothing: the caller records payer and nonce with the invoice."""

    method: ClassVar[PaymentMethod]  # the wire word
    credential_header: ClassVar[str]
    credential_text: ClassVar[str]  # what the header is, for the lab's tools

    @abstractmethod
    def make_settings(self) -> S:
        """The terms of a lab that sets no others."""

    @abstractmethod
    def show_settings(self, settings: S) -> dict[str, Any]:
        """The terms as the control surface shows them, without secrets."""

    @abstractmethod
    def challenge(self, bill: Bill, settings: S, now: datetime, error: str | None = None) -> Challenge:
        """Ask for the payment of an open invoice at wall time `now`; `error` is why an earlier try was refused."""

    @abstractmethod
    def settle(
        self, credential: str, bill: Bill, settings: S, settlements: Settlements, now: datetime
    ) -> CredentialVerdict:
        """Check a credential against the challenge of this bill, and settle it at wall time `now`."""

    @abstractmethod
    def refuse(self, bill: Bill, settings: S, now: datetime, verdict: CredentialVerdict) -> Challenge:
        """The 402 answer to a refused credential."""

    @abstractmethod
    def receipt_headers(self, verdict: CredentialVerdict) -> dict[str, str]:
        """The headers of the answer to a settled credential."""
