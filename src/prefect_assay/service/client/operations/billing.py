"""Operations on quotes and invoices, and the pay path (contract 2.6 to 2.8, 4.2 and 4.5).

Paying is sent at most once. A 402 is an answer, not an error: it carries the challenge, which is not read here.
"""

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Final, Unpack

from prefect_assay.errors import (
    ConfigurationError,
    InvalidRequest,
    NotReady,
    PaymentOutcomeUnknown,
)
from prefect_assay.service.client.answers import about_experiment, about_record
from prefect_assay.service.client.checks import one_of
from prefect_assay.service.client.decoding import get, once
from prefect_assay.service.client.filters import eq
from prefect_assay.service.client.http.failures import (
    CLIENT_ERRORS,
    NO_VERDICT,
    problem_of,
    undecided,
)
from prefect_assay.service.client.http.pagination import Pager
from prefect_assay.service.client.http.request import (
    Answer,
    Operation,
    Request,
    given,
    segment,
    succeeded,
)
from prefect_assay.service.client.lists import Listing, PageOptions, WalkOptions
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.billing import (
    ExperimentInvoice,
    Invoice,
    PayAnswer,
    Quote,
)
from prefect_assay.service.models.experiment import QuoteAcceptance
from prefect_assay.service.models.identifiers import normalize_id
from prefect_assay.service.models.vocabulary import InvoiceStatus, QuoteStatus

_READ_AGAIN: Final = "Read the quote before anything else"
_REFUSED: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
_NOT_THERE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
_NO_INVOICES: Final = Page[Invoice](items=(), total=0, count=0, offset=0)
# 409: the experiment is pinned to another method (contract 4.2).
_PROBE_ANSWERS: Final = frozenset({HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.CONFLICT})


class RejectReason(StrEnum):
    """Why a quote is rejected."""

    PRICE = "price"
    SCOPE = "scope"
    TIMELINE = "timeline"
    BUDGET = "budget"
    OTHER = "other"


def _quote_key(row: Quote) -> str:
    return row.id or row.quote_number or row.provider_quote_url or repr(row)


_QUOTES: Final = Listing("/quotes", Quote, _quote_key)
_INVOICES: Final = Listing("/invoices", Invoice)


def quote(experiment_id: str) -> Operation[Quote]:
    """GET /experiments/{id}/quote; `NotReady` while it does not exist (contract 4.2, rules for quote)."""
    return about_experiment(
        get(f"/experiments/{segment(experiment_id)}/quote", Quote, NotReady), experiment_id
    )


def confirm_quote(
    experiment_id: str, purchase_order_number: str | None = None, notes: str | None = None
) -> Operation[QuoteAcceptance]:
    """POST /experiments/{id}/quote/confirm, once: accept the quote. An invoice exists from then on.

    Raises:
        Conflict: it is accepted already, expired or rejected.
        OutcomeUnknown: the answer was lost: read the quote.
    """
    operation = _confirmation(f"/experiments/{segment(experiment_id)}/quote", purchase_order_number, notes)
    return about_experiment(operation, experiment_id)


def confirm_quote_by_id(
    quote_id: str, purchase_order_number: str | None = None, notes: str | None = None
) -> Operation[QuoteAcceptance]:
    """POST /quotes/{id}/confirm, once: as `confirm_quote`, by the quote's own id."""
    return about_record(_confirmation(f"/quotes/{segment(quote_id)}", purchase_order_number, notes), quote_id)


def _confirmation(
    path: str, purchase_order_number: str | None, notes: str | None
) -> Operation[QuoteAcceptance]:
    body = given(purchase_order_number=purchase_order_number, notes=notes)
    # a JSON body is required, an empty object will do (service-shapes)
    return once("POST", f"{path}/confirm", QuoteAcceptance, _READ_AGAIN, body)


def quotes(
    *, status: QuoteStatus | str | None = None, **options: Unpack[PageOptions]
) -> Operation[Page[Quote]]:
    """GET /quotes: one page, newest first."""
    return _QUOTES.page(options, status=status)


def iter_quotes(*, status: QuoteStatus | str | None = None, **options: Unpack[WalkOptions]) -> Pager[Quote]:
    """All matching quotes."""
    return _QUOTES.rows(options, status=status)


def quote_by_id(quote_id: str) -> Operation[Quote]:
    """GET /quotes/{id}."""
    return about_record(get(f"/quotes/{segment(quote_id)}", Quote), quote_id)


def reject_quote(quote_id: str, reason: RejectReason | str, feedback: str | None = None) -> Operation[Quote]:
    """POST /quotes/{id}/reject, once. The experiment becomes a draft again.

    Raises:
        InvalidRequest: the service does not know the reason; nothing was sent.
        Conflict: the quote is settled already.
        OutcomeUnknown: the answer was lost: read the quote.
    """
    InvalidRequest.check(list(one_of("reason", str(reason), list(RejectReason))))
    body = given(reason=str(reason), feedback=feedback)
    operation = once("POST", f"/quotes/{segment(quote_id)}/reject", Quote, _READ_AGAIN, body)
    return about_record(operation, quote_id)


