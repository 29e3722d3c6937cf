"""The `WWW-Authenticate` header as a list of challenges (RFC 9110, 11.6.1). Knows no scheme.

Several challenges may stand in one header, and several headers arrive joined by commas; a comma also parts the
parameters of one challenge, so that only the grammar tells where the next one begins.
"""

import re
from typing import Final, NamedTuple

FIELD_MAX: Final = 65_536
CHALLENGES_MAX: Final = 32

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105 - the grammar's word
_GAP = re.compile(r"[\s,]*")
_SCHEME = re.compile(rf"({_TOKEN})(?=[\s,]|$)\s*")
_TOKEN68 = re.compile(r"[A-Za-z0-9\-._~+/]+=*(?=\s*(?:,|$))")
_PARAMETER = re.compile(rf'({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?=,|$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Challenge(NamedTuple):
    """One challenge: its scheme in lower case and its parameters, names in lower case, values unquoted."""

    scheme: str
    parameters: dict[str, str]


def parse(value: str) -> list[Challenge]:
    """All challenges of the header, in its order.

    Raises:
        ValueError: it is too large, or not what the grammar describes.
    """
    if len(value) > FIELD_MAX:
        raise ValueError(f"it has {len(value)} characters, more than {FIELD_MAX}")
    found: list[Challenge] = []
    position = _skip(value, 0)
    while position < len(value):
        scheme = _SCHEME.match(value, position)
        if scheme is None or len(found) == CHALLENGES_MAX:
            raise ValueError(f"it is no list of at most {CHALLENGES_MAX} challenges")
        parameters, position = _parameters(value, scheme.end())
        position = _skip(value, position)
        found.append(Challenge(scheme[1].lower(), parameters))
    return found


def _parameters(value: str, position: int) -> tuple[dict[str, str], int]:
    parameters: dict[str, str] = {}
    if packed := _TOKEN68.match(value, position):
        return parameters, packed.end()
    while match := _PARAMETER.match(value, position):
        name = match[1].lower()
        if name in parameters:
            raise ValueError("a parameter stands twice in one challenge")
        parameters[name] = match[3] if match[2] is None else _ESCAPED.sub(r"\1", match[2])
        position = _skip(value, match.end())
    return parameters, position


def _skip(value: str, position: int) -> int:
    gap = _GAP.match(value, position)
    return gap.end() if gap else position
