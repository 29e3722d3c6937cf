"""The service itself: its own description (contract 1)."""

from dataclasses import replace
from typing import Any

from prefect_assay.service.client.decoding import make_shape_error
from prefect_assay.service.client.http.request import Answer, Operation, Request
from prefect_assay.service.client.resources.resource import Resource
from prefect_assay.service.models.service import WireWords


class Service(Resource):
    """The service's own description."""

    def get_openapi(self) -> dict[str, Any]:
        """Read the service's description in its own words: GET /openapi.json (contract 1).

        Needs no token; a partner's shows more.

        Example:
            ```python
            print(client.service.get_openapi()["info"]["version"])
            ```
        """
        request = Request(method="GET", path="/openapi.json", repeatable=True)
        return self._sender.run(Operation(request=request, read=_read_document))


def _read_document(answer: Answer) -> dict[str, Any]:
    body = replace(answer, words=WireWords()).json()
    if not isinstance(body, dict) or not isinstance(body.get("paths"), dict):
        raise make_shape_error(answer, "no description of paths")
    return body
