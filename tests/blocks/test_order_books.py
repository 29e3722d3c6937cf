"""Orders and payments that an earlier version kept in Prefect variables, on a Prefect server, come into the log once.

The variables are written here as version 0.1.0 before the books wrote them: names and JSON are part of the promise.
"""

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import VariableCreate

from prefect_assay.blocks import AssayCredentials, LocalArchive
from prefect_assay.blocks import order_books as tasks_books
from prefect_assay.blocks.order_books import import_variables, open_books
from prefect_assay.books import OrderLedger
from prefect_assay.books.log import Approved, Ordered
from prefect_assay.client import AssayClient
from prefect_assay.errors import OrderOutcomeUnknown, ServiceUnavailable
from prefect_assay.models.experiment import CreateRequest
from prefect_assay.models.job import PaymentState
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.ordering import experiment_name, find_or_create, order_key
from prefect_assay.payments import RollingCap
from support.services.order_service import OrderService

pytestmark = pytest.mark.timeout(300)

URL = "https://lab.example.org"
NOW = datetime.now(UTC)
SPEC = ExperimentSpec.model_validate(
    {"experiment_type": "expression", "sequences": {"a": {"aa_string": "ACD"}}}
)


@pytest.fixture(scope="module")
def server():
    from prefect.testing.utilities import prefect_test_harness  # imports Prefect's server: not at collection

    with prefect_test_harness(server_startup_timeout=180), get_client(sync_client=True) as client:
        yield client


@pytest.fixture
def campaign(server):
    """A campaign of its own for each test; the server is one."""
    return f"camp-{uuid4().hex[:8]}"


@pytest.fixture
def opened(server, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks_books, "_account", lambda client: "org")
    credentials = AssayCredentials(base_url=f"{URL}/", token="t")
    return lambda folder="archive": open_books(credentials, LocalArchive(root=str(tmp_path / folder)))


def write(server, name, value):
    tags = ["assay-payment"]
    server.create_variable(VariableCreate(name=name, value=json.dumps(value), tags=tags))


def intent(server, campaign, key, cents, *, sent=True, url=URL):
    """As CampaignIntents wrote it."""
    digest = sha256(f"{len(campaign)}:{campaign}{url}".encode()).hexdigest()[:16]
    value = {
        "campaign_id": campaign,
        "order_key": key,
        "amount_cents": cents,
        "campaign_cap_cents": 5_000_000,
        "sent_at": NOW.isoformat() if sent else None,
    }
    write(server, f"assay_order_{digest}_{key}", value)


def payment(server, invoice, cents, state, *, sent=True, url=URL, days_ago=1):
    """As KeyValueLedger wrote it."""
    key = sha256(f"{len(url)}:{url}{invoice}".encode()).hexdigest()[:40]
    recorded = NOW - timedelta(days=days_ago)
    value = {
        "key": key,
        "base_url": url,
        "invoice_id": invoice,
        "rail": "x402-exact",
        "amount_cents": cents,
        "nonce": "0x01",
        "network": "eip155:84532",
        "asset": "0xa",
        "pay_to": "0xb",
        "expires_at": (recorded + timedelta(minutes=5)).isoformat(),
        "recorded_at": recorded.isoformat(),
        "state": state,
        "sent_at": recorded.isoformat() if sent else None,
        "claim_id": uuid4().hex,
        "experiment_id": "e-1",
        "campaign_id": "c",
        "receipt": {"transaction": "0xfe"} if state == "settled" else None,
        "remark": "a remark" if state in {"failed", "unknown"} else None,
    }
    write(server, f"assay_payment_{key}", value)
    return value


def invoice_id():
    return f"inv-{uuid4().hex[:8]}"


def ordered_book(books, campaign):
    book = books.order(campaign, order_key(campaign, 0, SPEC))
    book.record(lambda _: Ordered(experiment_id="e-1"))
    return book


def test_the_budget_counts_every_order_and_payment_of_an_earlier_version_once(server, campaign, opened):
    since = NOW - timedelta(days=30)
    before = opened("before").budget
    before.raise_cap(campaign, 0, "begins the log, with what other tests have left on the server")
    other = f"{campaign}-other"
    intent(server, campaign, "0a" * 10, 40_000)
    intent(server, campaign, "0b" * 10, 2_000, sent=False)  # confirmed or withdrawn; its amount says which
    intent(server, other, "0c" * 10, 7_000)
    intent(server, campaign, "0d" * 10, 9_000, url="https://another.example.org")
    paid = invoice_id()
    payment(server, paid, 40_000, "settled")
    payment(server, invoice_id(), 300, "unknown")
    payment(server, invoice_id(), 50, "sent", days_ago=40)
    payment(server, invoice_id(), 10_000, "failed")
    payment(server, invoice_id(), 20_000, "intended", sent=False)
    payment(server, invoice_id(), 6_000, "settled", url="https://another.example.org")
    for _ in range(2):
        books = opened()
        books.budget.reserve("0a" * 10, campaign, 40_000, campaign_cap_cents=42_000)
        books.budget.reserve("0e" * 10, campaign, 0)
        state = books.budget.read()
        assert state.campaign_cents(campaign) == 42_000
        assert state.campaign_cents(other) == 7_000
        assert state.paid_cents(since) - before.read().paid_cents(since) == 40_300
        assert state.paid_cents(NOW - timedelta(days=60)) - state.paid_cents(since) == 50


