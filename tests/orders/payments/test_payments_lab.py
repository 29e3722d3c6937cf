"""Both rails over real HTTP against the lab's own process: paid once, whatever becomes of the answers."""

from datetime import UTC, datetime, timedelta

import pytest
from prefect.logging import disable_run_logger

from lab_support.core import spec
from prefect_assay.blocks import AssayCredentials, SharedPaymentTokens, SpendingPolicy, X402Wallet
from prefect_assay.errors import ExperimentCanceled, PaymentOutcomeUnknown, PaymentRefused, TransientError
from prefect_assay.orders.job import Order, PaymentState
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.ledger.log import Ordered
from prefect_assay.orders.payments.interfaces import PaymentAttempt
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.vocabulary import MACHINE_RAILS, PaymentMethod
from prefect_assay.tasks import pay as pay_task
from support.archive.memory_store import MemoryStore, make_ledger
from support.lab.orders import booked, client_of, open_invoice
from support.services.issuer import ISSUER_KEY, issuer_server


@pytest.mark.parametrize("network_ids", [["profile_other"], None])
def test_the_pay_task_pays_with_the_tokens_of_the_block_and_only_a_listed_receiver(
    lab, monkeypatch, network_ids
):
    invoice_id = open_invoice(lab, "mpp-spt")
    with client_of(lab) as client:
        invoice = client.invoices.get(invoice_id)
    order = Order(order_key="k", experiment_id=invoice.experiment_id, status="draft", adopted=False)
    store = MemoryStore()
    policy = SpendingPolicy(
        per_experiment_usd=invoice.amount / 100,
        per_campaign_usd=invoice.amount / 100,
        rolling_usd=invoice.amount / 100,
        machine_payments=True,
    )
    receivers = network_ids or [lab.rail("mpp-spt")["network_id"]]
    with issuer_server() as issuer, disable_run_logger():

        def pay():
            return pay_task.pay_invoice.fn(
                AssayCredentials(base_url=lab.base_url, token=lab.token),
                order,
                ledger=make_ledger(store, experiment=order.experiment_id),
                policy=policy,
                wallet=SharedPaymentTokens(
                    issuer_url=issuer.url, issuer_key=ISSUER_KEY, network_ids=receivers
                ),
                method=PaymentMethod.MPP_SPT,
                limit_cents=invoice.amount,
            )

        if network_ids:
            with pytest.raises(
                PaymentRefused, match=r"network_ids of the SharedPaymentTokens block \(profile_other\)"
            ):
                pay()
            assert issuer.asked == []
            return
        paid = pay()
        assert (paid.state, paid.method) == (PaymentState.SETTLED, PaymentMethod.MPP_SPT)
        assert pay().already_paid
        assert [limits["max_amount"] for limits in issuer.asked] == [invoice.amount]
    assert len(booked(lab, invoice_id)) == 1


def ordered(client, name, method=PaymentMethod.ASYNC_INVOICE):
    """An order at the estimated price."""
    rail = method if method in MACHINE_RAILS else None
    request = {"experiment_spec": spec(), "name": name, "auto_accept_quote": True, "payment_method": rail}
    client.experiments.create(CreateRequest.model_validate(request))
    (experiment,) = client.experiments.iterate(search=name)
    return Order(
        order_key="k",
        experiment_id=experiment.id,
        experiment_code=experiment.code,
        status=experiment.status,
        adopted=False,
    )


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("status", [404, 405])
def test_a_person_pays_at_the_experiments_own_page_where_invoices_are_not_listed(lab, status, known):
    with client_of(lab) as client:
        order = ordered(client, f"not listed, {status}, {known}")
        page = client.experiments.get_invoice(order.experiment_id).provider_invoice_url
        billed = client.invoices.find_for_experiment(order.experiment_id)
    ledger = make_ledger(experiment=None)
    # What the answer to the order said; neither is GET /invoices/{id} in the contract.
    ledger.record(
        lambda _: Ordered(
            experiment_id=order.experiment_id, invoice_id=billed.provider_invoice_id if known else None
        )
    )

    def pay():
        return pay_task.pay_invoice.fn(
            AssayCredentials(base_url=lab.base_url, token=lab.token),
            order,
            ledger=ledger,
            policy=SpendingPolicy(per_experiment_usd=0.01, per_campaign_usd=0.01),
            wallet=None,
            method=PaymentMethod.ASYNC_INVOICE,
            limit_cents=0,
        )

    with lab.fault("status", "/invoices*", "GET", status=status, count=100), disable_run_logger():
        shown = pay()
        assert (shown.state, shown.hosted_invoice_url) == (PaymentState.INTENDED, page)
        assert (shown.invoice_id, shown.amount_cents) == (f"of {order.experiment_code}", billed.amount)
        lab.event("pay_invoice", order.experiment_id)
        assert pay().state is PaymentState.SETTLED
    assert ledger.read().settled.amount_cents == billed.amount


