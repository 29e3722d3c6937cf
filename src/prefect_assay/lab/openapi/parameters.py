"""Path, query and header parameters, with formats and limits."""

import re
from typing import Any, Final

from prefect_assay.lab.requests.filter_sql import Column
from prefect_assay.lab.requests.lists import Listing
from prefect_assay.lab.routing import Route
from prefect_assay.models.vocabulary import MACHINE_RAILS, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX

_UUID: Final = {"type": "string", "format": "uuid"}
_TEXT: Final = {"type": "string", "minLength": 1}
_FLAG: Final = {"type": "boolean", "default": False}
_INT64: Final = {"type": "integer", "format": "int64"}
_TIME: Final = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}]}
# Not uuids: the payment provider has its own ids.
_PATH: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "quote_id": (_TEXT, "Id of the quote."),
    "invoice_id": (_TEXT, "Id of the invoice: its own, or the payment provider's."),
}
_QUERY: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "limit": (
        {**_INT64, "minimum": 1, "maximum": PAGE_LIMIT_MAX, "default": PAGE_LIMIT_DEFAULT},
        "Items per page.",
    ),
    "offset": ({**_INT64, "minimum": 0, "default": 0}, "Items to skip."),
    "search": ({"type": "string"}, "Text that a name or code contains, in any case."),
    "selfservice_only": (_FLAG, "Only targets with a self-service price."),
    "detailed": (_FLAG, "With `details`."),
    "show_conjugated": (_FLAG, "Conjugated targets, too."),
}
_HEADERS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "X-Service-Payment-Method": (
        {"type": "string", "enum": sorted(MACHINE_RAILS)},
        "The payment rail, as in `payment.method` of the order; both must agree.",
    ),
    "PAYMENT-SIGNATURE": ({"type": "string"}, "x402-exact: the credential, as base64 of JSON."),
    "Payment-Authorization": ({"type": "string"}, "mpp-spt: the credential."),
}
_OPERATORS: Final = {
    "equ": "is",
    "geq": "is at least",
    "gtr": "is after",
    "leq": "is at most",
    "lss": "is before",
}


def parameters(route: Route) -> list[dict[str, Any]]:
    """The parameters array."""
    names = re.findall(r"\{(\w+)\}", route.path)
    return [
        *(_parameter(name, "path", *_PATH.get(name, (_UUID, _id_of(name)))) for name in names),
        *(_parameter(name, "query", *_query(name, route.listing)) for name in route.parameters),
        *(_compared(route.listing) if route.listing else ()),
        *(_parameter(name, "header", *_HEADERS[name]) for name in route.headers),
    ]


def _parameter(name: str, place: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    made = {"name": name, "in": place, "required": place == "path", "schema": schema}
    return made | {"description": description}


def _id_of(name: str) -> str:
    return f"Id of the {name.removesuffix('_id').replace('_', ' ')}."


def _query(name: str, listing: Listing | None) -> tuple[dict[str, Any], str]:
    if name in _QUERY:
        return _QUERY[name]
    fields = ", ".join(f"`{column}`" for column in listing.columns) if listing else "see the items"
    match name:
        case "filter":
            return {"type": "string"}, f"A condition, such as `eq(field,value)`. Fields: {fields}."
        case "sort":
            return {"type": "string"}, f"Up to 8 columns, such as `desc(field)`. Fields: {fields}."
        case _:
            column = listing.columns.get(name) if listing else None
            return _schema(column), f"Only items whose `{name}` is this."


def _schema(column: Column | None) -> dict[str, Any]:
    if column is not None and column.kind == "enum":
        return {"type": "string", "enum": sorted(column.values)}
    return _UUID if column is not None and column.kind == "uuid" else {"type": "string"}


def _compared(listing: Listing) -> list[dict[str, Any]]:
    """The per-field form for times (contract 4.1); every other field takes it too, which the prose says."""
    return [
        _parameter(f"{word}({name})", "query", _TIME, f"Only items whose `{name}` {meaning} this.")
        for name, column in listing.columns.items()
        if column.kind == "timestamp"
        for word, meaning in _OPERATORS.items()
    ]
