"""What the contract does not show is read in any form: what decides nothing is left out, what decides is an error by name."""

import json
from types import SimpleNamespace

import pytest

from prefect_assay import errors
from prefect_assay.orders.billing import check_total
from prefect_assay.orders.create import acceptance_of
from prefect_assay.orders.payments.due import invoice_id_of
from prefect_assay.service.client.http.failures import result
from prefect_assay.service.client.http.request import Answer
from prefect_assay.service.models.base import DECIDES, WireModel
from prefect_assay.service.models.billing import Quote
from prefect_assay.service.models.experiment import (
    Created,
    CreateRequest,
    Experiment,
    QuoteAcceptance,
)
from prefect_assay.service.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.service.models.vocabulary import ExperimentStatus
from support.client import operations

SPEC = ExperimentSpec(experiment_type="thermostability", sequences={"a": SequenceValue(aa_string="MKT")})
CREATE = operations.experiments.create(CreateRequest(experiment_spec=SPEC, name="pa-1"))
ODD = (True, 1.5, "odd", ["odd"], {"odd": 1})


def answer(status, body):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status=status, content=content, headers={"content-type": "application/json"})


def models(kind=WireModel):
    for below in kind.__subclasses__():
        if below.__module__.startswith("prefect_assay."):
            yield below
        yield from models(below)


@pytest.mark.parametrize(
    "kind",
    sorted({kind for kind in models() if "[" not in kind.__name__}, key=lambda kind: kind.__qualname__),
    ids=lambda kind: kind.__name__,
)
def test_no_odd_value_of_a_field_that_decides_nothing_fails_an_answer(kind):
    needed = {
        name: {"id": "1", "token": "t", "timestamp": "2026-01-01T00:00:00Z", "added_count": 1}.get(name, "x")
        for name, field in kind.model_fields.items()
        if field.is_required()
    }
    try:
        kind.model_validate(needed)
    except ValueError:
        pytest.skip("what it needs has parts of its own")
    for name, field in kind.model_fields.items():
        if field.is_required() or DECIDES in field.metadata:
            continue
        for value in (*ODD, None):
            kind.model_validate({**needed, name: value})


def test_a_field_that_decides_is_an_error_with_its_path():
    read = operations.experiments.get("e")
    listed = {"id": "e", "status": "done", "created_at": 1767225600, "results_status": None}
    assert result(read, answer(200, listed)).results_status == "none"
    for odd, path in (({"results_status": ["all"]}, "results_status"), ({"status": {}}, "status")):
        with pytest.raises(errors.UnexpectedAnswer, match=path):
            result(read, answer(200, listed | odd))


@pytest.mark.parametrize(
    "body",
    [
        {"experiment": {"id": "e", "status": "done"}},
        {"data": {"experiment_id": "e", "status": "done"}, "request_id": "r"},
        [{"id": "e", "status": "done"}],
        {"items": [{"id": "e", "status": "done"}], "total": 1},
    ],
)
def test_an_envelope_is_not_opened(body):
    """The contract and the published shapes show none."""
    with pytest.raises(errors.UnexpectedAnswer):
        result(operations.experiments.get("e"), answer(200, body))


@pytest.mark.parametrize("body", [b"", {}, {"status": "accepted"}, {"id": "q", "status": None}])
@pytest.mark.parametrize(
    "operation",
    [
        operations.experiments.confirm_quote("e"),
        operations.experiments.submit("e"),
        operations.quotes.reject("q", "price"),
    ],
)
def test_a_change_is_done_whatever_its_answer_shows(operation, body):
    result(operation, answer(200, body))


@pytest.mark.parametrize(
    ("body", "experiment_id"),
    [
        ({"experiment_id": "e", "status": ["?"], "costs": [1]}, "e"),
        ({"experiment_id": "e", "id": "e", "code": "X"}, "e"),
    ],
)
def test_a_create_is_placed_if_its_answer_names_the_experiment(body, experiment_id):
    made = result(CREATE, answer(201, body))
    assert isinstance(made, Created)
    assert made.experiment_id == experiment_id


@pytest.mark.parametrize(
    "body",
    [{"id": "x", "status": None}, {"invoice_id": "i"}, {"payment": {"kind": None, "methods": "x402-exact"}}],
)
def test_an_acceptance_is_one_whatever_else_it_has(body):
    assert isinstance(result(CREATE, answer(200, body)), QuoteAcceptance)


@pytest.mark.parametrize("status", [401, 413, 422, 429])
@pytest.mark.parametrize("body", [b"<html>", {"message": "no"}, {"error": "no"}])
def test_what_is_not_let_through_is_a_refusal(status, body):
    with pytest.raises(errors.AssayError) as caught:
        result(CREATE, answer(status, body))
    assert not isinstance(caught.value, errors.OutcomeUnknown)


@pytest.mark.parametrize("status", [401, 413, 422, 429, 500])
@pytest.mark.parametrize(
    "made",
    [{"experiment_id": "e"}, {"provider_invoice_id": "in_1"}, {"provider_hosted_invoice_url": "https://p"}],
)
def test_whatever_its_status_a_failure_that_names_what_it_made_is_no_refusal(status, made):
    """Contract 4.2, create rule 6: the status code is not shown."""
    with pytest.raises(errors.OrderOutcomeUnknown) as caught:
        result(CREATE, answer(status, {"error": "it broke", **made}))
    assert isinstance(caught.value, errors.PartialOrder) is ("experiment_id" in made)


