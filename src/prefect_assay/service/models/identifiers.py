"""The one form of the service's ids, so that two spellings of one id compare as equal."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def is_uuid(text: str) -> bool:
    """Return True if a text is a UUID in the form of JSON (RFC 9562): five groups of hexadecimal digits in either case."""
    return _UUID.fullmatch(text) is not None


def normalize_id(text: str) -> str:
    """An id as this package keeps and compares it: a UUID in lower case, any other id exactly as it is.

    RFC 9562 reads the digits of a UUID in either case. The ids of invoices, quotes and payment providers need not be
    UUIDs (contract 2.6), and then their letter case may count.
    """
    return text.lower() if is_uuid(text) else text


# A field of an answer that holds an id: normalized where it enters.
Identifier = Annotated[str, AfterValidator(normalize_id)]
