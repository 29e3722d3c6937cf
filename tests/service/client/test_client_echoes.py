"""A service that repeats a secret in a successful answer: it is cut out before anybody reads the text."""

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.errors import RequestRefused
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.http.request import Answer
from prefect_assay.service.client.http.secrets import scrubbed

TOKEN = "svc_main_abcdef0123456789/+secret"
OTHER = "whsec-0123456789-of-a-webhook-abc"
UPDATE = {"id": "u-1", "experiment_id": "e-1", "timestamp": "2026-11-26T14:00:00Z"}


def spelt(secret, how):
    if how == "escaped":
        return "".join(f"\\u{ord(letter):04X}" if letter in "s/+c" else letter for letter in secret)
    return secret.replace("/", "\\/") if how == "slashes" else secret


def client(text):
    body = json.dumps(
        {"items": [UPDATE | {"name": "X", "description": "Y"}], "total": 1, "count": 1, "offset": 0}
    )
    body = body.replace("X", text).replace("Y", f"see {text}!")
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text=body))
    return AssayClient("https://lab.example.org", TOKEN, transport=transport)


@pytest.mark.parametrize("how", ["plain", "slashes", "escaped"])
def test_the_token_in_a_text_of_an_update_is_cut_out(how):
    (update,) = client(spelt(TOKEN, how)).updates.iterate()
    assert (update.name, update.description) == ("[secret]", "see [secret]!")


@pytest.mark.parametrize("how", ["plain", "escaped"])
@pytest.mark.parametrize("fields", [{"secret": OTHER}, {"headers": {"Authorization": OTHER}}])
def test_a_secret_of_the_request_is_cut_out_of_its_answer(fields, how):
    transport = httpx.MockTransport(
        lambda _: httpx.Response(201, text=f'{{"id": "w", "url": "https://h.example/{spelt(OTHER, how)}"}}')
    )
    made = AssayClient("https://lab.example.org", TOKEN, transport=transport).webhooks.create(
        "https://h.example", **fields
    )
    assert made.url == "https://h.example/[secret]"


@pytest.mark.parametrize("how", ["plain", "escaped"])
@pytest.mark.parametrize(("value", "is_cut"), [("hush/cs8", True), ("Basic c3M6", True), ("staging", False)])
def test_a_header_of_eight_characters_is_cut_out_of_an_error(value, is_cut, how):
    transport = httpx.MockTransport(
        lambda _: httpx.Response(400, text=f'{{"error": "X-Key: {spelt(value, how)}", "request_id": "r"}}')
    )
    service = AssayClient("https://lab.example.org", TOKEN, transport=transport)
    with pytest.raises(RequestRefused) as caught:
        service.webhooks.create("https://h.example", headers={"X-Key": value})
    assert (value in str(caught.value), "X-Key: [secret]" in str(caught.value)) == (not is_cut, is_cut)
    assert caught.value.request_id == "r"


@pytest.mark.parametrize("value", ["error", "request_id", "application/json"])
def test_a_header_of_a_webhook_changes_no_answer_but_its_own(value):
    record = b'{"id": "e-1", "accept": "application/json", "error": null, "request_id": "r"}'
    answers = [
        httpx.Response(400, json={"error": "url: not reachable", "request_id": "r"}),
        httpx.Response(201, json={"id": "w", "url": "https://h.example"}),
        httpx.Response(200, content=record),
    ]
    transport = httpx.MockTransport(lambda _: answers.pop(0))
    service = AssayClient("https://lab.example.org", TOKEN, transport=transport)
    with pytest.raises(RequestRefused, match="url: not reachable"):
        service.webhooks.create("https://h.example", headers={"X-Level": value})
    service.webhooks.create("https://h.example", headers={"X-Level": value})
    assert next(iter(service.documents.iterate("e-1"))).body == record


def test_raw_documents_keep_every_other_byte():
    record = b'{"id": "e-1",  "name": "%s", "kd": 1.10e-9, "n": 12345678901234567890, "t": "\\u00e9\\n"}'
    transport = httpx.MockTransport(
        lambda request: (
            httpx.Response(200, content=record % TOKEN.encode())
            if request.url.path.endswith("e-1")
            else httpx.Response(404, json={"error": "not yet", "request_id": "r"})
        )
    )
    first = next(
        iter(AssayClient("https://lab.example.org", TOKEN, transport=transport).documents.iterate("e-1"))
    )
    assert first.body == record % b"[secret]"


@given(st.text(), st.sampled_from([TOKEN, OTHER]))
def test_nothing_else_is_changed(text, secret):
    for ascii_only in (True, False):
        content = json.dumps({"a": text}, ensure_ascii=ascii_only).encode()
        assert secret in text or scrubbed(Answer(status=200, content=content), [secret]).content == content
