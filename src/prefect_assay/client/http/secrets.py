"""Secrets of a request are cut out of what the service, or a proxy, says. Pure."""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from pydantic_core import from_json

from prefect_assay.client.http.request import Answer

_CUT: Final = "[secret]"
_PACKED = re.compile(r"[A-Za-z0-9+/_-]{16,}")
_URL_SAFE: Final = str.maketrans("+/", "-_")


def scrubbed(answer: Answer, secrets: Iterable[str]) -> Answer:
    """Cut out the secrets that a service or a proxy may have echoed, in any spelling read here."""
    spelt = spellings(secrets)
    content = answer.content
    for secret in spelt:
        content = content.replace(secret.encode(), _CUT.encode())
    if b"\\" in content and (text := _as_written(content)) != cut(text, spelt):
        content = cut(text, spelt).encode()
    headers = {
        name: _PACKED.sub(lambda run: _unless_it_holds(run[0], spelt), cut(value, spelt))
        for name, value in answer.headers.items()
    }
    return Answer(status=answer.status, headers=headers, content=content, words=answer.words)


def spellings(secrets: Iterable[str]) -> tuple[str, ...]:
    """Each secret as it is, in JSON, in JSON with escaped slashes, and in an address."""
    return tuple(
        dict.fromkeys(
            spelt
            for secret in filter(None, secrets)
            for spelt in (
                secret,
                json.dumps(secret)[1:-1],
                secret.replace("/", r"\/"),
                quote(secret, safe=""),
            )
        )
    )


def cut(text: str, spelt: Iterable[str]) -> str:
    """The text without the secrets, given in all their spellings."""
    for secret in spelt:
        text = text.replace(secret, _CUT)
    return text


def _as_written(content: bytes) -> str:
    """JSON without needless escapes, since a writer may escape any letter. Empty if it is not JSON."""
    try:
        return json.dumps(from_json(content), ensure_ascii=False)
    except ValueError:
        return ""


def _unless_it_holds(packed: str, spelt: Iterable[str]) -> str:
    """A run of base64 in a header; challenges and receipts are JSON in base64."""
    whole = packed.translate(_URL_SAFE)[: -1 if len(packed) % 4 == 1 else None]
    content = urlsafe_b64decode(whole + "=" * (-len(whole) % 4))
    text = content.decode(errors="replace") + _as_written(content)
    return packed if cut(text, spelt) == text else _CUT
