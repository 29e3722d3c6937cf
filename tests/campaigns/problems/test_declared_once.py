"""One table of kinds: page, automations and metrics follow it."""

import re
from datetime import UTC, datetime
from pathlib import Path

from prefect_assay.campaigns.problems import ALERTS
from prefect_assay.campaigns.problems.metrics import ProblemCollector
from prefect_assay.campaigns.problems.problem import Problem, SavedState
from prefect_assay.deployments.event_automations import RECIPES

PAGE = (Path(__file__).parents[3] / "docs" / "operating.md").read_text(encoding="utf-8")
PROBLEMS = PAGE.partition("\n### Problems\n")[2].partition("\n### ")[0]
NOW = datetime.now(UTC)


def samples(state):
    return {
        (sample.name, sample.labels.get("kind")): sample.value
        for family in ProblemCollector(lambda: state).collect()
        for sample in family.samples
    }


def test_every_kind_is_documented_and_has_an_automation_if_the_sweep_finds_it():
    assert re.findall(r"^\| `([a-z-]+)` \|", PROBLEMS, re.MULTILINE) == list(ALERTS)
    assert {f"notify-{kind}" for kind in ALERTS} - set(RECIPES) == {"notify-receiver-unreachable"}


def test_every_kind_is_counted_from_zero():
    known = Problem(kind="campaign-without-run", subject="s", since=NOW, text="t", next_step="n")
    other = known.model_copy(update={"subject": "other"})
    metrics = samples(SavedState(problems=(known, other), swept=datetime.now(UTC)))
    assert {kind: metrics["assay_problems", kind] for kind in ALERTS} == dict.fromkeys(ALERTS, 0) | {
        "campaign-without-run": 2
    }
    assert 0 <= metrics["assay_sweep_age_seconds", None] < 60


def test_an_unreadable_state_shows_no_old_number():
    assert samples(None) == {("assay_problems_known", None): 0}


def test_open_money_is_shown_by_kind_once_a_full_check_has_read_it():
    assert not [name for name, _ in samples(SavedState()) if name.startswith("assay_open_money")]
    metrics = samples(SavedState(open_money={"to_pay": {"orders": 2, "cents": 131_400}}))
    assert metrics["assay_open_money_cents", "to_pay"] == 131_400
    assert metrics["assay_open_money_orders", "to_pay"] == 2
