"""Questions about statuses that decide about money or work: each is answered in one place, from one fact.

The fact is the status, as the contract has neither a date of payment nor an amount paid (contract 2.6, 2.8). A service may
use words that the contract does not have: such a word is never the answer that lets money move or ends a wait, so each
question below is False for it. A new word of the vocabulary has to be answered in every `match`, or the type check fails.
"""

from enum import StrEnum
from typing import TypeVar, assert_never

from prefect_assay.service.models.vocabulary import ExperimentStatus, InvoiceStatus, QuoteStatus

E = TypeVar("E", bound=StrEnum)


def has_work_begun(status: str | None) -> bool:
    """Whether the laboratory works on the experiment or has finished: then its price is settled (contract 3)."""
    match _read(ExperimentStatus, status):
        case (
            ExperimentStatus.IN_QUEUE
            | ExperimentStatus.IN_PRODUCTION
            | ExperimentStatus.DATA_ANALYSIS
            | ExperimentStatus.IN_REVIEW
            | ExperimentStatus.DONE
        ):
            return True
        case (
            ExperimentStatus.DRAFT
            | ExperimentStatus.WAITING_FOR_CONFIRMATION
            | ExperimentStatus.QUOTE_SENT
            | ExperimentStatus.WAITING_FOR_MATERIALS
            | ExperimentStatus.CANCELED
            | None
        ):
            return False
        case unreachable:
            assert_never(unreachable)


def is_accepted(status: str | None) -> bool:
    """Whether the price of the experiment is accepted: it has an invoice, or had one (contract 3)."""
    return has_work_begun(status) or status == ExperimentStatus.WAITING_FOR_MATERIALS


def is_before_acceptance(status: str | None) -> bool:
    """Whether the experiment still waits for its quote, or for somebody to accept it."""
    match _read(ExperimentStatus, status):
        case ExperimentStatus.WAITING_FOR_CONFIRMATION | ExperimentStatus.QUOTE_SENT:
            return True
        case (
            ExperimentStatus.DRAFT
            | ExperimentStatus.WAITING_FOR_MATERIALS
            | ExperimentStatus.IN_QUEUE
            | ExperimentStatus.IN_PRODUCTION
            | ExperimentStatus.DATA_ANALYSIS
            | ExperimentStatus.IN_REVIEW
            | ExperimentStatus.DONE
            | ExperimentStatus.CANCELED
            | None
        ):
            return False
        case unreachable:
            assert_never(unreachable)


def is_inactive(status: str | None) -> bool:
    """Whether the experiment commits to nothing: a draft, or canceled. Only such a one may be ordered again."""
    return status in {ExperimentStatus.DRAFT, ExperimentStatus.CANCELED}


def is_over(status: str | None) -> bool:
    """Whether the status of the experiment is final."""
    return status in {ExperimentStatus.DONE, ExperimentStatus.CANCELED}


def is_quote_open(status: str | None) -> bool:
    """Whether the quote can be accepted or rejected, in either vocabulary (contract 2.6, 2.7)."""
    match _read(QuoteStatus, status):
        case QuoteStatus.OPEN | QuoteStatus.PENDING:
            return True
        case (
            QuoteStatus.DRAFT
            | QuoteStatus.ACCEPTED
            | QuoteStatus.REJECTED
            | QuoteStatus.EXPIRED
            | QuoteStatus.CANCELED
            | QuoteStatus.STALE
            | None
        ):
            return False
        case unreachable:
            assert_never(unreachable)


def is_quote_rejected(status: str | None) -> bool:
    """Whether somebody has declined the quote."""
    return status in {QuoteStatus.REJECTED, QuoteStatus.CANCELED}


def is_quote_expired(status: str | None) -> bool:
    """Whether the service says that the quote's time is over."""
    return status in {QuoteStatus.EXPIRED, QuoteStatus.STALE}


def is_invoice_paid(status: str | None) -> bool:
    """Whether the invoice is paid. A receipt or a ledger entry is not a proof of it."""
    return status == InvoiceStatus.PAID


def is_invoice_payable(status: str | None) -> bool:
    """Whether the invoice can be paid, now or once it is issued."""
    match _read(InvoiceStatus, status):
        case InvoiceStatus.DRAFT | InvoiceStatus.OPEN:
            return True
        case InvoiceStatus.PAID | InvoiceStatus.VOID | InvoiceStatus.UNCOLLECTIBLE | None:
            return False
        case unreachable:
            assert_never(unreachable)


def is_invoice_dropped(status: str | None) -> bool:
    """Whether the invoice cannot be paid any more, and was not paid."""
    match _read(InvoiceStatus, status):
        case InvoiceStatus.VOID | InvoiceStatus.UNCOLLECTIBLE:
            return True
        case InvoiceStatus.DRAFT | InvoiceStatus.OPEN | InvoiceStatus.PAID | None:
            return False
        case unreachable:
            assert_never(unreachable)


def is_invoice_closed(status: str | None) -> bool:
    """Whether no payment of the invoice is due any more."""
    return is_invoice_paid(status) or is_invoice_dropped(status)


def _read(kind: type[E], status: str | None) -> E | None:
    return kind(status) if status in set(kind) else None
