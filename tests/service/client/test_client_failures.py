import json
import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay import errors
from prefect_assay.service.client.http.failures import problem_of, result, retry_after
from prefect_assay.service.client.http.request import Answer
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.service.models.vocabulary import ExperimentType
from support.client import operations

SPEC = ExperimentSpec(
    experiment_type=ExperimentType.THERMOSTABILITY, sequences={"a": SequenceValue(aa_string="MKT")}
)
SECRET = "s" * 40
ORDER = CreateRequest(
    experiment_spec=SPEC, name="pa-1", webhook_url="https://x.example", webhook_secret=SECRET
)


def answer(status, body=None, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status=status, content=content, headers={"content-type": "application/json", **headers})


def caught(operation, got):
    with pytest.raises(errors.AssayError) as error:
        result(operation, got)
    return error.value


def caught_with(secrets, got):
    with pytest.raises(errors.AssayError) as error:
        result(operations.experiments.submit("e"), got, secrets)
    return error.value


def test_an_expired_token_is_called_expired_where_the_service_says_so():
    expired = caught(
        operations.experiments.get("e1"), answer(401, {"error": "missing or invalid token: expired"})
    )
    assert "expired. Create a new API token" in str(expired)
    unsaid = caught(operations.experiments.get("e1"), answer(401, {"error": "missing or invalid token"}))
    assert "Set a valid API token: this one is unknown, revoked or expired" in str(unsaid)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.RequestRefused), (401, errors.Unauthorized), (402, errors.RequestRefused),
        (403, errors.Forbidden), (404, errors.NotFound), (405, errors.AccessError), (409, errors.Conflict),
        (415, errors.RequestRefused), (422, errors.RequestRefused), (429, errors.RateLimited),
        (408, errors.ServiceUnavailable), (499, errors.ServiceUnavailable), (500, errors.ServiceUnavailable),
        (502, errors.ServiceUnavailable), (503, errors.ServiceUnavailable), (504, errors.ServiceUnavailable),
        (301, errors.AccessError),
    ],
)  # fmt: skip
def test_a_status_of_a_reading_request_is_one_error(status, kind):
    error = caught(operations.experiments.get("e1"), answer(status, {"error": "why", "request_id": "req_7"}))
    assert type(error) is kind
    assert error.status_code == status
    assert error.request_id == "req_7"
    assert "GET /experiments/e1" in str(error)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 303, 400, 401, 403, 404, 409, 415, 422, 429])
def test_only_a_verdict_on_an_order_ends_the_doubt(status):
    error = caught(operations.experiments.create(ORDER), answer(status, {"error": "why"}))
    if status in (303, 408) or status >= 500:
        assert type(error) is errors.OrderOutcomeUnknown
        assert "before ordering again" in str(error)
        assert not error.retriable
    else:
        assert not isinstance(error, errors.OutcomeUnknown)


@pytest.mark.parametrize("status", [500, 400, 409, 503])
def test_a_failure_that_names_its_experiment_is_a_partial_order(status):
    body = {
        "experiment_id": "e9",
        "error": "broke",
        "provider_invoice_id": "in_1",
        "provider_hosted_invoice_url": "https://pay.example/1",
    }
    error = caught(operations.experiments.create(ORDER), answer(status, body, **{"x-request-id": "req_2"}))
    assert isinstance(error, errors.PartialOrder)
    assert (error.experiment_id, error.invoice_id) == ("e9", "in_1")
    assert error.hosted_invoice_url == "https://pay.example/1"
    assert error.request_id == "req_2"


