"""Canceling a campaign: whatever is alive, nothing is ordered, accepted or paid afterwards, and what remains is said."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from uuid import uuid4

import httpx
import pytest
from prefect import flow
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.input import keyset_from_paused_state
from prefect.states import Failed, Running, Suspended
from pydantic import SecretStr

from prefect_assay.archive.campaign_plan import Plan, PlannedExperiment
from prefect_assay.blocks import LocalArchive
from prefect_assay.campaigns import stop
from prefect_assay.campaigns.approval.price import PriceApproval, price_question_id
from prefect_assay.campaigns.loops.loop_log import (
    LoopLog,
    PoolFile,
    RoundEnded,
    RoundFixed,
)
from prefect_assay.campaigns.remains import CanceledOrderState
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG
from prefect_assay.campaigns.stop import reopen_campaign, settle_stop, stop_log
from prefect_assay.errors import ArchiveError, InputError, OrderStopped
from prefect_assay.orders.billing import BillingStage, read_billing
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.find import recheck_order
from prefect_assay.orders.identity import experiment_name, order_key
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger import PaymentLedger
from prefect_assay.orders.ledger.campaign_log import CampaignLog, StartedKind, list_open
from prefect_assay.orders.ledger.log import (
    ACTIONS,
    Confirming,
    Paying,
    Sending,
    Stopped,
)
from prefect_assay.orders.payments.guard import PaymentPolicy
from prefect_assay.orders.payments.interfaces import normalize_address
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail
from prefect_assay.orders.payments.settle import settle
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.tasks.quote import confirm_quote
from support.accounts import make_account
from support.archive.memory_store import MemoryStore
from support.campaign_logs import WrittenCampaign, started
from support.crash.core_player import DESIGN, TARGETS
from support.runs.world import WALLET_KEY

ROUTES = list(TARGETS)


class OneOrder:
    """A campaign of one order, as a run plays it: the steps of the product with a ledger of its own."""

    def __init__(self, lab, store, route, name=None):
        self.lab, self.store, self.route = lab, store, route
        self.account = make_account(base_url=lab.base_url, token=lab.token)
        self.credentials = self.account.credentials
        name = name or f"c-{uuid4().hex[:8]}"
        with self.credentials.get_client() as client:
            target = next(one.id for one in client.targets.iterate() if one.name == TARGETS[route])
        self.spec = ExperimentSpec.model_validate(
            {
                "experiment_type": "affinity",
                "method": "bli",
                "target_id": target,
                "sequences": {"design": {"aa_string": DESIGN}},
            }
        )
        self.key = order_key(name, 0, self.spec)
        planned = PlannedExperiment(order_key=self.key, batch_index=0, spec=self.spec)
        assay = Assay(experiment_type="affinity", method="bli", target=TARGETS[route])
        plan = Plan(campaign_id=name, source="", assay=assay, experiments=(planned,))
        self.written = WrittenCampaign(store, "", name, plan=plan, service=normalize_address(lab.base_url))
        self.name = name

    @property
    def log(self):
        """As another process reads it."""
        return CampaignLog(self.store, "", self.name)

    def make_request(self, **fields):
        """The create of its experiment."""
        name = experiment_name(self.name, 0, 1, self.key)
        return CreateRequest(experiment_spec=self.spec, name=name, skip_draft=True, **fields)

    def play(self):
        """Order, accept and pay, as far as it goes now."""
        ledger = self.written.ledgers.open_order(self.name, self.key)
        request = self.make_request(
            auto_accept_quote=self.route == "self-service",
            payment_method=PaymentMethod.X402_EXACT,
        )
        with AssayClient(self.lab.base_url, self.lab.token) as client:
            find_or_create(client, request, ledger)
            experiment_id = recheck_order(client, self.spec, ledger)
            self.lab.advance(hours=1)
            billing = read_billing(client, experiment_id)
            if billing.stage is BillingStage.QUOTE_OPEN:
                confirm_quote.fn(
                    self.credentials, experiment_id, ledger=ledger, approved_cents=billing.quote.amount_total
                )
            invoice = client.invoices.find_for_experiment(experiment_id)
            offered = self.lab.rail("x402-exact")
            policy = PaymentPolicy(
                enabled=True,
                max_cents_per_payment=2_000_000,
                max_cents_rolling=10**12,
                allowed_origins=(self.lab.base_url,),
            )
            limits = X402Limits(
                networks=(offered["network"],), assets=(offered["asset"],), pay_to=(offered["pay_to"],)
            )
            rail = X402Rail(SecretStr(WALLET_KEY), limits)
            settle(
                client.invoices,
                invoice.id,
                rail,
                policy,
                PaymentLedger(ledger),
                expected_cents=invoice.amount,
                experiment_id=experiment_id,
            )

    def stop(self, person="Ada"):
        """Cancel it, as another process does."""
        return stop_log(self.account, self.log, person=person, how="a test")

    def records(self):
        """The order's ledger."""
        return list(self.written.ledgers.open_order(self.name, self.key).records())

    def experiments(self):
        """What the service has of it."""
        with self.credentials.get_client() as client:
            return [one for one in client.experiments.iterate() if self.name in one.name]

    def invoice(self):
        """The invoice of its experiment, or None."""
        with self.credentials.get_client() as client:
            invoices = [client.invoices.find_for_experiment(one.id) for one in self.experiments()]
        return next(filter(None, invoices), None)


