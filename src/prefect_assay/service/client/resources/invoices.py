"""Invoices and the pay path (contract 2.6, 2.8, 4.2 and 4.5).

Paying is sent at most once. A 402 is an answer, not an error: it carries the challenge, which is not read here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from prefect_assay.errors import ConfigurationError, PaymentOutcomeUnknown
from prefect_assay.service.client.answers import require_record
from prefect_assay.service.client.decoding import build_read
from prefect_assay.service.client.filters import Condition, Sorting, eq
from prefect_assay.service.client.http.failures import (
    CLIENT_ERRORS,
    NO_VERDICT,
    problem_of,
    undecided,
)
from prefect_assay.service.client.http.pagination import paginate
from prefect_assay.service.client.http.request import (
    Answer,
    Operation,
    Request,
    quote_segment,
    succeeded,
)
from prefect_assay.service.client.parameters import FieldTest
from prefect_assay.service.client.resources.documents import download_pdf
from prefect_assay.service.client.resources.resource import ListQuery, Resource, Sender
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.billing import Invoice, PayAnswer
from prefect_assay.service.models.identifiers import normalize_id
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX, InvoiceStatus

_INVOICES: Final = ListQuery(path="/invoices", row=Invoice)
_REFUSED: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
_NOT_THERE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
_NO_INVOICES: Final = Page[Invoice](items=(), total=0, count=0, offset=0)
# 409: the experiment is pinned to another method (contract 4.2).
_PROBE_ANSWERS: Final = frozenset({HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.CONFLICT})


class _FilterRefused(Exception):
    """The service takes no filter by experiment."""


class Invoices(Resource):
    """What is to be paid, and paying it by machine (contract 4.5)."""

    @property
    def base_url(self) -> str:
        """The service's address, without `/api/v1`: payments name the service that they are for."""
        return self._sender.base_url

    def list(
        self,
        *,
        status: InvoiceStatus | str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[Invoice]:
        """List one page, newest first: GET /invoices (published with contract 2.8).

        The other parameters are those of `experiments.list`.

        Example:
            ```python
            print(client.invoices.list(status="open").total)
            ```
        """
        query = _INVOICES.select(filter, search, sort, where, fields={"status": status})
        return self._sender.run(query.build_page(limit, offset))

    def iterate(
        self,
        *,
        status: InvoiceStatus | str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        page_size: int = PAGE_LIMIT_MAX,
    ) -> Iterator[Invoice]:
        """Yield all matching invoices, page by page; parameters as in `list`.

        Example:
            ```python
            open_cents = sum(invoice.amount or 0 for invoice in client.invoices.iterate(status="open"))
            ```
        """
        return _INVOICES.select(filter, search, sort, where, fields={"status": status}).iterate(
            self._sender, page_size
        )

    def get(self, invoice_id: str) -> Invoice:
        """Read one invoice, by its own id or the provider's: GET /invoices/{id} (published with contract 2.8).

        Example:
            ```python
            invoice = client.invoices.get(invoice_id)
            print(invoice.status, invoice.amount)
            ```
        """
        operation = build_read(f"/invoices/{quote_segment(invoice_id)}", Invoice)
        return self._sender.run(require_record(operation, invoice_id, fields=("id", "provider_invoice_id")))

    def find_for_experiment(self, experiment_id: str) -> Invoice | None:
        """Find the invoice of an experiment: GET /invoices. The newest that is not void, else the newest void one.

        None if there is none, or the service says that it has no list, which is published with contract 2.8 and not in it
        (see `experiments.get_invoice`). A filter by experiment is tried first, because it saves reading the whole list; a
        service that refuses it is read page by page. A service may also ignore it, so each row is compared in any case.

        Example:
            ```python
            invoice = client.invoices.find_for_experiment(experiment_id)
            if invoice is not None:
                print(usd(invoice.amount), invoice.provider_hosted_invoice_url)
            ```
        """
        normal_id = normalize_id(experiment_id)
        try:
            return _find_invoice_in_list(self._sender, normal_id, eq("experiment_id", normal_id))
        except _FilterRefused:
            return _find_invoice_in_list(self._sender, normal_id, None)

    def download_pdf(self, invoice_id: str) -> bytes:
        """Fetch an invoice as a PDF, by its own id or the provider's: GET /invoices/{id}/pdf (published with contract 2.8).

        Raises:
            UnexpectedAnswer: the answer is not a PDF.

        Example:
            ```python
            Path("invoice.pdf").write_bytes(client.invoices.download_pdf(invoice_id))
            ```
        """
        return download_pdf(self._sender, f"/invoices/{quote_segment(invoice_id)}/pdf")

    def pay(self, invoice_id: str, headers: Mapping[str, str] | None = None) -> PayAnswer:
        """Ask for the terms of a payment, or pay, sent once: POST /invoices/{id}/pay (contract 4.5 and 5.10).

        Without headers this is the probe, which can move no money: 2xx, 402 and 409 are answers, the rest are errors.
        `headers` carry the credential, as its rail names them. With one, every verdict below 500 is an answer, because
        even a 403 may mean that an earlier sending has paid. A 4xx other than 402 whose body is not the service's is no
        verdict.

        Raises:
            PaymentOutcomeUnknown: a credential was sent and its answer was lost: read the invoice.
            ConfigurationError: the headers would replace the bearer token.

        Example:
            ```python
            answer = client.invoices.pay(invoice_id)  # the probe: 402 with a challenge
            print(answer.status_code, sorted(answer.headers))
            ```
        """
        return self._sender.run(_build_payment(invoice_id, dict(headers or {})))


def _find_invoice_in_list(sender: Sender, experiment_id: str, condition: Condition | None) -> Invoice | None:
    """The experiment's invoice among the listed ones; a void one only if there is no other.

    Raises:
        _FilterRefused: the service takes no such condition.
    """
    query = _INVOICES.select(condition)
    may_be_refused = condition is not None
    may_be_absent = may_be_refused  # only the first answer of all can say that there is no list

    def fetch(limit: int, offset: int) -> Page[Invoice]:
        nonlocal may_be_absent
        operation = query.build_page(limit, offset)

        def read(answer: Answer) -> Page[Invoice]:
            if answer.status in _NOT_THERE:
                if not (may_be_absent and problem_of(answer).genuine):
                    raise undecided(answer)
                return _NO_INVOICES
            if answer.status in _REFUSED:
                raise _FilterRefused
            return operation.read(answer)

        def accepts(status: int) -> bool:
            return succeeded(status) or status in _NOT_THERE or (may_be_refused and status in _REFUSED)

        page = sender.run(replace(operation, read=read, accepts=accepts))
        may_be_absent = False
        return page

    void: Invoice | None = None
    for row in paginate("GET /invoices", fetch, query.key):
        if row.experiment_id != experiment_id:
            continue
        if row.status != InvoiceStatus.VOID:  # contract 4.2, create rule 5: void ones are failed tries
            return row
        void = void or row
    return void


def _build_payment(invoice_id: str, headers: dict[str, str]) -> Operation[PayAnswer]:
    if any(name.lower() == "authorization" for name in headers):
        raise ConfigurationError(
            "a payment credential in Authorization would replace the bearer token; only challenges that name "
            "another header can be answered. Nothing was sent"
        )
    return Operation(
        request=Request(
            method="POST",
            path=f"/invoices/{quote_segment(invoice_id)}/pay",
            headers=headers,
            lost=PaymentOutcomeUnknown if headers else None,
            after_loss="Read the invoice before anything else; never pay again",
            secrets=tuple(headers.values()),
        ),
        read=_read_verdict if headers else _read_pay_answer,
        accepts=_is_verdict if headers else _answers_probe,
    )


def _answers_probe(status: int) -> bool:
    return succeeded(status) or status in _PROBE_ANSWERS


def _is_verdict(status: int) -> bool:
    return succeeded(status) or (status in CLIENT_ERRORS and status not in NO_VERDICT)


def _read_verdict(answer: Answer) -> PayAnswer:
    """A refusal counts if the service wrote it. The challenge of a 402 is in its headers, whatever the body."""
    status = answer.status
    if not (succeeded(status) or status == HTTPStatus.PAYMENT_REQUIRED or problem_of(answer).genuine):
        raise undecided(answer)
    return _read_pay_answer(answer)


def _read_pay_answer(answer: Answer) -> PayAnswer:
    """The status decides; a body that cannot be read must not turn a payment into an error."""
    return PayAnswer(status_code=answer.status, headers=dict(answer.headers), body=answer.fields())
