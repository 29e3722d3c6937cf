"""Quotes and invoices (contract 4.2 and 4.5)."""

from typing import Final

from prefect_assay.lab.billing import documents, invoices, quotes
from prefect_assay.lab.experiments import acceptance
from prefect_assay.lab.rails import payment
from prefect_assay.lab.requests.schemas import ConfirmQuote, RejectQuote
from prefect_assay.lab.routing.route import Route, listed, shown
from prefect_assay.lab.shapes.billing import (
    ConfirmedQuote,
    ExperimentInvoice,
    ExperimentQuote,
    Invoice,
    InvoicePage,
    PaidInvoice,
    PaymentRequired,
    Quote,
    QuotePage,
    RejectedQuote,
)
from prefect_assay.lab.shapes.errors import Error

_EXPERIMENT: Final = "/experiments/{experiment_id}"
_ACCEPT: Final = (
    "Needs a JSON body; `{}` will do. The invoice exists from here on, and `payment` points to where to pay it."
    " 409 when the quote has expired, or was accepted or rejected before, and when `X-Service-Payment-Method` names"
    " another rail than the experiment's."
)

QUOTES: Final = (
    shown(
        f"{_EXPERIMENT}/quote",
        quotes.of_experiment,
        "Show the quote",
        "quote",
        ExperimentQuote,
        description="The quote is prepared after the submission. Until it exists the answer is 404: ask again.",
    ),
    Route(
        "GET",
        f"{_EXPERIMENT}/quote/pdf",
        documents.quote_pdf,
        "The quote as a PDF",
        "read",
        "quote",
        media_type=documents.MEDIA_TYPE,
    ),
    Route(
        "POST",
        f"{_EXPERIMENT}/quote/confirm",
        acceptance.confirm_of_experiment,
        "Accept the quote",
        "update",
        "quote",
        ConfirmQuote,
        answers={200: ConfirmedQuote},
        headers=("X-Service-Payment-Method",),
        refuses={409: Error},
        description=_ACCEPT,
    ),
    listed("/quotes", quotes.listing, "List quotes, newest first", "quote", QuotePage, quotes.LISTING),
    shown("/quotes/{quote_id}", quotes.detail, "Show a quote", "quote", Quote),
    Route(
        "POST",
        "/quotes/{quote_id}/confirm",
        acceptance.confirm,
        "Accept a quote",
        "update",
        "quote",
        ConfirmQuote,
        answers={200: ConfirmedQuote},
        headers=("X-Service-Payment-Method",),
        refuses={409: Error},
        description=_ACCEPT,
    ),
    Route(
        "POST",
        "/quotes/{quote_id}/reject",
        acceptance.reject_by_id,
        "Reject a quote",
        "update",
        "quote",
        RejectQuote,
        answers={200: RejectedQuote},
        destructive=True,
        refuses={409: Error},
        description="The experiment becomes a draft again. 409 when the quote is not open any more.",
    ),
)

INVOICES: Final = (
    Route(
        "GET",
        f"{_EXPERIMENT}/invoice",
        invoices.of_experiment,
        "Show the invoice",
        "read",
        "invoice",
        answers={200: ExperimentInvoice},
        refuses={400: Error},
        description="An invoice exists once the quote is accepted. Before, the 404 names the next call to make;"
        " an unknown experiment is a 400, another organisation's a 403.",
    ),
    listed(
        "/invoices", invoices.listing, "List invoices, newest first", "invoice", InvoicePage, invoices.LISTING
    ),
    shown("/invoices/{invoice_id}", invoices.detail, "Show an invoice", "invoice", Invoice),
    Route(
        "GET",
        "/invoices/{invoice_id}/pdf",
        documents.invoice_pdf,
        "Where the invoice's PDF is; follow without the token",
        "read",
        "invoice",
        answers={307: None},
    ),
    Route(
        "POST",
        "/invoices/{invoice_id}/pay",
        payment.pay,
        "Pay an invoice by machine",
        "update",
        "invoice",
        answers={200: PaidInvoice, 402: PaymentRequired},
        headers=("X-Service-Payment-Method", "PAYMENT-SIGNATURE", "Payment-Authorization"),
        refuses={409: Error},
        description="Without a credential an open invoice on a machine rail answers 402 with a challenge, in"
        " `PAYMENT-REQUIRED` (x402-exact) or `WWW-Authenticate` (mpp-spt). The same call repeated with the"
        " credential settles it, once. On a paid invoice, and on one that a person pays, it only tells the state.",
    ),
)
