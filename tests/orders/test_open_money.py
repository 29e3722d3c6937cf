"""After any history, the lists of open money and the lab's books agree to the cent, whatever became of the runs.

The judge reads the lab's database. Orders are placed, confirmed, paid and archived with the steps of the flows; a run may
end after any of them, and never come back.
"""

import random
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace

import httpx
import pytest
from prefect.logging import disable_run_logger

from assay_lab.testing import LocalLab
from lab_support.core import PRICED, UNPRICED
from prefect_assay.archive import LocalStore
from prefect_assay.blocks import AssayCredentials, SpendingPolicy, X402Wallet
from prefect_assay.campaigns.remains import settle_cancellation
from prefect_assay.campaigns.sweep.open_money import record_look
from prefect_assay.errors import AssayError
from prefect_assay.orders import open_money
from prefect_assay.orders.billing import BillingStage, read_billing
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.find import find_order, record_surplus
from prefect_assay.orders.identity import experiment_name, order_key
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger import Books
from prefect_assay.orders.ledger.log import Approved, Sending
from prefect_assay.orders.ledger.open_money import of_logs, read_logs
from prefect_assay.orders.open_items import OpenKind
from prefect_assay.orders.open_money import look_at_orders
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import MACHINE_RAILS, PaymentMethod
from prefect_assay.tasks.pay import pay_invoice
from prefect_assay.tasks.quote import confirm_quote

MUCH = 10**9
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"


