"""PDFs of quotes and invoices, health and feedback (service shapes)."""

import re
import shutil
import sqlite3
import subprocess
import uuid

import pytest

from assay_lab.billing import documents
from assay_lab.kernel.refusals import Refusal
from lab_support.core import get, lab_core, order, refusal, to_quote


@pytest.fixture(scope="module")
def core():
    made = lab_core()
    yield made
    made.close()


def objects(content):
    """The objects that the cross-reference table points to, by number: a reader finds them in no other way."""
    start = int(re.search(rb"startxref\n(\d+)\n%%EOF\n$", content)[1])
    table = content[start:].split(b"trailer")[0].splitlines()
    assert table[0] == b"xref"
    offsets = [int(line.split()[0]) for line in table[3:]]
    for number, offset in enumerate(offsets, 1):
        assert content[offset:].startswith(f"{number} 0 obj\n".encode())
    return [content[offset:].split(b"\nendobj")[0] for offset in offsets]


def text(content, tmp_path):
    """What a reader shows, where one is installed; else the strings of the page."""
    if not shutil.which("pdftotext"):
        return content.decode("cp1252")
    path = tmp_path / "x.pdf"
    path.write_bytes(content)
    ran = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, check=True)
    assert ran.stderr == b""
    return ran.stdout.decode()


def test_a_document_is_a_valid_pdf(tmp_path):
    content = documents.make_pdf("Title (x) \\ é", [f"line {number}" for number in range(9)] + ["Ω\n\x00 €"])
    assert content.startswith(b"%PDF-1.4\n")
    pdf_objects = objects(content)
    stream = next(item for item in pdf_objects if b"stream\n" in item)
    length = int(re.search(rb"/Length (\d+)", stream)[1])
    assert len(stream.split(b"stream\n", 1)[1].removesuffix(b"\nendstream")) == length
    shown = text(content, tmp_path)
    assert "line 0" in shown
    assert "line 8" in shown


def test_the_quote_pdf_shows_the_figures_of_the_quote(core, tmp_path):
    draft = order(core).body["experiment_id"]
    assert refusal(core, "GET", f"/experiments/{draft}/quote/pdf").status == 404
    experiment_id = to_quote(core, name="Binders (round 1)")
    answer = core.request("GET", f"/experiments/{experiment_id}/quote/pdf")
    assert (answer.status, answer.media_type) == (200, "application/pdf")
    cents = get(core, f"/experiments/{experiment_id}/quote")["amount_total"]
    shown = text(answer.body, tmp_path)
    assert f"{cents // 100:,}.{cents % 100:02d}" in shown
    assert get(core, "/quotes", experiment_id=experiment_id)["items"][0]["quote_number"] in shown


def test_the_invoice_pdf_is_fetched_at_an_address_without_a_token(core, tmp_path):
    made = order(core, auto_accept_quote=True).body
    by_provider = core.request("GET", f"/invoices/{made['provider_invoice_id']}/pdf")
    invoice = get(core, f"/invoices/{made['provider_invoice_id']}")
    answer = core.request("GET", f"/invoices/{invoice['id']}/pdf")
    assert (answer.status, answer.body) == (307, None)
    assert answer.headers == by_provider.headers
    match = re.fullmatch(r"http://[^/]+/portal/invoices/([\w-]+)/pdf", answer.headers["Location"])
    shown = text(documents.hosted_invoice(core.lab, match[1]), tmp_path)
    assert made["provider_invoice_id"] in shown
    assert f"{invoice['amount'] // 100:,}.{invoice['amount'] % 100:02d}" in shown
    assert refusal(core, "GET", "/invoices/in_unknown/pdf").status == 404
    with pytest.raises(Refusal, match="no such page"):
        documents.hosted_invoice(core.lab, "guess")


def test_health_needs_no_token_and_that_of_the_database_tells_when_it_is_broken():
    core = lab_core()
    nobody = {"authorization": ""}
    assert core.request("GET", "/info/health", headers=nobody).body == {"status": "ok"}
    assert refusal(core, "GET", "/info/health-db", headers=nobody).status == 401
    for token in (core.seeded.viewer_token, core.seeded.member_token):
        assert core.request("GET", "/info/health-db", token=token).body == {"status": "ok", "db": "ok"}
    core.close()
    # The token is looked up in the database, too.
    refused = refusal(core, "GET", "/info/health-db", token=core.seeded.viewer_token)
    assert (refused.status, refused.extra) == (503, {"db": "unavailable"})
    assert core.request("GET", "/info/health", headers=nobody).status == 200
    with pytest.raises(sqlite3.Error):
        core.request("GET", "/whoami")


def test_feedback_is_kept_and_gets_a_reference(core):
    body = {
        "request_uuid": str(uuid.uuid4()),
        "feedback_type": "bug_report",
        "title": "x",
        "json_body": {"a": [1, None]},
        "human_note": "y",
    }
    first, second = (core.request("POST", "/feedback/submit", json_body=body) for _ in range(2))
    assert first.status == 201
    assert set(first.body) == {"reference", "message"}
    assert first.body["reference"] != second.body["reference"]
    with core.lab.store.transaction() as db:
        assert len(db.all("SELECT * FROM feedback")) == 2
