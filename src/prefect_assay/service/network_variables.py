"""Checks the environment's variables for proxies and certificates before a client is made.

httpx, botocore and Prefect read them when they make a client or send the first request, and fail each in its own way. This
module must not know any of them.
"""

import ipaddress
import os
import re
import ssl
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from prefect_assay.errors import CertificatesUnreadable, ConfigurationError

CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # that httpx reads, in this order
_S3_CERTIFICATES: Final = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")  # likewise botocore
_NO_PROXY: Final = "no_proxy"
_HTTP: Final = ("http", "https")
_SOCKS: Final = ("socks5", "socks5h")
_SCHEMES: Final = re.compile(r"(?:https?|ftp|socks\w*):", re.IGNORECASE)
_UNSET: Final = "or unset it"
# Host names, IPv4 addresses and ranges, with or without a port; httpx reads what has a scheme as an address.
_READABLE: Final = re.compile(r"[\w.*-]+(?:/\d+|:\d+)?", re.ASCII)
_BRACKETED: Final = re.compile(r"\[(?P<address>[^\]]+)\](?P<port>:\d+)?")


def check_http_variables() -> None:
    """Check what httpx clients read.

    Raises:
        ConfigurationError: a variable has no usable value; the message names it and shows no value of a proxy, which may hold
            a password.
        CertificatesUnreadable: its file or folder cannot be read now.
    """
    check_http_proxies()
    name = next((name for name in CERTIFICATES if os.environ.get(name)), None)
    if name is not None:
        check_certificates(name, os.environ[name])


def check_http_proxies() -> None:
    """Check the proxies that httpx clients read, and the exceptions from them.

    Raises:
        ConfigurationError: a variable has no usable value.
    """
    if "*" in _entries():
        return  # then no proxy is read
    _check_proxies(("http", "https", "all"), (*_HTTP, *_SOCKS))
    for entry in _entries():
        if _rewrite_no_proxy_entry(entry) != entry:
            raise ConfigurationError(
                f"{_name_of(_NO_PROXY)}: its entry {entry!r} cannot be read by httpx; write the address without brackets, "
                "or leave the entry out"
            )


def check_s3_variables() -> None:
    """Check what botocore reads.

    Raises:
        ConfigurationError: a variable has no usable value.
        CertificatesUnreadable: its file cannot be read now.
    """
    _check_proxies(_HTTP, _HTTP)
    name = next((name for name in _S3_CERTIFICATES if os.environ.get(name)), None)
    if name is not None:
        check_certificates(name, os.environ[name])


def check_certificates(name: str, place: str) -> None:
    """Check the certificates that a variable names, in a file or in folders.

    Raises:
        CertificatesUnreadable: they cannot be read now.
    """
    if name == "SSL_CERT_DIR":
        if any(Path(folder).is_dir() for folder in place.split(os.pathsep)):
            return
        raise _unreadable(name, place, "there is no such folder")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(
            **{"capath" if Path(place).is_dir() and name in _S3_CERTIFICATES else "cafile": place}
        )
    except ssl.SSLError:
        raise _unreadable(name, place, "it holds no certificate") from None
    except OSError as error:
        raise _unreadable(name, place, error.strerror or type(error).__name__) from None


def _unreadable(name: str, place: str, why: str) -> CertificatesUnreadable:
    return CertificatesUnreadable(
        f"{name}: the certificates in {place} cannot be read ({why}); correct the variable, {_UNSET}, or bring them back"
    )


def drop_unreadable_exceptions() -> tuple[str, ...]:
    """Rewrite NO_PROXY of this process and its children so that httpx can read it; returns the entries that are left out.

    An address in brackets is written as httpx reads it. A range of IPv6 addresses has no such form; those of IPv4 have no
    effect in httpx either.
    """
    entries = _entries()
    kept = {entry: _rewrite_no_proxy_entry(entry) for entry in entries}
    if all(entry == readable for entry, readable in kept.items()):
        return ()
    os.environ[_name_of(_NO_PROXY)] = ",".join(filter(None, (kept[entry] for entry in entries)))
    return tuple(entry for entry, readable in kept.items() if readable is None)


def _entries() -> list[str]:
    return [entry.strip() for entry in os.environ.get(_name_of(_NO_PROXY), "").split(",") if entry.strip()]


def _rewrite_no_proxy_entry(entry: str) -> str | None:
    """An entry of NO_PROXY as httpx can read it; None if it cannot."""
    if _READABLE.fullmatch(entry):
        return entry
    if "://" in entry:
        with suppress(ValueError):
            parts = urlsplit(entry)
            return entry if parts.hostname and parts.port != 0 and entry.isascii() else None
        return None
    match = _BRACKETED.fullmatch(entry)
    address = match["address"] if match else entry
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return None
    return f"all://[{address}]{match['port']}" if match and match["port"] else address


def _name_of(variable: str) -> str:
    """A variable as it is spelled; of several spellings the one that Python reads: in small letters."""
    spelled = [name for name in os.environ if name.lower() == variable and os.environ[name]]
    return min(spelled, key=lambda name: (name != variable, name), default=variable.upper())


def _check_proxies(kinds: tuple[str, ...], schemes: tuple[str, ...]) -> None:
    for kind in kinds:
        name = _name_of(f"{kind}_proxy")
        if fault := _fault_of(os.environ.get(name, ""), schemes):
            raise ConfigurationError(f"{name}: {fault}; write {schemes[0]}://host:port, {_UNSET}")


def _fault_of(value: str, schemes: tuple[str, ...]) -> str | None:
    if not value:
        return None
    if "://" not in value and _SCHEMES.match(value):
        return "its value names a scheme and no host"
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        named = parts.hostname and (parts.port is None or parts.port) and not re.search(r"\s", value)
    except ValueError:
        named = False
    else:
        if parts.scheme not in schemes:
            known = ", ".join(schemes)
            return f"its scheme {parts.scheme!r} is not one of {known}"
        if parts.scheme in _SOCKS and find_spec("socksio") is None:
            return f"a {parts.scheme} proxy needs the package socksio: pip install 'httpx[socks]'"
    return None if named else "its value is not an address of a proxy"
