"""The service's vocabulary as the lab speaks it: enumerations, limits and sets of the contract.

The lab states them itself and imports no client's, so that one wrong word cannot pass on both sides. A test of the
repository compares the two statements.
"""

import re
from enum import StrEnum
from typing import Final


class ExperimentType(StrEnum):
    """What is measured (contract 1)."""

    AFFINITY = "affinity"
    SCREENING = "screening"
    THERMOSTABILITY = "thermostability"
    FLUORESCENCE = "fluorescence"
    EXPRESSION = "expression"
    EPITOPE_BINNING = "epitope_binning"
    ENZYME_ACTIVITY = "enzyme_activity"


class Method(StrEnum):
    """Bio-layer interferometry or surface plasmon resonance (contract 2.2)."""

    BLI = "bli"
    SPR = "spr"


class ExperimentStatus(StrEnum):
    """Where an experiment is (contract 3), in order."""

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
    """How much of the results is out (contract 3)."""

    NONE = "none"
    PARTIAL = "partial"
    ALL = "all"


class QuoteStatus(StrEnum):
    """The words of both descriptions of a quote (contract 2.6 and 2.7)."""

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
    """The rails of an invoice (contract 2.6 and 4.2). A person pays the hosted page of `async_invoice`."""

    X402_EXACT = "x402-exact"
    MPP_SPT = "mpp-spt"
    ASYNC_INVOICE = "async_invoice"


UNDER_WORK: Final = frozenset(
    {
        ExperimentStatus.IN_QUEUE,
        ExperimentStatus.IN_PRODUCTION,
        ExperimentStatus.DATA_ANALYSIS,
        ExperimentStatus.IN_REVIEW,
    }
)
"""The laboratory works on it."""
MACHINE_RAILS: Final = frozenset(PaymentMethod) - {PaymentMethod.ASYNC_INVOICE}

AMINO_ACIDS: Final = frozenset("ACDEFGHIKLMNPQRSTVWY")
CHAIN_SEPARATOR: Final = ":"
ANTIGEN_CONCENTRATIONS_NM: Final = (1000.0, 316.2, 100.0, 31.6, 0.0)

REPLICATES_MIN: Final = 1
REPLICATES_DEFAULT: Final = 3
REPLICATES_MAX: Final = 5
BINNING_SEQUENCES_MIN: Final = 4
BINNING_SEQUENCES_STEP: Final = 4
BINNING_SEQUENCES_MAX: Final = 28

PAGE_LIMIT_DEFAULT: Final = 50
PAGE_LIMIT_MAX: Final = 100
SORT_COLUMNS_MAX: Final = 8
WEBHOOK_RETRIES_MAX: Final = 3
WEBHOOK_SECRET_MIN_LENGTH: Final = 32

_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+")


def snake_case(text: str) -> str:
    """One spelling of a status: `QuoteSent`, `Quote sent` and `quote_sent` are `quote_sent`."""
    word = _WORD_START.sub("_", text.strip()).lower()
    return "canceled" if word == "cancelled" else word
