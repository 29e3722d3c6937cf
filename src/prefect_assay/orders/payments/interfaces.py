"""The protocols that a payment uses: the service (`InvoiceApi`) and the record of the order (`Ledger`).

`prefect_assay.orders.ledger` keeps the record in the archive. It holds no credential.
"""

from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final, Literal, Protocol, assert_never
from urllib.parse import quote, urlsplit

from pydantic import AwareDatetime

from prefect_assay.errors import ConfigurationError
from prefect_assay.orders.job import PaymentState
from prefect_assay.service.models.base import Model, StoredModel
from prefect_assay.service.models.billing import Invoice, PayAnswer
from prefect_assay.service.models.vocabulary import PaymentMethod

_API_PATH: Final = "/api/v1"


class InvoiceApi(Protocol):
    """The two calls that pay one invoice: the client's `invoices`, or a `DueInvoice`."""

    @property
    def base_url(self) -> str:
        """The service's address, without `/api/v1`."""
        ...

    def get(self, invoice_id: str) -> Invoice:
        """`GET /invoices/{invoice_id}`."""
        ...

    def pay(self, invoice_id: str, headers: Mapping[str, str] | None = None) -> PayAnswer:
        """`POST /invoices/{invoice_id}/pay`, once. With headers, a lost answer raises PaymentOutcomeUnknown."""
        ...


def is_success(answer: PayAnswer) -> bool:
    """Return True for a 2xx."""
    return HTTPStatus.OK <= answer.status_code < HTTPStatus.MULTIPLE_CHOICES


def read_header(answer: PayAnswer, name: str) -> str | None:
    """One response header by name, in any case."""
    lower_name = name.lower()
    return next((value for key, value in answer.headers.items() if key.lower() == lower_name), None)


def normalize_origin(url: str) -> str:
    """Scheme, host and port in one spelling: `HTTPS://Host.:443/x` becomes `https://host`; ValueError for no URL."""
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").removesuffix(".")
    if not scheme or not host:
        raise ValueError("a URL needs a scheme and a host")
    bracketed = f"[{host}]" if ":" in host else host
    default_port = {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{bracketed}" + (f":{parts.port}" if parts.port not in {None, default_port} else "")


def normalize_address(base_url: str) -> str:
    """The service's address in one spelling, so that logs and nonces do not depend on the writer."""
    try:
        url = base_url.strip()
        path = urlsplit(url).path.rstrip("/").removesuffix(_API_PATH).rstrip("/")
        return f"{normalize_origin(url)}{path}"
    except ValueError as error:
        raise ConfigurationError(f"the service's base_url is not a usable URL: {error}") from None


def pay_url(base_url: str, invoice_id: str) -> str:
    """The pay path of one invoice as a whole URL (contract 2.6, `pay_url`)."""
    return f"{normalize_address(base_url)}{_API_PATH}/invoices/{quote(invoice_id, safe='')}/pay"


# A payment that may have moved money. Only `failed` is certain not to have.
MAYBE_PAID: Final = frozenset({PaymentState.SENT, PaymentState.UNKNOWN, PaymentState.SETTLED})

# How an attempt that was sent can end without a paid invoice.
AttemptEnd = Literal[PaymentState.UNKNOWN, PaymentState.FAILED]


# Two clocks that differ by more than this do not agree on the time.
CLOCKS_DIFFER: Final = timedelta(minutes=5)


class RollingCap(Model):
    """At most `max_cents` over all machine payments since `since`, and `campaign_cents` over a campaign's orders.

    `at` is the time of the payment as machine and service agree on it.
    """

    max_cents: int
    since: AwareDatetime
    at: AwareDatetime
    campaign_cents: int | None = None


class PaymentAttempt(StoredModel):
    """A payment that is about to be sent."""

    invoice_id: str
    experiment_id: str | None = None  # the one that the invoice must belong to, if given
    rail: PaymentMethod
    payer: str = ""  # the wallet's address, or another name
    amount_cents: int
    nonce: str  # on a chain the same for every attempt with one wallet; else the id of the challenge
    network: str  # the chain, or the provider of the shared payment token
    asset: str  # the token contract, or the currency
    pay_to: str  # the receiver
    expires_at: AwareDatetime  # end of the authorisation's validity

    def attempt(self) -> dict[str, Any]:
        """The fields of the attempt alone."""
        return {name: getattr(self, name) for name in PaymentAttempt.model_fields}


class LedgerEntry(PaymentAttempt):
    """An attempt and its state."""

    id: str  # the record of the attempt
    state: Literal[PaymentState.SENT, PaymentState.SETTLED] | AttemptEnd
    sent_at: AwareDatetime
    # The rail's statement on the settlement, which the service gives once
    receipt: dict[str, str] | None = None
    remark: str | None = None  # what was odd about the answer to the payment, for people

    @property
    def in_doubt(self) -> bool:
        """The credential has left, and its outcome is unknown."""
        match self.state:
            case PaymentState.SENT | PaymentState.UNKNOWN:
                return True
            case PaymentState.SETTLED | PaymentState.FAILED:
                return False
            case _:
                assert_never(self.state)


class Ledger(Protocol):
    """The payments of one order. Every method is atomic against other runs of the order."""

    def get(self) -> LedgerEntry | None:
        """The last attempt and its state."""
        ...

    def reserve(self, cents: int, cap: RollingCap) -> None:
        """Count the payment.

        Raises:
            BudgetExceeded: a cap would be passed; nothing is counted.
            OrderStopped: a person has canceled the order; nothing is counted.
        """
        ...

    def release(self) -> None:
        """Drop this run's reservation: it has sent no credential, or the credential was refused."""
        ...

    def begin(self, attempt: PaymentAttempt, *, previous: LedgerEntry | None) -> LedgerEntry | None:
        """Record the attempt right before its credential leaves; None when it must not leave.

        Raises:
            OrderStopped: a person has canceled the order; the credential must not leave, and nothing is counted.
        """
        ...

    def record_outcome(self, entry: LedgerEntry, state: AttemptEnd, *, remark: str | None = None) -> bool:
        """Record that the attempt ended without a paid invoice; False when the record has moved on already."""
        ...

    def record_paid(
        self,
        invoice_id: str,
        amount_cents: int | None,
        *,
        receipt: dict[str, str] | None = None,
        remark: str | None = None,
    ) -> bool:
        """Record that the invoice is paid, by any means."""
        ...