def writes_of(lab, route):
    """How many records an order that nobody cancels writes."""
    store = MemoryStore()
    run = OneOrder(lab, store, route)
    run.play()
    assert run.invoice().status == "paid"
    return len(run.records())


@pytest.fixture(scope="module")
def records_of_an_order(lab, prefect):
    return {route: writes_of(lab, route) for route in ROUTES}


@pytest.mark.parametrize("route", ROUTES)
def test_a_cancellation_between_any_two_records_lets_no_action_follow(
    lab, prefect, monkeypatch, route, records_of_an_order
):
    """The run goes on as if nothing had happened: what it has read is a record old."""
    outcomes = set()
    for number in range(1, records_of_an_order[route] + 1):
        store = MemoryStore()
        run = OneOrder(lab, store, route)
        folder = run.written.ledgers.open_order(run.name, run.key).location

        def cancel(key, run=run, store=store, folder=folder, number=number):
            if store.location(key).startswith(folder) and key.endswith(f"/{number:06d}.json"):
                store.before_put = lambda _: None
                run.stop()

        store.before_put = cancel
        with suppress(OrderStopped):
            run.play()
        kinds = [type(record) for record in run.records()]
        assert Stopped in kinds, number
        after = kinds[kinds.index(Stopped) + 1 :]
        assert not set(after) & set(ACTIONS), (number, kinds)
        before = kinds[: kinds.index(Stopped)]
        assert len(run.experiments()) == before.count(Sending)
        invoice = run.invoice()
        committed = Confirming in before or (route == "self-service" and Sending in before)
        assert (invoice is not None) is committed
        assert (invoice is not None and invoice.status == "paid") is (Paying in before)

        monkeypatch.setattr(stop, "IN_FLIGHT", timedelta(0))
        (order,) = (report := settle_stop(run.account, run.log)).orders
        monkeypatch.undo()
        assert report.is_settled, report
        assert report.billed_cents == (invoice.amount if invoice else 0)
        assert report.paid_cents == (invoice.amount if Paying in before else 0)
        outcomes.add(order.remains.state)
        assert run.log.read().settled
        assert list(list_open(store, "")) == []
    expected = {CanceledOrderState.NOTHING, CanceledOrderState.INVOICED}
    assert outcomes == (
        expected if route == "self-service" else expected | {CanceledOrderState.QUOTE_REJECTED}
    )


def test_two_cancellations_at_once_are_one(lab, prefect):
    run = OneOrder(lab, MemoryStore(), "quoted")
    ledger = run.written.ledgers.open_order(run.name, run.key)
    with run.credentials.get_client() as client:
        find_or_create(client, run.make_request(), ledger)
    lab.advance(hours=1)
    with ThreadPoolExecutor(2) as pool:
        reports = [
            one.result()
            for one in [pool.submit(copy_context().run, run.stop, person) for person in ("Ada", "Grace")]
        ]
    assert [type(record) for record in run.records()].count(Stopped) == 1
    assert len([record for record in run.log.records() if record.kind == "stopped"]) == 1
    assert {report.person for report in reports} == {run.log.read().stopped.person}
    assert {order.remains.state for report in reports for order in report.orders} <= {
        CanceledOrderState.QUOTE_REJECTED,
        CanceledOrderState.QUOTE_OPEN,
        CanceledOrderState.DRAFT,
    }
    assert run.invoice() is None
    assert settle_stop(run.account, run.log).is_settled


