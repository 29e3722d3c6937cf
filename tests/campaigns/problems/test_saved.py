"""Which problems are over after a sweep."""

from datetime import UTC, datetime
from types import SimpleNamespace

from prefect_assay.campaigns.problems import find, kinds, saved
from prefect_assay.campaigns.problems.problem import AlertLimits
from prefect_assay.orders.ledger.open_money import OpenItem, OpenKind

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def unpaid(*experiments):
    items = [
        OpenItem(
            kind=OpenKind.TO_PAY,
            campaign_id="c",
            order_key=f"k-{one}",
            experiment_id=one,
            amount_cents=100,
            since=LONG_AGO,
        )
        for one in experiments
    ]
    return list(find.open_money(items, lambda _: True, NOW, AlertLimits()))


def test_a_problem_that_is_unclear_stays_open_and_others_of_its_kind_are_over(monkeypatch):
    over = []
    before = {problem.identity: problem for problem in unpaid("e1", "e2")}
    monkeypatch.setattr(saved, "_read_problems", lambda _client: before)
    monkeypatch.setattr(saved, "report_resolved", lambda problem, _now: over.append(problem.subject))
    client = SimpleNamespace(delete_variable_by_name=lambda _name: None)
    unclear = {(kinds.INVOICE_UNPAID, "e1")}
    (left,) = saved.save_problems(client, [], {kinds.INVOICE_UNPAID}, NOW, unclear=unclear)
    assert (left.subject, over) == ("e1", ["e2"])
