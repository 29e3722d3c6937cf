"""A payment that a person made is recorded while the run sleeps: log, artifact, labels; without its flow."""

from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun

from prefect_assay.books.log import Ordered
from prefect_assay.cli.campaigns.known_runs import line_of
from prefect_assay.errors import PaymentFailed, TransientError
from prefect_assay.models.billing import Invoice
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.job import Payment
from prefect_assay.reporting import artifacts
from prefect_assay.runs.tags import INVOICE_LABEL, ORDER_TAG, PRICE_LABEL
from prefect_assay.sweeping import hosted_payments
from prefect_assay.sweeping.hosted_payments import may_have_been_paid, payment_reader
from support.archive.memory_store import books_in

FOUND = Experiment(
    id="e-1",
    code="LAB-1",
    status="waiting_for_materials",
    results_status="none",
    created_at=datetime.now(UTC),
)
PAGE = "https://pay.example/inv_1"


def a_run(**changes):
    parameters = {
        "campaign_id": "c",
        "batch_index": 1,
        "archive": {"$ref": {"block_document_id": str(uuid4())}},
    }
    values = {"flow_id": uuid4(), "parameters": parameters, "tags": [ORDER_TAG + "k"], "labels": {}}
    return FlowRun.model_validate(values | changes)


class Service:
    """One invoice."""

    def __init__(self, status, page=PAGE, **others):
        self.status, self.page, self.others, self.posts = status, page, others, 0

    def find_invoice(self, experiment_id):
        return Invoice(
            id="inv_1",
            experiment_id=experiment_id,
            status=self.status,
            amount=21_900,
            provider_hosted_invoice_url=self.page,
        )

    def invoice_by_id(self, invoice_id):
        return Invoice(id=invoice_id, experiment_id="e-1", status=self.others[invoice_id])

    def pay(self, _):
        self.posts += 1
        return SimpleNamespace(status_code=200)


class Prefect:
    """Keeps artifacts as the server does."""

    def __init__(self):
        self.kept = []

    def read_artifacts(self, **_):
        return self.kept[-1:]

    def create_artifact(self, artifact):
        self.kept.append(artifact)


@pytest.fixture
def books():
    made = books_in()
    made.order("c", "k").record(lambda _: Ordered(experiment_id="e-1"))
    return made


@pytest.fixture
def prefect(books, monkeypatch):
    """The server and the blocks of the run, in memory."""
    made = Prefect()

    @contextmanager
    def client(**_):
        yield made

    monkeypatch.setattr(artifacts, "get_client", client)
    monkeypatch.setattr(hosted_payments, "archive_of", lambda _: "archive")
    monkeypatch.setattr(hosted_payments, "open_books", lambda *_: books)
    return made


def record(service, run, found=FOUND):
    return payment_reader(service, None, run, found)()


def test_a_paid_invoice_is_recorded_and_shown_once(books, prefect):
    run = a_run()
    for _ in range(2):
        assert record(Service("paid"), run).state == "settled"
    settled = books.order("c", "k").read().settled
    assert (settled.invoice_id, settled.amount_cents) == ("inv_1", 21_900)
    (shown,) = prefect.kept
    assert (shown.key, shown.flow_run_id) == ("assay-invoice-c-2", run.id)
    assert "is paid" in shown.data
    assert PAGE not in shown.data
    labels = artifacts.payment_labels(record(Service("paid"), run))
    assert labels == {PRICE_LABEL: "21900", INVOICE_LABEL: ""}
    assert not may_have_been_paid(a_run(labels=labels))


@pytest.mark.parametrize(("amount", "label", "shown"), [(0, "0", 0), (None, "unknown", None)])
def test_a_payment_without_an_amount_is_not_read_for_ever(amount, label, shown):
    settled = Payment(invoice_id="inv_1", method="async_invoice", state="settled", amount_cents=amount)
    run = a_run(labels=artifacts.payment_labels(settled))
    assert run.labels[PRICE_LABEL] == label
    assert not may_have_been_paid(run)
    assert line_of(run).price_cents == shown


@pytest.mark.parametrize(("page", "shown"), [(PAGE, PAGE), (None, "inv_1")])
@pytest.mark.parametrize("status", ["open", "draft"])
def test_an_unpaid_invoice_changes_nothing(books, prefect, status, page, shown):
    service = Service(status, page)
    assert record(service, a_run(labels={INVOICE_LABEL: shown})) is None
    assert books.order("c", "k").read().settled is None
    assert (prefect.kept, service.posts) == ([], 0)


def test_a_page_that_the_invoice_has_later_is_shown(prefect):
    """A draft has no page, so that it cannot be paid yet (contract 4.2, rule 3)."""
    draft = record(Service("draft", None), a_run())
    assert "has no page yet" in prefect.kept[-1].description
    labels = artifacts.payment_labels(draft)
    assert labels == {PRICE_LABEL: "21900", INVOICE_LABEL: "inv_1"}
    assert may_have_been_paid(a_run(labels=labels))
    opened = record(Service("open"), a_run(labels=labels))
    assert prefect.kept[-1].data == artifacts.LinkArtifact(link=PAGE, link_text="Pay invoice inv_1").format()
    assert artifacts.payment_labels(opened)[INVOICE_LABEL] == PAGE


def test_a_void_invoice_gives_way_to_the_one_issued_in_its_place(prefect, monkeypatch):
    made = books_in()
    made.order("c", "k").record(lambda _: Ordered(experiment_id="e-1", invoice_id="inv_0"))
    monkeypatch.setattr(hosted_payments, "open_books", lambda *_: made)
    assert record(Service("paid", inv_0="void"), a_run()).invoice_id == "inv_1"
    assert made.order("c", "k").read().settled.invoice_id == "inv_1"


def test_a_void_invoice_is_the_flow_s_to_report(books, prefect):
    with pytest.raises(PaymentFailed, match="cannot be paid any more"):
        record(Service("void"), a_run())
    assert prefect.kept == []


def test_a_payment_of_another_experiment_of_the_order_is_not_recorded(books, prefect):
    younger = FOUND.model_copy(update={"id": "e-2"})
    with pytest.raises(TransientError, match="no longer the experiment of the order"):
        record(Service("paid"), a_run(), younger)
    assert books.order("c", "k").read().settled is None


def test_a_run_that_does_not_name_its_order_is_left_to_its_flow(prefect):
    with pytest.raises(ValueError, match="does not name its order"):
        record(Service("paid"), a_run(tags=[]))


@pytest.mark.parametrize(
    ("method", "labels", "expected"),
    [
        ("x402-exact", {}, False),
        ("mpp-spt", {}, False),
        ("async_invoice", {}, True),
        (None, {PRICE_LABEL: "21900", INVOICE_LABEL: PAGE}, True),
        (None, {PRICE_LABEL: "21900", INVOICE_LABEL: ""}, False),
        (None, {PRICE_LABEL: "", INVOICE_LABEL: ""}, True),
    ],
)
def test_only_a_hosted_invoice_that_is_not_known_as_paid_is_read(method, labels, expected):
    run = a_run(labels=labels)
    run.parameters["payment_method"] = method
    assert may_have_been_paid(run) is expected
