"""Machine payments of machines whose clocks are wrong: within no true window do they come to more than the cap.

Each payment is a whole `settle`. The service has the true time, and judges by it whether a credential is valid.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefect_assay.errors import AssayError, BudgetExceeded, ClockDiffers
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.payments.guard import PaymentPolicy
from prefect_assay.orders.payments.settle import settle
from prefect_assay.service.models.billing import Invoice
from support.archive.memory_store import MemoryStore, make_ledger
from support.lab.pay import PAY_TO, RAIL, Answer, with_signing
from support.x402 import NETWORK, USDC, decode, encode

CAP, DAYS = 10_000, 30
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


class World:
    """A service with the true time, an archive, and what was paid when."""

    def __init__(self):
        self.time = BEGIN
        self.store = MemoryStore()
        self.paid = []
        self.invoices = {}
        self.skews = {}
        self.pauses = {}

    # The service

    base_url = "https://lab.example.org"

    def get(self, invoice_id):
        return self.invoices[invoice_id]

    def pay(self, invoice_id, headers=None):
        invoice = self.invoices[invoice_id]
        if not headers:
            answer = Answer(402, {"payment-required": challenge(invoice), **self._date()}, {})
            self.pass_by("after the probe")
            return answer
        self.pass_by("on the way")
        signed = decode(headers["PAYMENT-SIGNATURE"])["payload"]["authorization"]
        if int(signed["validBefore"]) < self.time.timestamp():
            return Answer(402, self._date(), {})
        self.paid.append((self.time, invoice.amount))
        self.invoices[invoice_id] = invoice.model_copy(update={"status": "paid"})
        return Answer(200, self._date(), {})

    def _date(self):
        return {"date": format_datetime(self.time, usegmt=True)}

    # A machine

    def pass_by(self, where):
        """The process, or its request, pauses here."""
        self.time += self.pauses.pop(where, timedelta())

    def settle(self, number, cents, *, skew=timedelta(), pauses=None):
        self.pauses = dict(pauses or {})
        key = f"k{number}"
        self.invoices[key] = Invoice(id=key, status="open", amount=cents, experiment_id="exp_1")

        def credential(*arguments, **options):
            self.pass_by("while it signs")
            return RAIL.make_credential(*arguments, **options)

        policy = PaymentPolicy(
            enabled=True,
            max_cents_per_payment=CAP,
            max_cents_rolling=CAP,
            rolling_days=DAYS,
            allowed_origins=(self.base_url,),
        )
        return settle(
            self,
            key,
            with_signing(credential),
            policy,
            PaymentLedger(make_ledger(self.store, key=key)),
            expected_cents=cents,
            experiment_id="exp_1",
            now=lambda: self.time + skew,
            sleep=lambda _: None,
            read_delays=(0,),
        )

    def largest(self):
        """The largest sum of any true window."""
        window = timedelta(days=DAYS)
        return max(
            (
                sum(c for paid_at, c in self.paid if first <= paid_at <= first + window)
                for first, _ in self.paid
            ),
            default=0,
        )


def challenge(invoice):
    """As x402 writes it: how long a credential is valid, from the payer's present on."""
    accepts = {
        "scheme": "exact",
        "network": NETWORK,
        "asset": USDC,
        "amount": str(invoice.amount * 10_000),
        "payTo": PAY_TO,
        "maxTimeoutSeconds": 300,
        "extra": {"name": "USDC", "version": "2"},
    }
    url = f"{World.base_url}/api/v1/invoices/{invoice.id}/pay"
    return encode({"x402Version": 2, "error": "", "resource": {"url": url}, "accepts": [accepts]})


SKEWS = st.one_of(
    st.just(timedelta()),
    st.timedeltas(timedelta(minutes=-6), timedelta(minutes=6)),
    st.timedeltas(timedelta(days=-800), timedelta(days=800)),
    st.sampled_from([timedelta(days=days) for days in (-400, -31, -30, 30, 31, 400)]),
)
PAUSES = st.dictionaries(
    st.sampled_from(["after the probe", "while it signs", "on the way"]),
    st.one_of(st.timedeltas(timedelta(), timedelta(minutes=6)), st.sampled_from([timedelta(days=31)])),
    max_size=2,
)
STEPS = st.lists(
    st.tuples(
        st.timedeltas(timedelta(), timedelta(days=12)),
        st.sampled_from([2500, 4000, 5000, CAP]),
        SKEWS,
        PAUSES,
    ),
    min_size=3,
    max_size=14,
)


@settings(max_examples=80)
@given(STEPS)
def test_within_no_true_window_is_more_paid_than_the_cap_whatever_the_clocks_say(steps):
    world = World()
    for number, (passed, cents, skew, pauses) in enumerate(steps):
        world.time += passed
        with suppress(AssayError):
            world.settle(number, cents, skew=skew, pauses=pauses)
    assert world.largest() <= CAP


@pytest.mark.parametrize("skew", [timedelta(days=31), timedelta(days=-31), timedelta(days=400)])
def test_a_machine_with_a_wrong_clock_is_told_and_pays_nothing(skew):
    world = World()
    world.settle(1, CAP)
    with pytest.raises(
        ClockDiffers, match=r"this machine's clock is 20.*the service's is 2026-03-01 00:00:00 UTC"
    ):
        world.settle(2, CAP, skew=skew)
    with pytest.raises(BudgetExceeded):
        world.settle(3, CAP)
    assert world.largest() == CAP


@pytest.mark.parametrize("skew", [timedelta(), timedelta(minutes=4), timedelta(minutes=-4)])
def test_with_right_clocks_the_cap_is_free_again_when_the_window_has_passed(skew):
    world = World()
    for number in range(4):
        world.settle(number, CAP, skew=skew)
        with pytest.raises(BudgetExceeded):
            world.settle(f"{number}-more", 1, skew=-skew)
        world.time += timedelta(days=DAYS, minutes=30)
    assert [cents for _, cents in world.paid] == [CAP] * 4


@pytest.mark.parametrize("ahead", [timedelta(days=400), timedelta(days=200_000)])
def test_a_record_from_the_future_blocks_the_cap_for_no_longer_than_one_window(ahead):
    """Machine and service were wrong together, once. The first payment that is tried with right clocks corrects it."""
    world = World()
    world.time += ahead
    world.settle(1, CAP)
    world.paid.clear()
    world.time = BEGIN
    with pytest.raises(BudgetExceeded):
        world.settle(2, CAP)
    world.time += timedelta(days=DAYS, minutes=40)
    world.settle(3, CAP)
    assert len(world.paid) == 1