class History:
    """One organisation's orders in one archive, made at random; `archived` are the experiments with archived results."""

    def __init__(self, lab, folder, seed):
        self.lab, self.random = lab, random.Random(seed)
        self.credentials = AssayCredentials(base_url=lab.base_url, token=lab.token)
        self.client = self.credentials.get_client()
        self.books = Books(LocalStore(folder), "", "org")
        self.orders = []  # campaign id, key, specification, route, rail
        self.dead = set()  # keys of orders whose runs were deleted
        self.archived, self.ours, self.beside = set(), {}, set()
        self.policy = SpendingPolicy(
            per_experiment_cents=MUCH, per_campaign_cents=MUCH, rolling_cents=MUCH, machine_payments=True
        )
        self.wallet = X402Wallet(
            private_key="0x" + "11" * 32,
            networks=[lab.rail("x402-exact")["network"]],
            assets=[lab.rail("x402-exact")["asset"]],
            pay_to=[lab.rail("x402-exact")["pay_to"]],
        )

    @property
    def now(self):
        return datetime.fromisoformat(self.lab.clock()["now"]).astimezone(UTC)

    def step(self):
        """Anything that may happen next: to an order, to its run, or to the laboratory."""
        if not self.orders or self.random.random() < 0.35:
            self.order()
            return
        order = self.random.choice(self.orders)
        actions = [self.confirm, self.pay, self.pay, self.collect, self.reject, self.laboratory, self.person]
        actions += [self.again, self.twice, self.lose]
        action = self.random.choice(actions)
        if order[1] in self.dead and action not in {self.laboratory, self.person}:
            return  # nobody works on it any more
        with suppress(AssayError):  # refused: the service has done nothing, or says so
            action(order)

    def order(self):
        number = len(self.orders)
        campaign = f"camp-{self.random.randrange(12)}"
        target = self.random.choice([PRICED, PRICED, UNPRICED])
        names = "abcd"[: self.random.randrange(1, 5)]
        sequences = {name: "".join(self.random.choices(RESIDUES, k=12)) for name in names}
        spec = ExperimentSpec.model_validate(
            {
                "experiment_type": "affinity",
                "method": "bli",
                "target_id": target["id"],
                "sequences": sequences,
                "n_replicates": self.random.randrange(1, 6),
            }
        )
        route = (
            OrderRoute.QUOTED if target is UNPRICED or self.random.random() < 0.4 else OrderRoute.SELF_SERVICE
        )
        rail = self.random.choice([PaymentMethod.ASYNC_INVOICE, PaymentMethod.X402_EXACT])
        key = order_key(campaign, number, spec)
        made = (campaign, key, spec, route, rail)
        self.orders.append(made)
        book = self.book(made)
        if route is OrderRoute.SELF_SERVICE:
            total = self.client.experiments.estimate_cost(spec).total_cents
            book.record(lambda _: Approved(amount_cents=total, approver="a rule"))
        fate = self.random.random()
        if fate < 0.06:  # killed before the request left
            book.record(lambda _: Sending(attempt=1, route=route, rail=rail))
            return
        if fate < 0.14:  # killed before the answer came
            book.record(lambda _: Sending(attempt=1, route=route, rail=rail))
            self.client.experiments.create(self.request(made))
            (found,) = self.client.experiments.iterate(search=f"pa-{key}")
            self.ours[found.id] = made
            return
        self.place(made)

    def request(self, order):
        campaign, key, spec, route, rail = order
        return CreateRequest(
            experiment_spec=spec,
            name=experiment_name(campaign, 0, 1, key),
            skip_draft=True,
            auto_accept_quote=route is OrderRoute.SELF_SERVICE,
            payment_method=rail if rail in MACHINE_RAILS else None,
        )

    def place(self, order):
        """Order, or find what was ordered: also after a restored Prefect database, which knows no run."""
        placed = find_or_create(
            self.client,
            self.request(order),
            self.book(order),
            repeats=0,
            sleep=lambda _: None,
            patience=(0.0,),
        )
        self.ours[placed.experiment_id] = order
        return placed

    again = place

    def book(self, order):
        return Books(self.books.store, "", "org").open_order(order[0], order[1])

    def placed(self, order):
        found = find_order(self.client, self.book(order))
        if found is None:
            found = self.place(order)
        return found

    def confirm(self, order):
        with disable_run_logger():
            confirm_quote.fn(
                self.credentials, self.placed(order).experiment_id, book=self.read(order), approved_cents=MUCH
            )

    def read(self, order):
        book = self.book(order)
        book.read()
        return book

    def pay(self, order):
        """A run that reads its invoice, and pays it on a machine rail."""
        placed = self.placed(order)
        if read_billing(self.client, placed.experiment_id, self.now).stage is not BillingStage.INVOICED:
            return
        with disable_run_logger():
            pay_invoice.fn(
                self.credentials,
                placed,
                book=self.read(order),
                policy=self.policy,
                wallet=self.wallet if order[4] in MACHINE_RAILS else None,
                method=order[4],
                limit_cents=MUCH,
            )

    def collect(self, order):
        placed = self.placed(order)
        if placed.status == "done":
            self.read(order).deliver(placed.experiment_code)
            self.archived.add(placed.experiment_id)

    def reject(self, order):
        """Canceled, by its run or by `prefect-assay cancel`."""
        settle_cancellation(self.client, self.read(order), self.placed(order), reject=True)
        self.dead.add(order[1])

    def twice(self, order):
        """Another place without this archive has ordered the same."""
        current = self.placed(order).experiment_id
        self.client.experiments.create(self.request(order))
        token = f"pa-{order[1]}"
        others = {row.id for row in self.client.experiments.iterate(search=token)} - {current}
        self.beside |= others
        record_surplus(self.read(order), sorted(others))

    def lose(self, order):
        self.dead.add(order[1])

    def person(self, order):
        """Pays by hand, late, or after everybody has forgotten it."""
        self.happens("pay_invoice", order)

    def laboratory(self, order):
        what = self.random.choice(
            ["cancel", "expire_quote", "reject_quote", "void_invoice", "force_status", "clock"]
        )
        if what == "clock":
            self.lab.advance(hours=self.random.choice([1, 12, 24 * 6, 24 * 40]))
        else:
            self.happens(what, order, **({"status": "canceled"} if what == "force_status" else {}))

    def happens(self, event, order, **details):
        state = self.read(order).state
        if state.ordered is None:
            return
        with suppress(httpx.HTTPStatusError):  # not possible in its state
            self.lab.event(event, state.ordered.experiment_id, **details)

    def judged(self, database):
        """What the lab's books have, in cents by kind."""
        sums = dict.fromkeys(OpenKind, 0)
        with sqlite3.connect(database) as db:
            invoices = db.execute(
                "SELECT e.id, e.status, i.status, i.amount_cents FROM experiments e JOIN invoices i ON i.experiment_id = e.id"
            ).fetchall()
            quotes = db.execute(
                "SELECT q.total_cents, q.valid_until, e.id FROM quotes q JOIN experiments e ON e.id = q.experiment_id "
                "WHERE q.status = 'pending' AND e.status = 'quote_sent'"
            ).fetchall()
        for experiment, status, bill, cents in invoices:
            lost = status == "canceled" or experiment in self.beside
            if bill in {"draft", "open"}:
                sums[OpenKind.TO_VOID if lost else OpenKind.TO_PAY] += cents
            elif bill == "paid" and (lost or experiment not in self.archived):
                sums[OpenKind.TO_REFUND if lost else OpenKind.TO_DELIVER] += cents
        for cents, until, experiment in quotes:
            if datetime.fromisoformat(until) > self.now and experiment not in self.beside:
                sums[OpenKind.QUOTE] += cents
        return sums


