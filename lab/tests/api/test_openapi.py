"""openapi.json describes every route, in the configured words; partner routes for partners only."""

import json
import re

import pytest
from starlette.testclient import TestClient

from assay_lab.api import ROUTES, document, find, refusals, rendered
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.settings import API_PREFIX
from assay_lab.requests.core import Answer
from assay_lab.web.server import create_app
from assay_lab.words import WireWords
from lab_support.conformance import conforming
from lab_support.core import lab_core

ADDRESS = f"{API_PREFIX}/openapi.json"


@pytest.fixture(scope="module")
def core():
    made = lab_core(words=WireWords(provider="stripe", service="Acme"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def fetch(core):
    client = TestClient(create_app(core))

    def get(token=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return client.get(ADDRESS, headers=headers)

    return get


def operations(described):
    return {
        (method.upper(), path.removeprefix(API_PREFIX)): operation
        for path, calls in described["paths"].items()
        for method, operation in calls.items()
    }


def test_it_needs_no_token_and_shows_partners_more(core, fetch):
    seeded = core.seeded
    public = operations(fetch().json())
    partners = operations(fetch(seeded.partner_token).json())
    assert public.keys() == {(route.method, route.path) for route in ROUTES if not route.partner}
    assert partners.keys() == {(route.method, route.path) for route in ROUTES}
    assert partners.keys() - public.keys() >= {("POST", "/partners/mint-token")}
    for token in (seeded.member_token, seeded.viewer_token, "no-token-at-all"):
        assert fetch(token).content == fetch().content


def test_it_is_version_0_0_2_of_openapi_3_1(fetch):
    described = fetch().json()
    assert (described["openapi"], described["info"]["version"]) == ("3.1.0", "0.0.2")
    assert fetch().headers["content-type"] == "application/json"


def test_configured_words_replace_every_neutral_name(fetch):
    text = fetch().text
    assert "provider_" not in text
    assert "X-Service-" not in text
    assert '"stripe_hosted_invoice_url"' in text
    assert '"X-Acme-Payment-Method"' in text
    neutral = json.dumps(document())
    assert len(re.findall("stripe_", text)) == len(re.findall("provider_", neutral)) > 10


def test_every_reference_resolves():
    described = document(partner=True)
    for reference in re.findall(r'"#/([^"]+)"', json.dumps(described)):
        place = described
        for step in reference.split("/"):
            place = place[step]


def test_every_schema_is_referenced():
    described = document(partner=True)
    text = json.dumps(described)
    for name in described["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text, name


def test_every_answer_with_json_has_a_shape():
    for (method, path), operation in operations(document(partner=True)).items():
        for status, answer in operation["responses"].items():
            content = answer.get("content", {})
            assert content or status in ("204", "307"), (method, path, status)
            if "application/json" in content:
                assert content["application/json"]["schema"]["$ref"]
            assert "x-request-id" in answer["headers"]


def test_every_operation_has_a_summary_tags_and_a_unique_id():
    found = operations(document(partner=True))
    assert all(call["summary"] and call["tags"] for call in found.values())
    assert len({call["operationId"] for call in found.values()}) == len(found)


def test_section_numbers_stay_out():
    assert not re.search(r"\(?(contract|service shapes)\b", json.dumps(document(partner=True)))


def test_limits_formats_and_forms_of_a_list():
    (call,) = (call for key, call in operations(document()).items() if key == ("GET", "/results"))
    parameters = {parameter["name"]: parameter["schema"] for parameter in call["parameters"]}
    assert parameters["limit"] == {
        "type": "integer",
        "format": "int64",
        "minimum": 1,
        "maximum": 100,
        "default": 50,
    }
    assert {f"{word}(created_at)" for word in ("equ", "geq", "gtr", "leq", "lss")} <= parameters.keys()


def test_only_calls_with_a_token_answer_401():
    for key, call in operations(document()).items():
        needs_none = key == ("GET", "/info/health")
        assert (call.get("security") == []) == needs_none
        assert ("401" in call["responses"]) != needs_none


def test_the_statuses_that_the_contract_names():
    found = operations(document())
    for key, statuses in {
        ("POST", "/experiments"): "200 201 400 401 403 404 415 422 429 500",
        ("POST", "/experiments/cost-estimate"): "200 400 401 403 415 422 429 500",
        ("PATCH", "/experiments/{experiment_id}"): "200 400 401 403 404 409 415 422 429 500",
        ("GET", "/experiments/{experiment_id}"): "200 401 403 404 429 500",
        ("GET", "/experiments/{experiment_id}/invoice"): "200 400 401 403 404 429 500",
    }.items():
        assert sorted(found[key]["responses"]) == statuses.split(), key
    assert {"200", "402", "409"} <= set(found["POST", "/invoices/{invoice_id}/pay"]["responses"])


def test_402_and_429_describe_their_headers():
    pay = operations(document())["POST", "/invoices/{invoice_id}/pay"]["responses"]
    assert {"PAYMENT-REQUIRED", "WWW-Authenticate"} <= pay["402"]["headers"].keys()
    assert "Retry-After" in pay["429"]["headers"]


def test_a_path_without_parameters_hides_patterns():
    assert set(find("/experiments/cost-estimate")[0]) == {"POST"}
    routes, parameters = find("/experiments/x")
    assert (set(routes), parameters) == ({"GET", "PATCH"}, {"experiment_id": "x"})
    assert find("/experiments/x/y") == find("/experiments/\n/") == ({}, {})


def test_it_is_rendered_once():
    assert rendered(WireWords()) is rendered(WireWords())


def test_the_conformance_check_rejects_answers_off_their_shape():
    route = next(route for route in ROUTES if route.path == "/whoami")
    for answer in (Answer({"nobody": True}), Answer({}, 201), Answer(None)):
        with pytest.raises((AssertionError, ValueError)):
            conforming(lambda *_, answer=answer: answer)(None, route)


def test_the_conformance_check_rejects_undescribed_refusals():
    route = next(route for route in ROUTES if route.path == "/whoami")
    assert 409 not in refusals(route)

    def refuse(*_):
        raise Refusal(409, "no")

    with pytest.raises(AssertionError):
        conforming(refuse)(None, route)