@pytest.mark.parametrize(
    "content",
    [
        b"", b'{"experiment_id": "e', b"<html>ok</html>", b"[]", b"{}", b'{"experiment_id": null}',
        b'{"experiment_id": ""}', b'{"id": "q1"}', b'{"ok": true}', b"\xff\xfe", b"[" * 100_000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [200, 201, 204])
def test_an_unreadable_success_of_an_order_is_an_unknown_outcome(status, content):
    error = caught(operations.experiments.create(ORDER), Answer(status=status, content=content))
    assert type(error) is errors.OrderOutcomeUnknown


def test_an_unreadable_success_of_a_reading_request_names_the_fields_and_not_their_values():
    error = caught(operations.experiments.get("e"), answer(200, {"id": ["s3cret"], "status": {"s3cret": 1}}))
    assert type(error) is errors.UnexpectedAnswer
    assert "id" in str(error)
    assert "status" in str(error)
    assert "s3cret" not in str(error)


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        ({"error": "one thing"}, ("one thing",)),
        ({"error": "method: needed; target_id: needed"}, ("method: needed", "target_id: needed")),
        ({"error": "Validation failed:\n - a\n - b\n"}, ("a", "b")),
        ({"error": ["a", "b"]}, ("a", "b")),
        ({"error": ["a", {"b": "c"}]}, ("a",)),
        ({"error": {"message": "deep"}}, ("bad request",)),
        ({"error": "ends with a colon:"}, ("ends with a colon:",)),
        ({"error": ""}, ("bad request",)),
        ({}, ("bad request",)),
        ([], ("bad request, with a body that is not the service's JSON",)),
        (b"", ("bad request, with an empty body",)),
        (b"<html>secret page</html>", ("bad request, with a body that is not the service's JSON",)),
    ],
)
def test_accumulated_messages_are_taken_apart(body, messages):
    error = caught(operations.experiments.estimate_cost(SPEC), answer(400, body))
    assert isinstance(error, errors.RequestRefused)
    assert error.errors == messages


def test_the_code_of_a_refusal_is_kept():
    body = {"error": "disagree", "code": "payment_method_selector_conflict"}
    assert (
        caught(operations.experiments.create(ORDER), answer(400, body)).code
        == "payment_method_selector_conflict"
    )


def test_the_hint_of_a_conflict_is_shown():
    body = {"error": "no", "error_kind": "customer_quote_cap", "hint": "ask your manager"}
    assert "ask your manager" in str(caught(operations.experiments.submit("e"), answer(409, body)))


@pytest.mark.parametrize(
    "operation",
    [
        operations.experiments.submit("e"),
        operations.experiments.confirm_quote("e"),
        operations.experiments.modify("e"),
    ],
)
def test_the_kind_of_a_conflict_is_kept(operation):
    error = caught(operation, answer(409, {"error": "no", "error_kind": "customer_quote_cap"}))
    assert (type(error), error.code) == (errors.Conflict, "customer_quote_cap")
    assert pickle.loads(pickle.dumps(error)).code == "customer_quote_cap"
    assert caught(operation, answer(409, {"error": "no"})).code is None


@pytest.mark.parametrize(
    "operation", [operations.experiments.get_quote("e"), operations.experiments.get_invoice("e")]
)
def test_an_absent_quote_or_invoice_is_not_ready_unless_something_else_answers(operation):
    error = caught(operation, answer(404, {"error": "POST /experiments/e/submit"}))
    assert type(error) is errors.NotReady
    assert "/submit" in str(error)
    assert type(caught(operation, answer(404, b""))) is errors.NotReady
    assert type(caught(operation, answer(404, b"<html>nginx</html>"))) is errors.NotFound


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0), ("0.5", 0.5), ("Sat, 21 Nov 2026 12:00:30 GMT", 30.0), ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None), ("", None), ("-3", None), ("inf", None), ("9" * 400, None),
    ],
)  # fmt: skip
def test_retry_after_is_read_as_seconds_and_as_a_date(value, seconds):
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert retry_after(answer(429, {}, **{"retry-after": value}), now) == seconds


ERROR_BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just("x; y\n" * 600),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "hint", "code", "request_id"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.binary() | ERROR_BODIES.map(lambda body: json.dumps(body).encode()),
    st.text(max_size=20) | st.floats().map(str),
)
def test_any_error_answer_is_read(body, header):
    got = answer(500, body, **{"retry-after": header, "x-request-id": header})
    messages = problem_of(got).messages
    assert messages
    assert all(len(message) <= 2_000 and "\n" not in message for message in messages)
    wait = retry_after(got)
    assert wait is None or wait >= 0


def test_secrets_are_cut_out_of_headers_and_of_escaped_text():
    error = caught_with(
        ["to/ken"], answer(409, b'{"error": "no to\\/ken"}', **{"x-request-id": "req to/ken"})
    )
    assert (error.message.endswith("no [secret]"), error.request_id) == (True, "req [secret]")


def test_control_characters_and_long_texts_do_not_reach_a_terminal():
    error = caught(operations.experiments.get("e"), answer(409, {"error": "\x1b[31m" + "x" * 5000}))
    assert "\x1b" not in str(error)
    assert len(str(error)) < 1000


def test_errors_survive_the_trip_between_processes():
    error = caught(operations.experiments.create(ORDER), answer(500, {"experiment_id": "e9", "error": "x"}))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.__dict__, str(again)) == (type(error), error.__dict__, str(error))
