"""A woken run with nothing to do suspends again before any task; in any doubt its flow goes on from the top."""

import logging
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.client.schemas.objects import State, StateType
from prefect.exceptions import Pause

from prefect_assay.books.log import Ordered
from prefect_assay.errors import Forbidden, OtherOrganisation, PaymentFailed, TransientError
from prefect_assay.flows import first_look
from prefect_assay.flows.first_look import look_first
from prefect_assay.models.billing import Invoice
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.job import Order
from prefect_assay.runs.states import last_wait
from prefect_assay.runs.tags import ARCHIVE_TAG, EXPERIMENT_TAG, INVOICE_LABEL, PRICE_LABEL, RETRY_TAG
from prefect_assay.tasks.pay import record_hosted
from support.archive.memory_store import books_in

START = datetime.now(UTC)
PAGE = "https://pay.example/inv_1"
KINDS = {"Suspended": StateType.PAUSED, "Resuming": StateType.SCHEDULED, "Late": StateType.SCHEDULED}
KINDS |= {"AwaitingRetry": StateType.SCHEDULED, "Scheduled": StateType.SCHEDULED}
KINDS |= {"Pending": StateType.PENDING, "Submitting": StateType.PENDING, "Running": StateType.RUNNING}
KINDS |= {"Crashed": StateType.CRASHED, "Cancelling": StateType.CANCELLING, "Cancelled": StateType.CANCELLED}
WOKEN = ["Running", "Suspended", "Resuming", "Pending", "Running"]


def history(*names, key="results-abc:1", lasts=timedelta(days=70)):
    states = []
    for minute, name in enumerate(names):
        details = {"pause_key": key, "pause_timeout": START + lasts} if name == "Suspended" else {}
        at = START + timedelta(minutes=minute)
        states.append(State(type=KINDS[name], name=name, timestamp=at, state_details=details))
    return states


class Service:
    """One experiment, whose looks are given, and one hosted invoice; an error among the looks is raised."""

    service_time = None

    def __init__(self, *looks, invoice="open", page=PAGE, others=None):
        self.looks, self.invoice, self.page, self.others = list(looks), invoice, page, others or {}
        self.reads = 0

    def experiment(self, experiment_id):
        self.reads += 1
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, Exception):
            raise look
        status, results = look
        return Experiment(
            id=experiment_id, code="LAB-1", status=status, results_status=results, created_at=START
        )

    def find_invoice(self, experiment_id):
        return Invoice(
            id="inv_1",
            experiment_id=experiment_id,
            status=self.invoice,
            amount=21_900,
            provider_hosted_invoice_url=self.page,
        )

    def invoice_by_id(self, invoice_id):
        return Invoice(id=invoice_id, experiment_id="e-1", status=self.others[invoice_id])

    def pay(self, _):
        return SimpleNamespace(status_code=200)  # it is paid by hand


@pytest.fixture
def look(monkeypatch):
    """Play the first look; returns how the run was suspended, None if its flow goes on, and what was shown."""

    def played(
        service,
        *,
        states=WOKEN,
        tags=None,
        labels=None,
        method="x402-exact",
        key="results-abc:1",
        opened=None,
    ):
        books = books_in()
        book = books.order("c", "k")
        book.record(lambda _: Ordered(experiment_id="e-1"))
        suspended, shown = [], []

        def wait_until(ready, *, key, timeout, describe):
            found = ready()
            if found is not None:
                return found
            suspended.append((key, timeout, describe()))
            ready()  # results may have come meanwhile
            raise Pause

        @contextmanager
        def prefect(**_):
            yield SimpleNamespace(read_flow_run_states=lambda _: history(*states, key=key))

        run = SimpleNamespace(
            key="k",
            label="c-1",
            book=opened or book,
            options=SimpleNamespace(
                credentials=SimpleNamespace(get_client=lambda: nullcontext(service)),
                patience=timedelta(days=45),
                payment_method=method,
                policy=None,
                wallet=None,
            ),
        )
        own = [EXPERIMENT_TAG + "e-1", ARCHIVE_TAG + books.archive_id] if tags is None else tags
        monkeypatch.setattr(first_look, "can_suspend", lambda: True)
        monkeypatch.setattr(first_look, "current_run", SimpleNamespace(id=uuid4()))
        monkeypatch.setattr(first_look, "get_client", prefect)
        monkeypatch.setattr(first_look, "own_tags", lambda: own)
        monkeypatch.setattr(first_look, "own_label", (labels or {}).get)
        monkeypatch.setattr(first_look, "facts", SimpleNamespace(stage=lambda *_, **__: None))
        monkeypatch.setattr(first_look, "show_payment", lambda _, order, paid: shown.append((order, paid)))
        monkeypatch.setattr(first_look, "show_progress_of", lambda _, found: found.status)
        monkeypatch.setattr(first_look, "wait_until", wait_until)
        monkeypatch.setattr(first_look, "get_run_logger", lambda: logging.getLogger("first-look"))
        try:
            look_first(run)
        except Pause:
            return suspended[0], shown
        return None, shown

    return played


def test_an_update_that_changes_nothing_suspends_again_with_the_old_time_out(look):
    service = Service(("in_production", "none"))
    (key, timeout, message), _ = look(service)
    assert (key, message) == ("results-k", "in_production")
    assert timedelta(days=69) < timeout < timedelta(days=70)
    assert service.reads == 2  # before and after the suspension


