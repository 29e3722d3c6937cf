"""One route as an OpenAPI operation: its parameters, its responses, and the links that lead on from them."""

import re
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel

from assay_lab.api.billing_shapes import ConfirmedQuote
from assay_lab.api.experiment_shapes import CreatedExperiment
from assay_lab.api.route import Route
from assay_lab.api.shapes import Error
from assay_lab.requests.filter_sql import Column
from assay_lab.requests.lists import Listing
from assay_lab.vocabulary import MACHINE_RAILS, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX

REFERENCE: Final = "#/components/schemas/{model}"
_JSON: Final = "application/json"

TAGS: Final = {
    resource: {"name": name, "description": description}
    for resource, name, description in (
        ("experiment", "Experiments", "Ordering measurements, and following them."),
        ("sequence", "Sequences", "The proteins of an experiment."),
        ("target", "Targets", "The catalog of antigens, and requests for others."),
        ("result", "Results", "What was measured."),
        ("update", "Updates", "What has happened."),
        ("quote", "Quotes", "Prices, to be accepted or rejected."),
        ("invoice", "Invoices", "What is to be paid, and paying it by machine."),
        ("token", "Tokens", "Restricting, listing and revoking tokens."),
        ("webhook", "Webhooks", "Where the organisation receives updates."),
        ("partner", "Partners", "For partners that bring customers."),
        ("feedback", "Feedback", "Comments to the service."),
        ("identity", "Identity", "Who calls, and whether the service answers."),
    )
}


def _header(description: str, *, required: bool = False, **schema: Any) -> dict[str, Any]:
    return {"description": description, "required": required, "schema": {"type": "string", **schema}}


HEADERS: Final[dict[str, dict[str, Any]]] = {
    "x-request-id": _header("Names this request, as in error bodies.", required=True, pattern="^req_"),
    "Retry-After": _header("Seconds to wait before asking again.", pattern="^[0-9]+(\\.[0-9]+)?$"),
    "WWW-Authenticate": _header("`Bearer` with a 401; the `Payment` challenge of mpp-spt with a 402."),
    "Location": _header("Where to go.", format="uri"),
    "PAYMENT-REQUIRED": _header("x402-exact: what is to be paid, as base64 of JSON."),
    "PAYMENT-RESPONSE": _header("x402-exact: the outcome of a credential, as base64 of JSON."),
    "Payment-Receipt": _header("mpp-spt: the receipt, as base64url of JSON."),
    "Cache-Control": _header("A challenge is not to be kept."),
}
# What every status means, and the headers that come with it beyond the request's id.
_STATUSES: Final[dict[int, tuple[str, tuple[str, ...]]]] = {
    200: ("Success.", ()),
    201: ("Created.", ()),
    204: ("Done; no body.", ()),
    307: ("The file is at the address in `Location`. Follow it without the bearer token.", ("Location",)),
    400: ("The request is invalid; the message lists every finding.", ()),
    401: ("The token is missing or invalid.", ("WWW-Authenticate",)),
    402: (
        "A payment challenge: repeat the call with a credential that answers it.",
        ("PAYMENT-REQUIRED", "WWW-Authenticate", "PAYMENT-RESPONSE", "Cache-Control"),
    ),
    403: ("The token does not permit this.", ()),
    404: ("Not found, not accessible, or not there yet.", ()),
    409: ("Not possible in the present state.", ()),
    415: ("A JSON body sent as application/json is required.", ()),
    422: ("Well-formed, and semantically invalid.", ()),
    429: ("Too many requests.", ("Retry-After",)),
    500: ("Internal server error.", ()),
    503: ("Not available at present.", ("Retry-After",)),
}
_RECEIPTS: Final = ("PAYMENT-RESPONSE", "Payment-Receipt")
_EXPERIMENT: Final = "get_experiments_experiment_id"
# Where an answer leads: the field that names the next resource, and the operations that take it.
_LINKS: Final[dict[type[BaseModel], tuple[str, dict[str, str]]]] = {
    CreatedExperiment: (
        "experiment_id",
        {
            "experiment": _EXPERIMENT,
            "sequences": f"{_EXPERIMENT}_sequences",
            "updates": f"{_EXPERIMENT}_updates",
            "results": f"{_EXPERIMENT}_results",
            "quote": f"{_EXPERIMENT}_quote",
            "invoice": f"{_EXPERIMENT}_invoice",
            "submit": "post_experiments_experiment_id_submit",
            "modify": "patch_experiments_experiment_id",
        },
    ),
    ConfirmedQuote: (
        "invoice_id",
        {"invoice": "get_invoices_invoice_id", "pay": "post_invoices_invoice_id_pay"},
    ),
}

