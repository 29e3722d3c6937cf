"""Which facts are problems: limits, and whose money is looked after."""

from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.campaigns.problems import find, kinds
from prefect_assay.campaigns.problems.problem import AlertLimits
from prefect_assay.orders.ledger.open_money import OpenItem, OpenKind

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def item(kind, age, until=None):
    return OpenItem(
        kind=kind,
        campaign_id="c-1",
        order_key="k-1",
        experiment_id="e-1",
        amount_cents=21_900,
        since=NOW - age,
        until=until,
    )


@pytest.mark.parametrize(
    ("open_item", "collected", "kind"),
    [
        (item(OpenKind.TO_PAY, 6 * DAY), True, None),
        (item(OpenKind.TO_PAY, 7 * DAY), True, kinds.INVOICE_UNPAID),
        (item(OpenKind.QUOTE, DAY, NOW + 4 * DAY), True, None),
        (item(OpenKind.QUOTE, DAY, NOW + 3 * DAY), True, kinds.QUOTE_EXPIRING),
        (item(OpenKind.QUOTE, 9 * DAY), True, None),
        (item(OpenKind.TO_DELIVER, 20 * DAY), True, None),
        (item(OpenKind.TO_DELIVER, 20 * DAY), False, kinds.RESULTS_UNREAD),
        (item(OpenKind.TO_DELIVER, 23 * HOUR), False, None),
        (item(OpenKind.TO_REFUND, DAY), True, kinds.MONEY_OPEN),
        (item(OpenKind.TO_VOID, DAY), False, kinds.MONEY_OPEN),
        (item(OpenKind.UNSURE, 23 * HOUR), True, None),
        (item(OpenKind.UNSURE, DAY), True, kinds.MONEY_OPEN),
    ],
)
def test_money_becomes_a_problem_at_its_limit(open_item, collected, kind):
    problems = list(find.open_money([open_item], lambda _: collected, NOW, AlertLimits()))
    assert [problem.kind for problem in problems] == ([kind] if kind else [])
    assert all("219.00 USD" in problem.text for problem in problems)


def test_three_restarts_within_a_day_are_a_problem_of_the_first_of_them():
    times = [NOW - 3 * HOUR, NOW - 2 * HOUR, NOW - HOUR]
    assert find.find_restarted("campaign c-1", "c-1", times[:2], None) == []
    (problem,) = find.find_restarted("campaign c-1", "c-1", times, "its run was deleted")
    assert (problem.kind, problem.since) == (kinds.CAMPAIGN_WITHOUT_RUN, times[0])
    assert "3 times" in problem.text
    assert "its run was deleted" in problem.text


def test_a_question_names_how_it_is_answered():
    problem = find.open_question("campaign c-1", "c-1", "q-1", "May it cost more?", NOW, NOW + DAY)
    assert problem.subject == "c-1/q-1"
    assert "prefect-assay approve c-1" in problem.next_step