def test_a_quote_that_is_still_prepared_is_rejected_when_it_comes(lab, prefect):
    run = OneOrder(lab, MemoryStore(), "quoted")
    ledger = run.written.ledgers.open_order(run.name, run.key)
    with run.credentials.get_client() as client:
        find_or_create(client, run.make_request(), ledger)
    report = run.stop()
    assert [order.remains.state for order in report.orders] == [CanceledOrderState.QUOTE_PENDING]
    assert not report.is_settled
    assert [log.name for log in list_open(run.store, "")] == [run.name]

    lab.advance(hours=1)
    report = settle_stop(run.account, run.log)
    assert [order.remains.state for order in report.orders] == [CanceledOrderState.QUOTE_REJECTED]
    assert report.is_settled
    first, second = sorted(artifacts(prefect, run.name), key=lambda one: one.created)
    assert "The laboratory prepares a quote" in first.data
    assert "Its quote is rejected" in second.data


def test_the_quotes_of_duplicates_whose_answers_were_lost_are_rejected_too(lab, prefect):
    run = OneOrder(lab, MemoryStore(), "quoted")
    ledger = run.written.ledgers.open_order(run.name, run.key)
    with run.credentials.get_client() as client:
        for attempt in (1, 2):
            sending = Sending(attempt=attempt, route=OrderRoute.QUOTED, rail=PaymentMethod.ASYNC_INVOICE)
            ledger.record(lambda _, new=sending: new)
            client.experiments.create(run.make_request())
    lab.advance(hours=1)
    run.stop()
    assert [experiment.status for experiment in run.experiments()] == ["draft", "draft"]


def artifacts(prefect, name):
    key = ArtifactFilter(key=ArtifactFilterKey(any_=[f"assay-canceled-{stop.label_of(name)}"]))
    return prefect.read_artifacts(artifact_filter=key)


def a_run(prefect, *tags, state=None, deployed=False):
    @flow(name="campaign")
    def carried():
        return None

    if deployed:  # only such a run can be resumed
        deployment = prefect.create_deployment(prefect.create_flow(carried), name="stops")
        run = prefect.create_flow_run_from_deployment(deployment, tags=list(tags))
    else:
        run = prefect.create_flow_run(carried, tags=list(tags))
    prefect.set_flow_run_state(run.id, state or Running(), force=True)
    return run


def state_of(prefect, run):
    return prefect.read_flow_run(run.id).state


def test_a_campaign_whose_run_has_failed_is_canceled_and_the_report_is_on_its_page(prefect):
    written = WrittenCampaign(MemoryStore(), "", f"c-{uuid4().hex[:8]}")
    run = a_run(prefect, CAMPAIGN_TAG + written.name, state=Failed())
    written.log.note_run(str(run.id), run.name)
    report = stop_log(None, written.log, person="Ada", how="a test")
    assert report.is_settled
    assert [order.line for order in report.orders] == ["not ordered: nothing is billed"] * 2
    assert state_of(prefect, run).is_failed()
    (artifact,) = artifacts(prefect, written.name)
    assert artifact.flow_run_id == run.id
    assert "By Ada (a test)" in artifact.data
    assert "nothing will be billed" in artifact.data.lower()


def test_a_campaign_whose_run_was_deleted_is_canceled(prefect):
    written = WrittenCampaign(MemoryStore(), "", f"c-{uuid4().hex[:8]}")
    written.log.note_run(str(uuid4()), "deleted")
    assert stop_log(None, written.log, person="Ada", how="a test").is_settled
    assert len(artifacts(prefect, written.name)) == 1


def test_runs_of_the_campaign_end_and_those_of_others_go_on(prefect):
    written = WrittenCampaign(MemoryStore(), "", f"c-{uuid4().hex[:8]}")
    waits = a_run(prefect, CAMPAIGN_TAG + written.name, state=Suspended(timeout_seconds=60))
    works = a_run(prefect, CAMPAIGN_TAG + written.name)
    other = a_run(prefect, CAMPAIGN_TAG + "another")
    looping = a_run(
        prefect, CAMPAIGN_TAG + written.name, LOOP_TAG + "a-loop", state=Suspended(timeout_seconds=60)
    )
    stop_log(None, written.log, person="Ada", how="a test")
    assert state_of(prefect, waits).is_cancelled()
    assert state_of(prefect, works).is_cancelling()
    assert state_of(prefect, other).is_running()
    # It carries a loop: it is woken, and finds that its round is canceled.
    assert not state_of(prefect, looping).is_cancelled()
    assert not state_of(prefect, looping).is_cancelling()


