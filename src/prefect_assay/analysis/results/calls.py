"""The words for a call: binds, does not bind, no expression, in progress, unknown. The only vocabulary of calls.

Results, summaries, histories and selection read calls with `read_call`. Words come from the published result shapes (`true`,
`false`, `unknown`, `in_progress`; `strong`, `medium`, `weak`, `none`) and from public files of the vendor and of
binder-design campaigns. Case, blanks, hyphens and underscores make no difference.
"""

import math
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

CallField = Literal["binding", "binding_strength", "expression", "kd"]


class Call(StrEnum):
    """What the laboratory says of a design without a number."""

    BINDS = "binds"
    DOES_NOT_BIND = "does_not_bind"
    EXPRESSES = "expresses"
    NO_EXPRESSION = "no_expression"
    IN_PROGRESS = "in_progress"
    UNKNOWN = "unknown"
    NOT_STATED = "not_stated"  # an empty field


class ReadCall(NamedTuple):
    """One call. `unread` is the word, as it came, of a call that the vocabulary does not have: then `call` is `UNKNOWN`."""

    call: Call
    unread: str | None = None


_YES: Final = ("true", "yes", "y", "t", "1", "+")
_NO: Final = ("false", "no", "n", "f", "0", "-")
_NOT_EXPRESSED: Final = ("no_expression", "not_expressed", "did_not_express", "insoluble")
_ANY: Final = {
    **dict.fromkeys(("", "null", "nan", "na"), Call.NOT_STATED),
    **dict.fromkeys(("in_progress", "pending"), Call.IN_PROGRESS),
    **dict.fromkeys(
        ("unknown", "nd", "not_determined", "nm", "not_measured", "nt", "not_tested"), Call.UNKNOWN
    ),
    **dict.fromkeys(_NOT_EXPRESSED, Call.NO_EXPRESSION),
}
_NON_BINDERS: Final = (
    *(
        "no_binding",
        "no_binding_detected",
        "non_binder",
        "non_binding",
        "no_binder",
        "not_binding",
        "no_bind",
    ),
    *("does_not_bind", "did_not_bind", "nb", "dnb"),
)


def _key(word: str) -> str:
    """A word without case, blanks, hyphens, underscores, slashes and dots."""
    text = word.strip().casefold()
    return re.sub(r"[\s\-_./]+", "", text) or text


def _by_key(*words: tuple[Iterable[str], Call]) -> dict[str, Call]:
    known = {_key(word): call for word, call in _ANY.items()}
    return known | {_key(word): call for group, call in words for word in group}


_WORDS: Final[dict[CallField, dict[str, Call]]] = {
    "binding": _by_key(
        ((*_YES, "binder", "binding", "binds", "positive"), Call.BINDS),
        ((*_NO, *_NON_BINDERS, "negative"), Call.DOES_NOT_BIND),
    ),
    "binding_strength": _by_key(
        (("strong", "medium", "weak", "1", "2", "3"), Call.BINDS),
        (("none", "0", *_NON_BINDERS), Call.DOES_NOT_BIND),
    ),
    "expression": _by_key(
        (("high", "medium", "low", "expressed", *_YES), Call.EXPRESSES),
        (("none", "failed", *_NO), Call.NO_EXPRESSION),
    ),
    "kd": _by_key((_NON_BINDERS, Call.DOES_NOT_BIND)),  # a word in place of a K_D
}


_NEGATIVE_PHRASES: Final = {
    _key(word) for word in (*_NOT_EXPRESSED, *_NON_BINDERS) if word not in {"nb", "dnb"}
}

CALL_FIELDS: Final[dict[CallField, tuple[str, ...]]] = {
    "binding": ("binding", "binder", "binds", "is_binder", "binding_label"),
    "binding_strength": ("binding_strength",),
    "expression": ("expression", "expressed"),
}
"""The fields and columns that hold a call, in the order of public tables."""


def read_call(word: Any, field: CallField = "binding") -> ReadCall:
    """Read one word of a field, or a boolean, 0 or 1; never raises.

    >>> read_call("Non binder")
    ReadCall(call=<Call.DOES_NOT_BIND: 'does_not_bind'>, unread=None)
    >>> read_call("maybe").unread
    'maybe'
    """
    if word is None or (isinstance(word, float) and math.isnan(word)):
        return ReadCall(Call.NOT_STATED)
    text = str(word).strip()
    call = _WORDS[field].get(_key(re.sub(r"([01-3])\.0+", r"\1", text)))
    return ReadCall(Call.UNKNOWN, text) if call is None else ReadCall(call)


def is_negative_phrase(word: Any) -> bool:
    """Whether a text says, in whichever field, that a design does not bind or did not express."""
    return isinstance(word, str) and _key(word) in _NEGATIVE_PHRASES
