"""A run that pays is killed or paused at every call it makes, and it and the runs after it pay at most once.

The calls are those to the archive and to the service, each before it takes effect and before its answer arrives.
"""

from datetime import timedelta

import pytest
from pydantic import SecretStr

from lab_support.core import lab_core
from prefect_assay.errors import PaymentOutcomeUnknown
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.payments import PaymentPolicy, settle
from prefect_assay.orders.payments.rails.mpp import MppRail
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail
from prefect_assay.orders.payments.settle import utc_now
from support.archive.memory_store import MemoryStore, a_book, spent_cents
from support.lab.pay import LabPayApi, ordered_invoice
from support.services.order_service import Killed, Killer, KillingStore
from support.services.pay_server import CANARY_KEY, NETWORK, RECEIVER, USDC, PayServer, pay_client, running

PROFILE = "profile_lab_1ab402"
LIMITS = X402Limits(networks=(NETWORK,), assets=(USDC,), pay_to=(RECEIVER,))


class KillingApi:
    """The two calls of paying, through a killer."""

    def __init__(self, api, killer):
        self._api, self.killer = api, killer
        self.base_url = api.base_url

    def get(self, invoice_id):
        return self.killer.around(self._api.get, invoice_id)

    def pay(self, invoice_id, headers=None):
        return self.killer.around(self._api.pay, invoice_id, headers)


class X402Order:
    """An order at the small pay service."""

    def __init__(self, server, api):
        server.status = "open"
        server.settlements, server.credentials, server.used = [], [], set()
        self.server, self.api, self.invoice_id, self.cents = server, api, "inv_1", 5000
        self.experiment_id, self.store = "exp_1", MemoryStore()
        self.rail = X402Rail(SecretStr(CANARY_KEY), LIMITS)

    def settled(self):
        return len(self.server.settlements)

    def sent(self):
        return len(self.server.credentials)


class MppOrder:
    """An order at a lab in this process."""

    def __init__(self, core):
        self.api = LabPayApi(core, core.lab.settings.base_url)
        self.before = len(self.api.settlements())
        self.invoice_id = ordered_invoice(core, "mpp-spt")
        invoice = self.api.get(self.invoice_id)
        self.cents, self.experiment_id, self.store = invoice.amount, invoice.experiment_id, MemoryStore()
        self.tokens = 0

    @property
    def rail(self):
        return MppRail(self.issue, [PROFILE])

    def issue(self, _):
        self.tokens += 1
        return f"spt_{self.invoice_id.replace('-', '')}_{self.tokens}"

    def settled(self):
        return len(self.api.settlements()) - self.before

    def sent(self):
        return len(self.api.sent)


def run(order, killer=None):
    """One run of the order; killed, it says nothing."""
    killer = killer or Killer()
    policy = PaymentPolicy(
        enabled=True,
        max_cents_per_payment=order.cents,
        max_cents_rolling=order.cents,
        allowed_origins=(order.api.base_url,),
    )
    book = a_book(KillingStore(order.store, killer), experiment=order.experiment_id)
    return settle(
        KillingApi(order.api, killer),
        order.invoice_id,
        order.rail,
        policy,
        OrderLedger(book),
        expected_cents=order.cents,
        experiment_id=order.experiment_id,
        sleep=lambda _: None,
    )


def spent(order):
    book = a_book(order.store, experiment=order.experiment_id)
    return spent_cents(book, utc_now() - timedelta(days=1))


def every_death(new_order):
    """A new order for each call at which a run dies."""
    whole = Killer()
    assert run(new_order(), whole).state is PaymentState.SETTLED
    assert whole.calls > 20
    for at in range(1, whole.calls + 1):
        for after in (False, True):
            order = new_order()
            with pytest.raises(Killed):
                run(order, Killer(at, after=after))
            yield order


class Pause:
    """Another run pays, or is killed, while this one stands still before or after one of its calls."""

    def __init__(self, at, meanwhile, *, after):
        self.at, self.meanwhile, self.after, self.calls = at, meanwhile, after, 0

    def around(self, call, *given, **options):
        self.calls += 1
        now = self.calls == self.at
        if now and not self.after:
            self.meanwhile()
        result = call(*given, **options)
        if now and self.after:
            self.meanwhile()
        return result


def every_pause(new_order, step):
    """A new order for each call at which a run stands still while another one goes all the way, or dies on it."""
    whole = Killer()
    run(new_order(), whole)
    deaths = range(1, whole.calls + 1, step)
    for at in range(1, whole.calls + 1):
        for after in (False, True):
            for death in (0, *deaths):
                order = new_order()
                attempt(order, Pause(at, lambda o=order, d=death: attempt(o, Killer(d)), after=after))
                yield order


def attempt(order, killer=None):
    """One run of the order to whatever end."""
    try:
        return run(order, killer).state
    except (Killed, PaymentOutcomeUnknown):
        return None


def test_x402_is_paid_exactly_once_and_counted_once():
    with running(PayServer()) as server:
        client = pay_client(server.base_url)
        api = client.invoices
        for order in every_death(lambda: X402Order(server, api)):
            assert run(order).state is PaymentState.SETTLED
            assert run(order).already_paid
            assert order.settled() == 1
            assert order.sent() <= 2
            assert spent(order) == order.cents
        client.close()


def test_x402_is_settled_once_whatever_another_run_does_meanwhile():
    with running(PayServer()) as server:
        client = pay_client(server.base_url)
        api = client.invoices
        for order in every_pause(lambda: X402Order(server, api), 10):
            assert run(order).state is PaymentState.SETTLED
            assert order.settled() == 1
            assert spent(order) == order.cents
        client.close()


def test_by_mpp_one_credential_is_sent_whatever_another_run_does_meanwhile():
    core = lab_core()
    for order in every_pause(lambda: MppOrder(core), 3):
        end = attempt(order)
        assert order.sent() <= 1
        assert order.settled() == (1 if end is PaymentState.SETTLED else 0)
        assert spent(order) == order.cents
    core.close()


def test_by_mpp_one_credential_is_sent_and_what_is_in_doubt_counts():
    core = lab_core()
    for order in every_death(lambda: MppOrder(core)):
        for _ in range(2):
            try:
                assert run(order).state is PaymentState.SETTLED
                assert order.settled() == 1
            except PaymentOutcomeUnknown:
                assert order.settled() == 0
        assert order.sent() <= 1
        assert order.tokens <= 2
        assert spent(order) == order.cents
    core.close()