@pytest.mark.parametrize("method", [PaymentMethod.X402_EXACT, PaymentMethod.ASYNC_INVOICE])
def test_the_open_invoice_of_an_experiment_that_was_canceled_meanwhile_is_neither_paid_nor_shown(
    lab, monkeypatch, method
):
    credentials = AssayCredentials(base_url=lab.base_url, token=lab.token)
    with client_of(lab) as client:
        order = ordered(client, f"canceled, {method}", method)
        invoice = client.invoices.find_for_experiment(order.experiment_id)
    cents = invoice.amount
    policy = SpendingPolicy(
        per_experiment_usd=cents / 100,
        per_campaign_usd=cents / 100,
        rolling_usd=cents / 100,
        machine_payments=True,
    )
    wallet = X402Wallet(
        private_key="0x" + "11" * 32,
        networks=[lab.rail("x402-exact")["network"]],
        assets=[lab.rail("x402-exact")["asset"]],
        pay_to=[lab.rail("x402-exact")["pay_to"]],
    )
    ledger = make_ledger(experiment=order.experiment_id)

    def due(ledger):
        return pay_task.read_due.fn(
            credentials, order, ledger=ledger, wallet=wallet, method=PaymentMethod.X402_EXACT
        )

    assert due(ledger) == cents
    # Here a person approves, for up to days. The contract does not say that a cancellation voids the invoice.
    lab.event("force_status", order.experiment_id, status="canceled")
    code = order.experiment_code
    refused = f"experiment {code} was canceled, and its invoice {invoice.id} is {invoice.status}: it must not"

    def both_raise(error, words):
        with disable_run_logger():
            with pytest.raises(error, match=words):
                pay_task.pay_invoice.fn(
                    credentials,
                    order,
                    ledger=ledger,
                    policy=policy,
                    wallet=wallet,
                    method=method,
                    limit_cents=cents,
                )
            with pytest.raises(error, match=words):  # the next execution asks no person
                due(ledger)

    both_raise(ExperimentCanceled, refused)
    assert booked(lab, invoice.id) == []
    assert not ledger.read().withdrawn  # the invoice is open, so the order counts
    attempt = PaymentAttempt(
        invoice_id=invoice.id,
        experiment_id=order.experiment_id,
        rail=PaymentMethod.X402_EXACT,
        amount_cents=cents,
        nonce="0x01",
        network=lab.rail("x402-exact")["network"],
        asset=lab.rail("x402-exact")["asset"],
        pay_to=lab.rail("x402-exact")["pay_to"],
        expires_at=datetime.now(UTC) + timedelta(minutes=5),
    )
    assert PaymentLedger(ledger).begin(attempt, previous=None)  # and the process died
    both_raise(PaymentOutcomeUnknown, f"{refused}.*may still settle")
    # The order goes on with an older experiment: this one's cancellation does not end it.
    moved = make_ledger(experiment="older")
    with pytest.raises(TransientError, match="no longer the experiment of the order"), disable_run_logger():
        due(moved)
