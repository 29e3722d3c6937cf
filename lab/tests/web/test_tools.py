"""The tool endpoint: every call of the API, the same answers and refusals, and a machine payment over tools alone."""

import asyncio
import base64
import json
import re
import subprocess
import sys
from dataclasses import replace

import httpx2
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from assay_lab.api import ROUTES, find_operation, operation_id
from assay_lab.kernel.refusals import Refusal
from assay_lab.service.faults import Fault
from assay_lab.testing import LocalLab
from assay_lab.web import tools
from assay_lab.words import WireWords
from lab_support.core import advance, lab_core, spec
from lab_support.described import body_schema, resolve_reference
from lab_support.tool_client import Tools, browser, x402_credential

ABSENT = "7c2b4a52-51a5-4a4e-9c0e-000000000000"


@pytest.fixture(scope="module")
def lab():
    core = lab_core()
    with browser(core) as http:
        yield Tools(core, http)
    core.close()


@pytest.fixture(scope="module")
def for_partners(lab):
    return lab.listed(lab.core.seeded.partner_token)


def create(lab, **fields):
    answer = lab.call("experiments_create", experiment_spec=spec(), name="by tool", **fields)
    assert answer["status"] in (200, 201), answer
    return answer["body"]


def name_of(route):
    return operation_id(route).replace(".", "_")


@pytest.mark.parametrize("route", ROUTES, ids=operation_id)
def test_every_call_is_a_tool_with_the_same_parameters(route, for_partners):
    tool = for_partners[name_of(route)]
    schema = tool["inputSchema"]
    Draft202012Validator.check_schema(schema)
    needed = set(re.findall(r"\{(\w+)\}", route.path))
    parts = [resolve_reference(part) for part in find_operation(route).get("parameters", ())]
    fields = needed | {part["name"] for part in parts if part["in"] != "header"}
    if body_schema(route):
        body = resolve_reference(body_schema(route))
        fields |= set(body["properties"])
        needed |= set(body.get("required", ()))
    assert fields <= set(schema["properties"])
    assert needed == set(schema["required"])
    assert set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema))) <= set(schema.get("$defs", ()))
    assert "#/components" not in json.dumps(schema)
    assert route.path in tool["description"]
    assert tool["annotations"]["readOnlyHint"] is not route.writes


def test_partner_calls_are_shown_to_partners_only(lab, for_partners):
    partners = {name_of(route) for route in ROUTES if route.partner}
    assert partners
    assert partners <= set(for_partners)
    assert set(lab.listed()) == set(for_partners) - partners
    answer = lab.call(partners.pop(), org={"type": "new_org", "name": "x"}, user={"email": "a@b.example"})
    assert answer["status"] == 403


def test_openapi_json_is_a_tool(lab):
    document = lab.call("description_get")["body"]
    assert document["info"]["version"] == "0.0.2"


def same(answer, rest):
    body, other = dict(answer["body"]), rest.json()
    assert (answer["status"], set(body)) == (rest.status_code, set(other))
    for name in set(body) - {"request_id"}:
        assert body[name] == other[name]
    if rest.status_code >= 400:
        assert body["request_id"] == answer["headers"]["x-request-id"]


def test_answers_and_refusals_equal_those_of_rest(lab):
    submitted = create(lab, skip_draft=True)
    one, code = submitted["experiment_id"], submitted["experiment_code"]
    viewer = lab.core.seeded.viewer_token
    new = {"experiment_spec": spec(), "name": "x"}
    entry = {"name": "q", "aa_string": "MKT"}
    cases = [
        ("identity_whoami", None, {}, "GET", "/whoami", {}),
        ("experiments_list", None, {"limit": 1, "sort": "-created_at"}, "GET", "/experiments", {"params": {"limit": 1, "sort": "-created_at"}}),
        ("experiments_list", None, {"geq(created_at)": "2090-01-01"}, "GET", "/experiments", {"params": {"geq(created_at)": "2090-01-01"}}),
        ("experiments_list", None, {"limit": 0}, "GET", "/experiments", {"params": {"limit": 0}}),
        ("targets_list", None, {"selfservice_only": True, "search": None}, "GET", "/targets", {"params": {"selfservice_only": "true"}}),
        ("health_check", None, {}, "GET", "/info/health", {}),
        ("experiments_get", None, {"experiment_id": ABSENT}, "GET", f"/experiments/{ABSENT}", {}),
        ("experiments_get_quote", None, {"experiment_id": one}, "GET", f"/experiments/{one}/quote", {}),
        ("experiments_create", viewer, new, "POST", "/experiments", {"json": new}),
        ("experiments_create", None, {"name": "x", "much": 1}, "POST", "/experiments", {"json": {"name": "x", "much": 1}}),
        ("experiments_submit", None, {"experiment_id": one}, "POST", f"/experiments/{one}/submit", {}),
        ("sequences_add", None, {"experiment_code": code, "sequences": [entry]}, "POST", "/sequences", {"json": {"experiment_code": code, "sequences": [entry]}}),
        ("experiments_confirm_quote", None, {"experiment_id": one}, "POST", f"/experiments/{one}/quote/confirm", {"json": {}}),
    ]  # fmt: skip
    met = set()
    for name, token, arguments, method, path, request in cases:
        answer = lab.call(name, token, **arguments)
        same(answer, lab.rest(method, path, token, **request))
        met.add(answer["status"])
    assert {200, 400, 403, 404, 409} <= met


