"""What a canceled order leaves at the service, from what the service answers, and how it is said."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from prefect_assay.campaigns.remains import (
    CanceledOrderState,
    order_line,
    order_text,
    reject_surplus,
    settle_cancellation,
)
from prefect_assay.campaigns.stop import _is_final
from prefect_assay.errors import Conflict, NotFound, NotReady, OutcomeUnknown, ServiceUnavailable
from prefect_assay.orders.job import Order, PaymentState
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.service.models.billing import ExperimentInvoice, Invoice, Quote
from prefect_assay.service.models.experiment import Experiment
from support.archive.memory_store import an_attempt, make_ledger

NOW = datetime.now(UTC)
ORDER = Order(
    order_key="k", experiment_id="e-1", experiment_code="LAB-001-001", status="quote_sent", adopted=True
)
URL = "https://lab.example"


class Service:
    """One experiment with the given answers; rejecting its quote makes it a draft again."""

    service_time = None  # its answers have no date

    base_url = URL

    def __init__(self, *, quote=None, invoice=None, status="quote_sent", known="q-1", rejecting=None):
        self.shown, self.billed, self.status = quote, invoice, status
        self.known, self.rejecting, self.rejected = known, rejecting, []
        self.experiments = SimpleNamespace(
            get=self._get, get_invoice=self._get_invoice, get_quote=self._get_quote
        )
        self.invoices = SimpleNamespace(find_for_experiment=self._find_invoice)
        self.quotes = SimpleNamespace(get=self._get_by_id, iterate=self._iterate, reject=self._reject)

    def _get_invoice(self, _experiment_id):
        if self.billed is None:
            raise NotReady("no invoice")
        return ExperimentInvoice(experiment_id="e-1", status=self.billed)

    def _find_invoice(self, _experiment_id):
        return self.billed and Invoice(id="inv_1", status=self.billed, amount=21_900, experiment_id="e-1")

    def _get(self, _experiment_id):
        return Experiment(
            id="e-1", code="LAB-001-001", status=self.status, created_at=NOW, provider_quote_id=self.known
        )

    def _get_quote(self, _experiment_id):
        if self.shown is None:
            raise NotReady("no quote")
        return Quote(status=self.shown, amount_total=21_900, provider_quote_url=f"{URL}/q/1")

    def _get_by_id(self, quote_id):
        if quote_id != "q-1":
            raise NotFound(quote_id)
        return Quote(id="q-1", status=self.shown or "rejected")

    def _iterate(self):
        return iter(
            [
                Quote(id="q-0", status="pending", provider_quote_url=f"{URL}/q/0"),
                Quote(id="q-1", status="pending", provider_quote_url=f"{URL}/q/1"),
            ]
        )

    def _reject(self, quote_id, _reason, _feedback):
        if isinstance(self.rejecting, Conflict):
            self.billed = "open"  # somebody has accepted it meanwhile
            raise self.rejecting
        self.rejected.append(quote_id)
        self.shown, self.status = None, "draft"
        if self.rejecting:
            raise self.rejecting


def end(service, *, reject=True, order=ORDER, ledger=None):
    remains = settle_cancellation(service, ledger or make_ledger(experiment="e-1"), order, reject=reject)
    return remains, order_text(remains, reject=reject)


def test_without_an_order_nothing_is_billed():
    remains, text = end(Service(), order=None)
    assert remains.state is CanceledOrderState.NOTHING
    assert "Nothing was ordered" in text


@pytest.mark.parametrize("known", ["q-1", None, "the-provider's"])
def test_an_open_quote_is_rejected_by_its_own_id(known):
    service = Service(quote="open", known=known)
    remains, text = end(service)
    assert (remains.state, service.rejected) == (CanceledOrderState.QUOTE_REJECTED, ["q-1"])
    assert "Its quote is rejected" in text


def test_the_policy_may_leave_an_open_quote():
    service = Service(quote="open")
    remains, text = end(service, reject=False)
    assert (remains.state, service.rejected) == (CanceledOrderState.QUOTE_OPEN, [])
    assert "Its quote over 219.00 USD is open and was not rejected" in text


def test_a_quote_with_a_status_of_a_later_version_is_not_rejected_blindly():
    service = Service(quote="in_negotiation")
    remains, _ = end(service)
    assert (remains.state, service.rejected) == (CanceledOrderState.QUOTE_PENDING, [])


def test_a_lost_answer_to_the_rejection_is_looked_up_and_not_repeated():
    service = Service(quote="open", rejecting=OutcomeUnknown("lost"))
    assert end(service)[0].state is CanceledOrderState.QUOTE_REJECTED
    assert service.rejected == ["q-1"]


def test_a_quote_that_was_accepted_in_between_is_reported_as_an_order():
    remains, text = end(Service(quote="open", rejecting=Conflict("accepted")))
    assert remains.state is CanceledOrderState.INVOICED
    assert "The order remains in force, and 219.00 USD is billed" in text
    assert "no operation that cancels an order" in text


def test_what_is_paid_is_done_and_cannot_be_stopped():
    remains, text = end(Service(invoice="paid", status="in_production"))
    assert not remains.payment.in_doubt
    assert "The laboratory does the work, and 219.00 USD is billed and paid" in text


@pytest.mark.parametrize(
    ("invoice", "status", "says", "silent"),
    [
        (
            "open",
            "waiting_for_materials",
            "may have begun: nothing says that it waits for the payment",
            "do not pay",
        ),
        ("open", "in_production", "works on it, although the invoice is not paid", "do not pay"),
        ("open", "done", "has done the work, and its invoice is due", "may have begun"),
        ("open", "canceled", "its invoice over 219.00 USD must not be paid", "remains in force"),
        (
            "paid",
            "canceled",
            "canceled the experiment, and 219.00 USD is paid.** Ask it for a refund",
            "start the flow",
        ),
        ("paid", "done", "The laboratory has done the work, and 219.00 USD is billed and paid", "cancels it"),
    ],
)
def test_what_is_billed_agrees_with_the_state_of_the_experiment(invoice, status, says, silent):
    remains, text = end(
        Service(invoice=invoice, status=status), order=ORDER.model_copy(update={"status": status})
    )
    assert "219.00 USD" in order_line(remains)
    assert f"status {status.replace('_', ' ')}." in text
    assert says in text
    assert silent not in text


@pytest.mark.parametrize(
    ("state", "doubt"), [(None, True), (PaymentState.UNKNOWN, True), (PaymentState.FAILED, False)]
)
def test_an_uncertain_payment_is_reported(state, doubt):
    ledger = make_ledger(experiment="e-1")
    attempt = an_attempt(experiment_id=None, amount_cents=21_900, expires_at=NOW)
    payment_ledger = PaymentLedger(ledger)
    sent = payment_ledger.begin(attempt, previous=None)
    if state is not None:
        payment_ledger.record_outcome(sent, state)
    remains, text = end(Service(invoice="open"), ledger=ledger)
    assert remains.payment.in_doubt is doubt
    assert ("may have been made" in text) is doubt
    assert "`0x01`" in text


@pytest.mark.parametrize(
    ("service", "kind"),
    [
        (Service(status="waiting_for_confirmation"), CanceledOrderState.QUOTE_PENDING),
        (Service(status="draft"), CanceledOrderState.DRAFT),
        (Service(status="canceled"), CanceledOrderState.CANCELED),
        (Service(quote="rejected"), CanceledOrderState.QUOTE_REJECTED),
        (Service(quote="stale"), CanceledOrderState.QUOTE_ENDED),
    ],
)
def test_nothing_is_billed_for_what_was_never_accepted(service, kind):
    remains, text = end(service)
    assert remains.state is kind
    assert service.rejected == []
    assert "USD" not in text


def test_another_look_is_taken_only_where_it_can_find_something():
    young, old = timedelta(minutes=1), timedelta(hours=1)
    pending = end(Service(status="waiting_for_confirmation"))[0]
    assert not _is_final(pending, reject=True, age=old)
    assert [_is_final(pending, reject=False, age=age) for age in (young, old)] == [False, True]
    nothing = end(Service(), order=None)[0]
    assert [_is_final(nothing, reject=True, age=age) for age in (young, old)] == [False, True]
    assert _is_final(end(Service(invoice="paid"))[0], reject=True, age=young)


def test_a_rejected_quote_frees_the_share_of_its_order():
    ledger = make_ledger(experiment="e-1")
    ledger.ledgers.budget.reserve(ledger.order_key, ledger.campaign_id, 21_900, campaign_cap_cents=21_900)
    end(Service(quote="open"), ledger=ledger)
    assert ledger.read().withdrawn
    assert ledger.ledgers.budget.read().campaign_cents(ledger.campaign_id) == 0


def test_a_quote_that_is_left_open_keeps_the_share_of_its_order():
    ledger = make_ledger(experiment="e-1")
    ledger.ledgers.budget.reserve(ledger.order_key, ledger.campaign_id, 21_900, campaign_cap_cents=21_900)
    end(Service(quote="open"), ledger=ledger, reject=False)
    assert ledger.ledgers.budget.read().campaign_cents(ledger.campaign_id) == 21_900


def test_open_quotes_of_surplus_experiments_are_rejected_and_a_failure_is_left_for_later():
    service = Service(quote="open")
    reject_surplus(service, ["e-1"])
    assert service.rejected == ["q-1"]
    reject_surplus(Service(quote="open", rejecting=ServiceUnavailable("503")), ["e-1", "e-1"])


def test_an_address_that_several_quotes_share_names_none_of_them():
    service = Service(quote="open", known=None)
    same = Quote(id="q-9", status="pending", provider_quote_url=f"{URL}/q/1")
    service.quotes.iterate = lambda: iter([*service._iterate(), same])
    assert end(service)[0].state is CanceledOrderState.QUOTE_OPEN
    assert service.rejected == []
