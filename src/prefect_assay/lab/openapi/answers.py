"""What a call can answer: every status with its body and its headers."""

from typing import Any, Final

from pydantic import BaseModel

from prefect_assay.lab.openapi.components import reference
from prefect_assay.lab.openapi.links import links
from prefect_assay.lab.routing import Route
from prefect_assay.lab.shapes.errors import Error

_JSON: Final = "application/json"
_SUCCESS: Final = {
    200: "Success.",
    201: "Created.",
    204: "Done; no body.",
    307: "The file is at the address in `Location`. Follow it without the bearer token.",
    402: "A payment challenge: repeat the call with a credential that answers it.",
}
_REFUSALS: Final = {
    400: "The request is invalid; the message lists every finding.",
    401: "The token is missing or invalid.",
    403: "The token does not permit this.",
    404: "Not found, not accessible, or not there yet.",
    409: "Not possible in the present state.",
    415: "A JSON body sent as application/json is required.",
    422: "Well-formed, and semantically invalid.",
    429: "Too many requests.",
    500: "Internal server error.",
    503: "Not available at present.",
}
# Headers that come with a status, beyond the request's id.
_BY_STATUS: Final = {
    307: ("Location",),
    401: ("WWW-Authenticate",),
    402: ("PAYMENT-REQUIRED", "WWW-Authenticate", "PAYMENT-RESPONSE", "Cache-Control"),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_PAID: Final = ("PAYMENT-RESPONSE", "Payment-Receipt")


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
    return dict(sorted((dict.fromkeys(usual, Error) | dict(route.refuses)).items()))


def responses(route: Route) -> dict[str, Any]:
    """The responses object."""
    made = {str(status): _success(route, status) for status in sorted(route.answers)}
    for status, shape in refusals(route).items():
        made[str(status)] = _described(_REFUSALS[status], _BY_STATUS.get(status, ()), _json(shape))
    return dict(sorted(made.items()))


def _success(route: Route, status: int) -> dict[str, Any]:
    shape = route.answers[status]
    names = _BY_STATUS.get(status, ())
    if 402 in route.answers and status != 402:  # noqa: PLR2004 - what is paid for is receipted
        names = (*names, *_PAID)
    content = {} if shape is None else _json(shape)
    if route.media_type != _JSON:
        content = {route.media_type: {}}
    made = _described(_SUCCESS[status], names, content)
    if following := links(shape):
        made["links"] = following
    return made


def _described(description: str, names: tuple[str, ...], content: dict[str, Any]) -> dict[str, Any]:
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in ("x-request-id", *names)}
    made: dict[str, Any] = {"description": description, "headers": headers}
    return made | {"content": content} if content else made


def _json(shape: type[BaseModel]) -> dict[str, Any]:
    return {_JSON: {"schema": reference(shape)}}
