"""A problem that an operator should know of, and the limits beyond which one is reported."""

from datetime import datetime

from pydantic import AwareDatetime, Field

from prefect_assay.campaigns.sweep.watermarks import OpenSum
from prefect_assay.service.bounds import Days
from prefect_assay.service.models.base import Model, StoredModel

RUNS_MAX = 10  # names of runs that a problem keeps; a Prefect variable holds 5,000 characters


class Problem(StoredModel):
    """One thing that is wrong, from the first time it was seen until it is over.

    The same kind and subject are the same problem, whatever its text.
    """

    kind: str  # a key of `alerts.ALERTS`
    subject: str  # what has the problem: an experiment, a run, a block
    since: AwareDatetime
    text: str  # one sentence
    next_step: str
    runs: tuple[str, ...] = ()  # names of the first runs that it concerns

    @property
    def identity(self) -> tuple[str, str]:
        """What makes two findings the same problem."""
        return self.kind, self.subject

    @property
    def line(self) -> str:
        """The whole problem as one line."""
        return f"{self.text}. {self.next_step}"


class SavedState(StoredModel):
    """What the sweep has saved for others: its open problems, when it last completed, and the open money."""

    problems: tuple[Problem, ...] = ()
    swept: datetime | None = None
    open_money: dict[str, OpenSum] | None = None  # by kind; None as long as no full check has read it


class AlertLimits(Model):
    """From when on something is a problem. Each is a parameter of the sweep's deployment."""

    invoice_days: Days = Field(
        default=7, title="Unpaid invoice (days)", description="Days since an open invoice was made."
    )
    quote_days: Days = Field(
        default=3, title="Expiring quote (days)", description="Days until an unanswered quote expires."
    )
    token_days: Days = Field(
        default=14, title="Expiring token (days)", description="Days until a token of the service expires."
    )
