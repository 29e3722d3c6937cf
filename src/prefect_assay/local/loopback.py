"""Plain HTTP to processes of this machine."""

import contextlib
import ssl
from typing import Final

import httpx

HOST: Final = "127.0.0.1"
# For plain HTTP: loading the system's certificates takes longer than most requests.
NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def is_answering(url: str) -> bool:
    """Whether an address answers with success."""
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(url, timeout=5, trust_env=False, verify=NO_TLS).is_success
    return False
