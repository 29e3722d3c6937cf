"""openapi.yaml is valid OpenAPI 3.1, says where each part comes from, and has the calls of the lab and of the client."""

import json
import re
from importlib.resources import files
from operator import attrgetter

import pytest
from jsonschema import Draft202012Validator
from schemathesis.specs.openapi.definitions import OPENAPI_31

from assay_lab.api import ROUTES, load_document
from prefect_assay.errors import AssayError
from prefect_assay.service.client import parameters
from prefect_assay.service.client.http.address import API_PREFIX
from prefect_assay.service.description import Need, get_call_facts, load_description
from support.client import operations
from support.client_calls import answer_call, list_client_calls
from support.description import find_operation, find_problems, list_operations, resolve_reference

DOCUMENT = load_description()
SCHEMAS = DOCUMENT["components"]["schemas"]
SECTION = r"[1-9](\.\d{1,2})?"
EACH = pytest.mark.parametrize("operation", list_operations(), ids=lambda operation: operation.operation_id)


def parts(value=DOCUMENT, place=()):
    """Every object of the document, with its place."""
    if isinstance(value, dict):
        yield place, value
        for name, below in value.items():
            yield from parts(below, (*place, name))
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from parts(below, (*place, number))


def test_it_is_openapi_3_1():
    assert list(Draft202012Validator(OPENAPI_31).iter_errors(DOCUMENT)) == []
    assert (DOCUMENT["openapi"], DOCUMENT["info"]["version"]) == ("3.1.0", "0.0.2")


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_a_json_schema_and_used(name):
    Draft202012Validator.check_schema(SCHEMAS[name])
    uses = re.findall(r"#/components/schemas/(\w+)", json.dumps(DOCUMENT))
    assert name in uses


def test_every_reference_resolves():
    for _, part in parts():
        if "$ref" in part:
            assert resolve_reference({"$ref": part["$ref"]})


def test_names_of_operations_are_a_resource_and_a_verb_and_unique():
    names = [operation.operation_id for operation in list_operations()]
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(r"[a-z]+\.[a-z_]+", name)] == []


def test_links_lead_to_operations_and_their_parameters():
    by_name = {operation.operation_id: operation for operation in list_operations()}
    for place, part in parts():
        if place and len(place) > 2 and place[-2] == "links":
            known = {parameter["name"] for parameter in by_name[part["operationId"]].parameters}
            assert part["parameters"].keys() <= known


def test_every_part_says_where_it_comes_from():
    """A part of the contract names its section, itself or the part that holds it."""
    components = [part for kind in DOCUMENT["components"].values() for part in kind.values()]
    operations = [operation.raw for operation in list_operations()]
    for part in [*components, *operations, *(item["post"] for item in DOCUMENT["webhooks"].values())]:
        assert part["x-source"] in {"contract", "published", "lab"}, part
    for place, part in parts():
        if part.get("x-source") == "contract":
            assert re.fullmatch(SECTION, part["x-contract"]), place
        if "x-contract" in part:
            assert re.fullmatch(SECTION, part["x-contract"]), place


def test_only_calls_of_the_contract_are_needed():
    """A campaign completes without any other call, and the description says what it does without it."""
    for operation in list_operations():
        need = operation.raw.get("x-need")
        assert need in {None, "needed", "improves"}
        assert need != "needed" or operation.raw["x-source"] == "contract", operation.operation_id
        assert (need is None) == ("x-without" not in operation.raw), operation.operation_id
        facts = get_call_facts(operation.name)
        assert facts.need is Need[(need or "unused").upper()]
        assert facts.section == operation.raw.get("x-contract")


def test_what_only_the_lab_enforces_is_there():
    for place, part in parts():
        assert set(part.get("x-lab", ())) <= part.keys(), place
        for names in ("x-published-required", "x-always-sent"):
            assert set(part.get(names, ())) <= part.get("properties", {}).keys(), place


@EACH
def test_every_operation_is_whole(operation):
    raw = operation.raw
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    assert raw["summary"]
    assert set(raw["tags"]) <= tags
    placeholders = re.findall(r"\{(\w+)\}", operation.path)
    assert placeholders == [part["name"] for part in operation.parameters if part["in"] == "path"]
    assert not operation.spends or operation.acts
    assert operation.acts == (operation.method != "GET" and operation.operation_id != "experiments.estimate")
    assert (401 in operation.statuses) == (operation.needs_token)
    assert {429, 500} <= operation.statuses
    assert (415 in operation.statuses) == (operation.body_schema is not None)
    for status in operation.statuses:
        answer = operation.answer(status)
        assert "x-request-id" in answer["headers"]
        assert answer.get("content") or status in (204, 307)


def test_what_may_cost_money():
    spending = {operation.operation_id for operation in list_operations() if operation.spends}
    assert spending == {
        "experiments.create",
        "experiments.confirm_quote",
        "quotes.confirm",
        "invoices.pay",
    }


def test_calls_for_partners_and_calls_without_a_token():
    operations = list_operations()
    assert [call.operation_id for call in operations if call.is_for_partners] == ["partners.mint_token"]
    assert [call.operation_id for call in operations if not call.needs_token] == [
        "description.get",
        "health.check",
    ]


