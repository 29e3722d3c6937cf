"""Quotes and invoices as PDF (service-shapes, Quotes and invoices): where they lie, and what is one.

They are downloads: an invoice usually lies with the payment provider, and the call redirects there. The token is not
sent along (`downloading`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from prefect_assay.client.http.address import API_PREFIX
from prefect_assay.client.http.request import segment
from prefect_assay.errors import NotFound, NotReady, UnexpectedAnswer

_MAGIC: Final = b"%PDF-"
_JUNK: Final = 1024  # readers accept a file whose header stands a little further in


@dataclass(frozen=True, slots=True)
class Pdf:
    """A file to fetch. `path` is relative to the service's address."""

    path: str
    absent: type[NotFound] = NotFound

    def whole(self, pieces: Iterable[bytes]) -> bytes:
        """The file in one piece; UnexpectedAnswer when it is no PDF, such as the page of a proxy."""
        content = b"".join(pieces)
        if _MAGIC not in content[:_JUNK]:
            raise UnexpectedAnswer(f"GET {self.path}: {len(content)} bytes that are no PDF")
        return content


def quote_pdf(experiment_id: str) -> Pdf:
    """GET /experiments/{id}/quote/pdf: the quote as a file.

    Raises:
        NotReady: the quote does not exist yet.
        UnexpectedAnswer: what came is no PDF.
    """
    return Pdf(f"{API_PREFIX[1:]}/experiments/{segment(experiment_id)}/quote/pdf", NotReady)


def invoice_pdf(invoice_id: str) -> Pdf:
    """GET /invoices/{id}/pdf: the invoice as a file, by its own id or the provider's.

    Raises:
        NotFound: there is no such invoice.
        UnexpectedAnswer: what came is no PDF.
    """
    return Pdf(f"{API_PREFIX[1:]}/invoices/{segment(invoice_id)}/pdf")