def invoice(experiment_id: str) -> Operation[ExperimentInvoice]:
    """GET /experiments/{id}/invoice; `NotReady` until the quote is accepted, naming the next call (contract 4.2)."""
    operation = get(f"/experiments/{segment(experiment_id)}/invoice", ExperimentInvoice, NotReady)
    return about_experiment(operation, experiment_id)


def invoices(
    *, status: InvoiceStatus | str | None = None, **options: Unpack[PageOptions]
) -> Operation[Page[Invoice]]:
    """GET /invoices: one page, newest first."""
    return _INVOICES.page(options, status=status)


def iter_invoices(
    *, status: InvoiceStatus | str | None = None, **options: Unpack[WalkOptions]
) -> Pager[Invoice]:
    """All matching invoices."""
    return _INVOICES.rows(options, status=status)


def invoice_by_id(invoice_id: str) -> Operation[Invoice]:
    """GET /invoices/{id}, by its own id or the provider's."""
    return about_record(
        get(f"/invoices/{segment(invoice_id)}", Invoice), invoice_id, fields=("id", "provider_invoice_id")
    )


class InvoiceSearch:
    """Yields at most one invoice of an experiment: the newest that is not void, else the newest void one.

    The contract does not define a filter by experiment. It is tried first, because it saves reading the whole list; a
    service that refuses it is read page by page. A service may also ignore it, so each row is compared in any case. The
    list itself is not in the contract: where the service says that it has none, nothing is found.
    """

    def __init__(self, experiment_id: str) -> None:
        self._experiment_id = normalize_id(experiment_id)
        self._first = True
        self._filtered = True
        self._void: Invoice | None = None
        self._found = False
        self._pager = iter_invoices(filter=eq("experiment_id", self._experiment_id))

    def operation(self) -> Operation[Page[Invoice] | None] | None:
        """The next page; its value is None when the service refuses the filter."""
        inner = None if self._found else self._pager.operation()
        if inner is None:
            return None
        refused = _REFUSED if self._filtered else frozenset[int]()

        def read(answer: Answer) -> Page[Invoice] | None:
            if answer.status in _NOT_THERE:
                if not (self._first and problem_of(answer).genuine):
                    raise undecided(answer)
                return _NO_INVOICES
            return None if answer.status in refused else inner.read(answer)

        return Operation(
            request=inner.request,
            read=read,
            accepts=lambda status: succeeded(status) or status in refused | _NOT_THERE,
        )

    def feed(self, answer: Page[Invoice] | None) -> tuple[Invoice, ...]:
        """Look through one page."""
        self._first = False
        if answer is None:
            self._filtered = False
            self._pager = iter_invoices()
            return ()
        for row in self._pager.feed(answer):
            if row.experiment_id != self._experiment_id:
                continue
            if row.status != InvoiceStatus.VOID:  # contract 4.2, create rule 5: void ones are failed tries
                self._found = True
                return (row,)
            self._void = self._void or row
        if self._void is not None and self._pager.operation() is None:
            self._found = True
            return (self._void,)
        return ()


def find_invoice(experiment_id: str) -> InvoiceSearch:
    """The invoice of an experiment, or None if it has none or the service does not list it (see `invoice`)."""
    return InvoiceSearch(experiment_id)


def pay(invoice_id: str, headers: Mapping[str, str] | None = None) -> Operation[PayAnswer]:
    """POST /invoices/{id}/pay, once; `headers` carry the credential, as its rail names them.

    Without headers this is the probe, which can move no money: 2xx, 402 and 409 are answers, the rest are errors.
    With a credential every verdict below 500 is an answer, because even a 403 may mean that an earlier sending has
    paid. A 4xx other than 402 whose body is not the service's is no verdict.

    Raises:
        PaymentOutcomeUnknown: a credential was sent and its answer was lost: read the invoice.
        ConfigurationError: the headers would replace the bearer token.
    """
    sent = dict(headers or {})
    if any(name.lower() == "authorization" for name in sent):
        raise ConfigurationError(
            "a payment credential in Authorization would replace the bearer token; only challenges that name "
            "another header can be answered. Nothing was sent"
        )
    return Operation(
        request=Request(
            method="POST",
            path=f"/invoices/{segment(invoice_id)}/pay",
            headers=sent,
            lost=PaymentOutcomeUnknown if sent else None,
            after_loss="Read the invoice before anything else; never pay again",
            secrets=tuple(sent.values()),
        ),
        read=_verdict if sent else _pay_answer,
        accepts=_is_verdict if sent else _answers_probe,
    )


def _answers_probe(status: int) -> bool:
    return succeeded(status) or status in _PROBE_ANSWERS


def _is_verdict(status: int) -> bool:
    return succeeded(status) or (status in CLIENT_ERRORS and status not in NO_VERDICT)


def _verdict(answer: Answer) -> PayAnswer:
    """A refusal counts if the service wrote it. The challenge of a 402 is in its headers, whatever the body."""
    status = answer.status
    if not (succeeded(status) or status == HTTPStatus.PAYMENT_REQUIRED or problem_of(answer).genuine):
        raise undecided(answer)
    return _pay_answer(answer)


def _pay_answer(answer: Answer) -> PayAnswer:
    """The status decides; a body that cannot be read must not turn a payment into an error."""
    return PayAnswer(status_code=answer.status, headers=dict(answer.headers), body=answer.fields())
