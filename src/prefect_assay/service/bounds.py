"""Bounds of user input: Prefect's database, JSON and a browser keep every value within them unchanged.

The same bounds are in the forms, at the command line and in the models. PostgreSQL keeps no NUL character, UTF-8 no
half of a surrogate pair, a browser no integer beyond 2^53. Prefect writes, but cannot read, what is nested too deeply.
"""

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, JsonValue

NUMBER_MAX: Final = 2**53 - 1  # the largest that a browser keeps exactly (RFC 8259, 6)
CENTS_MAX: Final = 10**12  # ten billion USD
COUNT_MAX: Final = 1_000_000
DAYS_MAX: Final = 3650
LIST_MAX: Final = 10_000
LINE_MAX: Final = 2000
RESIDUES_MAX: Final = 100_000
SECRET_MAX: Final = 10_000
DEPTH_MAX: Final = 4  # of lists and mappings in free-form settings, themselves included
TEXT_MAX: Final = 500_000  # pasted designs, and texts of free-form settings: what a run's parameters hold

_UNSTORABLE: Final = r"\u0000\ud800-\udfff"
_PATTERN: Final[dict[str, JsonValue]] = {"pattern": f"^[^{_UNSTORABLE}]*$"}
_FINDINGS_MAX: Final = 20
_NAME_SHOWN: Final = 40
_CUT_DIGITS: Final = 12


def _stored(text: str) -> str:
    if _is_unstorable(text):
        raise ValueError("contains a NUL or another character that no database keeps; remove it")
    return text


Line = Annotated[str, AfterValidator(_stored), Field(max_length=LINE_MAX, json_schema_extra=_PATTERN)]
Text = Annotated[str, AfterValidator(_stored), Field(max_length=TEXT_MAX, json_schema_extra=_PATTERN)]
Residues = Annotated[str, AfterValidator(_stored), Field(max_length=RESIDUES_MAX, json_schema_extra=_PATTERN)]
CAMPAIGN_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$"
CampaignId = Annotated[str, Field(max_length=60, pattern=CAMPAIGN_ID)]
Count = Annotated[int, Field(ge=1, le=COUNT_MAX)]
Seed = Annotated[int, Field(ge=0, le=NUMBER_MAX)]
Days = Annotated[float, Field(ge=0, le=DAYS_MAX)]
Number = Annotated[float, Field(ge=-NUMBER_MAX, le=NUMBER_MAX)]
Positive = Annotated[float, Field(gt=0, le=NUMBER_MAX)]
DeadlineDays = Annotated[int, Field(ge=1, le=365)]
PollSeconds = Annotated[float, Field(gt=0, le=86_400)]
Concentrations = Annotated[tuple[Annotated[float, Field(ge=0, le=NUMBER_MAX)], ...], Field(max_length=1000)]


def cut(name: str, longest: int) -> str:
    """A name of bounded length: a longer one ends in its digest, so that two names stay two."""
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_CUT_DIGITS]
    return f"{name[: longest - _CUT_DIGITS - 1]}-{digest}"


def unstorable(value: Any, place: str = "", *, levels: int = DEPTH_MAX) -> Iterator[str]:
    """What in a JSON value cannot be kept as it is, each finding with its place and without the value."""
    if isinstance(value, dict | list | tuple):
        if not levels:
            yield f"{place}: lists and mappings too deep within each other; {DEPTH_MAX} levels of settings are kept"
            return
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict) and (not isinstance(key, str) or _is_unstorable(key)):
                yield f"{place}: a name that is not text, or contains a character that no database keeps"
            else:
                yield from unstorable(item, f"{place}.{_short(str(key))}".lstrip("."), levels=levels - 1)
    elif isinstance(value, str):
        if _is_unstorable(value):
            yield f"{place}: a NUL or another character that no database keeps"
    elif isinstance(value, int | float):
        if not -NUMBER_MAX <= value <= NUMBER_MAX:  # also NaN
            yield f"{place}: a number that is not kept exactly; give one between {-NUMBER_MAX:,} and {NUMBER_MAX:,}"
    elif value is not None:
        yield f"{place}: not JSON ({type(value).__name__})"


def _is_unstorable(value: str) -> bool:
    return "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value)


def _short(key: str) -> str:
    return key if len(key) <= _NAME_SHOWN else f"{key[: _NAME_SHOWN - 1]}…"


def _free_form(value: dict[str, Any]) -> dict[str, Any]:
    findings = [finding for _, finding in zip(range(_FINDINGS_MAX), unstorable(value), strict=False)]
    if findings:
        raise ValueError("; ".join(findings))
    return value


def _free_schema(levels: int) -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [
        {"type": "null"},
        {"type": "boolean"},
        {"type": "number", "minimum": -NUMBER_MAX, "maximum": NUMBER_MAX},
        {"type": "string", "maxLength": TEXT_MAX, **_PATTERN},
    ]
    if levels:
        inner = _free_schema(levels - 1)
        kinds += [
            {"type": "array", "items": inner, "maxItems": LIST_MAX},
            {"type": "object", "additionalProperties": inner},
        ]
    return {"anyOf": kinds}


# Free-form settings. The form's schema has as many levels as the check, because Prefect refuses recursive ones.
_FREE_SCHEMA: Final[dict[str, Any]] = {"additionalProperties": _free_schema(DEPTH_MAX - 1)}
FreeForm = Annotated[dict[str, Any], AfterValidator(_free_form), Field(json_schema_extra=_FREE_SCHEMA)]

# Bounds of the form only: a specification can be made with any value, and is then checked with all its findings.
ReplicatesForm = Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": 5})]
ConcentrationsForm = Annotated[
    tuple[Annotated[float, Field(json_schema_extra={"minimum": 0, "maximum": NUMBER_MAX})], ...],
    Field(json_schema_extra={"maxItems": 1000}),
]
ResiduesForm = Annotated[str, Field(json_schema_extra={"maxLength": RESIDUES_MAX, **_PATTERN})]
LineForm = Annotated[str, Field(json_schema_extra={"maxLength": LINE_MAX, **_PATTERN})]
FreeForms = Annotated[dict[str, Any], Field(json_schema_extra=_FREE_SCHEMA)]