@pytest.mark.parametrize(
    ("quote", "total"),
    [
        ({"amount_total": 5}, 5), ({"total": 5}, 5), ({"totals": {"total_cents": 5, "tax_cents": 1}}, 5),
        ({"totals": {"total": 5, "amount_total": 6}}, None), ({"total": 5.5}, None), ({"amount_total": "5"}, None),
        ({"amount_total": 5.0}, None), ({"amount_total": {"value": 5}}, None),
        ({"amount_total": 2, "total_cents": 219}, None), ({"amount_total": 5, "total": "six"}, None),
        ({"total": "5"}, None),
        ({"total_amount_cents": 5}, 5), ({"totals": [5]}, None), ({}, None),
    ],
)  # fmt: skip
def test_the_total_of_a_quote_is_read_only_where_it_is_certain(quote, total):
    assert Quote.model_validate(quote).total == total


@pytest.mark.parametrize(
    ("quote", "refused"),
    [
        ({"currency": "USD"}, False),
        ({"currency": "usd", "totals": {"currency": "USD"}}, False),
        ({}, False),
        ({"currency": "EUR"}, True),
        ({"currency": {"code": "eur"}}, True),
        ({"totals": {"total": 5, "currency": "eur"}}, True),
        ({"currency": "usd", "totals": {"currency": "eur"}}, True),
    ],
)
def test_a_quote_is_in_dollars_only_if_nothing_in_it_says_otherwise(quote, refused):
    read = Quote.model_validate({"amount_total": 5, **quote})
    if not refused:
        assert check_total(read, "e") == 5
        return
    with pytest.raises(errors.PaymentRefused, match=r"(?i)eur"):
        check_total(read, "e")


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("Quote Sent", "quote_sent"),
        ("QuoteSent", "quote_sent"),
        (" in-queue ", "in_queue"),
        ("WAITING_FOR_MATERIALS", "waiting_for_materials"),
        ("Cancelled", "canceled"),
        ("DONE", "done"),
    ],
)
def test_a_status_is_the_same_in_every_spelling(written, word):
    experiment = Experiment.model_validate({"id": "e", "status": written})
    assert experiment.status is ExperimentStatus(word)


@pytest.mark.parametrize("zero", [0, "0", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z"])
def test_the_zero_of_a_clock_is_no_time(zero):
    assert Quote.model_validate({"expires_at": zero}).expires_at is None
    made = Experiment.model_validate({"id": "e", "status": "done", "created_at": zero})
    assert made.created_at.year > 2000


@pytest.mark.parametrize(
    ("pointer", "machine", "rails"),
    [
        ({"kind": "machine", "methods": ["x402_exact"]}, True, ("x402-exact",)),
        ({"kind": "Machine", "methods": "X402-Exact"}, True, ("x402-exact",)),
        ({"kind": "machine_rail", "pay_url": "/api/v1/invoices/i/pay"}, True, ()),
        ({"kind": "Hosted Invoice", "hosted_invoice_url": "https://p.example"}, False, ()),
        ({"kind": "page"}, None, ()),
        ({}, None, ()),
    ],
)
def test_an_acceptance_says_in_any_spelling_by_what_it_is_paid(pointer, machine, rails):
    read = QuoteAcceptance.model_validate({"id": "q", "payment": pointer})
    acceptance = acceptance_of(SimpleNamespace(base_url=BASE), read)
    assert (acceptance.machine, acceptance.rails) == (machine, rails)


BASE = "https://lab.example"


@pytest.mark.parametrize(
    ("answered", "invoice"),
    [
        ({"invoice_id": "i 1"}, "i 1"),
        ({"payment": {"pay_url": "/api/v1/invoices/i%201/pay"}}, "i 1"),
        ({"payment": {"pay_url": "https://lab.example/api/v1/invoices/i/pay"}}, "i"),
        ({"invoice_id": "i", "payment": {"pay_url": "/api/v1/invoices/i/pay"}}, "i"),
        ({"invoice_id": "i", "payment": {"pay_url": "/api/v1/invoices/j/pay"}}, None),
        ({"payment": {"pay_url": "https://evil.example/api/v1/invoices/i/pay"}}, None),
        ({"payment": {"pay_url": "https://lab.example:8443/api/v1/invoices/i/pay"}}, None),
        ({"payment": {"pay_url": "/api/v1/invoices/i/pay?x=1"}}, None),
        ({"payment": {"pay_url": "/api/v1/invoices/../tokens/pay"}}, None),
        ({"payment": {"pay_url": "/api/v2/invoices/i/pay"}}, None),
        ({"payment": {"pay_url": "//evil.example/api/v1/invoices/i/pay"}}, None),
        ({}, None),
    ],
)
def test_an_acceptance_names_its_invoice_at_the_service_s_own_pay_path_only(answered, invoice):
    assert invoice_id_of(QuoteAcceptance.model_validate(answered), BASE) == invoice