def test_books_that_cannot_be_opened_now_are_met_where_the_run_can_wait(look):
    class Unopened:
        @property
        def books(self):
            raise OtherOrganisation("another organisation's")

    assert look(Service(("in_production", "none")), opened=Unopened()) == (None, [])


@pytest.mark.parametrize("found", [("done", "all"), ("canceled", "none"), ("in_review", "partial")])
def test_news_lets_the_flow_go_on(look, found):
    assert look(Service(found))[0] is None


def test_a_passed_deadline_lets_the_flow_go_on(look):
    service = Service(("in_production", "none"))
    service.service_time = START + timedelta(days=46)  # whatever this machine's clock says
    assert look(service)[0] is None


@pytest.mark.parametrize(
    "changes",
    [
        {"states": ["Running"]},
        {"tags": []},
        {"tags": [EXPERIMENT_TAG + "e-1", ARCHIVE_TAG + "another"]},
        {"tags": [EXPERIMENT_TAG + "e-1", EXPERIMENT_TAG + "e-2"]},
        {"tags": [EXPERIMENT_TAG + "e-1", RETRY_TAG + "1"]},
        {"key": "quote-abc:1"},
        {"key": "again-abc:1"},
        {
            "states": [
                "Running",
                "Suspended",
                "Resuming",
                "Pending",
                "Running",
                "Crashed",
                "AwaitingRetry",
                "Running",
            ]
        },
    ],
)
def test_in_doubt_the_flow_goes_on_without_a_look(look, changes):
    service = Service(("in_production", "none"))
    assert look(service, **changes)[0] is None
    assert service.reads == 0


def test_a_refusal_is_the_flow_s_to_report(look):
    assert look(Service(Forbidden("no")))[0] is None


def test_a_payment_is_recorded_and_shown_and_the_run_sleeps_on(look):
    labels = {PRICE_LABEL: "21900", INVOICE_LABEL: PAGE}
    slept, shown = look(
        Service(("in_production", "none"), invoice="paid"), method="async_invoice", labels=labels
    )
    assert slept is not None
    assert [paid.state for _, paid in shown] == ["settled"] * 2  # the labels of the test do not change
    assert shown[0][0].experiment_id == "e-1"


@pytest.mark.parametrize(
    ("method", "labels", "reads"),
    [
        ("x402-exact", {}, 0),
        ("async_invoice", {PRICE_LABEL: "21900", INVOICE_LABEL: ""}, 0),
        ("async_invoice", {PRICE_LABEL: "21900", INVOICE_LABEL: PAGE}, 0),
        ("async_invoice", {}, 2),
    ],
)
def test_an_invoice_is_shown_until_it_is_known(look, method, labels, reads):
    slept, shown = look(Service(("in_production", "none")), method=method, labels=labels)
    assert slept is not None
    assert len(shown) == reads


def test_an_invoice_that_cannot_be_paid_any_more_is_the_flow_s_to_report(look):
    slept, _ = look(Service(("in_production", "none"), invoice="void"), method="async_invoice")
    assert slept is None


def hosted(service, *, experiment="e-1", ordered="e-1", shown=None, invoice=None):
    book = books_in().order("c", "k")
    book.record(lambda _: Ordered(experiment_id=ordered, invoice_id=invoice))
    order = Order(
        order_key="k", experiment_id=experiment, experiment_code="LAB-1", status="in_queue", adopted=True
    )
    return record_hosted(service, order, book=book, shown=shown), book.read().settled


@pytest.mark.parametrize(("page", "shown"), [(PAGE, PAGE), (None, "inv_1")])
@pytest.mark.parametrize("status", ["open", "draft"])
def test_an_unpaid_invoice_whose_page_is_known_is_no_news(status, page, shown):
    assert hosted(Service(invoice=status, page=page), shown=shown) == (None, None)


def test_a_paid_invoice_goes_to_the_order_s_log():
    payment, settled = hosted(Service(invoice="paid"))
    assert payment.state == "settled"
    assert (settled.invoice_id, settled.amount_cents) == ("inv_1", 21_900)


def test_a_void_invoice_gives_way_to_the_one_issued_in_its_place():
    payment, settled = hosted(Service(invoice="paid", others={"inv_0": "void"}), invoice="inv_0")
    assert payment.invoice_id == settled.invoice_id == "inv_1"


def test_a_void_invoice_alone_is_an_error():
    with pytest.raises(PaymentFailed, match="cannot be paid any more"):
        hosted(Service(invoice="void"))


def test_a_payment_of_another_experiment_of_the_order_is_not_recorded():
    with pytest.raises(TransientError, match="no longer the experiment of the order"):
        hosted(Service(invoice="paid"), experiment="e-2")


@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=4))
def test_only_a_wake_up_may_lie_between_the_suspension_and_the_start(names):
    woken = {"Resuming", "Late", "Pending", "Submitting", "Running"}
    found = last_wait(history("Suspended", *names))
    after = names[len(names) - names[::-1].index("Suspended") :] if "Suspended" in names else names
    assert (found is not None) == ({*after} <= woken)
