"""The service as paying sees it: two calls as a protocol, which `AssayClient` satisfies, and addresses in one spelling."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from prefect_assay.errors import ConfigurationError
from prefect_assay.models.billing import Invoice


class PayAnswer(Protocol):
    """The response of the pay path, whatever its status (contract 4.5)."""

    @property
    def status_code(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers."""
        ...

    @property
    def body(self) -> Mapping[str, Any]:
        """The JSON object; empty when the body is no object."""
        ...


class PayApi(Protocol):
    """The two calls of a payment."""

    @property
    def base_url(self) -> str:
        """The service's address, without `/api/v1`."""
        ...

    def invoice_by_id(self, invoice_id: str) -> Invoice:
        """`GET /invoices/{invoice_id}`."""
        ...

    def pay(self, invoice_id: str, headers: Mapping[str, str] | None = None) -> PayAnswer:
        """`POST /invoices/{invoice_id}/pay`, once. With headers, a lost answer raises PaymentOutcomeUnknown."""
        ...


def is_success(answer: PayAnswer) -> bool:
    """Return True for a 2xx."""
    return HTTPStatus.OK <= answer.status_code < HTTPStatus.MULTIPLE_CHOICES


def header(answer: PayAnswer, name: str) -> str | None:
    """One response header by name, in any case."""
    wanted = name.lower()
    return next((value for key, value in answer.headers.items() if key.lower() == wanted), None)


def origin(url: str) -> str:
    """Scheme, host and port in one spelling: `HTTPS://Host:443/x` becomes `https://host`; ValueError for no URL."""
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), parts.hostname
    if not scheme or not host:
        raise ValueError("a URL needs a scheme and a host")
    bracketed = f"[{host}]" if ":" in host else host
    default_port = {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{bracketed}" + (f":{parts.port}" if parts.port not in {None, default_port} else "")


def address(base_url: str) -> str:
    """The service's address in one spelling, so that ledger keys and nonces do not depend on the writer."""
    try:
        return f"{origin(base_url)}{urlsplit(base_url).path.rstrip('/')}"
    except ValueError as error:
        raise ConfigurationError(f"the service's base_url is no usable URL: {error}") from None


def pay_url(base_url: str, invoice_id: str) -> str:
    """The pay path of one invoice as a whole URL (contract 2.6, `pay_url`)."""
    return f"{address(base_url)}/api/v1/invoices/{quote(invoice_id, safe='')}/pay"
