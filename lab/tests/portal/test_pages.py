"""The pages behind the links of the API: well-formed, escaped, and offering only what can be done."""

from html.parser import HTMLParser

import pytest

from assay_lab.measure.assays import BINDING_TYPES
from assay_lab.vocabulary import ExperimentType
from lab_support.core import PRICED, advance, get, lab_core, order, spec, to_quote
from lab_support.designs import EGFR, submitted_designs

EVIL = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"
VOID = {"meta", "input", "br", "img", "link"}
SIXTEEN = {f"design {number}": "MKT" + letter * 9 for number, letter in enumerate("ACDEFGHIKLMNPQRS")}


class Page(HTMLParser):
    """Tags with attributes and visible text; every element is closed in order, and nothing runs or loads."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []
        assert not {tag for tag, _ in self.tags} & {"script", "img", "link", "iframe", "object"}
        assert not [a for _, attrs in self.tags for a in attrs if a.startswith("on") or a == "src"]

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data

    @property
    def forms(self):
        return {attrs["action"]: attrs["method"] for tag, attrs in self.tags if tag == "form"}

    @property
    def refreshes(self):
        return "refresh" in {attrs.get("http-equiv") for _, attrs in self.tags}


@pytest.fixture(scope="module")
def core():
    made = lab_core()
    yield made
    made.close()


def shown(client, url):
    answer = client.get(url)
    assert answer.status_code == 200
    return Page(answer.text)


def of_experiment(core, client, experiment_id):
    return shown(client, get(core, f"/experiments/{experiment_id}")["experiment_url"])


def test_an_experiment_shows_what_is_in_progress_and_then_its_measurements(core, client):
    designs = {row["name"]: row["aa_string"] for row in submitted_designs()}
    specification = spec(target_id=EGFR["id"], sequences=designs)
    experiment_id = order(core, specification, name="round 1", auto_accept_quote=True).body["experiment_id"]
    while get(core, f"/experiments/{experiment_id}")["status"] != "in_review":
        core.clock_driver.to_next(core.seeded.organization_id)
    page = of_experiment(core, client, experiment_id)
    assert page.text.count("in progress") == 6
    assert page.refreshes
    core.clock_driver.until_idle(core.seeded.organization_id)
    page = of_experiment(core, client, experiment_id)
    code = get(core, f"/experiments/{experiment_id}")["code"]
    for phrase in (code, "round 1", "P01133-971-1023", "9.28e-08", "The results are released.", "UTC"):
        assert phrase in page.text
    (result,) = get(core, f"/experiments/{experiment_id}/results")["items"]
    assert ("a", {"href": result["data_package_url"]}) in page.tags
    assert not page.refreshes


@pytest.mark.parametrize(
    ("experiment_type", "column"),
    [
        ("screening", "Call"),
        ("thermostability", "T_m"),
        ("fluorescence", "Intensity"),
        ("expression", "Yield"),
        ("enzyme_activity", "k_cat"),
        ("epitope_binning", "Bin"),
    ],
)
def test_every_assay_has_its_column(core, client, experiment_type, column):
    specification = spec(
        experiment_type=experiment_type,
        method="bli" if experiment_type == "screening" else None,
        target_id=PRICED["id"] if ExperimentType(experiment_type) in BINDING_TYPES else None,
        sequences=SIXTEEN,
    )
    experiment_id = order(core, specification, skip_draft=True).body["experiment_id"]
    advance(core, hours=1)
    core.request("POST", f"/experiments/{experiment_id}/quote/confirm", json_body={})
    advance(core, days=16)
    assert column in of_experiment(core, client, experiment_id).text


def test_every_value_is_escaped_and_a_quote_and_an_invoice_are_decided_once(core, client):
    experiment_id = to_quote(core, spec(sequences={EVIL: "MKTAYIAKQR"}), name=EVIL)
    quote_url = get(core, f"/experiments/{experiment_id}/quote")["provider_quote_url"]
    page = shown(client, quote_url)
    assert page.forms == {"./accept": "post", "./reject": "post"}
    quote = get(core, f"/experiments/{experiment_id}/quote")
    total = quote["amount_total"] / 100
    assert EVIL in page.text
    assert f"${total:,.2f}" in page.text
    assert f"Valid until {quote['expires_at'][:10]}" in page.text
    assert client.post(f"{quote_url}accept").status_code == 303
    assert shown(client, quote_url).forms == {}
    invoice_url = get(core, f"/experiments/{experiment_id}/invoice")["provider_invoice_url"]
    page = shown(client, invoice_url)
    assert page.forms == {"./pay": "post"}
    for phrase in (EVIL, f"${total:,.2f}", "affinity assay"):
        assert phrase in page.text
    assert client.post(f"{invoice_url}pay").status_code == 303
    page = shown(client, invoice_url)
    assert (page.forms, "Paid on 2026-" in page.text) == ({}, True)
    assert client.post(f"{invoice_url}pay").status_code == 409
    advance(core, days=16)
    page = of_experiment(core, client, experiment_id)
    assert page.text.count(EVIL) == 2


def test_a_rejected_quote_cannot_be_decided_again(core, client):
    experiment_id = to_quote(core)
    quote_url = get(core, f"/experiments/{experiment_id}/quote")["provider_quote_url"]
    assert client.post(f"{quote_url}reject", data={"reason": "price"}).status_code == 303
    assert shown(client, quote_url).forms == {}
