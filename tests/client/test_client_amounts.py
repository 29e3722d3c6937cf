"""Amounts on the wire are whole US cents (contract 1). Anything else is refused before it decides anything."""

import json

import pytest

from prefect_assay import errors
from prefect_assay.blocks import AssayCredentials
from prefect_assay.client.http.failures import result
from prefect_assay.client.http.request import Answer
from prefect_assay.client.operations import billing, experiments
from prefect_assay.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.models.vocabulary import ExperimentType
from prefect_assay.tasks.quote import confirm_quote
from support.archive.memory_store import a_book
from support.interface.faces import CANARY
from support.services.fault_server import reply

SPEC = ExperimentSpec(
    experiment_type=ExperimentType.EXPRESSION, sequences={"a": SequenceValue(aa_string="MKT")}
)
# JSON texts, as they come: the parser makes a float of 1e3.
WRONG = [
    '"438.00"',
    '"43800"',
    '"60000.00"',
    "true",
    "false",
    "-5",
    "1e3",
    "438.5",
    "438.0",
    '" 7 "',
    '"4_3"',
    "[]",
]
wrong = pytest.mark.parametrize("amount", WRONG)
ASSAY = {"base_cents": 0, "replicate_addon_cents": 0, "subtotal_cents": 0}
PRICED = {"pricing_version": "v1", "assay": ASSAY, "total_cents": 0}


def read(operation, body, amount):
    """Read an answer in which `amount`, a JSON text, is in the place of the mark."""
    content = json.dumps(body).replace('"AMOUNT"', amount).encode()
    return result(operation, Answer(status=200, content=content))


def refused(operation, body, amount):
    with pytest.raises(errors.UnexpectedAnswer) as caught:
        read(operation, body, amount)
    return str(caught.value)


@wrong
@pytest.mark.parametrize("field", ["amount_total", "total_cents", "amount_cents"])
def test_an_amount_of_a_quote_that_is_no_whole_cents_is_no_total(field, amount):
    """A person is asked then."""
    body = {"status": "pending", "currency": "usd", field: "AMOUNT"}
    for operation in (billing.quote("e1"), billing.quote_by_id("q1")):
        assert read(operation, body, amount).total is None
        assert read(operation, {**body, "totals": {"total": 5}}, amount).total is None
    (row,) = read(billing.quotes(), {"items": [body]}, amount).items
    assert row.total is None


@wrong
@pytest.mark.parametrize("field", ["amount", "amount_cents"])
def test_an_amount_of_an_invoice_that_is_no_whole_cents_is_refused_by_name(field, amount):
    body = {"id": "inv_1", "status": "open", "currency": "usd", field: "AMOUNT"}
    assert f"{field}: " in refused(billing.invoice_by_id("inv_1"), body, amount)


@wrong
@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"breakdown": {**PRICED, "total_cents": "AMOUNT"}}, "breakdown.total_cents"),
    ],
)
def test_an_amount_of_an_estimate_that_is_no_whole_cents_is_refused_by_name(body, place, amount):
    assert f"{place}: " in refused(experiments.estimate(SPEC), body, amount)


@wrong
@pytest.mark.parametrize("part", ["assay", "materials"])
def test_the_parts_of_an_estimate_decide_nothing(part, amount):
    body = {"breakdown": {**PRICED, "total_cents": 5, part: {"subtotal_cents": "AMOUNT"}}}
    found = read(experiments.estimate(SPEC), body, amount)
    assert found.total_cents == 5
    assert getattr(found.breakdown, part).subtotal_cents is None


@pytest.mark.parametrize(("amount", "cents"), [("0", 0), ("-0", 0), ("43800", 43800), ("null", None)])
def test_whole_cents_are_read_and_null_is_no_amount(amount, cents):
    quote = read(billing.quote("e1"), {"status": "pending", "amount_total": "AMOUNT"}, amount)
    invoice = read(billing.invoice_by_id("inv_1"), {"id": "inv_1", "amount": "AMOUNT"}, amount)
    assert quote.amount_total == invoice.amount == cents


def test_an_absent_amount_is_none():
    assert read(billing.quote("e1"), {"status": "draft"}, "0").amount_total is None
    assert read(billing.invoice_by_id("inv_1"), {"id": "inv_1"}, "0").amount is None


@wrong
def test_an_amount_that_decides_nothing_is_left_empty_and_never_made_into_a_number(amount):
    line = {"description": "assay", "unit_price_cents": "AMOUNT", "total_cents": "AMOUNT"}
    body = {"status": "pending", "amount_total": 5, "tax_cents": "AMOUNT", "line_items": [line]}
    quote = read(billing.quote("e1"), body, amount)
    assert (quote.amount_total, quote.tax_cents) == (5, None)
    assert [(item.description, item.unit_price_cents, item.total_cents) for item in quote.line_items] == [
        ("assay", None, None)
    ]


@pytest.mark.parametrize(("quantity", "number"), [("2", 2.0), ("1.5", 1.5), ('"2"', None), ("true", None)])
def test_a_quantity_is_a_number_or_left_empty(quantity, number):
    body = {"status": "pending", "line_items": [{"quantity": "AMOUNT"}]}
    assert read(billing.quote("e1"), body, quantity).line_items[0].quantity == number


@pytest.mark.parametrize("amount", ["60000.00", True, -5, 1000.0])
def test_a_quote_with_such_an_amount_is_not_confirmed(server, amount):
    quote = {"status": "pending", "currency": "usd", "amount_total": amount}
    experiment = {"id": "e1", "code": "c-1", "status": "quote_sent", "created_at": "2026-11-21T12:00:00Z"}
    server.will(reply(404, {"error": "no invoice yet"}), reply(200, experiment), reply(200, quote))
    credentials = AssayCredentials(base_url=server.base_url, token=CANARY)
    with pytest.raises(errors.TransientError, match="shows no total"):
        confirm_quote.fn(credentials, "e1", book=a_book(experiment="e1"), approved_cents=100_000)
    assert server.methods == ["GET", "GET", "GET"]
