"""The report of a campaign whose orders are not all what they should be: each experiment has its line."""

import logging
import sys
from types import SimpleNamespace

import pytest

from prefect_assay.errors import OrderMismatch, OrderOutcomeUnknown, ServiceUnavailable
from prefect_assay.flows import campaign
from prefect_assay.models.job import Order

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
    run = SimpleNamespace(options=options, book=lambda plan, planned: None)
    plan = SimpleNamespace(campaign_id="c")
    planned = SimpleNamespace(order_key="k", batch_index=1, spec=None)

    def made(answer, problem=None):
        answers.append(answer)
        return module._line(run, plan, planned, problem)

    return made


@pytest.mark.parametrize("error", [OrderMismatch("another one"), OrderOutcomeUnknown("cannot see it")])
def test_an_order_that_cannot_be_seen_does_not_hide_the_others(line, error):
    assert line(error, "Failed: another one").problem == "experiment 2: Failed: another one"
    assert line(error).problem == "experiment 2: ended without results in the archive"


def test_trouble_that_passes_is_left_to_the_next_look(line):
    with pytest.raises(ServiceUnavailable):
        line(ServiceUnavailable("503"))


def test_a_renamed_experiment_is_in_the_report_by_its_log(line):
    found = line(Order(order_key="k", experiment_id="e", experiment_code="X-1", status="done", adopted=True))
    assert (found.location, found.problem) == ("archive/X-1", None)
