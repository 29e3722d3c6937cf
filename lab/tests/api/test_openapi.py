"""openapi.json is the description in the configured words, with partners' calls for partners only."""

import json
import re

import pytest
from starlette.testclient import TestClient

from assay_lab.api import ROUTES, find_routes, load_document, render_document
from assay_lab.kernel.settings import API_PREFIX
from assay_lab.web.server import create_app
from assay_lab.words import WireWords
from lab_support.core import lab_core

ADDRESS = f"{API_PREFIX}/openapi.json"
ITSELF = {("GET", "/openapi.json")}


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
        (method.upper(), path.removeprefix(API_PREFIX))
        for path, calls in described["paths"].items()
        for method in calls.keys() - {"parameters"}
    }


def test_it_needs_no_token_and_shows_partners_more(core, fetch):
    seeded = core.seeded
    public = fetch().json()
    partners = fetch(seeded.partner_token).json()
    assert (
        operations(public) == {(route.method, route.path) for route in ROUTES if not route.partner} | ITSELF
    )
    assert operations(partners) == {(route.method, route.path) for route in ROUTES} | ITSELF
    assert operations(partners) - operations(public) == {("POST", "/partners/mint-token")}
    assert public["components"]["schemas"].keys() < partners["components"]["schemas"].keys()
    assert "mint" not in json.dumps(public["paths"]).lower()
    assert {tag["name"] for tag in partners["tags"]} - {tag["name"] for tag in public["tags"]} == {"Partners"}
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
    neutral = json.dumps(load_document())
    assert len(re.findall("stripe_", text)) == len(re.findall("provider_", neutral)) > 10


@pytest.mark.parametrize("partner", [True, False])
def test_every_reference_resolves_and_every_schema_is_referenced(partner):
    described = load_document(partner=partner)
    text = json.dumps(described)
    for reference in re.findall(r'"#/([^"]+)"', text):
        place = described
        for step in reference.split("/"):
            place = place[step]
    for name in described["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text, name


def test_a_path_without_parameters_hides_patterns():
    assert set(find_routes("/experiments/cost-estimate")[0]) == {"POST"}
    routes, parameters = find_routes("/experiments/x")
    assert (set(routes), parameters) == ({"GET", "PATCH"}, {"experiment_id": "x"})
    assert find_routes("/experiments/x/y") == find_routes("/experiments/\n/") == ({}, {})


def test_it_is_rendered_once():
    assert render_document(WireWords()) is render_document(WireWords())