def test_a_loop_that_asks_about_the_price_of_a_canceled_round_is_woken_and_no_other_form(prefect):
    """Nobody can answer the form any more; the loop finds the cancellation."""
    written = WrittenCampaign(MemoryStore(), "", f"c-{uuid4().hex[:8]}")
    asked, other = (
        ask_price(prefect, price, CAMPAIGN_TAG + written.name, LOOP_TAG + "a-loop")
        for price in (written.name, "another")
    )
    stop_log(None, written.log, person="Ada", how="a test")
    assert state_of(prefect, asked).name == "Resuming"
    keyset = asked.state.state_details.run_input_keyset
    assert PriceApproval.load(keyset, flow_run_id=asked.id).decision == "reject"
    assert state_of(prefect, other).name == "Suspended"


def ask_price(prefect, campaign_id, *tags):
    """A run that shows the form of a campaign's price, as `suspend_flow_run` leaves it."""
    state = Suspended(timeout_seconds=600, pause_key=f"price-{price_question_id(campaign_id)}-1")
    keyset = keyset_from_paused_state(state)
    state.state_details.run_input_keyset = keyset
    run = a_run(prefect, *tags, deployed=True)
    prefect.set_flow_run_state(run.id, state, force=True)
    PriceApproval.save(keyset, flow_run_id=run.id)
    return prefect.read_flow_run(run.id)


def test_without_an_account_the_orders_are_stopped_and_the_sweep_reports(prefect):
    written = WrittenCampaign(MemoryStore(), "", f"c-{uuid4().hex[:8]}")
    written.order(1)
    report = stop_log(None, written.log, person="Ada", how="a test")
    assert not report.is_settled
    assert written.log.read().needs_sweep
    for number in (1, 2):
        with pytest.raises(OrderStopped):
            written.write(number, Paying.model_construct(kind="paying"))
    assert "its account is not there; the sweep looks again" in report.orders[1].line


def test_an_account_for_another_service_withdraws_nothing(prefect, lab):
    written = WrittenCampaign(MemoryStore(), "", f"c-{uuid4().hex[:8]}")
    written.order(1)
    journal = len(lab.journal())
    elsewhere = make_account(base_url=lab.base_url, token=lab.token)
    report = stop_log(elsewhere, written.log, person="Ada", how="a test")
    assert len(lab.journal()) == journal
    assert not report.is_settled
    assert "it was ordered at http://lab.test" in report.orders[1].line


def test_an_order_whose_ledger_cannot_be_written_leaves_the_others_stopped(prefect):
    store = MemoryStore()
    written = WrittenCampaign(store, "", f"c-{uuid4().hex[:8]}")
    broken = written.plan.experiments[0].order_key

    def fail(key):
        if f"/{broken}/" in key:
            raise ArchiveError("no access")

    store.before_put = fail
    report = stop_log(None, written.log, person="Ada", how="a test")
    assert not report.is_settled
    assert f"order {broken} of campaign {written.name} is not stopped: no access" in report.problems
    with pytest.raises(OrderStopped):
        written.ledger(2).require_not_stopped()
    store.before_put = lambda _: None
    assert settle_stop(None, written.log).is_settled


def test_where_prefect_is_unreachable_the_orders_are_stopped_and_the_rest_is_left_to_the_sweep(monkeypatch):
    def refuse(**_):
        raise httpx.ConnectError("no server")

    written = WrittenCampaign(MemoryStore(), "", f"c-{uuid4().hex[:8]}")
    monkeypatch.setattr(stop, "get_client", refuse)
    report = stop_log(None, written.log, person="Ada", how="a test")
    assert not report.is_settled
    assert any("its runs could not be ended" in problem for problem in report.problems)
    with pytest.raises(OrderStopped):
        written.ledger(1).require_not_stopped()


def test_what_is_over_is_not_canceled(prefect):
    written = WrittenCampaign(MemoryStore(), "", f"c-{uuid4().hex[:8]}")
    written.log.finish("2 measured", complete=True)
    with pytest.raises(InputError, match="is over"):
        stop_log(None, written.log, person="Ada", how="a test")
    assert written.log.read().stopped is None


def test_only_a_person_reopens_and_every_order_with_it(prefect, tmp_path):
    archive = LocalArchive(root=str(tmp_path))
    store = archive.get_store()
    written = WrittenCampaign(store, archive.prefix, "c-reopened")
    stop_log(None, written.log, person="Ada", how="a test")
    written.start()  # as a schedule does
    with pytest.raises(OrderStopped):
        written.ledger(1).require_not_stopped()
    assert not written.log.read().is_open
    reopen_campaign(written.log, person="Ada")
    assert written.log.read().is_open
    for number in (1, 2):
        written.ledger(number).require_not_stopped()
    assert [log.name for log in list_open(store, archive.prefix)] == [written.name]


