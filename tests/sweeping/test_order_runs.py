"""An open order whose run was deleted is a problem, until a run of this server goes on with it."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State, StateType

from prefect_assay.alerts import kinds
from prefect_assay.books.log import Settled
from prefect_assay.books.open_money import item_of
from prefect_assay.models.open_money import OpenKind, OpenMoney
from prefect_assay.models.problem import AlertLimits
from prefect_assay.runs.tags import ORDER_TAG
from prefect_assay.sweeping.alert_facts import AlertFacts
from support.archive.memory_store import MemoryStore, a_book

NOW = datetime.now(UTC)


class Server:
    """A Prefect server with one deployment of ours."""

    def __init__(self):
        self.deployment, self.runs = uuid4(), {}

    def run(self, kind=StateType.PAUSED):
        """A run that works on order `k`."""
        made = FlowRun(
            id=uuid4(), flow_id=uuid4(), name="c-0", deployment_id=self.deployment, tags=[ORDER_TAG + "k"]
        )
        made.state = State(type=kind, timestamp=NOW)
        self.runs[made.id] = made
        return made

    def delete(self, run):
        del self.runs[run.id]

    def read_flow_runs(self, *, flow_run_filter, **_):
        wanted = flow_run_filter
        return [
            run
            for run in self.runs.values()
            if (wanted.id is None or run.id in wanted.id.any_)
            and (wanted.tags is None or set(run.tags) & set(wanted.tags.any_))
        ]

    def read_deployments(self, *, deployment_filter):
        return [SimpleNamespace(id=self.deployment)] if self.deployment in deployment_filter.id.any_ else []


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def store():
    return MemoryStore()


def works(store, run):
    book = a_book(store)
    book.begin_work(str(run.id), run.name, str(run.deployment_id))
    return book


def found(server, store, **changes):
    """The problems that a full check finds in the order's log."""
    book = a_book(store)
    book.read()
    facts = AlertFacts(NOW, AlertLimits())
    item = item_of(book).model_copy(update=changes)
    facts.note_money(server, OpenMoney(items=(item,)))
    problems, looked = facts.problems([], [], checked=True, failed=set())
    assert kinds.RUN_DELETED in looked
    return problems


@pytest.mark.parametrize("kind", [OpenKind.QUOTE, OpenKind.TO_PAY, OpenKind.TO_DELIVER, OpenKind.UNSURE])
def test_an_order_whose_run_was_deleted_is_named_at_once_with_the_next_step(server, store, kind):
    run = server.run()
    works(store, run)
    assert found(server, store, kind=kind) == []
    server.delete(run)
    (problem,) = found(server, store, kind=kind, experiment_code="EGFR-001", amount_cents=43_800)
    assert (problem.kind, problem.subject) == (kinds.RUN_DELETED, "k")
    assert problem.text.startswith(
        "run c-0 was deleted, and no other one waits for its order: EGFR-001 of campaign c (438.00 USD, "
    )
    assert "same campaign id" in problem.next_step


def test_it_is_over_when_another_run_has_the_order(server, store):
    gone = server.run()
    works(store, gone)
    server.delete(gone)
    assert [problem.kind for problem in found(server, store)] == [kinds.RUN_DELETED]
    next_run = server.run(StateType.RUNNING)
    assert found(server, store) == []
    works(store, next_run)
    assert found(server, store) == []


def test_a_run_of_another_home_that_shares_the_archive_was_not_deleted(server, store):
    works(store, Server().run())
    assert found(server, store) == []


def test_a_run_without_a_deployment_is_unknown_here_for_other_reasons(server, store):
    a_book(store).begin_work(str(uuid4()), "in a notebook")
    assert found(server, store) == []


def test_a_run_that_has_left_its_order_may_be_deleted(server, store):
    run = server.run()
    book = works(store, run)
    book.end_work(str(run.id))
    server.delete(run)
    assert found(server, store) == []


def test_an_order_that_is_given_up_is_to_be_refunded_and_not_collected(server, store):
    run = server.run()
    works(store, run)
    server.delete(run)
    problems = found(server, store, kind=OpenKind.TO_REFUND, since=NOW - timedelta(days=2))
    assert [problem.kind for problem in problems] == [kinds.MONEY_OPEN]


def test_a_run_at_work_takes_care_of_its_money_also_while_it_is_not_suspended(server, store):
    run = server.run(StateType.SCHEDULED)
    book = works(store, run)
    book.record(lambda _: Settled(invoice_id="inv_1", amount_cents=43_800))
    assert found(server, store, since=NOW - timedelta(days=3)) == []
    run.state = State(type=StateType.CANCELLED, timestamp=NOW)
    (problem,) = found(server, store, since=NOW - timedelta(days=3))
    assert problem.kind == kinds.MONEY_OPEN
    assert "Start its campaign again with the same id" in problem.next_step


def test_hundreds_of_orders_are_asked_for_in_parts(server, store):
    base = works(store, server.run())
    server.runs.clear()
    item = item_of(base)
    items = tuple(
        item.model_copy(
            update={
                "order_key": f"k{n}",
                "working": (item.working[0].model_copy(update={"run": str(UUID(int=n))}),),
            }
        )
        for n in range(450)
    )
    facts = AlertFacts(NOW, AlertLimits())
    facts.note_money(server, OpenMoney(items=items))
    problems, _ = facts.problems([], [], checked=True, failed=set())
    assert len({problem.subject for problem in problems}) == 450
