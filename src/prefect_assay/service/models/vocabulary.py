"""The service's vocabulary: enumerations and limits.

Statuses are read in both published spellings (`QuoteSent`, `quote_sent`) and written in snake_case. An unknown value
remains a plain string, so that a new status does not fail a run that has waited for days.
"""

import re
from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar

from pydantic import BeforeValidator, Field

T = TypeVar("T")


class ExperimentType(StrEnum):
    """What is measured."""

    # Contract 1: the seven types accepted at creation.

    AFFINITY = "affinity"
    SCREENING = "screening"
    THERMOSTABILITY = "thermostability"
    FLUORESCENCE = "fluorescence"
    EXPRESSION = "expression"
    EPITOPE_BINNING = "epitope_binning"
    ENZYME_ACTIVITY = "enzyme_activity"


class Method(StrEnum):
    """How binding is measured: bio-layer interferometry or surface plasmon resonance."""

    # Contract 2.2.

    BLI = "bli"
    SPR = "spr"


class ExperimentStatus(StrEnum):
    """Contract 3."""

    DRAFT = "draft"
    WAITING_FOR_CONFIRMATION = "waiting_for_confirmation"
    QUOTE_SENT = "quote_sent"
    WAITING_FOR_MATERIALS = "waiting_for_materials"
    IN_QUEUE = "in_queue"
    IN_PRODUCTION = "in_production"
    DATA_ANALYSIS = "data_analysis"
    IN_REVIEW = "in_review"
    DONE = "done"
    CANCELED = "canceled"


class ResultsStatus(StrEnum):
    """Contract 3: none (pending), partial (preliminary), all (complete)."""

    NONE = "none"
    PARTIAL = "partial"
    ALL = "all"


class QuoteStatus(StrEnum):
    """Both published vocabularies, contract 2.6 and 2.7."""

    DRAFT = "draft"
    OPEN = "open"
    PENDING = "pending"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELED = "canceled"
    STALE = "stale"


class InvoiceStatus(StrEnum):
    """The states of an invoice."""

    DRAFT = "draft"
    OPEN = "open"
    PAID = "paid"
    VOID = "void"
    UNCOLLECTIBLE = "uncollectible"


class PaymentMethod(StrEnum):
    """How an invoice is paid. A person pays the hosted invoice of `async_invoice`."""

    # Contract 2.6 and 4.2: the rails.

    X402_EXACT = "x402-exact"
    MPP_SPT = "mpp-spt"
    ASYNC_INVOICE = "async_invoice"


MACHINE_RAILS: Final = frozenset(PaymentMethod) - {PaymentMethod.ASYNC_INVOICE}

AMINO_ACIDS: Final = frozenset("ACDEFGHIKLMNPQRSTVWY")
CHAIN_SEPARATOR: Final = ":"

PAGE_LIMIT_DEFAULT: Final = 50
PAGE_LIMIT_MAX: Final = 100
SORT_COLUMNS_MAX: Final = 8
REPLICATES_MIN: Final = 1
REPLICATES_MAX: Final = 5
REPLICATES_DEFAULT: Final = 3
BINNING_SEQUENCES_MIN: Final = 4
BINNING_SEQUENCES_MAX: Final = 28
BINNING_SEQUENCES_STEP: Final = 4
ANTIGEN_CONCENTRATIONS_NM: Final = (1000.0, 316.2, 100.0, 31.6, 0.0)
WEBHOOK_SECRET_MIN_LENGTH: Final = 32
WEBHOOK_RETRIES_MAX: Final = 3

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+")
_SPELLINGS: Final = {"cancelled": "canceled"}


def snake_case(value: Any) -> Any:
    """`QuoteSent`, `Quote sent` and `quote_sent` are the same status; anything but a string passes unchanged."""
    if not isinstance(value, str):
        return value
    word = _WORD_START.sub("_", value.strip()).lower()
    return _SPELLINGS.get(word, word)


_OtherSpelling = Annotated[T | str, Field(union_mode="left_to_right"), BeforeValidator(snake_case)]
# The usual spelling is found without a call of a Python function.
KnownOrText = Annotated[T | _OtherSpelling[T], Field(union_mode="left_to_right")]
AnyExperimentStatus = KnownOrText[ExperimentStatus]
AnyResultsStatus = KnownOrText[ResultsStatus]
AnyQuoteStatus = KnownOrText[QuoteStatus]
AnyInvoiceStatus = KnownOrText[InvoiceStatus]
AnyExperimentType = KnownOrText[ExperimentType]
