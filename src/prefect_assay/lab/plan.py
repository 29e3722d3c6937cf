"""How long things take in the lab, decided once per experiment from the lab's seed and the experiment's code.

Times are lab time. The window is 5 to 15 days (contract 8), the quote takes minutes (contract 4.2).
"""

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

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


@dataclass(frozen=True, slots=True)
class Plan:
    """The delays of one experiment."""

    quote_after: timedelta
    review_after: timedelta
    window: timedelta


def plan(seed: str, code: str) -> Plan:
    """The same seed and code give the same delays, on every machine."""
    draw = random.Random(f"{seed}:{code}")  # noqa: S311 - a plan, no secret
    return Plan(
        quote_after=timedelta(minutes=draw.uniform(*QUOTE_MINUTES)),
        review_after=timedelta(minutes=draw.uniform(*REVIEW_MINUTES)),
        window=timedelta(days=draw.uniform(*WINDOW_DAYS)),
    )
