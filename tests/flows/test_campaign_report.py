"""The report of a campaign whose orders are not all what they should be: each experiment has its line."""

import logging
import sys
from types import SimpleNamespace

import pytest

from prefect_assay.blocks import LocalArchive
from prefect_assay.errors import OrderMismatch, OrderNotVisible, OrderOutcomeUnknown, ServiceUnavailable
from prefect_assay.flows import campaign
from prefect_assay.models.job import Order
from prefect_assay.models.report import CampaignReport
from prefect_assay.results.row import CampaignTable, ResultRow
from prefect_assay.tasks.report import ArchivedReport
from support.archive.memory_store import MemoryStore, a_book, books_in

module = sys.modules[campaign.fn.__module__]  # the package has the flow under this name


@pytest.fixture
def line(monkeypatch):
    """A line of the report, where the search for the order gives what is put into the list."""
    answers = []

    def find_order(*_given):
        answer = answers.pop()
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(module, "find_order", find_order)
    monkeypatch.setattr(module, "kept_location", lambda _archive, _campaign, code: f"archive/{code}")
    monkeypatch.setattr(module, "get_run_logger", lambda: logging.getLogger("test"))
    options = SimpleNamespace(credentials=None, archive=None)
    books = [a_book(experiment=None)]
    run = SimpleNamespace(options=options, book=lambda plan, planned: books[0])
    plan = SimpleNamespace(campaign_id="c")
    planned = SimpleNamespace(order_key="k", batch_index=1, spec=None)

    def made(answer, problem=None):
        answers.append(answer)
        return module._line(run, plan, planned, problem)

    made.books = books
    return made


@pytest.mark.parametrize("error", [OrderMismatch("another one"), OrderOutcomeUnknown("cannot see it")])
def test_an_order_that_cannot_be_seen_does_not_hide_the_others(line, error):
    assert line(error, "Failed: another one").problem == "experiment 2: Failed: another one"
    assert line(error).problem == "experiment 2: ended without results in the archive"


def test_an_order_in_another_log_of_the_archive_is_not_reported_as_lost(line):
    """The credentials lead to another service by now: the report would be without its results."""
    store = MemoryStore()
    a_book(store)  # as it was ordered
    line.books[0] = books_in(store, "another-organisation").order("c", "k")
    with pytest.raises(OrderNotVisible):
        line(None)


def test_trouble_that_passes_is_left_to_the_next_look(line):
    with pytest.raises(ServiceUnavailable):
        line(ServiceUnavailable("503"))


def test_a_renamed_experiment_is_in_the_report_by_its_log(line):
    found = line(Order(order_key="k", experiment_id="e", experiment_code="X-1", status="done", adopted=True))
    assert (found.location, found.problem) == ("archive/X-1", None)


def test_a_report_that_could_not_be_made_does_not_change_the_result(monkeypatch):
    row = ResultRow(
        experiment_code="X-1",
        result_id="r",
        result_type="affinity",
        level="summary",
        name="a",
        outcome="measured",
    )
    shown = []
    monkeypatch.setattr(
        module,
        "collate_campaign",
        lambda *_: CampaignTable(location="table", rows=(row,), best_kd_M=None),
    )
    monkeypatch.setattr(module, "report_campaign", lambda *_: ArchivedReport(notes=("no report",)))
    monkeypatch.setattr(module.artifacts, "show_campaign", lambda *given, **more: shown.append(more))
    run = SimpleNamespace(options=SimpleNamespace(archive=LocalArchive()))
    state = module._report(run, SimpleNamespace(campaign_id="c", experiments=()), {})
    assert state.is_completed()
    assert (state.data.table, state.data.report) == ("table", None)
    (given,) = shown
    assert (given["images"], given["notes"], given["decision"]) == ((), ("no report",), ())
    assert "results of 0 of 0 experiments" in state.message


def test_a_report_of_the_version_before_is_read():
    before = {"campaign_id": "c", "experiments": [], "rows": 1, "table": "t"}
    assert CampaignReport.model_validate(before).report is None
