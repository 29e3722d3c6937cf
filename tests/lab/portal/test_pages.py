"""The lab's pages: well-formed, escaped, and offering only what can be done."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefect_assay.lab.measure import measure_records
from prefect_assay.lab.portal.charts import STAGES, molar, progress
from prefect_assay.lab.portal.experiment_pages import experiment_page, invoice_page, quote_page
from support.lab.designs import invented_designs, order, submitted_designs

EXPERIMENT = {"code": "LAB-001-007", "name": "round 1", "status": "done", "experiment_type": "affinity"}
EVIL = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"
VOID = {"meta", "input", "br", "img", "link"}


class Page(HTMLParser):
    """Tags with attributes, visible text, and whether every element is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data

    def forms(self):
        return {attrs["action"]: attrs["method"] for tag, attrs in self.tags if tag == "form"}

    def check(self):
        assert self.open == []
        names = {tag for tag, _ in self.tags}
        assert not names & {"script", "img", "link", "iframe", "object"}
        assert not [a for _, attrs in self.tags for a in attrs if a.startswith("on") or a == "src"]
        return self


def affinity(sequences, **changes):
    return measure_records(**order(sequences, **changes))


def test_a_finished_experiment_shows_its_measurements():
    updates = [{"name": "Done", "description": "Released.", "timestamp": "2026-03-09T08:30:00Z"}]
    [result] = affinity(submitted_designs())
    page = Page(experiment_page(EXPERIMENT, updates, [{**result, "data_package_url": "/files/k"}])).check()
    assert "LAB-001-007" in page.text
    assert "P01133-971-1023" in page.text
    assert "92.8 nM" in page.text
    assert "2026-03-09 08:30 UTC" in page.text
    assert ("a", {"href": "/files/k"}) in page.tags
    assert [attrs for tag, attrs in page.tags if tag == "polyline" and "c3" in attrs.get("class", "")]
    assert "refresh" not in {attrs.get("http-equiv") for _, attrs in page.tags}


def test_a_running_experiment_refreshes_and_shows_what_is_in_progress():
    [result] = affinity(submitted_designs(), partial=True)
    page = Page(experiment_page({**EXPERIMENT, "status": "in_review"}, [], [result])).check()
    assert page.text.count("in progress") == 6
    assert "refresh" in {attrs.get("http-equiv") for _, attrs in page.tags}


@pytest.mark.parametrize(
    ("experiment_type", "shown"),
    [
        ("screening", "none"),
        ("thermostability", "°C"),
        ("fluorescence", "RFU"),
        ("expression", "mg/L"),
        ("enzyme_activity", "1/s"),
        ("epitope_binning", "Bin"),
    ],
)
def test_every_assay_has_a_page(experiment_type, shown):
    [result] = affinity(invented_designs(12), experiment_type=experiment_type, method=None)
    page = Page(experiment_page(EXPERIMENT, [], [result])).check()
    assert shown in page.text


@pytest.mark.parametrize("status", [*STAGES, "canceled", "something_new", ""])
def test_any_status_has_a_page(status):
    Page(experiment_page({"code": "LAB-1", "status": status}, [], [])).check()


def test_progress_fills_what_is_behind():
    assert progress("in_queue").count('class="stage past"') == 4
    assert progress("in_queue").count('class="stage now"') == 1
    assert progress("done").count('class="stage past"') == 9
    assert progress("unheard_of").count('class="stage next"') == 9


def test_every_value_is_escaped():
    [result] = affinity([{**row, "name": EVIL + row["name"]} for row in submitted_designs()])
    record = dict.fromkeys(
        ("code", "name", "status", "experiment_type", "created_at", "id", "quote_number", "valid_until",
         "description", "timestamp", "provider_invoice_id", "settlement_reference", "paid_at", "title"),
        EVIL,
    )  # fmt: skip
    lines = [{"description": EVIL, "quantity": EVIL, "unit_price_cents": 1, "total_cents": 1}]
    for text in (
        experiment_page(record, [record], [{**result, "title": EVIL, "data_package_url": EVIL}]),
        quote_page({**record, "line_items": lines, "total_cents": 1}, record),
        quote_page({**record, "status": "open"}, record),
        invoice_page(record, record, {"line_items": lines}),
        invoice_page({**record, "status": "paid"}, record, {}),
    ):
        page = Page(text).check()
        assert "<script" not in text
        assert EVIL[:12] in page.text


@given(st.text())
@settings(max_examples=100)
def test_any_text_is_shown_as_text(text):
    record = {"code": text, "name": text, "status": text}
    entry = {"sequence": {"name": text}, "tm": 50.0}
    Page(experiment_page(record, [record], [{"title": text, "summary": [entry]}])).check()


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", None, 7])
def test_a_package_link_never_runs_anything(url):
    page = Page(experiment_page(EXPERIMENT, [], [{"summary": [], "data_package_url": url}])).check()
    assert "a" not in {tag for tag, _ in page.tags}


def test_an_open_quote_can_be_decided_and_a_closed_one_not():
    quote = {
        "quote_number": "Q-7",
        "status": "open",
        "total_cents": 397_500,
        "valid_until": "2026-03-31T12:00:00Z",
    }
    page = Page(quote_page(quote, EXPERIMENT)).check()
    assert page.forms() == {"./accept": "post", "./reject": "post"}
    assert "$3,975.00" in page.text
    assert "2026-03-31 12:00 UTC" in page.text
    for status in ("accepted", "expired", "rejected", "canceled", "stale"):
        assert Page(quote_page({**quote, "status": status}, EXPERIMENT)).check().forms() == {}


def test_an_unpaid_invoice_can_be_paid_and_a_paid_one_not():
    invoice = {"id": "in_1", "status": "open", "amount_cents": 5}
    item = {
        "description": "Affinity of 8 designs",
        "quantity": 8,
        "unit_price_cents": 21_900,
        "total_cents": 175_200,
    }
    page = Page(invoice_page(invoice, EXPERIMENT, {"line_items": [item]})).check()
    assert page.forms() == {"./pay": "post"}
    for said in ("$0.05", "Affinity of 8 designs", "$219.00", "$1,752.00"):
        assert said in page.text
    for status in ("paid", "void", "uncollectible"):
        assert Page(invoice_page({**invoice, "status": status}, EXPERIMENT, {})).check().forms() == {}


@pytest.mark.parametrize(
    ("value", "shown"),
    [(9.28e-8, "92.8 nM"), (1e-6, "1 µM"), (2.5e-3, "2.5 mM"), (4e-12, "4 pM"), (1e-9, "1 nM"), (1.0, "1 M")],
)
def test_concentrations_read_naturally(value, shown):
    assert molar(value) == shown
