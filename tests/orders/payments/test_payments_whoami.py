"""One order, one payment, whatever `GET /whoami` answers in between. The lab's books are the judge."""

import threading
from types import SimpleNamespace

import httpx
import pytest

from prefect_assay.blocks import LocalArchive
from prefect_assay.blocks.order_ledger import open_books
from prefect_assay.errors import AssayError, BudgetExceeded, OtherOrganisation, PaymentOutcomeUnknown
from prefect_assay.orders.find import adopt_experiment
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.payments import PaymentPolicy, settle
from prefect_assay.orders.payments.rails.mpp import MppRail
from prefect_assay.service.client import AssayClient
from support.lab.orders import booked, open_invoice


def hangs(request):
    raise httpx.ReadTimeout("no answer", request=request)


ANSWERS = {
    "absent": httpx.Response(404, json={"error": "no such endpoint"}),
    "a gateway's 404": httpx.Response(404, text="404 page not found"),
    "no active organisation": httpx.Response(200, json={"user_id": "u", "organizations": []}),
    "another active one": httpx.Response(200, json={"user_id": "u", "active_organization_id": "another"}),
    "away": httpx.Response(502, html="<h1>Bad gateway</h1>"),
    "a web page": httpx.Response(200, html="<h1>Sign in</h1>"),
    "unreadable": httpx.Response(200, text='{"user_id":'),
    "hangs": hangs,
}


class Payer:
    """Executions of one order: each opens the books anew, adopts the experiment and tries to pay."""

    def __init__(self, lab, folder):
        self.lab, self.archive = lab, LocalArchive(root=str(folder))
        self.invoice_id = open_invoice(lab, "mpp-spt")
        self.tokens, self.credentials = 0, []
        self.whoami = None  # in place of the service's answer
        self.lose_credentials = False
        with self.client() as client:
            invoice = client.invoices.get(self.invoice_id)
        self.experiment_id, self.cents = invoice.experiment_id, invoice.amount

    def client(self):
        return AssayClient(
            self.lab.base_url, self.lab.token, transport=httpx.MockTransport(self.answer), retries=0
        )

    def answer(self, request):
        if request.url.path.endswith("/whoami") and self.whoami is not None:
            return self.whoami(request) if callable(self.whoami) else self.whoami
        if "payment-authorization" in request.headers:
            self.credentials.append(request)
            if self.lose_credentials:
                raise httpx.ReadTimeout("a gateway holds it back", request=request)
        return self.send(request)

    @staticmethod
    def send(request):
        with httpx.HTTPTransport() as transport:
            response = transport.handle_request(request)
            content = response.read()
        kept = [
            (k, v)
            for k, v in response.headers.raw
            if k.lower() not in {b"content-encoding", b"content-length"}
        ]
        return httpx.Response(response.status_code, headers=kept, content=content)

    def execute(self, *, cap=None):
        books = self.books()
        book = books.open_order("camp", "key")
        adopt_experiment(book, self.experiment_id)
        policy = PaymentPolicy(
            enabled=True,
            max_cents_per_payment=self.cents,
            max_cents_rolling=cap or self.cents,
            allowed_origins=(self.lab.base_url,),
        )
        with self.client() as client:
            return settle(
                client.invoices,
                self.invoice_id,
                MppRail(self.issue, [self.lab.rail("mpp-spt")["network_id"]]),
                policy,
                OrderLedger(book),
                expected_cents=self.cents,
                experiment_id=self.experiment_id,
                sleep=lambda _: None,
            )

    def books(self):
        credentials = SimpleNamespace(get_client=self.client, base_url=self.lab.base_url)
        return open_books(credentials, self.archive)

    def issue(self, limits):
        self.tokens += 1
        return f"spt_{self.invoice_id.replace('-', '')}_{self.tokens}"


@pytest.fixture
def payer(lab, tmp_path):
    return Payer(lab, tmp_path)


@pytest.mark.parametrize(
    "first", [None, "absent", "no active organisation"], ids=["named", "absent", "none active"]
)
@pytest.mark.parametrize("later", ANSWERS)
def test_a_payment_in_doubt_gets_no_second_token_and_a_late_credential_pays_once(payer, first, later):
    payer.whoami, payer.lose_credentials = ANSWERS.get(first), True
    with pytest.raises(PaymentOutcomeUnknown):
        payer.execute()
    payer.whoami, payer.lose_credentials = ANSWERS[later], False
    # A log whose organisation the service had not named yet becomes that of the first one that it names.
    refused = OtherOrganisation if later == "another active one" and first is None else PaymentOutcomeUnknown
    with pytest.raises(refused):
        payer.execute()
    assert payer.tokens == 1
    assert payer.send(payer.credentials[0]).status_code == 200
    if refused is PaymentOutcomeUnknown:
        assert payer.execute().already_paid
    payer.whoami = None
    if not (first and later == "another active one"):
        assert payer.execute().already_paid
    assert (payer.tokens, len(booked(payer.lab, payer.invoice_id))) == (1, 1)


@pytest.mark.parametrize("later", [name for name in ANSWERS if name != "another active one"])
def test_the_budget_does_not_become_fresh(payer, later):
    payer.execute()
    payer.whoami = ANSWERS[later]
    budget = payer.books().budget
    assert budget.read().campaign_cents("camp") == payer.cents
    with pytest.raises(BudgetExceeded):
        budget.reserve("another", "camp", 1, campaign_cap_cents=payer.cents)


def test_executions_at_once_of_a_service_that_answers_now_and_then_pay_once(payer):
    calls = iter(range(10**6))

    def now_and_then(request):
        return ANSWERS["absent"] if next(calls) % 2 else payer.send(request)

    payer.whoami, ended = now_and_then, []

    def execute():
        try:
            ended.append(payer.execute(cap=10 * payer.cents).state)
        except AssayError as error:
            ended.append(type(error).__name__)

    threads = [threading.Thread(target=execute) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ended) == 6
    assert (len(booked(payer.lab, payer.invoice_id)), len(payer.credentials)) == (1, 1)
