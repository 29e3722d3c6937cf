"""Checks every answer of the lab against its description: status, shape and error body."""

import json
from functools import wraps
from typing import Any

from assay_lab.api import Route, refusals
from assay_lab.kernel.refusals import Refusal
from assay_lab.requests.core import Answer

_FIRST_ERROR = 400


def conforming(perform: Any) -> Any:
    """`LabCore.perform` that fails on an answer that `openapi.json` does not describe."""

    @wraps(perform)
    def checked(core: Any, route: Route, **request: Any) -> Answer:
        try:
            answer = perform(core, route, **request)
        except Refusal as refusal:
            _check_refusal(route, refusal)
            raise
        _check_answer(route, answer)
        return answer

    return checked


def _check_refusal(route: Route, refusal: Refusal) -> None:
    described = refusals(route)
    assert refusal.status in described, f"{route.method} {route.path}: {refusal.status} is not described"
    code = {"code": refusal.code} if refusal.code else {}
    body = {"error": refusal.message, "request_id": "req_test", **code, **refusal.extra}
    described[refusal.status].model_validate_json(json.dumps(body), strict=True)


def _check_answer(route: Route, answer: Answer) -> None:
    assert answer.status in route.answers, f"{route.method} {route.path}: {answer.status} is not described"
    shape = route.answers[answer.status]
    if shape is None:
        assert answer.body is None or isinstance(answer.body, bytes), (
            f"{route.path} has a body without a shape"
        )
        assert answer.body is None or answer.media_type == route.media_type
        return
    body = answer.body
    if answer.status >= _FIRST_ERROR:
        body = body | {"request_id": "req_test"}  # the web layer adds it
    shape.model_validate_json(json.dumps(body), strict=True)
