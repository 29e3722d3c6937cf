"""The guard: which payment terms are acceptable. Pure functions of the policy, the invoice and the offer.

Everything is refused unless the policy allows it, and the rail by the limits of its wallet. Each refusal names both values
that differ.
"""

from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from prefect_assay.errors import (
    BudgetExceeded,
    ClockDiffers,
    PaymentFailed,
    PaymentRefused,
    PaymentsDisabled,
)
from prefect_assay.orders.payments.interfaces import (
    CLOCKS_DIFFER,
    MAYBE_PAID,
    LedgerEntry,
    PaymentAttempt,
    RollingCap,
    normalize_origin,
    pay_url,
    read_header,
)
from prefect_assay.orders.payments.rails import RAILS, Rail
from prefect_assay.orders.payments.terms import Offers, Terms, ascii_quoted, list_allowed
from prefect_assay.service.client.http.dates import sent_at
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import Invoice, PayAnswer, usd
from prefect_assay.service.models.vocabulary import InvoiceStatus

MAX_VALID_SECONDS: Final = 600
_NOT_PAID: Final = "nothing is paid by machine"


class PaymentPolicy(Model):
    """What machine payments may do, in cents. The default allows nothing; a campaign cap of None sets none.

    Whom a wallet may pay, and in what, are the limits of its rail.
    """

    enabled: bool = False
    max_cents_per_payment: int | None = Field(default=None, ge=0)
    max_cents_rolling: int | None = Field(default=None, ge=0)  # within `rolling_days`
    max_cents_per_campaign: int | None = Field(default=None, ge=0)
    rolling_days: int = Field(default=30, ge=1, le=366)
    allowed_origins: tuple[str, ...] = ()  # services, as `https://host[:port]`

    @model_validator(mode="after")
    def _caps_are_set(self) -> Self:
        missing = [n for n in ("max_cents_per_payment", "max_cents_rolling") if getattr(self, n) is None]
        if self.enabled and missing:
            raise ValueError(f"enabled payments need {' and '.join(missing)}")
        return self

    def rolling_cap(self, now: datetime) -> RollingCap:
        """The cap as the ledger checks it.

        The window is longer by what two clocks may differ, and by how long a credential may take to settle.
        """
        window = timedelta(days=self.rolling_days) + 2 * CLOCKS_DIFFER + timedelta(seconds=MAX_VALID_SECONDS)
        return RollingCap(
            max_cents=self.max_cents_rolling or 0,
            since=now - window,
            at=now,
            campaign_cents=self.max_cents_per_campaign,
        )


def check_ready(policy: PaymentPolicy, base_url: str, expected_cents: int) -> None:
    """Raise unless a payment of this size to this service could be made; also call it before an order.

    Raises:
        PaymentsDisabled: the policy has payments off.
        BudgetExceeded: the amount is over the cap of one payment.
        PaymentRefused: the service's address is not allowed, or the amount is not positive.
    """
    if not policy.enabled:
        raise PaymentsDisabled(
            "machine payments are off: turn on machine_payments of the SpendingPolicy block, or pay the hosted invoice"
        )
    if expected_cents <= 0:
        raise PaymentRefused(
            f"the approved amount is {expected_cents} cents; a payment needs a positive amount"
        )
    check_origin(policy, base_url)
    check_payment_cap(policy, expected_cents)


def check_payment_cap(policy: PaymentPolicy, cents: int) -> None:
    """Raise BudgetExceeded when one payment is over its cap."""
    cap = policy.max_cents_per_payment
    if cap is None:
        raise BudgetExceeded(
            "no cap of one payment is set; per_experiment_usd of the SpendingPolicy block sets it"
        )
    if cents > cap:
        raise BudgetExceeded(
            f"{usd(cents)} is over the cap of one payment, {usd(cap)}: per_experiment_usd of the SpendingPolicy block, or "
            "what was approved for the order"
        )


def check_origin(policy: PaymentPolicy, base_url: str) -> None:
    """Raise PaymentRefused unless the service is listed and reached over https, loopback excepted."""
    try:
        here = normalize_origin(base_url)
        listed = {normalize_origin(url) for url in policy.allowed_origins}
    except ValueError as error:
        raise PaymentRefused(
            f"base_url of the AssayCredentials block, or another allowed address, is not a URL: {error}"
        ) from None
    if not here.startswith("https://") and not _is_loopback(urlsplit(here).hostname or ""):
        raise PaymentRefused(f"{ascii_quoted(here)} is not https; payments go over https, loopback excepted")
    if here not in listed:
        raise PaymentRefused(
            f"{ascii_quoted(here)} is not an allowed address: it is not base_url of the AssayCredentials block ({list_allowed(listed)})"
        )


