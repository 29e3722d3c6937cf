"""How long things take in the lab, decided once per experiment from the lab's seed and the experiment's code.

Times are lab time. The window is 5 to 15 days (contract 8), the quote takes minutes (contract 4.2). A test can
fix any of it for one experiment or a whole organisation, so that it needs no luck.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from prefect_assay.lab.kernel.store import Db, Row
from prefect_assay.models.vocabulary import ExperimentStatus

WINDOW_DAYS: Final = (5.0, 15.0)
QUOTE_MINUTES: Final = (3.0, 30.0)
REVIEW_MINUTES: Final = (1.0, 10.0)
QUOTE_VALID_DAYS: Final = 30.0

# What happens at which part of the lab window. `progress` keeps the status and tells the customer something.
MILESTONES: Final[tuple[tuple[float, str, str], ...]] = (
    (0.30, "status", ExperimentStatus.IN_QUEUE),
    (0.40, "status", ExperimentStatus.IN_PRODUCTION),
    (0.55, "progress", "Half of the assay runs are complete."),
    (0.70, "status", ExperimentStatus.DATA_ANALYSIS),
    (0.85, "status", ExperimentStatus.IN_REVIEW),
    (1.00, "status", ExperimentStatus.DONE),
)


FIXABLE: Final = ("quote_minutes", "review_minutes", "window_days", "hold_quote", "hold_review")


@dataclass(frozen=True, slots=True)
class Plan:
    """The delays of one experiment; what is held waits until a lab event releases it."""

    quote_after: timedelta
    review_after: timedelta
    window: timedelta
    hold_quote: bool = False
    hold_review: bool = False


def plan(seed: str, code: str) -> Plan:
    """The same seed and code give the same delays, on every machine."""
    draw = random.Random(f"{seed}:{code}")  # noqa: S311 - a plan, no secret
    return Plan(
        quote_after=timedelta(minutes=draw.uniform(*QUOTE_MINUTES)),
        review_after=timedelta(minutes=draw.uniform(*REVIEW_MINUTES)),
        window=timedelta(days=draw.uniform(*WINDOW_DAYS)),
    )


def of_experiment(db: Db, seed: str, experiment: Row) -> Plan:
    """What is drawn, except for what is fixed for the experiment, else for its organisation."""
    drawn = plan(seed, experiment["code"])
    fixed = _fixed(db, experiment["org_id"], experiment["id"])
    if not fixed:
        return drawn
    return Plan(
        _span(fixed, "quote_minutes", drawn.quote_after, timedelta(minutes=1)),
        _span(fixed, "review_minutes", drawn.review_after, timedelta(minutes=1)),
        _span(fixed, "window_days", drawn.window, timedelta(days=1)),
        bool(fixed.get("hold_quote")),
        bool(fixed.get("hold_review")),
    )


def _span(fixed: Mapping[str, Any], name: str, drawn: timedelta, unit: timedelta) -> timedelta:
    return fixed[name] * unit if name in fixed else drawn


def fixed_for(db: Db, owner_id: str) -> dict[str, Any]:
    """What is fixed for an experiment or an organisation."""
    return _fixed(db, owner_id, owner_id)


def _fixed(db: Db, org_id: str, experiment_id: str) -> dict[str, Any]:
    """An experiment's own wishes come before its organisation's."""
    rows = {row["id"]: row for row in db.all("SELECT * FROM plans WHERE id IN (?, ?)", org_id, experiment_id)}
    found = [rows[owner_id] for owner_id in (org_id, experiment_id) if owner_id in rows]
    return {name: row[name] for row in found for name in FIXABLE if row[name] is not None}


def fix(db: Db, org_id: str, owner_id: str, wanted: Mapping[str, Any]) -> None:
    """Fix these delays and holds from now on, and nothing else; an empty mapping leaves all to chance."""
    db.run("DELETE FROM plans WHERE id = ?", owner_id)
    if wanted:
        db.insert("plans", {"id": owner_id, "org_id": org_id, **wanted})
