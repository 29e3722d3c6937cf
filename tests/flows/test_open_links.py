"""Links that work without a token: kept in the archived answers, named in the manifest, and repeated nowhere."""

import json
from datetime import UTC, datetime

import pytest
from prefect.logging import disable_run_logger

from prefect_assay.archive import LocalStore, read_latest, verify_versions
from prefect_assay.blocks import AssayCredentials, LocalArchive
from prefect_assay.campaigns.artifacts import payment_lines
from prefect_assay.orders.job import Order, Payment, PaymentState
from prefect_assay.orders.payments.reconciliation import PaymentStatus
from prefect_assay.service.models.answer_json import open_links
from prefect_assay.service.models.billing import Invoice
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.tasks.archive import archive_experiment
from support.services.fault_server import fault_server, reply

NOW = datetime.now(UTC)
HOST = "https://pay.example"
SPEC = ExperimentSpec.model_validate(
    {"experiment_type": "expression", "sequences": {"a": {"aa_string": "ACD"}}}
)
ORDER = Order(
    order_key="pa-1",
    experiment_id="e1",
    experiment_code="LAB-001-001",
    status="done",
    adopted=False,
    hosted_invoice_url=f"{HOST}/i/1",
)
PAYMENT = Payment(
    invoice_id="inv_1",
    method=PaymentMethod.ASYNC_INVOICE,
    state=PaymentState.INTENDED,
    amount_cents=100,
    hosted_invoice_url=f"{HOST}/i/1",
)
SUMMARY = {
    "result_type": "expression",
    "sequence": {"name": "a", "aa_string": "ACD", "metadata": {"sensor_package_url": f"{HOST}/m"}},
    "plot": f"{HOST}/plot.png?X-Amz-Expires=60&X-Amz-Signature=abc",
    "expression": "high",
    "replicates": [{"replicate": 1, "trace": f"{HOST}/t?sig=1", "lot": "7"}],
}
RESULT = {
    "id": "r1",
    "title": "t",
    "experiment_id": "e1",
    "result_type": "expression",
    "created_at": "2026-01-01T00:00:00Z",
    "summary": [SUMMARY],
    "metadata": {},
}
EXPERIMENT = {
    "id": "e1",
    "code": "LAB-001-001",
    "status": "done",
    "results_status": "all",
    "created_at": "2026-01-01T00:00:00Z",
    "experiment_url": "https://portal.example/e1",
    "costs": {"type": "quoted", "acme_quote_url": f"{HOST}/q/1", "amount_cents": 100},
}
ANSWERS = {
    "experiment": EXPERIMENT,
    "sequences": {"items": [], "total": 0},
    "quote": {"experiment_id": "e1", "acme_quote_url": f"{HOST}/q/1", "pay_url": "/invoices/1/pay"},
    "invoice": {"experiment_id": "e1", "acme_hosted_invoice_url": f"{HOST}/i/1"},
    "updates": {"items": [{"id": "u1", "description": "no link"}], "total": 1},
    "results": {"items": [RESULT], "total": 1},
}


@pytest.fixture
def archived(tmp_path):
    """One experiment of a service whose payment provider is called acme, archived."""
    experiment, *others = (reply(200, body) for body in ANSWERS.values())
    with fault_server() as server, disable_run_logger():
        server.will(experiment, *others)
        archive_experiment.fn(
            AssayCredentials(base_url=server.base_url, token="t", provider_word="acme"),
            LocalArchive(root=str(tmp_path)),
            Experiment.model_validate(EXPERIMENT),
            campaign_id="c",
            order=ORDER,
            payment=PAYMENT,
            spec=SPEC,
        )
    return LocalStore(tmp_path)


def test_answers_keep_their_links_and_the_manifest_names_the_fields(archived):
    version = read_latest(archived, "", "c", "LAB-001-001")
    assert json.loads(version.read("raw/quote.json")) == ANSWERS["quote"]
    assert {path: file.links for path, file in version.files.items() if file.links} == {
        "raw/experiment.json": ("costs.acme_quote_url",),
        "raw/quote.json": ("acme_quote_url",),
        "raw/invoice.json": ("acme_hosted_invoice_url",),
        "raw/results-0001.json": (
            "items[].summary[].plot",
            "items[].summary[].replicates[].trace",
            "items[].summary[].sequence.metadata.sensor_package_url",
        ),
    }
    assert verify_versions(archived).findings == ()


def test_nothing_but_the_answers_holds_a_link(archived):
    holding = {key for key in archived.keys("") if HOST.encode() in archived.read(key)}
    folder = "c/LAB-001-001/v001"
    assert holding == {
        f"{folder}/raw/{name}"
        for name in ("experiment.json", "quote.json", "invoice.json", "results-0001.json")
    }
    version = read_latest(archived, "", "c", "LAB-001-001")
    assert b"lot" in version.read("results.csv")
    assert json.loads(version.read("receipt.json"))["invoice_id"] == "inv_1"


@pytest.mark.parametrize(("status", "shown"), [("open", True), ("paid", False)])
def test_the_page_of_an_invoice_is_shown_only_while_it_is_unpaid(status, shown):
    invoice = Invoice(id="inv_1", status=status, amount=100, provider_hosted_invoice_url=f"{HOST}/i/1")
    assert ("invoice page" in payment_lines(PaymentStatus(invoice=invoice))) is shown


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"provider_invoice_url": f"{HOST}/1"}, ("provider_invoice_url",)),
        ([{"invoice_url": f"{HOST}/1"}, {"invoice_url": None}], ("[].invoice_url",)),
        ({"file": "HTTPS://a/b?Expires=1&Signature=x"}, ("file",)),
        ({"data_package_url": ""}, ()),
        ({"experiment_url": "https://portal/e1", "url": "https://vendor/product?id=1"}, ()),
        ({"note": "see quote_url", "quote_url": 7}, ()),
        ("https://a/?token=1", ("",)),
    ],
)
def test_which_fields_hold_one(body, fields):
    assert open_links(body) == fields