@pytest.mark.parametrize("state", ["sent", "unknown"])
def test_a_payment_in_doubt_stays_in_doubt_and_counts_once(server, campaign, opened, state):
    invoice = invoice_id()
    entry = payment(server, invoice, 300, state)
    books = opened()
    book = ordered_book(books, campaign)
    for _ in range(2):
        import_variables(book, f"{URL}/", invoice)
    found = OrderLedger(book).get()
    assert found.in_doubt
    assert (found.state, found.id, found.nonce) == (PaymentState.UNKNOWN, entry["claim_id"], "0x01")
    assert [r.kind for r in book.records()][-2:] == ["paying", "in_doubt"]
    counted = books.budget.read().paid_cents(NOW - timedelta(days=30))
    OrderLedger(book).reserve(300, RollingCap(max_cents=10**9, since=NOW - timedelta(days=30)))
    assert books.budget.read().paid_cents(NOW - timedelta(days=30)) == counted
    assert books.budget.read().reservations[f"invoice-{invoice}"].cents == 0


def test_a_payment_that_was_made_is_settled_and_one_that_failed_may_be_made_again(server, campaign, opened):
    books, invoice = opened(), invoice_id()
    payment(server, invoice, 300, "settled")
    book = ordered_book(books, campaign)
    import_variables(book, URL, invoice)
    assert (book.state.settled.invoice_id, book.state.payment.receipt) == (invoice, {"transaction": "0xfe"})
    failed, again = invoice_id(), ordered_book(books, f"{campaign}-failed")
    payment(server, failed, 300, "failed")
    import_variables(again, URL, failed)
    assert (again.state.payment.state, again.state.payment.remark) == (PaymentState.FAILED, "a remark")


def test_a_payment_that_was_only_intended_was_never_sent(server, campaign, opened):
    invoice = invoice_id()
    payment(server, invoice, 300, "intended", sent=False)
    book = ordered_book(opened(), campaign)
    import_variables(book, URL, invoice)
    assert book.read().payment is None


def test_what_the_log_knows_already_is_not_contradicted(server, campaign, opened):
    """Another run may have paid, or ordered, while the variables were read."""
    invoice = invoice_id()
    payment(server, invoice, 300, "unknown")
    book = ordered_book(opened(), campaign)
    intent(server, campaign, book.order_key, 300)
    OrderLedger(book).paid(invoice, 300)
    import_variables(book, URL, invoice)
    assert [r.kind for r in book.records()] == ["planned", "ordered", "settled"]


@pytest.mark.parametrize(("cents", "commits"), [(21_900, True), (0, False)])
def test_an_intent_that_was_sent_is_an_unfinished_attempt(server, campaign, opened, cents, commits):
    """Also when this version has approved the price before."""
    book = opened().order(campaign, order_key(campaign, 0, SPEC))
    intent(server, campaign, book.order_key, cents)
    book.record(lambda _: Approved(amount_cents=30_000, approver="within 500.00 USD"))
    for _ in range(2):
        import_variables(book, URL)
    assert [sent.commits for sent in book.read().open_attempts] == [commits]
    assert book.state.approved.amount_cents == 30_000
    name = experiment_name(campaign, 0, 1, book.order_key)
    request = CreateRequest(experiment_spec=SPEC, name=name, skip_draft=True)
    service = OrderService()
    if commits:
        with pytest.raises(OrderOutcomeUnknown, match="Ask the laboratory"):
            find_or_create(service, request, book, sleep=lambda s: None)
    else:
        find_or_create(service, request, book, sleep=lambda s: None)
    assert service.creates == (0 if commits else 1)


def test_an_approved_amount_is_kept_and_a_refused_order_is_free(server, campaign, opened):
    book = opened().order(campaign, order_key(campaign, 0, SPEC))
    intent(server, campaign, book.order_key, 21_900, sent=False)
    import_variables(book, URL)
    assert (book.state.approved.amount_cents, book.state.open_attempts) == (21_900, ())


def told(respond, path):
    """The books behind a service that answers `GET /whoami` so."""
    client = AssayClient(URL, "t", transport=httpx.MockTransport(respond), retries=0)
    credentials = SimpleNamespace(get_client=lambda: client, base_url=URL)
    return open_books(credentials, LocalArchive(root=str(path)))


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404, text="404 page not found"),
        httpx.Response(404, json={"detail": "Not Found"}),
        httpx.Response(200, json={"status": "maintenance"}),
    ],
    ids=["proxy", "framework", "another object"],
)
def test_an_answer_that_is_not_the_services_opens_no_books(tmp_path, answer):
    """In other books, an order that was sent and a card that was charged are unknown."""
    with pytest.raises(ServiceUnavailable, match="whoami"):
        told(lambda _: answer, tmp_path)


@pytest.mark.parametrize(
    ("answer", "account"),
    [
        (httpx.Response(404, json={"error": "no such endpoint"}), URL),
        (httpx.Response(200, json={"user_id": "u", "organizations": []}), URL),
        (
            httpx.Response(
                200,
                json={
                    "organizations": [{"id": "o1", "name": "A"}, {"id": "o2", "name": "B", "active": True}]
                },
            ),
            "o2",
        ),
    ],
    ids=["without the endpoint", "without an organisation", "with organisations"],
)
def test_the_books_are_those_of_the_tokens_organisation(tmp_path, answer, account):
    assert told(lambda _: answer, tmp_path).account == account
