"""Payment headers of both rails: base64 of JSON, receipts, challenges. All are limited: nothing is allowed yet."""

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

HEADER_MAX: Final = 16_384
BRACKETS_MAX: Final = 256  # bounds the nesting, for every recursion over the content
RECEIPT_VALUE_MAX: Final = 200

_PRINTABLE = re.compile(r"[\x20-\x7e]*")


def dump_compact(content: Mapping[str, Any]) -> bytes:
    """JSON without spaces."""
    return json.dumps(content, separators=(",", ":")).encode()


def decode_header(value: str) -> dict[str, Any]:
    """The JSON object in a header, in any spelling of base64; the ValueError names the problem without any content."""
    if len(value) > HEADER_MAX:
        raise ValueError(f"it has {len(value)} characters, more than {HEADER_MAX}")
    packed = value.strip().rstrip("=").replace("-", "+").replace("_", "/")  # also unpadded and URL-safe forms
    try:
        raw = b64decode(packed + "=" * (-len(packed) % 4), validate=True)
        nested = raw.count(b"[") + raw.count(b"{") > BRACKETS_MAX
        content = None if nested else json.loads(raw, parse_constant=_no_constant)
    except ValueError:  # binascii.Error, UnicodeDecodeError and JSONDecodeError are all ValueErrors
        raise ValueError("it is not base64 of JSON") from None
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object, or one with too many parts")  # noqa: TRY004 - one error for every malformed header
    return content


def select_receipt(stated: Mapping[str, Any], fields: Iterable[str]) -> dict[str, str]:
    """The known fields that are plain text, cut: results and artifacts show receipts."""
    return {
        name: text[:RECEIPT_VALUE_MAX]
        for name in fields
        if (text := clean_line(stated.get(name))) is not None
    }


def clean_line(value: object) -> str | None:
    """A value as printable text of one line, or None."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) and _PRINTABLE.fullmatch(value) else None


def list_wrong_fields(error: ValidationError) -> str:
    """The fields that are wrong, without their values."""
    fields = {".".join(str(part) for part in item["loc"]) for item in error.errors(include_input=False)}
    return ", ".join(sorted(fields))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


FIELD_MAX: Final = 65_536
CHALLENGES_MAX: Final = 32

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105 - the grammar's word
_GAP = re.compile(r"[\s,]*")
_SCHEME = re.compile(rf"({_TOKEN})(?=[\s,]|$)\s*")
_TOKEN68 = re.compile(r"[A-Za-z0-9\-._~+/]+=*(?=\s*(?:,|$))")
_PARAMETER = re.compile(rf'({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?=,|$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Challenge(NamedTuple):
    """Scheme and parameter names in lower case, values unquoted."""

    scheme: str
    parameters: dict[str, str]


def parse_challenges(value: str) -> list[Challenge]:
    """The challenges of a `WWW-Authenticate` header (RFC 9110, 11.6.1), in its order; ValueError when malformed.

    A comma separates challenges, and the parameters of one: only the grammar shows where the next one begins.
    """
    if len(value) > FIELD_MAX:
        raise ValueError(f"it has {len(value)} characters, more than {FIELD_MAX}")
    challenges: list[Challenge] = []
    position = _skip_blanks(value, 0)
    while position < len(value):
        scheme = _SCHEME.match(value, position)
        if scheme is None or len(challenges) == CHALLENGES_MAX:
            raise ValueError(f"it is not a list of at most {CHALLENGES_MAX} challenges")
        parameters, position = _challenge_parameters(value, scheme.end())
        position = _skip_blanks(value, position)
        challenges.append(Challenge(scheme[1].lower(), parameters))
    return challenges


def _challenge_parameters(value: str, position: int) -> tuple[dict[str, str], int]:
    parameters: dict[str, str] = {}
    if packed := _TOKEN68.match(value, position):
        return parameters, packed.end()
    while match := _PARAMETER.match(value, position):
        name = match[1].lower()
        if name in parameters:
            raise ValueError("a parameter occurs twice in one challenge")
        parameters[name] = match[3] if match[2] is None else _ESCAPED.sub(r"\1", match[2])
        position = _skip_blanks(value, match.end())
    return parameters, position


def _skip_blanks(value: str, position: int) -> int:
    gap = _GAP.match(value, position)
    return gap.end() if gap else position
