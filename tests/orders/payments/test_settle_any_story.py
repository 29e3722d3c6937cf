"""One payment whose runs die or stand still at any of their calls: what was sent can be settled once, and the cap counts it."""

import pytest

from prefect_assay.errors import AssayError, PaymentOutcomeUnknown
from prefect_assay.orders.job import PaymentState
from prefect_assay.orders.ledger import PaymentLedger
from support.archive.memory_store import make_ledger
from support.lab.pay import MPP, OTHER_RAIL, X402, PayWorld, lose
from support.services.order_service import Killed, Killer, KillingStore


class KillingApi:
    """The two calls of paying, through a killer."""

    def __init__(self, api, killer):
        self._api, self.killer, self.base_url = api, killer, api.base_url

    def get(self, invoice_id):
        return self.killer.around(self._api.get, invoice_id)

    def pay(self, invoice_id, headers=None):
        return self.killer.around(self._api.pay, invoice_id, headers)


class Pause:
    """Another run pays, or is killed, while this one stands still before or after one of its calls."""

    def __init__(self, call, meanwhile, *, after):
        self.call, self.meanwhile, self.after, self.calls = call, meanwhile, after, 0

    def around(self, call, *positional, **named):
        self.calls += 1
        is_due = self.calls == self.call
        if is_due and not self.after:
            self.meanwhile()
        result = call(*positional, **named)
        if is_due and self.after:
            self.meanwhile()
        return result


def run(world, killer, **changes):
    """One run of the order whose every call to the archive and the service goes through a killer or a pause."""
    ledger = make_ledger(KillingStore(world.store, killer), experiment=world.experiment_id)
    options = {"rail": world.new_rail(), **changes}
    return world.settle(api=KillingApi(world.api, killer), ledger=PaymentLedger(ledger), **options)


def attempt(world, killer=None, **changes):
    """The state that it ends in; None when it died or left something open."""
    try:
        return run(world, killer or Killer(), **changes).state
    except (Killed, AssayError):
        return None


def count_calls(core, method):
    whole = Killer()
    assert run(PayWorld(core, method), whole).state is PaymentState.SETTLED
    assert whole.calls > 20
    return whole.calls


def judge(world):
    """A later run ends it: by x402 it is paid; a token that may have been charged is a person's question."""
    end = attempt(world)
    assert len(world.settlements()) == (1 if end is PaymentState.SETTLED else 0)
    assert end is PaymentState.SETTLED or world.method == MPP
    assert world.could_settle() <= 1
    assert world.spent() == world.cents


@pytest.mark.parametrize("method", [X402, MPP])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_run_that_dies_at_any_call_leaves_one_payment(core, method, after):
    for call in range(1, count_calls(core, method) + 1):
        world = PayWorld(core, method)
        with pytest.raises(Killed):
            run(world, Killer(call, after=after))
        judge(world)
        judge(world)
        assert len(world.api.sent) <= (2 if method == X402 else 1)
        assert len(world.issued) <= 2


@pytest.mark.parametrize(("method", "step"), [(X402, 30), (MPP, 12)])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_run_that_stands_still_at_any_call_while_another_pays_or_dies_leaves_one_payment(
    core, method, step, after
):
    calls = count_calls(core, method)
    for call in range(1, calls + 1):
        for death in (0, *range(1 + call % step, calls + 1, step)):
            world = PayWorld(core, method)
            attempt(world, Pause(call, lambda w=world, d=death: attempt(w, Killer(d)), after=after))
            judge(world)


def test_the_judge_sees_a_second_authorisation(core):
    world = PayWorld(core)
    world.api.answers = lose
    for rail in (world.rail, OTHER_RAIL):
        with pytest.raises(PaymentOutcomeUnknown):
            world.settle(rail=rail)
        world.store.objects.clear()  # as if the ledger had been lost
    assert world.could_settle() == 2
