"""The per-field filter form, and this deployment's words in every form of a field name (contract 1 and 4.1)."""

import json
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.service.client import AssayClient
from prefect_assay.service.client import filters as f
from prefect_assay.service.client import parameters as p
from prefect_assay.service.client.http.exchange import Attempt
from prefect_assay.service.client.http.request import Request
from prefect_assay.service.client.http.wire import Wire
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.models.vocabulary import ExperimentStatus
from support.client import first_operation, operations

MOMENT = datetime(2026, 11, 21, 12, tzinfo=UTC)
ACME = WireWords(provider="acme", service="Foo")


def sent(request, words=None):
    """The query parameters as they leave."""
    wire = Wire.of("https://lab.example.org", "t", words or WireWords(), 1.0)
    with AssayClient("https://lab.example.org", "t") as client:
        return parse_qsl(
            urlsplit(str(wire.outgoing(client._http, Attempt(request=request)).url)).query,
            keep_blank_values=True,
        )


@pytest.mark.parametrize(
    ("test", "pair"),
    [
        (p.equ("name", "a b"), ("equ(name)", "a b")),
        (p.geq("created_at", MOMENT), ("geq(created_at)", "2026-11-21T12:00:00Z")),
        (p.gtr("size_bytes", 5), ("gtr(size_bytes)", "5")),
        (p.leq("amount", 0.5), ("leq(amount)", "0.5")),
        (p.lss("day", MOMENT.date()), ("lss(day)", "2026-11-21")),
        (p.plain("status", ExperimentStatus.QUOTE_SENT), ("status", "quote_sent")),
        (p.plain("enabled", value=True), ("enabled", "true")),
    ],
)
def test_a_test_of_one_field_is_one_parameter(test, pair):
    request = operations.results.list(where=[test], limit=2).request
    assert sent(request) == [("limit", "2"), pair]


@pytest.mark.parametrize(
    "status", ["InProduction", "in_production", "In production", ExperimentStatus.IN_PRODUCTION]
)
@pytest.mark.parametrize("name", ["status", "state"])
def test_a_status_travels_as_the_wire_spells_it(name, status):
    assert sent(operations.experiments.list(**{name: status}).request) == [(name, "in_production")]
    rows = first_operation(lambda client: client.experiments.iterate(**{name: status}))
    assert (name, "in_production") in sent(rows.request)


@pytest.mark.parametrize(
    ("resource", "status", "word"),
    [("quotes", "Accepted", "accepted"), ("invoices", "Open", "open"), ("custom_targets", "PendingReview", "pending_review")],
)  # fmt: skip
def test_a_status_of_any_list_travels_as_the_wire_spells_it(resource, status, word):
    assert sent(getattr(operations, resource).list(status=status).request) == [("status", word)]
    rows = first_operation(lambda client: getattr(client, resource).iterate(status=status))
    assert ("status", word) in sent(rows.request)


def test_a_type_of_updates_travels_as_the_wire_spells_it():
    (pair,) = sent(operations.updates.list(type="StatusChange").request)
    assert pair == ("filter", str(f.eq("type", "status_change")))


def test_a_status_of_results_travels_as_the_wire_spells_it():
    (pair,) = sent(operations.experiments.list(results_status="All").request)
    assert pair == ("filter", str(f.eq("results_status", "all")))


@given(st.text())
def test_values_travel_as_they_are(value):
    request = Request(method="GET", path="/x", params=p.encode_tests([p.equ("name", value)]))
    try:
        value.encode()
    except UnicodeEncodeError:
        return
    assert sent(request) == [("equ(name)", value)]


@pytest.mark.parametrize(
    ("params", "wire"),
    [
        ((("equ(provider_invoice_id)", "in_1"),), [("equ(acme_invoice_id)", "in_1")]),
        ((("provider_invoice_id", "provider_x"),), [("acme_invoice_id", "provider_x")]),
        (
            (("sort", "-provider_quote_url,provider_x:asc,+ provider_y,name"),),
            [("sort", "-acme_quote_url,acme_x:asc,+ acme_y,name")],
        ),
        (
            (("sort", f.sorted_by(f.desc("provider_x"), f.asc(f.at("metadata", "provider_k")))),),
            [("sort", "desc(acme_x),asc(at(metadata,provider_k))")],
        ),
        (
            (("sort", 'asc(at(m,"a,provider_y,b")),provider_z'),),
            [("sort", 'asc(at(m,"a,provider_y,b")),acme_z')],
        ),
        (
            (("filter", str(f.eq(f.as_text("provider_x"), "provider_y") & f.eq("name", "(provider_z"))),),
            [("filter", 'and(eq(text(acme_x),provider_y),eq(name,"(provider_z"))')],
        ),
        ((("search", "provider_x"),), [("search", "provider_x")]),
    ],
)
def test_the_providers_word_is_put_into_names_and_not_into_values(params, wire):
    assert sent(Request(method="GET", path="/x", params=params), ACME) == wire


def test_bodies_are_sent_in_the_deployments_words():
    user_fields = {name: {"provider_x": 1} for name in ("metadata", "headers", "parameters", "sequences")}
    body = {"provider_invoice_id": 1} | user_fields
    request = Request(method="POST", path="/x", json=body)
    wire = Wire.of("https://lab.example.org", "t", ACME, 1.0)
    with AssayClient("https://lab.example.org", "t") as client:
        content = wire.outgoing(client._http, Attempt(request=request)).content
    assert (
        json.loads(content) == {"acme_invoice_id": 1} | user_fields
    )  # contract 1: field names, not the user's own keys
    assert ACME.from_wire({"metadata": {"acme_x": 1}}) == {"metadata": {"acme_x": 1}}