def test_a_loop_is_canceled_with_its_open_rounds_and_reopened_with_them(prefect, tmp_path):
    archive = LocalArchive(root=str(tmp_path))
    store = archive.get_store()
    over, running = (WrittenCampaign(store, archive.prefix, name) for name in ("l-1", "l-2"))
    over.log.finish("2 measured", complete=True)
    loop = CampaignLog(store, archive.prefix, "l", StartedKind.LOOP)
    loop.start(started(running.ledgers, "l", StartedKind.LOOP))
    loop_log = LoopLog(store, archive.prefix, "l")
    for number in (1, 2, 3):  # the last one has not begun
        loop_log.fix(a_round(number))
        if number < 3:
            loop_log.end(RoundEnded(number=number, table="t", rows=0, start=loop.state.started.at))
    carrier = a_run(prefect, LOOP_TAG + "l", CAMPAIGN_TAG + "l-2", state=Suspended(timeout_seconds=60))
    report = stop_log(None, loop, person="Ada", how="a test")
    assert {order.campaign_id for order in report.orders} == {"l-2"}
    assert report.is_settled
    assert state_of(prefect, carrier).is_cancelled()
    assert over.log.read().stopped is None
    assert running.log.read().settled
    assert CampaignLog(store, archive.prefix, "l-3").read().count == 0
    with pytest.raises(OrderStopped):
        running.ledger(1).require_not_stopped()

    reopen_campaign(loop, person="Ada")
    assert running.log.read().is_open
    assert loop.read().is_open
    running.ledger(1).require_not_stopped()


@pytest.mark.parametrize("number", [1, 2])
def test_a_loop_between_two_rounds_is_not_said_to_have_ordered_nothing(prefect, tmp_path, number):
    archive = LocalArchive(root=str(tmp_path))
    store = archive.get_store()
    over = WrittenCampaign(store, archive.prefix, "l-1")
    over.order(1)
    over.bill(1, 175_200)
    over.pay(1, 175_200)
    over.log.finish("1 measured", complete=True)
    loop = CampaignLog(store, archive.prefix, "l", StartedKind.LOOP)
    loop.start(started(over.ledgers, "l", StartedKind.LOOP))
    ledger = LoopLog(store, archive.prefix, "l")
    for one in range(1, number + 1):  # the second has not begun
        ledger.fix(a_round(one))
    ledger.end(RoundEnded(number=1, table="t", rows=0, start=loop.state.started.at))
    report = stop_log(None, loop, person="Ada", how="a test")
    assert (report.orders, report.billed_cents, report.paid_cents) == ((), 175_200, 175_200)
    assert report.is_settled
    line = "round l-1 was over before: 1 experiment ordered, 1,752.00 USD billed, 1,752.00 USD of it paid"
    assert [one.line for one in report.ended] == [line]
    for text in (report.summary, stop.report_text(report, "account main", reject=True)):
        assert "Nothing was open: what it had ordered was over before." in text
        assert "had ordered nothing" not in text
    assert "Billed together: 1,752.00 USD, of which 1,752.00 USD is paid." in text


def test_a_damaged_ledger_of_an_old_round_does_not_keep_a_loop_from_being_canceled(prefect, tmp_path):
    archive = LocalArchive(root=str(tmp_path))
    store = archive.get_store()
    over = WrittenCampaign(store, archive.prefix, "l-1")
    over.order(1)
    over.log.finish("1 measured", complete=True)
    loop = CampaignLog(store, archive.prefix, "l", StartedKind.LOOP)
    loop.start(started(over.ledgers, "l", StartedKind.LOOP))
    ledger = LoopLog(store, archive.prefix, "l")
    ledger.fix(a_round(1))
    ledger.end(RoundEnded(number=1, table="t", rows=0, start=loop.state.started.at))
    for path in (tmp_path).rglob("*"):
        if path.is_file() and over.plan.experiments[0].order_key in str(path):
            path.write_text("damaged")
    report = stop_log(None, loop, person="Ada", how="a test")
    assert report.is_settled
    assert "cannot be read" in report.ended[0].line
    assert "had ordered nothing" not in report.summary


def a_round(number):
    pool = PoolFile(name="p", key="POOLS/p", sha256="0" * 64, size=1, designs=2)
    return RoundFixed(
        loop_id="l", number=number, name=str(number), campaign_id=f"l-{number}", origin="a folder", pool=pool
    )