def test_the_lab_serves_a_copy():
    description = files("prefect_assay.service").joinpath("openapi.yaml").read_bytes()
    assert files("assay_lab.api").joinpath("openapi.yaml").read_bytes() == description, (
        "copy it: make description"
    )
    assert load_document(partner=True) == DOCUMENT


def test_the_lab_has_the_same_calls():
    described = {(operation.method, operation.path): operation for operation in list_operations()}
    routes = {(route.method, API_PREFIX + route.path): route for route in ROUTES}
    assert described.keys() - routes.keys() == {("GET", "/api/v1/openapi.json")}
    assert routes.keys() <= described.keys()
    for key, route in routes.items():
        assert described[key].is_for_partners == route.partner
        assert described[key].needs_token != route.open
        assert described[key].acts == (route.writes or route.path == "/tokens/attenuate")


CALLS = pytest.mark.parametrize("call", list_client_calls(), ids=lambda call: call.method)


def test_the_client_has_the_same_calls_and_every_call_of_the_contract():
    names = [call.operation.operation_id for call in list_client_calls()]
    assert len(set(names)) == len(names)
    unsent = [call for call in list_operations() if call.raw.get("x-sent") is False]
    assert [call.operation_id for call in unsent if call.raw["x-source"] == "contract"] == []
    described = {call.operation_id for call in list_operations()}
    assert described - {call.operation_id for call in unsent} == {*names, "description.get"}
    openapi = operations.service.get_openapi().request
    assert find_operation(openapi.method, API_PREFIX + openapi.path).operation_id == "description.get"


BY_FIELD = {f"{word}(created_at)": build for word, build in vars(parameters).items() if callable(build)}


@CALLS
def test_every_query_parameter_is_one_of_the_method(call):
    """Those of a single field are made by `where`."""
    described = {part["name"] for part in call.operation.parameters if part["in"] == "query"}
    assert described - BY_FIELD.keys() <= {name for request in call.requests for name in request.url.params}
    for name in described & BY_FIELD.keys():
        where = [BY_FIELD[name]("created_at", "2026-11-21")]
        operation = attrgetter(call.method)(operations)(where=where)
        assert operation.request.params == ((name, "2026-11-21"),)


@pytest.mark.parametrize(
    "sort", ["desc(created_at)", "asc(created_at)", "-name", "+name", "name", "name:asc,code:desc"]
)
def test_every_form_of_filter_and_sort_is_sent_as_it_is(sort):
    lists = [call for call in list_client_calls() if call.method.endswith(".list")]
    assert len(lists) == 10
    for call in lists:
        if call.method != "webhooks.list":  # it has no pages
            operation = attrgetter(call.method)(operations)(filter="not(is_null(name))", sort=sort)
            assert operation.request.params == (("filter", "not(is_null(name))"), ("sort", sort))


@CALLS
def test_the_client_sends_what_is_described_and_nothing_else(call):
    """With everything that it can send, and with as little as possible."""
    known = {part["name"].lower() for part in call.operation.parameters}
    for request in call.requests:
        assert {name.lower() for name in request.url.params} <= known
        assert {name for name in request.headers if name.startswith(("x-service", "payment"))} <= known
        assert bool(request.content) == (call.operation.body_schema is not None)
    for body in call.bodies:
        assert find_problems(body, call.operation.body_schema) == []


# Statuses that the client gives back as a value, by which whoever pays decides.
ANSWERS = {"invoices.pay": {402, 409}}


def refusals():
    for call in list_client_calls():
        answers = ANSWERS.get(call.operation.operation_id, set())
        yield from ((call, status) for status in sorted(call.operation.statuses - answers) if status >= 400)


@pytest.mark.parametrize(
    ("call", "status"), [*refusals()], ids=lambda value: getattr(value, "method", str(value))
)
def test_the_client_makes_an_error_of_every_refusal(call, status):
    with pytest.raises(AssayError) as caught:
        answer_call(call, status, {"error": "no", "request_id": "req_1"})
    assert caught.value.request_id == "req_1"


def test_a_request_finds_its_operation():
    assert find_operation("get", "/api/v1/experiments/x").operation_id == "experiments.get"
    assert find_operation("POST", "/api/v1/experiments/cost-estimate").operation_id == "experiments.estimate"
    assert find_operation("GET", "/api/v1/targets/request-custom").operation_id == "targets.list_custom"
    assert find_operation("GET", "/api/v1/experiments/x/y/z") is find_operation("GET", "/experiments") is None


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "Time",
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123+02:00"),
            ("2026-01-01T00:00:00", "yesterday"),
        ),
        ("DateOrTime", ("2026-12-01",), ("2026-13-01",)),
        ("Uuid", ("00000000-0000-4000-8000-000000000000",), ("1",)),
        ("Url", ("https://example.org/a?b=c",), ("not an address",)),
        ("HttpsUrl", ("https://example.org", "HTTPS://EXAMPLE.ORG"), ("http://example.org",)),
        ("Secret", ("s" * 32,), ("s" * 31,)),
        ("ExperimentStatus", ("WaitingForConfirmation",), (7,)),
        ("ResultsStatus", ("All",), (7,)),
        ("SummaryEntry", ({"result_type": "mass_spectrometry", "anything": [1]},), ({}, "x")),
    ],
)
def test_values_in_their_form_and_off_it(name, good, bad):
    assert [value for value in good if find_problems(value, SCHEMAS[name])] == []
    assert [value for value in bad if not find_problems(value, SCHEMAS[name])] == []