Parameter = tuple[dict[str, Any], str]  # schema and description
_UUID: Final = {"type": "string", "format": "uuid"}
_STRING: Final = {"type": "string"}
_ID: Final = {"type": "string", "minLength": 1}
_FLAG: Final = {"type": "boolean", "default": False}
_INT64: Final = {"type": "integer", "format": "int64"}
_TIME: Final = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}]}
# Not uuids: the payment provider has its own ids.
_PATH: Final[dict[str, Parameter]] = {
    "quote_id": (_ID, "Id of the quote."),
    "invoice_id": (_ID, "Id of the invoice: its own, or the payment provider's."),
}
_QUERY: Final[dict[str, Parameter]] = {
    "limit": (
        {**_INT64, "minimum": 1, "maximum": PAGE_LIMIT_MAX, "default": PAGE_LIMIT_DEFAULT},
        "Items per page.",
    ),
    "offset": ({**_INT64, "minimum": 0, "default": 0}, "Items to skip."),
    "search": (_STRING, "Text that a name or code contains, in any case."),
    "selfservice_only": (_FLAG, "Only targets with a self-service price."),
    "detailed": (_FLAG, "With `details`."),
    "show_conjugated": (_FLAG, "Conjugated targets, too."),
}
_REQUEST_HEADERS: Final[dict[str, Parameter]] = {
    "X-Service-Payment-Method": (
        {"type": "string", "enum": sorted(MACHINE_RAILS)},
        "The payment rail, as in `payment.method` of the order; both must agree.",
    ),
    "PAYMENT-SIGNATURE": (_STRING, "x402-exact: the credential, as base64 of JSON."),
    "Payment-Authorization": (_STRING, "mpp-spt: the credential."),
}
_OPERATORS: Final = {
    "equ": "is",
    "geq": "is at least",
    "gtr": "is after",
    "leq": "is at most",
    "lss": "is before",
}


def operation_id(route: Route) -> str:
    """Stable: the method and the path, in words."""
    return f"{route.method.lower()}{route.path}".translate(str.maketrans("/-", "__", "{}"))


def operation(route: Route) -> dict[str, Any]:
    """The operation object."""
    made: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [TAGS[route.resource]["name"]],
    }
    partner = "Partner tokens only." if route.partner else ""
    needs = "" if route.open else f"Needs `{route.resource}:{route.action}`."
    if description := " ".join(filter(None, (route.description, partner, needs))):
        made["description"] = description
    if parameters := _parameters(route):
        made["parameters"] = parameters
    if route.body is not None:
        made["requestBody"] = {"required": True, "content": {_JSON: {"schema": _reference(route.body)}}}
    shapes = {**route.answers, **refusals(route)}
    made["responses"] = {str(status): _response(route, status, shapes[status]) for status in sorted(shapes)}
    if route.open:
        made["security"] = []
    return made


def refusals(route: Route) -> dict[int, type[BaseModel]]:
    """Every error status that a route can answer, with its shape."""
    usual = [429, 500]
    if not route.open:
        usual += [401, 403]
    if "{" in route.path:
        usual.append(404)
    if route.body or route.parameters:
        usual.append(400)
    if route.body:
        usual.append(415)
    return dict.fromkeys(usual, Error) | dict(route.refuses)


def schema_name(shape: type[BaseModel]) -> str:
    """The name of a shape in the document."""
    return re.sub(r"[^a-zA-Z0-9.\-_]", "_", shape.__name__)


def _reference(shape: type[BaseModel]) -> dict[str, str]:
    return {"$ref": REFERENCE.format(model=schema_name(shape))}


def _response(route: Route, status: int, shape: type[BaseModel] | None) -> dict[str, Any]:
    description, names = _STATUSES[status]
    if status == HTTPStatus.OK and HTTPStatus.PAYMENT_REQUIRED in route.answers:
        names = (*names, *_RECEIPTS)
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in ("x-request-id", *names)}
    made: dict[str, Any] = {"description": description, "headers": headers}
    if shape is not None:
        made["content"] = {_JSON: {"schema": _reference(shape)}}
    elif route.media_type != _JSON:
        made["content"] = {route.media_type: {}}
    if shape in _LINKS:
        field, targets = _LINKS[shape]
        made["links"] = {
            name: {"operationId": target, "parameters": {field: f"$response.body#/{field}"}}
            for name, target in targets.items()
        }
    return made


def _parameters(route: Route) -> list[dict[str, Any]]:
    paths = re.findall(r"\{(\w+)\}", route.path)
    return [
        *(_parameter(name, "path", _PATH.get(name) or (_UUID, _id_of(name))) for name in paths),
        *(_parameter(name, "query", _query(name, route.listing)) for name in route.parameters),
        *(_comparisons(route.listing) if route.listing else ()),
        *(_parameter(name, "header", _REQUEST_HEADERS[name]) for name in route.headers),
    ]


def _parameter(name: str, place: str, described: Parameter) -> dict[str, Any]:
    schema, description = described
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "schema": schema,
        "description": description,
    }


def _id_of(name: str) -> str:
    return f"Id of the {name.removesuffix('_id').replace('_', ' ')}."


def _query(name: str, listing: Listing | None) -> Parameter:
    if name in _QUERY:
        return _QUERY[name]
    columns = listing.columns if listing else {}
    fields = ", ".join(f"`{column}`" for column in columns) or "see the items"
    match name:
        case "filter":
            return _STRING, f"A condition, such as `eq(field,value)`. Fields: {fields}."
        case "sort":
            return _STRING, f"Up to 8 columns, such as `desc(field)`. Fields: {fields}."
        case _:
            return _schema(columns.get(name)), f"Only items whose `{name}` is this."


def _schema(column: Column | None) -> dict[str, Any]:
    if column is not None and column.kind == "enum":
        return {"type": "string", "enum": sorted(column.values)}
    return _UUID if column is not None and column.kind == "uuid" else _STRING


def _comparisons(listing: Listing) -> list[dict[str, Any]]:
    """The per-field form for times (contract 4.1); every other field takes it too, as the document's text says."""
    return [
        _parameter(f"{word}({name})", "query", (_TIME, f"Only items whose `{name}` {meaning} this."))
        for name, column in listing.columns.items()
        if column.kind == "timestamp"
        for word, meaning in _OPERATORS.items()
    ]