def sums_of(money):
    return {kind: money.cents(kind) for kind in OpenKind}


def play(tmp_path, seed, orders):
    database = tmp_path / "lab.sqlite3"
    with LocalLab(database=database) as lab:
        history = History(lab, tmp_path / "archive", seed)
        while len(history.orders) < orders:
            history.step()
        books = Books(LocalStore(tmp_path / "archive"), "", "org")
        logs, notes = read_logs(books)
        assert notes == ()
        looks = look_at_orders(logs, history.client, history.now)
        assert looks.notes == ()
        expected = history.judged(database)
        assert sums_of(looks.money) == expected
        assert all(item.url for item in looks.money.items if item.amount_cents)
        # What the sweep records makes the archive alone tell the same, but for what only the service knows.
        for look in looks.looks:
            record_look(look)
        alone = of_logs(*read_logs(Books(LocalStore(tmp_path / "archive"), "", "org")))
        ours = [item for item in looks.money.items if not item.surplus and item.kind is not OpenKind.QUOTE]
        # Only the service knows a lost order that has come to light, an invoice that was voided although the work goes on or
        # is done, and an order that was canceled after its results were there.
        unsure = [item for item in (*alone.items, *ours) if item.kind is OpenKind.UNSURE]
        delivered = {look.book.order_key for look in looks.looks if look.book.state.delivered}
        canceled = {i.order_key for i in ours if i.kind is OpenKind.TO_REFUND} & delivered
        waived = {
            look.book.order_key for look in looks.looks if look.invoice and look.invoice.status == "void"
        }
        unknown = {item.order_key for item in unsure} | canceled | waived
        unpaid = {OpenKind.TO_PAY, OpenKind.TO_VOID}
        logged = [item for item in alone.items if item.order_key not in unknown]
        assert sum(i.amount_cents for i in logged if i.kind is OpenKind.TO_PAY) == sum(
            i.amount_cents for i in ours if i.kind in unpaid and i.order_key not in unknown
        )
        paid = {OpenKind.TO_DELIVER, OpenKind.TO_REFUND}
        assert sum(i.amount_cents for i in logged if i.kind is OpenKind.TO_DELIVER) == sum(
            i.amount_cents for i in ours if i.kind in paid and i.order_key not in unknown
        )
        return expected, history


def test_the_lists_and_the_labs_books_agree_to_the_cent(tmp_path):
    expected, history = play(tmp_path, seed=1, orders=40)
    assert sum(map(bool, expected.values())) >= 3, "the history has several kinds"
    assert history.dead
    assert history.beside


def test_a_voided_bill_of_delivered_results_is_not_open_for_ever(tmp_path):
    with LocalLab(clock="manual") as lab:
        history = History(lab, tmp_path / "archive", 1)
        while not (billed := [made for made in history.ours.values() if made[3] is OrderRoute.SELF_SERVICE]):
            history.order()
        order = billed[0]
        placed = history.placed(order)

        def looked():
            return look_at_orders([history.read(order)], history.client, history.now)

        if order[4] is PaymentMethod.ASYNC_INVOICE:
            assert looked().money.items[0].remark.endswith("; pay it by its link")
        lab.event("void_invoice", placed.experiment_id)
        assert [item.kind for item in looked().money.items] == [OpenKind.UNSURE], "the work is not done"
        history.read(order).deliver(placed.experiment_code)
        assert looked().money.items == ()


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2, 8))
def test_so_they_do_after_200_orders(tmp_path, seed):
    expected, _ = play(tmp_path, seed, orders=200)
    assert sum(map(bool, expected.values())) >= 3, "the history has several kinds"


def test_a_status_of_this_moment_is_told_apart_from_the_one_of_the_last_look():
    experiment = SimpleNamespace(status="data_analysis")
    assert open_money._describe_stage(experiment) == "the service shows now: data analysis"


def test_an_open_campaign_is_not_said_to_need_another_start():
    assert "an open campaign collects them itself" in open_money._COLLECT
