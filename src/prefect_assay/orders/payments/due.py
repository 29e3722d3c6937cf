"""Reads the invoice of one experiment: its status from the experiment, its amount from the payment challenge.

The contract has `GET /experiments/{id}/invoice`, without an amount, and the pay path (2.8, 4.5). `GET /invoices/{id}` is
not in it: where a service has that call, its answer is used instead. A probe of the pay path can move no money.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from prefect_assay.errors import AssayError, Forbidden, PaymentFailed, UnexpectedAnswer, is_absent
from prefect_assay.orders.payments.interfaces import (
    is_success,
    normalize_origin,
    pay_url,
)
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.billing import ExperimentInvoice, Invoice, PayAnswer
from prefect_assay.service.models.experiment import QuoteAcceptance
from prefect_assay.service.models.identifiers import normalize_id
from prefect_assay.service.models.status_questions import has_work_begun, is_invoice_closed, is_invoice_paid
from prefect_assay.service.models.vocabulary import InvoiceStatus, snake_case

_SHOWS_NOTHING: Final = frozenset({HTTPStatus.OK, HTTPStatus.NO_CONTENT})


def page_digest(url: str | None) -> str | None:
    """What tells two hosted pages apart, without the address, which works without a token."""
    return hashlib.sha256(url.strip().encode()).hexdigest() if url else None


def invoice_id_of(acceptance: QuoteAcceptance, base_url: str) -> str | None:
    """The invoice of an acceptance (contract 2.6), by its id or by its pay path; None if it names none that can be paid.

    A pay path counts at the service's own origin and in the contract's exact form, and must agree with the id.
    """
    stated = acceptance.payment.pay_url if acceptance.payment else None
    by_path = _invoice_at(stated, base_url) if stated else None
    if stated and by_path is None:
        return None
    if acceptance.invoice_id and by_path and acceptance.invoice_id != normalize_id(by_path):
        return None
    return acceptance.invoice_id or (by_path and normalize_id(by_path))


def _invoice_at(stated: str, base_url: str) -> str | None:
    try:
        base = pay_url(base_url, "x").rpartition("/api/v1/")[0]
        whole = urljoin(f"{base}/", stated)
        parts = urlsplit(whole)
        segment = parts.path.rpartition("/")[0].rpartition("/")[2]
        invoice_id = unquote(segment)
        exact = f"{normalize_origin(whole)}{parts.path}" == pay_url(base_url, invoice_id)
    except ValueError:
        return None
    return (
        invoice_id if exact and invoice_id and not (parts.query or parts.fragment or parts.username) else None
    )


@dataclass(frozen=True)
class DueInvoice:
    """`InvoiceApi` for the one invoice of an experiment, which the caller has tied to it.

    `amount_of` reads the amount, in US cents, of a challenge.
    """

    api: AssayClient
    experiment_id: str
    amount_of: Callable[[PayAnswer, str], int | None]

    @property
    def base_url(self) -> str:
        """The service's address."""
        return self.api.base_url

    def get(self, invoice_id: str) -> Invoice:
        """The invoice as the service's own call shows it, else as its experiment and its pay path do."""
        try:
            invoice = self.api.invoices.get(invoice_id)
        except (UnexpectedAnswer, Forbidden):  # a page or a gate in front of a call that need not exist
            return self._by_contract(invoice_id)
        except AssayError as error:
            if not is_absent(error):
                raise
            return self._by_contract(invoice_id)
        if invoice.experiment_id is None:
            invoice = invoice.model_copy(update={"experiment_id": self.experiment_id})
        if invoice.amount is None and not (is_invoice_closed(invoice.status) or invoice.money.problem):
            status, amount = self._by_probe(invoice_id)
            invoice = invoice.model_copy(update={"status": status, "amount": amount})
        return invoice

    def _by_contract(self, invoice_id: str) -> Invoice:
        try:
            shown = self.api.experiments.get_invoice(self.experiment_id)
        except UnexpectedAnswer as error:
            if error.status_code not in _SHOWS_NOTHING:
                raise
            # The acceptance has named the invoice, and its pay path says whether it is open.
            shown = ExperimentInvoice()
        if shown.experiment_id not in {None, self.experiment_id}:
            raise PaymentFailed(
                f"the invoice of experiment {self.experiment_id} names experiment {shown.experiment_id}; nothing is paid"
            )
        status, amount = shown.status, None
        if not is_invoice_closed(status):
            status, amount = self._by_probe(invoice_id)
        return Invoice(
            id=invoice_id,
            status=status,
            amount=amount,
            experiment_id=self.experiment_id,
            provider_hosted_invoice_url=shown.provider_invoice_url,
        )

    def _by_probe(self, invoice_id: str) -> tuple[InvoiceStatus | None, int | None]:
        """The challenge shows that the invoice is open; a pay path that asks for nothing may say that it is paid."""
        answer = self.api.invoices.pay(invoice_id)
        if answer.status_code == HTTPStatus.PAYMENT_REQUIRED:
            return InvoiceStatus.OPEN, self.amount_of(answer, invoice_id)
        is_paid = answer.body.get("already_paid") is True or is_invoice_paid(
            snake_case(answer.body.get("status"))
        )
        if is_success(answer) and (
            is_paid or has_work_begun(self.api.experiments.get(self.experiment_id).status)
        ):
            return InvoiceStatus.PAID, None
        return InvoiceStatus.OPEN, None  # the pay path's own words say why it takes no payment

    def pay(self, invoice_id: str, headers: Mapping[str, str] | None = None) -> PayAnswer:
        """See `InvoiceApi`."""
        return self.api.invoices.pay(invoice_id, headers)
