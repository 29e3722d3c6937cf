"""Checks every answer of the lab, and every body that it takes, against the description that it serves."""

import json
from functools import wraps
from typing import Any

from assay_lab.api import Route, find_operation
from assay_lab.kernel.refusals import Refusal
from assay_lab.requests.core import Answer
from lab_support.described import (
    body_schema,
    find_problems,
    find_strict_problems,
    json_schema,
    resolve_reference,
    without_nulls,
)

_FIRST_ERROR = 400


def conforming(perform: Any) -> Any:
    """`LabCore.perform` that fails on an answer that is not described, and on a body that should have been refused."""

    @wraps(perform)
    def checked(core: Any, route: Route, **request: Any) -> Answer:
        try:
            answer: Answer = perform(core, route, **request)
        except Refusal as refusal:
            code = {"code": refusal.code} if refusal.code else {}
            _check(route, refusal.status, {"error": refusal.message, **code, **refusal.extra})
            raise
        if isinstance(answer.body, bytes):
            assert answer.media_type in find_operation(route)["responses"][str(answer.status)]["content"]
        else:
            _check(route, answer.status, answer.body)
        schema = body_schema(route)
        if answer.status < _FIRST_ERROR and schema is not None:
            problems = find_problems(without_nulls(json.loads(request["body"])), schema)
            if core.lab.settings.allow_http_webhooks:
                problems = [problem for problem in problems if "[Hh][Tt][Tt][Pp][Ss]://" not in problem]
            assert not problems, f"{route.method} {route.path} takes a body that it should refuse: {problems}"
        return answer

    return checked


def _check(route: Route, status: int, body: Any) -> None:
    name = f"{route.method} {route.path}"
    answers = find_operation(route)["responses"]
    assert str(status) in answers, f"{name}: {status} is not described"
    schema = json_schema(resolve_reference(answers[str(status)]))
    assert (schema is None) == (body is None), f"{name}: {status} has a body, or none"
    if schema is not None:
        if status >= _FIRST_ERROR:
            body = {"request_id": "req_test", **body}  # the web layer adds it
        problems = find_strict_problems(body, schema)
        assert not problems, f"{name} answers {status} off its description: {problems}"