def test_no_id_reaches_into_another_path(lab):
    one = create(lab)["experiment_id"]
    for odd in (f"{one}/sequences", "../whoami", "..", "%2e%2e", f"{one}?x=1", "a b", "é"):
        answer = lab.call("experiments_get", experiment_id=odd)
        assert answer["status"] in (400, 404)
    assert lab.call("experiments_get", experiment_id=f"{one}")["status"] == 200
    for bad in ({}, {"experiment_id": ""}, {"experiment_id": 7}):
        assert lab.call("experiments_get", **bad)["status"] == 400


@pytest.mark.parametrize("token", ["", "none", "assay_lab"])
def test_without_a_valid_token_the_endpoint_answers_401(lab, token):
    answer = lab.post("tools/list", {}, token)
    assert answer.status_code == 401
    assert set(answer.json()) == {"error", "request_id"}
    assert answer.headers.get_list("x-request-id") == [answer.json()["request_id"]]
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith("Bearer ")
    assert ('error="invalid_token"' in challenge) is (token != "")
    document = lab.http.get(re.search(r'resource_metadata="([^"]+)"', challenge)[1])
    assert document.json()["resource"] == "http://127.0.0.1:8000/mcp"


def test_only_known_hosts_and_origins(lab):
    for host, status in (("127.0.0.1:8000", 200), ("lab:80", 200), ("lab", 200), ("evil.example", 421)):
        assert lab.post("tools/list", {}, Host=host).status_code == status
    assert lab.post("tools/list", {}, Origin="http://evil.example").status_code == 403


def test_only_post_is_allowed(lab):
    headers = {"Authorization": f"Bearer {lab.core.seeded.member_token}"}
    answer = lab.http.get("/mcp", headers=headers)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_an_order_is_placed_and_paid_over_tools_alone(lab):
    pytest.importorskip("eth_account")
    words = lab.core.lab.settings.words
    order = create(
        lab, auto_accept_quote=True, request_headers={words.header("Payment-Method"): "x402-exact"}
    )
    invoice_id = order["invoice_id"]
    challenged = lab.call("invoices_pay", invoice_id=invoice_id)
    assert challenged["status"] == 402
    terms = json.loads(base64.b64decode(challenged["headers"]["PAYMENT-REQUIRED"]))
    assert terms["accepts"] == challenged["body"]["accepts"]
    signed = {"PAYMENT-SIGNATURE": x402_credential(terms), "Idempotency-Key": "once"}
    paid = lab.call("invoices_pay", invoice_id=invoice_id, request_headers=signed)
    assert (paid["status"], paid["body"]["status"]) == (200, "paid")
    assert json.loads(base64.b64decode(paid["headers"]["PAYMENT-RESPONSE"]))["success"] is True
    again = lab.call("invoices_pay", invoice_id=invoice_id, request_headers=signed)
    assert (again["status"], again["body"]["already_paid"]) == (200, True)
    with lab.core.lab.store.transaction() as db:
        assert db.one("SELECT count(*) AS n FROM settlements WHERE invoice_id = ?", invoice_id)["n"] == 1
    entry = lab.core.journal.entries()[-1]
    assert (entry["method"], entry["path"]) == ("POST", f"/api/v1/invoices/{invoice_id}/pay")
    assert entry["idempotency_key"] == "once"


@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer x"}, {"Host": "x"}, {"Idempotency-Key": "a\nb"}, {"Idempotency-Key": 7}, "x", ["x"]]
)  # fmt: skip
def test_no_other_header_passes(lab, headers):
    before = len(lab.core.journal.entries())
    answer = lab.call("experiments_create", experiment_spec=spec(), name="x", request_headers=headers)
    assert (answer["status"], set(answer["body"])) == (400, {"error", "request_id"})
    assert answer["headers"] == {"x-request-id": answer["body"]["request_id"]}
    assert answer["body"]["request_id"].startswith("req_")
    assert len(lab.core.journal.entries()) == before


