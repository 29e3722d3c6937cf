"""Checks the service's address and the token before anything is sent, and which addresses are safe to use."""

import ipaddress
import socket
from typing import Final
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr

from prefect_assay.errors import ConfigurationError

API_PREFIX: Final = "/api/v1"
# ::/96, ::ffff:0:0/96 and 64:ff9b::/96: an IPv4 address in the last 32 bits
_CARRIERS: Final = frozenset({0, 0xFFFF, 0x64FF9B << 64})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def checked_base_url(url: str) -> str:
    """The address with a lower-case host, without a trailing slash and `/api/v1`.

    ConfigurationError if it is malformed, plain http to another machine, or carries credentials.
    """
    parts = _split(url.strip())
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError("base_url must not carry a user name or a password; the token is a setting")
    if parts.query or parts.fragment:
        raise ConfigurationError("base_url must be an address without a query or a fragment")
    if not is_protected(url.strip()):
        raise ConfigurationError(
            f"base_url {origin(url)} must use https; plain http is accepted on loopback only, because the token "
            "would travel in the open"
        )
    path = parts.path.rstrip("/").removesuffix(API_PREFIX).rstrip("/")
    return f"{origin(url)}{path}"


def checked_token(token: SecretStr | str) -> SecretStr:
    """The token without surrounding white space; ConfigurationError, without its value, if it is not fit for a header."""
    value = (token.get_secret_value() if isinstance(token, SecretStr) else token).strip()
    if not value:
        raise ConfigurationError("the API token is empty; create one in the service's portal and set it")
    if not all("!" <= letter <= "~" for letter in value):
        raise ConfigurationError(
            "the API token contains a space or a character that no token has; set the token alone, without 'Bearer'"
        )
    return SecretStr(value)


def origin(url: str) -> str:
    """Scheme, host and port in one spelling; ConfigurationError if it is not an http address."""
    parts = _split(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in {None, _DEFAULT_PORTS[parts.scheme]} else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}"


def is_address(url: str, *schemes: str) -> bool:
    """Return True for a whole address with one of these schemes, a host and a possible port."""
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an impossible port or a broken IPv6 address
        return False


def is_protected(url: str) -> bool:
    """Return True for https and for loopback, where traffic cannot be read along the way."""
    parts = _split(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Return True for this machine, by name or by number."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_loopback_url(url: str) -> bool:
    """Return True if the URL leads to this machine."""
    return is_loopback(urlsplit(url).hostname or "")


def is_internal(host: str) -> bool:
    """Return True for this machine and numbers outside the public internet, however spelt. Names are not resolved."""
    name = host.lower().removesuffix(".")
    if is_loopback(name):
        return True
    number = _parse_ip_address(name)
    return number is not None and (number.is_multicast or not number.is_global)


def _parse_ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address in any spelling that a resolver takes; an IPv4 address inside an IPv6 one is unpacked."""
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))  # 2130706433, 0x7f.1, 0177.0.0.1
        except OSError:
            return None
    if isinstance(number, ipaddress.IPv6Address) and int(number) >> 32 in _CARRIERS:
        return ipaddress.IPv4Address(int(number) & 0xFFFFFFFF)
    return number.sixtofour or number if isinstance(number, ipaddress.IPv6Address) else number


def _split(url: str) -> SplitResult:
    if is_address(url, *_DEFAULT_PORTS):
        return urlsplit(url)
    raise ConfigurationError("base_url must be a whole address such as https://lab.example.org")