def check_invoice(invoice: Invoice, expected_cents: int) -> None:
    """Raise unless the invoice is open (PaymentFailed), in US dollars and of the approved amount (PaymentRefused)."""
    if invoice.status != InvoiceStatus.OPEN:
        raise PaymentFailed(
            f"invoice {invoice.id} is {ascii_quoted(invoice.status and str(invoice.status))}, not open"
        )
    if invoice.money.problem:
        raise PaymentRefused(
            f"invoice {invoice.id} cannot be compared with its challenge: {invoice.money.problem}"
        )
    if invoice.amount is None:
        raise PaymentRefused(f"invoice {invoice.id} shows no amount to compare the challenge with")
    if invoice.amount != expected_cents:
        raise PaymentRefused(
            f"invoice {invoice.id} asks for {usd(invoice.amount)}, but {usd(expected_cents)} was approved"
        )


def check_clock(answer: PayAnswer, now: datetime) -> datetime:
    """The machine's time, unless the `Date` of an answer contradicts it or cannot be read; see `agreed_time`."""
    stated = sent_at(answer.headers)
    if stated is None and read_header(answer, "date"):
        raise _make_clock_error(now, "the service's Date cannot be read", _NOT_PAID)
    return agreed_time(stated, now)


def agreed_time(stated: datetime | None, now: datetime, *, else_: str = _NOT_PAID) -> datetime:
    """The machine's time, unless the service's (its `Date`) contradicts it. The contract promises no `Date`.

    Raises:
        ClockDiffers: they do not agree; the message says what is not done.
    """
    if stated is None or abs(stated - now) <= CLOCKS_DIFFER:
        return now
    raise _make_clock_error(now, f"the service's is {stated:%Y-%m-%d %H:%M:%S} UTC", else_)


def _make_clock_error(now: datetime, other: str, else_: str) -> ClockDiffers:
    return ClockDiffers(
        f"this machine's clock is {now:%Y-%m-%d %H:%M:%S} UTC, and {other}: {else_}, because the window of rolling_usd "
        "would be wrong. Set the clock (NTP), or pay the hosted invoice; a run that waits tries again"
    )


def read_offers(rail: Rail, answer: PayAnswer) -> Offers:
    """The offers of a 402 by this rail.

    Raises:
        PaymentRefused: it has none that can be read; the message names the headers of other rails that it has.
    """
    try:
        return rail.read_offers(answer)
    except PaymentRefused as error:
        others = [
            f"{kind.challenge_header} ({kind.method.value})"
            for kind in RAILS
            if kind.method is not rail.method and read_header(answer, kind.challenge_header) is not None
        ]
        if others:
            error.message += f"; the answer has {' and '.join(others)}"
        raise


def choose_terms(
    rail: Rail,
    offers: Offers,
    *,
    base_url: str,
    invoice: Invoice,
    cents: int,
    now: datetime,
) -> Terms:
    """The first offered terms that policy and rail accept; PaymentRefused names every offer and its problems."""
    lines = list(offers.ignored)
    for terms in offers.terms:
        problems = find_problems(rail, terms, base_url=base_url, invoice=invoice, cents=cents, now=now)
        if not problems:
            return terms
        lines.append(f"{terms.kind}: {'; '.join(problems)}; offered is {terms.summary()}")
    offered = "\n".join(f"  - {line}" for line in lines) or "  - nothing"
    raise PaymentRefused(
        f"invoice {invoice.id}: no offered payment terms are acceptable. Offered:\n{offered}"
    )


