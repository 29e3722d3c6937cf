"""Text from elsewhere, such as the service's, made harmless for terminals, Markdown, pages, tables and logs.

What is archived raw stays byte for byte; everything that is read from it passes here once, where it becomes a model, an error
or a line on a terminal. A control character becomes U+FFFD rather than nothing, so that two texts that differ stay different.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

# C0 without tab and newline, DEL, C1, halves of surrogate pairs, line separators, marks and overrides of the direction.
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_IN_LINK: Final = re.compile(r"[!#-%&*-;=?-Z_a-z~\[\]]+")  # ASCII of RFC 3986 without quotes and parentheses
_WORDS: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 .-]*[A-Za-z0-9])?")
# Fields of answers that a person opens in a browser.
_LINKS: Final = frozenset(
    {
        "experiment_url",
        "hosted_invoice_url",
        "provider_hosted_invoice_url",
        "provider_invoice_url",
        "provider_quote_url",
    }
)


def clean_text(text: str) -> str:
    """The text with U+FFFD in the place of each control character; tabs and newlines stay."""
    if text.isprintable():  # most texts of an answer, three times as fast
        return text
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))


def clean_fields(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of one object of an answer with clean texts, and None in the place of links that are not safe.

    Texts in a list or an object of texts are cleaned as well. Objects below are models, which clean their own fields.
    """
    return {name: _clean_field(name, value) for name, value in answer.items()}


def _clean_field(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return safe_link(value) if name in _LINKS else clean_text(value)
    if isinstance(value, list | tuple):
        return [clean_text(item) if isinstance(item, str) else item for item in value]
    if isinstance(value, dict):
        return {key: clean_text(item) if isinstance(item, str) else item for key, item in value.items()}
    return value


def safe_link(address: str | None) -> str | None:
    """The address if a person may be sent there: https, or http on this machine; None for any other.

    It has no character that ends a link in Markdown or an attribute in HTML.
    """
    if not address or not _IN_LINK.fullmatch(address):
        return None
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return None
    if not host or "@" in parts.netloc:
        return None
    return address if parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host)) else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def quote_markdown(text: str) -> str:
    """The text as code in one line of Markdown: without markup, links or further cells of a table."""
    line = " ".join(clean_text(text).split()).replace("`", "'").replace("|", "/")
    return f"`{line}`" if line else ""


def unquote_markdown(text: str) -> str:
    """A value for a terminal: `quote_markdown` undone where the whole value is code."""
    inner = text[1:-1]
    return inner if text[:1] == text[-1:] == "`" and inner and "`" not in inner else text


def label_markdown(text: str) -> str:
    """The text as it is where it has words alone, such as a code; else as `quote_markdown`."""
    return text if _WORDS.fullmatch(text) else quote_markdown(text)


def link_markdown(text: str, address: str | None) -> str:
    """A link in Markdown, or its text alone where the address is not safe."""
    link = safe_link(address)
    return f"[{label_markdown(text)}]({link})" if link else label_markdown(text)
