"""Amounts on the wire are whole US cents (contract 1). Anything else is refused before it decides anything."""

import json

import pytest

from prefect_assay import errors
from prefect_assay.blocks import AssayCredentials
from prefect_assay.service.client.http.failures import result
from prefect_assay.service.client.http.request import Answer
from prefect_assay.service.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.service.models.vocabulary import ExperimentType
from prefect_assay.tasks.quote import confirm_quote
from support.archive.memory_store import make_ledger
from support.client import CANARY, operations
from support.services.fault_server import reply

SPEC = ExperimentSpec(
    experiment_type=ExperimentType.EXPRESSION, sequences={"a": SequenceValue(aa_string="MKT")}
)
# JSON texts, as they come: the parser makes a float of 1e3.
WRONG = [
    '"438.00"', '"43800"', '"60000.00"', "true", "false", "-5", "1e3", "438.5", "438.0", '" 7 "', '"4_3"', "[]",
]  # fmt: skip
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
    for operation in (operations.experiments.get_quote("e1"), operations.quotes.get("q1")):
        assert read(operation, body, amount).total is None
        assert read(operation, {**body, "totals": {"total": 5}}, amount).total is None
    (row,) = read(operations.quotes.list(), {"items": [body]}, amount).items
    assert row.total is None


@wrong
@pytest.mark.parametrize("field", ["amount", "amount_cents"])
def test_an_amount_of_an_invoice_that_is_no_whole_cents_is_no_amount_and_named(field, amount):
    """Its status is still read: a paid invoice must not be paid again for its odd amount."""
    body = {"id": "inv_1", "status": "open", "currency": "usd", field: "AMOUNT"}
    (row,) = read(operations.invoices.list(), {"items": [body]}, amount).items
    for invoice in (read(operations.invoices.get("inv_1"), body, amount), row):
        assert (invoice.status, invoice.amount) == ("open", None)
        assert invoice.money.problem.startswith(f"{field} is ")


@wrong
@pytest.mark.parametrize("place", ["total_cents", "assay.subtotal_cents", "materials.subtotal_cents"])
def test_an_amount_of_an_estimate_that_is_no_whole_cents_is_refused_by_name(place, amount):
    part, _, name = place.rpartition(".")
    odd = {part: {name: "AMOUNT"}} if part else {name: "AMOUNT"}
    body = {"breakdown": {**PRICED, **odd}}
    assert f"breakdown.{place}: " in refused(operations.experiments.estimate_cost(SPEC), body, amount)


LOTS = [{"lot_price_cents": 300, "quantity": 2}, {"lot_price_cents": 100, "quantity": 1}]
PER_SEQUENCE = {"type": "per_sequence", "price_per_sequence_cents": 70, "sequence_count": 1}
WHOLE = {
    "assay": {"base_cents": 1_000, "replicate_addon_cents": 200, "subtotal_cents": 1_200},
    "materials": {
        "type": "per_broken_lot",
        "lots": LOTS,
        "price_per_sequence_cents": 234,
        "subtotal_cents": 700,
    },
    "total_cents": 1_900,
    "currency": "USD",
}


@pytest.mark.parametrize(
    "changes",
    [
        {"total_cents": 19},
        {"total_cents": 190_000},
        {"materials": None},
        {"assay": {"base_cents": 1_000, "replicate_addon_cents": 200, "subtotal_cents": 12}},
        {"materials": {**PER_SEQUENCE, "subtotal_cents": 700}},
        {"materials": {"type": "per_broken_lot", "lots": LOTS[:1], "subtotal_cents": 700}},
        {"materials": {"lots": [{"lot_price_cents": "300", "quantity": 2}], "subtotal_cents": 700}},
        {"currency": "EUR"},
        {"currency": ["usd"]},
        {"currency": {"code": "usd"}},
    ],
)
def test_an_estimate_that_contradicts_its_parts_is_refused(changes):
    """Played: 219 beside parts of 21,900 was ordered."""
    assert read(operations.experiments.estimate_cost(SPEC), {"breakdown": WHOLE}, "0").total_cents == 1_900
    refused(operations.experiments.estimate_cost(SPEC), {"breakdown": WHOLE | changes}, "0")


@pytest.mark.parametrize(
    "assay",
    [
        {"base_cents": 3_000, "replicate_addon_cents": 600},
        {"base_cents": 1_000, "replicate_addon_cents": 200},
        {"base_cents": 1_000, "replicate_addon_cents": 200, "sequence_count": 3},
        {"base_cents": 3_000, "replicate_addon_cents": 300},
        {"unit_price_cents": 1_000, "replicate_price_cents": 100, "n_replicates": 3},
    ],
    ids=["of the order", "of a sequence", "of a counted sequence", "of a replicate", "unit prices"],
)
def test_every_shape_of_an_estimate_is_read(assay):
    """The contract doesn't say of what the base and the add-on are (2.5)."""
    body = {"breakdown": {"assay": {**assay, "subtotal_cents": 3_600}, "total_cents": 3_600}}
    assert read(operations.experiments.estimate_cost(SPEC), body, "0").total_cents == 3_600


CONTRADICTIONS = [
    {"total_cents": 219},
    {"totals": {"total": 219}},
    {"amount_subtotal": 20_000},
    {"amount_subtotal": 20_000, "tax_cents": 1_000},
    {"amount_subtotal": 21_900, "tax_cents": "1"},
    {"amount_subtotal": True},
    {"line_items": [{"total_cents": 219}]},
    {"line_items": [{"total_cents": 10_950}, {"total_cents": 10_000}]},
    {"line_items": [{"total_cents": "21900"}]},
]