def read_offered_cents(
    rail: Rail, answer: PayAnswer, *, base_url: str, invoice_id: str, now: datetime
) -> int | None:
    """The least amount, in US cents, of the acceptable terms that a 402 offers; None if it is not a whole number of them.

    Raises:
        PaymentRefused: no terms are acceptable, whatever their amount.
    """
    offers, invoice = read_offers(rail, answer), Invoice(id=invoice_id)
    amounts = [divmod(terms.amount_units, terms.units_per_cent) for terms in offers.terms]
    acceptable = [
        cents
        for terms, (cents, rest) in zip(offers.terms, amounts, strict=True)
        if not rest
        and not find_problems(rail, terms, base_url=base_url, invoice=invoice, cents=cents, now=now)
    ]
    if acceptable:
        return min(acceptable)
    if any(rest for _, rest in amounts):
        return None
    cents = amounts[0][0] if amounts else 0
    choose_terms(rail, offers, base_url=base_url, invoice=invoice, cents=cents, now=now)
    return None


def check_owner(invoice: Invoice, experiment_id: str | None) -> None:
    """Raise PaymentRefused unless the invoice belongs to the given experiment."""
    if experiment_id is not None and invoice.experiment_id != experiment_id:
        raise PaymentRefused(
            f"invoice {invoice.id} belongs to experiment {ascii_quoted(invoice.experiment_id)}, and the order is experiment "
            f"{experiment_id}; nothing was paid"
        )


def check_repeatable(previous: LedgerEntry, *, is_repeatable: bool) -> None:
    """Raise PaymentRefused for a payment of unknown outcome on a rail that could also settle a second credential."""
    if not is_repeatable:
        raise PaymentRefused(
            f"a credential of {previous.rail.value} was sent and is {previous.state.value}; no other one is issued, "
            "because both could be settled"
        )


def check_again(
    previous: LedgerEntry | None, attempt: PaymentAttempt, now: datetime, *, is_repeatable: bool = True
) -> None:
    """Raise PaymentRefused if the attempt could settle an invoice a second time after a previous one.

    An authorisation that was sent can be settled until it expires, and one of unknown outcome may have been settled already. Only
    the same nonce on the same token contract excludes a second settlement; on a rail that is not repeatable, nothing does.
    """
    if previous is None or (is_repeatable and _same_authorisation(previous, attempt)):
        return
    if previous.state in MAYBE_PAID or previous.expires_at > now:
        raise PaymentRefused(
            f"invoice {attempt.invoice_id}: an authorisation over {ascii_quoted(previous.asset)} on {previous.network} with "
            f"nonce {previous.nonce} was sent and is {previous.state.value}, valid until "
            f"{previous.expires_at:%Y-%m-%d %H:%M:%S} UTC; one over {ascii_quoted(attempt.asset)} on {attempt.network} with "
            f"nonce {attempt.nonce} could be settled besides it{_of_another_wallet(previous, attempt)}"
        )


def _of_another_wallet(previous: PaymentAttempt, attempt: PaymentAttempt) -> str:
    if previous.rail is not attempt.rail or previous.payer in ("", attempt.payer):
        return ""
    return (
        f". The wallet block has another key now: the first authorisation is of {previous.payer}, this one of {attempt.payer}. "
        "Save the first key in it again before you pay again"
    )


def find_problems(
    rail: Rail,
    terms: Terms,
    *,
    base_url: str,
    invoice: Invoice,
    cents: int,
    now: datetime,
) -> tuple[str, ...]:
    """The problems of one offer; empty when it is acceptable."""
    problems = (
        _find_amount_problem(terms, cents),
        *rail.find_problems(terms, invoice_id=invoice.id, pay_url=pay_url(base_url, invoice.id)),
        _find_window_problem(terms, now),
    )
    return tuple(problem for problem in problems if problem)


def _same_authorisation(one: PaymentAttempt, other: PaymentAttempt) -> bool:
    # The amount as well: a person decides about an invoice that changes while the outcome of a payment is unknown.
    def same(e: PaymentAttempt) -> tuple[object, ...]:
        return e.nonce, e.network, e.asset.lower(), e.amount_cents

    return same(one) == same(other)


def _find_amount_problem(terms: Terms, cents: int) -> str | None:
    # The invoice's own amount equals `cents` already: check_invoice comes first.
    if terms.amount_units == cents * terms.units_per_cent:
        return None
    return f"the challenge asks for {terms.amount}, the invoice for {usd(cents)}"


def _find_window_problem(terms: Terms, now: datetime) -> str | None:
    seconds = terms.valid_seconds(now)
    if seconds <= 0:
        return f"it expired {-seconds} s ago"
    if seconds > MAX_VALID_SECONDS:
        return f"it would be valid for {seconds} s, and at most {MAX_VALID_SECONDS} s are allowed"
    return None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
