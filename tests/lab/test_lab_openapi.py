"""openapi.json says what there is, in the deployment's words, to whom it concerns."""

import json
import re

import pytest
from starlette.testclient import TestClient

from prefect_assay.lab.api import ROUTES, document, refusals, rendered
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.settings import API_PREFIX
from prefect_assay.lab.requests.core import Answer
from prefect_assay.lab.web.app import create_app
from prefect_assay.models.words import WireWords
from support.lab.conformance import held
from support.lab.core import lab_core

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


def test_in_other_words_no_neutral_name_is_left(fetch):
    text = fetch().text
    assert "provider_" not in text
    assert "X-Service-" not in text
    assert '"stripe_hosted_invoice_url"' in text
    assert '"X-Acme-Payment-Method"' in text
    neutral = json.dumps(document())
    assert len(re.findall("stripe_", text)) == len(re.findall("provider_", neutral)) > 10


def test_every_reference_leads_somewhere():
    described = document(partner=True)
    for reference in re.findall(r'"#/([^"]+)"', json.dumps(described)):
        place = described
        for step in reference.split("/"):
            place = place[step]


def test_no_schema_is_forgotten_or_left_over():
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


def test_every_call_is_told_to_people_and_named_once():
    found = operations(document(partner=True))
    assert all(call["summary"] and call["tags"] for call in found.values())
    assert len({call["operationId"] for call in found.values()}) == len(found)


def test_sections_of_the_contract_stay_out():
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


def test_who_may_call_is_told():
    for key, call in operations(document()).items():
        needs_none = key[1].startswith("/info/")
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


def test_a_challenge_tells_its_headers():
    pay = operations(document())["POST", "/invoices/{invoice_id}/pay"]["responses"]
    assert {"PAYMENT-REQUIRED", "WWW-Authenticate"} <= pay["402"]["headers"].keys()
    assert "Retry-After" in pay["429"]["headers"]


def test_it_is_made_once():
    assert rendered(WireWords()) is rendered(WireWords())


def test_tests_notice_answers_off_their_shape():
    route = next(route for route in ROUTES if route.path == "/whoami")
    for answer in (Answer({"nobody": True}), Answer({}, 201), Answer(None)):
        with pytest.raises((AssertionError, ValueError)):
            held(lambda *_, answer=answer: answer)(None, route)


def test_tests_notice_refusals_that_are_not_described():
    route = next(route for route in ROUTES if route.path == "/whoami")
    assert 409 not in refusals(route)

    def refuse(*_):
        raise Refusal(409, "no")

    with pytest.raises(AssertionError):
        held(refuse)(None, route)
