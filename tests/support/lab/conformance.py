"""Checks every answer of the lab, and every body that it takes, against the description of the service."""

import json
from functools import wraps
from typing import Any

from assay_lab.api import Route
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.settings import API_PREFIX
from assay_lab.requests.core import Answer
from prefect_assay.service.description import Operation, find_operation, find_problems
from support.service_description import find_strict_problems

_FIRST_ERROR = 400


def conforming(perform: Any) -> Any:
    """`LabCore.perform` that fails on an answer that is not described, and on a body that should have been refused."""

    @wraps(perform)
    def checked(core: Any, route: Route, **request: Any) -> Answer:
        operation = find_operation(route.method, API_PREFIX + route.path)
        assert operation is not None, f"{route.method} {route.path} is not described"
        try:
            answer: Answer = perform(core, route, **request)
        except Refusal as refusal:
            code = {"code": refusal.code} if refusal.code else {}
            _check(operation, refusal.status, {"error": refusal.message, **code, **refusal.extra})
            raise
        if isinstance(answer.body, bytes):
            assert answer.media_type in operation.answer(answer.status)["content"]
        else:
            _check(operation, answer.status, answer.body)
        if answer.status < _FIRST_ERROR and operation.body_schema is not None:
            body = _without_nulls(json.loads(request["body"]))
            problems = find_problems(body, operation.body_schema)
            if core.lab.settings.allow_http_webhooks:
                problems = tuple(problem for problem in problems if "pattern ^https://" not in problem)
            assert not problems, f"{operation.operation_id} takes a body that it should refuse: {problems}"
        return answer

    return checked


def _without_nulls(value: Any) -> Any:
    """The lab takes a null for a field that may be left out."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value


def _check(operation: Operation, status: int, body: Any) -> None:
    assert status in operation.statuses, f"{operation.operation_id}: {status} is not described"
    schema = operation.answer_schema(status)
    assert (schema is None) == (body is None), f"{operation.operation_id}: {status} has a body, or none"
    if schema is not None:
        if status >= _FIRST_ERROR:
            body = {"request_id": "req_test", **body}  # the web layer adds it
        problems = find_strict_problems(body, schema)
        assert not problems, f"{operation.operation_id} answers {status} off its description: {problems}"
