"""Secrets of a request are cut out of what the service, or a proxy, says. Pure."""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from pydantic_core import from_json

from prefect_assay.service.client.http.request import Answer

_CUT: Final = "[secret]"
# Shorter ones may be words, which an accepted answer has everywhere.
LENGTH_MIN: Final = 16
_PACKED = re.compile(r"[A-Za-z0-9+/_-]{16,}")
_URL_SAFE: Final = str.maketrans("+/", "-_")


def scrubbed(answer: Answer, secrets: Iterable[str]) -> Answer:
    """Cut out the secrets that a service or a proxy may have echoed, in any spelling read here."""
    secrets = tuple(filter(None, secrets))
    spelt = spellings(secrets)
    content = answer.content
    for secret in spelt:
        content = content.replace(secret.encode(), _CUT.encode())
    if b"\\" in content:
        for secret in secrets:
            content = _escaped(secret).sub(_CUT.encode(), content)
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


@lru_cache
def _escaped(secret: str) -> re.Pattern[bytes]:
    """The secret in a JSON text, whose writer may escape any letter. All other bytes of the text stay as they are."""
    return re.compile(b"".join(map(_letter, secret)))


def _letter(letter: str) -> bytes:
    codes = letter.encode("utf-16-be", "surrogatepass")
    escaped = b"".join(
        rb"\\u(?i:%s)" % codes[offset : offset + 2].hex().encode() for offset in range(0, len(codes), 2)
    )
    spelt = {letter, json.dumps(letter, ensure_ascii=False)[1:-1], *(("\\/",) if letter == "/" else ())}
    plain = sorted(spelt, key=len, reverse=True)
    return b"(?:%s|%s)" % (b"|".join(re.escape(text.encode(errors="replace")) for text in plain), escaped)


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
