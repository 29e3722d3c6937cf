"""What an organisation's webhook may look like: a public HTTPS address, and headers of the customer's own.

Pure. No name is looked up: a name that resolves to a private address passes, as nothing here can tell.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from prefect_assay.lab.requests.validation import Finding

HEADERS_MAX: Final = 20
HEADER_VALUE_MAX: Final = 4_096
URL_MAX: Final = 2_048
MASK: Final = "********"

# RFC 9110: a field name is a token; a value has no control characters and no spaces around it.
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_HOST: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
# The last label of an address in one of its old spellings, such as 127.1 or 0x7f000001.
_NUMERIC: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PRIVATE_NAMES: Final = ("localhost", "local", "internal", "lan", "home.arpa", "intranet")
# What the sender itself decides: framing, the connection, and the type of the body.
_RESERVED: Final = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def url_findings(url: str | None, *, private: bool) -> list[Finding]:
    """Public HTTPS (service shapes). `private` lets private hosts pass, by http too: `--allow-http-webhooks`."""
    if url is None or (host := _host(url)) is None:
        return [] if url is None else [Finding("url: must be a public HTTPS URL")]
    inside = _is_private(host)
    scheme = urlsplit(url).scheme
    if scheme == "https" and (private or not inside):
        return []
    if scheme == "http" and private and inside:
        return []
    cause = "a private or loopback host" if inside and scheme == "https" else "not HTTPS"
    return [Finding(f"url: must be a public HTTPS URL; this is {cause}")]


def _host(url: str) -> str | None:
    """The host, lower case; None when the address is none that a delivery could go to."""
    if len(url) > URL_MAX or not re.fullmatch(r"[\x21-\x7e]+", url):
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or port == 0 or "@" in parts.netloc:  # a password does not belong into an address
        return None
    host = host.removesuffix(".")
    if _address(host) is not None:
        return host
    plain = _HOST.fullmatch(host) and not _NUMERIC.fullmatch(host.rpartition(".")[2])
    return host if plain else None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _is_private(host: str) -> bool:
    address = _address(host)
    if address is not None:
        return not address.is_global or address.is_multicast
    return "." not in host or host.endswith(tuple(f".{name}" for name in _PRIVATE_NAMES))


def header_findings(headers: Mapping[str, str] | None, *, own_prefix: str) -> list[Finding]:
    """Names and values that can be sent, and that leave the service's own headers alone.

    Args:
        headers: the customer's.
        own_prefix: what the names of the service's own headers begin with, such as `X-Service-`.
    """
    found: list[Finding] = []
    names = [name.lower() for name in headers or {}]
    if len(names) > HEADERS_MAX:
        found.append(Finding(f"headers: at most {HEADERS_MAX}", 422))
    if len(set(names)) != len(names):
        found.append(Finding("headers: a name is given twice", 422))
    for name, value in (headers or {}).items():
        cause = _header_problem(name, value, own_prefix.lower())
        if cause:
            found.append(Finding(f"headers: {name[:64]!r} {cause}", 422))
    return found


def _header_problem(name: str, value: str, own_prefix: str) -> str | None:
    if not _NAME.fullmatch(name):
        return "is not the name of a header"
    if name.lower() in _RESERVED or name.lower().startswith((own_prefix, "proxy-")):
        return "belongs to the service"
    if value == MASK:
        return "has the mask of a hidden value, not a value"
    if len(value) > HEADER_VALUE_MAX or not _VALUE.fullmatch(value):
        return f"takes at most {HEADER_VALUE_MAX} printable ASCII characters, without line breaks"
    return None
