"""A canceled run leaves an order alone that another run works on, by its log: also one of another Prefect home."""

from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Completed, Suspended

from prefect_assay.models.job import Order
from prefect_assay.runs.tags import REPLACED_TAG
from prefect_assay.sweeping import cancellations
from prefect_assay.sweeping.cancellations import settle_canceled_run
from prefect_assay.sweeping.settle_cancellation import CanceledOrderState, CancellationReport
from support.archive.memory_store import MemoryStore, a_book

ORDER = Order(order_key="k", experiment_id="exp_1", status="quote_sent", adopted=False)


class Home:
    """A Prefect server of its own; all homes share the archive and the laboratory."""

    def __init__(self):
        self.runs, self.artifacts = {}, []

    def start(self, store):
        """A run that waits for the quote of the order."""
        waits = Suspended(timeout_seconds=60, pause_key="quote-k:1")
        run = FlowRun(
            id=uuid4(), flow_id=uuid4(), name=f"c-{len(self.runs)}", state=waits, parameters={"spec": {}}
        )
        self.runs[run.id] = run
        a_book(store).begin_work(str(run.id), run.name)
        return run

    def read_flow_run(self, run_id):
        if run_id not in self.runs:
            raise ObjectNotFound(None)
        return self.runs[run_id]

    def read_flow_runs(self, **_):
        return []

    def create_artifact(self, artifact):
        self.artifacts.append(artifact.data)

    def cancel(self, run, **options):
        run.state = Cancelled()
        return settle_canceled_run(self, run, datetime.now(UTC), **options)


@pytest.fixture
def rejected(monkeypatch):
    """What was rejected at the laboratory."""
    seen = []

    def settle(_service, _book, _order, *, reject):
        seen.extend(["the quote"] * reject)
        state = CanceledOrderState.QUOTE_REJECTED if reject else CanceledOrderState.QUOTE_OPEN
        return CancellationReport(state=state, order=ORDER)

    store = MemoryStore()
    credentials = SimpleNamespace(get_client=lambda: nullcontext(None))
    monkeypatch.setattr(cancellations, "credentials_of", lambda _: credentials)
    monkeypatch.setattr(cancellations, "policy_of", lambda _: SimpleNamespace(reject_quote_on_cancel=True))
    monkeypatch.setattr(cancellations, "_book_of", lambda *_: a_book(store))
    monkeypatch.setattr(cancellations, "_spec_of", lambda _: None)
    monkeypatch.setattr(cancellations, "find_order", lambda *_, **_more: ORDER)
    monkeypatch.setattr(cancellations, "settle_cancellation", settle)
    monkeypatch.setattr(cancellations, "set_tag", lambda *_: None)
    return SimpleNamespace(quotes=seen, store=store)


def test_what_another_home_waits_for_is_left_alone_and_the_report_names_it(rejected):
    here, there = Home(), Home()
    mine, other = here.start(rejected.store), there.start(rejected.store)
    settled = here.cancel(mine)
    assert rejected.quotes == []
    assert settled.elsewhere
    assert settled.shared_with[0].startswith(f"{other.name} of another Prefect home (")
    assert "The order goes on" in here.artifacts[0]


def test_of_runs_that_are_canceled_in_two_homes_the_last_one_rejects(rejected):
    here, there = Home(), Home()
    mine, other = here.start(rejected.store), there.start(rejected.store)
    here.cancel(mine)
    there.cancel(other)
    assert rejected.quotes == ["the quote"]


def test_a_person_says_that_another_home_is_gone_for_good(rejected):
    here, there = Home(), Home()
    mine, other = here.start(rejected.store), there.start(rejected.store)
    here.cancel(mine)
    settled = here.cancel(mine, alone=True)
    assert (rejected.quotes, settled.shared_with) == (["the quote"], ())
    assert a_book(rejected.store).read().working == ()
    a_book(rejected.store).begin_work(str(other.id), other.name)  # it was not: it goes on, and is noted again
    here.cancel(mine)
    assert rejected.quotes == ["the quote"]


def test_a_run_of_this_home_counts_by_its_state_also_with_the_option(rejected):
    here = Home()
    mine, other, ended = (here.start(rejected.store) for _ in range(3))
    ended.state = Completed()  # its process died before it could say so
    assert here.cancel(mine, alone=True).shared_with == (other.name,)
    other.state = Completed()
    assert here.cancel(mine).shared_with == ()
    assert rejected.quotes == ["the quote"]


def test_the_run_in_place_of_which_this_one_was_started_is_no_other(rejected):
    here = Home()
    before, mine = here.start(rejected.store), here.start(rejected.store)
    before.tags = [REPLACED_TAG + str(mine.id)]
    here.cancel(mine)
    assert rejected.quotes == ["the quote"]