@pytest.mark.parametrize("changes", CONTRADICTIONS)
def test_a_quote_that_contradicts_itself_has_no_total_and_says_what_was_read(changes):
    quote = read(
        operations.experiments.get_quote("e1"), {"amount_total": 21_900, "currency": "usd", **changes}, "0"
    )
    assert quote.total is None
    assert quote.money.unreadable
    assert ("amount_total", "21900") in quote.money.stated


@pytest.mark.parametrize(
    ("body", "cents"),
    [
        ({"amount_total": 26_061, "amount_subtotal": 21_900, "tax_cents": 4_161}, 21_900),
        ({"total_cents": 21_900, "subtotal_cents": 21_900, "tax_cents": 4_161}, 21_900),
        ({"total_cents": 21_900, "tax_cents": 4_161}, 21_900),
        ({"amount_total": 21_900, "line_items": [{"total_cents": 20_000}, {"total_cents": 1_900}]}, 21_900),
        ({"amount_total": 21_900, "line_items": [{"total_cents": 20_000}, {"description": "free"}]}, 21_900),
    ],
)
def test_amounts_are_compared_without_a_stated_tax(body, cents):
    assert read(operations.experiments.get_quote("e1"), body, "0").total == cents


@pytest.mark.parametrize("currency", ["EUR", "", {"code": "usd"}, ["usd"], 840, True, [], {}])
def test_a_currency_that_is_not_the_dollar_is_refused_alike_everywhere(currency):
    quote = read(operations.experiments.get_quote("e1"), {"amount_total": 5, "currency": currency}, "0")
    inside = read(
        operations.experiments.get_quote("e1"),
        {"currency": None, "totals": {"total": 5, "currency": currency}},
        "0",
    )
    invoice = read(operations.invoices.get("i"), {"id": "i", "amount": 5, "currency": currency}, "0")
    for money in (quote.money, inside.money, invoice.money):
        assert (money.cents, money.currency) == (None, f"its currency is {currency!a}, not USD")
    assert (quote.total, invoice.amount) == (None, None)
    detail = {"id": "e", "code": "c", "status": "in_queue"}
    costs = {"type": "invoiced", "amount_cents": 5, "currency": currency}
    assert read(operations.experiments.get("e"), {**detail, "costs": costs}, "0").billed_cents is None
    refused(operations.experiments.estimate_cost(SPEC), {"breakdown": {**PRICED, "currency": currency}}, "0")


def test_two_amounts_of_an_invoice_that_differ_are_no_amount():
    invoice = read(operations.invoices.get("i"), {"id": "i", "amount": 219, "amount_cents": 21_900}, "0")
    assert invoice.money.problem == "its amounts differ: amount 219, amount_cents 21900"
    assert invoice.amount is None
    assert (
        read(operations.invoices.get("i"), {"id": "i", "amount": 219, "amount_cents": 219}, "0").amount == 219
    )


@pytest.mark.parametrize(("amount", "cents"), [("0", 0), ("-0", 0), ("43800", 43800), ("null", None)])
def test_whole_cents_are_read_and_null_or_absent_is_no_amount(amount, cents):
    for body in ({"amount_total": "AMOUNT", "amount": "AMOUNT"}, *([{}] if cents is None else [])):
        quote = read(operations.experiments.get_quote("e1"), {"status": "pending", **body}, amount)
        invoice = read(operations.invoices.get("inv_1"), {"id": "inv_1", **body}, amount)
        assert quote.amount_total == invoice.amount == cents


@wrong
def test_an_amount_that_decides_nothing_is_left_empty_and_never_made_into_a_number(amount):
    line = {"description": "assay", "unit_price_cents": "AMOUNT", "total_cents": "AMOUNT"}
    body = {"status": "pending", "amount_total": 5, "tax_cents": "AMOUNT", "line_items": [line]}
    quote = read(operations.experiments.get_quote("e1"), body, amount)
    assert (quote.amount_total, quote.tax_cents) == (5, None)
    assert [(item.description, item.unit_price_cents, item.total_cents) for item in quote.line_items] == [
        ("assay", None, None)
    ]


@pytest.mark.parametrize(("quantity", "number"), [("2", 2.0), ("1.5", 1.5), ('"2"', None), ("true", None)])
def test_a_quantity_is_a_number_or_left_empty(quantity, number):
    body = {"status": "pending", "line_items": [{"quantity": "AMOUNT"}]}
    assert read(operations.experiments.get_quote("e1"), body, quantity).line_items[0].quantity == number


@pytest.mark.parametrize("amount", ["60000.00", True, -5, 1000.0])
def test_a_quote_with_such_an_amount_is_not_confirmed(server, amount):
    quote = {"status": "pending", "currency": "usd", "amount_total": amount}
    experiment = {"id": "e1", "code": "c-1", "status": "quote_sent", "created_at": "2026-11-21T12:00:00Z"}
    server.will(reply(404, {"error": "no invoice yet"}), reply(200, experiment), reply(200, quote))
    credentials = AssayCredentials(base_url=server.base_url, token=CANARY)
    with pytest.raises(errors.TransientError, match="shows no total"):
        confirm_quote.fn(credentials, "e1", ledger=make_ledger(experiment="e1"), approved_cents=100_000)
    assert server.methods == ["GET", "GET", "GET"]