def test_lone_surrogates_are_refused(lab):
    for arguments in (
        {"experiment_id": "\udfff"},
        {"experiment_id": "x", "\udfff": "x"},
        {"experiment_id": "x", "y": "\udfff"},
    ):
        message = {"name": "experiments_get", "arguments": arguments}
        answer = lab.post("tools/call", message)
        assert answer.status_code in (200, 400)
        assert "Traceback" not in answer.text
        result = answer.json()
        assert "error" in result or result["result"]["isError"]


def test_a_file_comes_as_a_resource(lab):
    one = create(lab, skip_draft=True)["experiment_id"]
    advance(lab.core, hours=1)
    result = lab.whole("experiments_get_quote_pdf", {"experiment_id": one})
    content = result["structuredContent"]
    resource = result["content"][1]["resource"]
    pdf = base64.b64decode(resource["blob"])
    assert pdf.startswith(b"%PDF")
    assert (content["body"], content["file"]["size_bytes"]) == (None, len(pdf))
    assert resource["mimeType"] == content["file"]["media_type"] == "application/pdf"


def test_faults_hit_tool_calls(lab):
    lab.core.faults.append(Fault(action="status", path="/whoami", status=503, retry_after=7.0))
    answer = lab.call("identity_whoami")
    assert (answer["status"], answer["headers"]["Retry-After"]) == (503, "7")
    assert lab.core.journal.entries()[-1]["fault"] == "status"


def test_an_unknown_tool_is_an_error_of_the_protocol(lab):
    answer = lab.post("tools/call", {"name": "drop_tables", "arguments": {}}).json()
    assert "drop_tables" in answer["error"]["message"]


def test_tools_use_the_configured_words():
    core = lab_core(words=WireWords(provider="acmepay", service="Acme"))
    with browser(core) as http:
        lab = Tools(core, http)
        one = create(lab, skip_draft=True)["experiment_id"]
        advance(core, hours=1)
        quote = lab.call("experiments_get_quote", experiment_id=one)["body"]
        assert "acmepay_quote_url" in quote
        headers = lab.listed()["experiments_create"]["inputSchema"]["properties"]["request_headers"]
        assert "X-Acme-Payment-Method" in headers["properties"]
    core.close()


def test_a_parameter_and_a_body_field_of_one_name_raise():
    route = next(route for route in ROUTES if route.path == "/experiments/{experiment_id}" and route.writes)
    document = tools.api.load_document(partner=True)
    operation = document["paths"]["/api/v1/experiments/{experiment_id}"]["patch"]
    operation["parameters"] = [{"name": "name", "in": "query", "schema": {}, "description": ""}]
    with pytest.raises(ValueError, match="two parameters named name"):
        tools._make_tool(replace(route), document, WireWords())


def test_missing_path_arguments_are_refused_without_a_request():
    tool = tools.list_tools(WireWords())["experiments_get"]
    with pytest.raises(Refusal):
        tool.request({})


def test_without_the_extra_the_lab_runs_and_answers_501():
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from starlette.testclient import TestClient\n"
        "from assay_lab.service.core import LabCore\n"
        "from assay_lab.web.server import create_app\n"
        "core = LabCore(); http = TestClient(create_app(core), base_url='http://localhost')\n"
        "assert http.get('/api/v1/info/health').status_code == 200\n"
        "assert http.get('/portal/').status_code == 200\n"
        "for path in ('/mcp', '/token'):\n"
        "    answer = http.post(path)\n"
        "    assert answer.status_code == 501 and 'pip install mcp' in answer.text, answer.text\n"
        "core.close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, timeout=60, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


async def _official(lab, mode, *calls):
    headers = {"Authorization": f"Bearer {lab.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(lab.mcp_url, http_client=http), mode=mode) as client,
    ):
        names = {tool.name for tool in (await client.list_tools()).tools}
        return names, *[await client.call_tool(name, arguments) for name, arguments in calls]


@pytest.fixture(scope="module")
def running():
    with LocalLab() as lab:
        yield lab


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_over_a_real_lab(running, mode):
    new = ("experiments_create", {"experiment_spec": spec(), "name": f"by {mode}"})
    absent = ("quotes_get", {"quote_id": "none"})
    names, made, refused = asyncio.run(_official(running, mode, new, absent))
    assert {name_of(route) for route in ROUTES if not route.partner} <= names
    assert (made.is_error, made.structured_content["status"]) == (False, 201)
    assert (refused.is_error, refused.structured_content["status"]) == (True, 404)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_lost_answer_breaks_the_tool_call(running):
    running.fault("lose_answer", "/experiments", "POST")
    with pytest.raises((Exception, BaseExceptionGroup)):
        asyncio.run(
            _official(running, "auto", ("experiments_create", {"experiment_spec": spec(), "name": "lost"}))
        )
    assert [entry["answered"] for entry in running.journal(path="/experiments", method="POST")][-1] is False
    with running.http() as http:
        assert http.get("/experiments", params={"search": "lost"}).json()["total"] == 1
