"""The JSON of an answer, and the links in it that work without a token.

Such links lead to pages of quotes and invoices, and to packages by a signed address. The archive keeps answers byte for
byte and names these fields in its manifest. Nothing else repeats such a link, except where a person needs it to pay.
"""

import re
from codecs import BOM_UTF8
from typing import Any, Final

from pydantic_core import from_json

# With any word for the payment provider in front, as in `<provider>_hosted_invoice_url`.
_FIELD: Final = re.compile(r"(^|[._])(quote|invoice|package)_url$")
_SIGNED: Final = re.compile(r"[?&][a-z0-9_.~-]*(signature|sig|token)=", re.IGNORECASE)


def read_json(body: bytes) -> Any:
    """The JSON of an answer, with or without a byte order mark; ValueError for anything else.

    Not the standard library's: its depth follows the recursion limit, which libraries of the x402 extra raise so far that a
    deeply nested body kills the process.
    """
    return from_json(body.removeprefix(BOM_UTF8))


def open_links(body: Any) -> tuple[str, ...]:
    """The fields of a JSON value with such a link, as `costs.provider_quote_url` or `items[].data_package_url`."""
    places: set[str] = set()
    waiting = [("", body)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend((f"{place}.{name}".lstrip("."), item) for name, item in value.items())
        elif isinstance(value, list):
            waiting.extend((f"{place}[]", item) for item in value)
        elif is_open_link(place, value):
            places.add(place)
    return tuple(sorted(places))


def without_open_links(value: Any, name: str = "") -> Any:
    """The JSON value with every such link replaced by None."""
    if isinstance(value, dict):
        return {key: without_open_links(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [without_open_links(item, name) for item in value]
    return None if is_open_link(name, value) else value


def is_open_link(name: str, value: object) -> bool:
    """Return True if a field is such a link, by its name or by the signature in its query."""
    if not isinstance(value, str) or not value.lower().startswith(("http://", "https://")):
        return False
    return bool(_FIELD.search(name) or _SIGNED.search(value))
