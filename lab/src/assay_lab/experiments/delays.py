"""Decides how long things take in lab time, once per experiment, from the lab's seed and the experiment's code."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from assay_lab.kernel.store import Db, Row
from assay_lab.vocabulary import ExperimentStatus

WINDOW_DAYS: Final = (5.0, 15.0)
QUOTE_MINUTES: Final = (3.0, 30.0)
REVIEW_MINUTES: Final = (1.0, 10.0)

# What happens at which share of the lab window. `progress` is an update without a new status.
MILESTONES: Final[tuple[tuple[float, str, str], ...]] = (
    (0.30, "status", ExperimentStatus.IN_QUEUE),
    (0.40, "status", ExperimentStatus.IN_PRODUCTION),
    (0.55, "progress", "Half of the assay runs are complete."),
    (0.70, "status", ExperimentStatus.DATA_ANALYSIS),
    (0.85, "status", ExperimentStatus.IN_REVIEW),
    (1.00, "status", ExperimentStatus.DONE),
)

FIXABLE: Final = ("quote_minutes", "review_minutes", "window_days", "hold_review")


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays of one experiment; a review that is held waits until a lab event releases it."""

    quote_after: timedelta
    review_after: timedelta
    window: timedelta
    hold_review: bool = False


def draw_delays(seed: str, code: str) -> Delays:
    """The same seed and code give the same delays, on every machine."""
    draw = random.Random(f"{seed}:{code}")  # noqa: S311 - delays, no secret
    return Delays(
        quote_after=timedelta(minutes=draw.uniform(*QUOTE_MINUTES)),
        review_after=timedelta(minutes=draw.uniform(*REVIEW_MINUTES)),
        window=timedelta(days=draw.uniform(*WINDOW_DAYS)),
    )


def of_experiment(db: Db, seed: str, experiment: Row) -> Delays:
    """The drawn delays, except for those fixed for the experiment, else for its organization."""
    delays = draw_delays(seed, experiment["code"])
    fixed = fixed_for(db, experiment["org_id"], experiment["id"])

    def span(name: str, default: timedelta, unit: timedelta) -> timedelta:
        return fixed[name] * unit if name in fixed else default

    return Delays(
        span("quote_minutes", delays.quote_after, timedelta(minutes=1)),
        span("review_minutes", delays.review_after, timedelta(minutes=1)),
        span("window_days", delays.window, timedelta(days=1)),
        bool(fixed.get("hold_review")),
    )


def fixed_for(db: Db, *owner_ids: str) -> dict[str, Any]:
    """The delays and holds fixed for organizations or experiments; a later owner's override an earlier one's."""
    plans = filter(None, (db.get("plans", owner_id) for owner_id in owner_ids))
    return {name: row[name] for row in plans for name in FIXABLE if row[name] is not None}


def fix_delays(db: Db, org_id: str, owner_id: str, fixed_delays: Mapping[str, Any]) -> None:
    """Replace an owner's fixed delays; those left out are drawn. A hold stays until another one is given."""
    held = (db.get("plans", owner_id) or {}).get("hold_review")
    db.run("DELETE FROM plans WHERE id = ?", owner_id)
    db.insert("plans", {"id": owner_id, "org_id": org_id, "hold_review": held, **fixed_delays})
