"""The table of event kinds: one frozen model per kind, whose fields are the event's payload.

Pure. `resource` says what the event happens to. `identity` names the fields that make the fact, with event and resource:
the same fact has the same id. Amounts are US cents without VAT. Times in a payload are the service's. No field
holds a secret or a link that works without a token.
"""

from datetime import datetime
from typing import Any, ClassVar, Final, Literal
from uuid import UUID, uuid5

from prefect_assay.service.models.base import Model

_NAMESPACE: Final = UUID("7b2f9c0e-5a1d-5c53-8f0a-2d6e4b9c1a37")


class Fact(Model):
    """Something that has happened and is durable. Each kind has the class variables below."""

    event: ClassVar[str]
    resource: ClassVar[str]  # the resource's id, with fields in braces
    identity: ClassVar[tuple[str, ...]] = ()
    # Fields that automations match by, as `assay.<field>` of the resource
    labels: ClassVar[tuple[str, ...]] = ()

    campaign_id: str | None = None
    order_key: str | None = None
    account: str | None = None  # its name, and whether it is live or simulated, for people

    @property
    def resource_id(self) -> str:
        """What it happened to."""
        return self.resource.format(**dict(self))

    @property
    def name(self) -> str:
        """What people call the resource."""
        return self.resource_id.rpartition(".")[2]

    def properties(self) -> dict[str, str]:
        """Further labels of the resource, as in `labels`."""
        return {f"assay.{name.replace('_', '-')}": str(getattr(self, name)) for name in self.labels}

    def payload(self) -> dict[str, Any]:
        """The fields that have a value."""
        return self.model_dump(mode="json", exclude_none=True)

    @property
    def id(self) -> UUID:
        """The event's id: the same for the same fact, in every run and on every server."""
        values = [str(getattr(self, name)) for name in self.identity]
        return uuid5(_NAMESPACE, "\n".join([self.event, self.resource_id, *values]))


class EstimateCompleted(Fact):
    """The service has priced an order, or all orders of a campaign that are not placed yet.

    `total_cents` is the sum of the known prices; `unpriced` experiments need a quote.
    """

    event: ClassVar = "assay.estimate.completed"
    resource: ClassVar = "assay.order.{order_key}"
    identity: ClassVar = ("total_cents", "unpriced")

    experiments: int = 1
    designs: int
    total_cents: int
    unpriced: int = 0

    @property
    def resource_id(self) -> str:
        """The order, or the campaign if it is the estimate of several orders."""
        return super().resource_id if self.order_key else f"assay.campaign.{self.campaign_id}"


class _OfExperiment(Fact):
    resource: ClassVar = "assay.experiment.{experiment_id}"

    experiment_id: str
    experiment_code: str | None = None

    @property
    def name(self) -> str:
        """The code that people know the experiment by."""
        return self.experiment_code or self.experiment_id


class ExperimentOrdered(_OfExperiment):
    """The experiment exists at the service, and the order's ledger names it."""

    event: ClassVar = "assay.experiment.ordered"
    labels: ClassVar = ("payment_method",)

    designs: int
    experiment_type: str
    payment_method: str


class ExperimentQuoted(_OfExperiment):
    """A quote waits for its acceptance, by the run within its budget or by a person."""

    event: ClassVar = "assay.experiment.quoted"
    identity: ClassVar = ("quote_id", "amount_cents")

    quote_id: str | None = None
    amount_cents: int | None = None
    expires_at: datetime | None = None


class _OfInvoice(_OfExperiment):
    labels: ClassVar = ("payment_method",)

    invoice_id: str | None = None
    amount_cents: int | None = None
    payment_method: str


class ExperimentInvoiced(_OfInvoice):
    """The invoice is open. A person pays it where the payment method is `async_invoice`."""

    event: ClassVar = "assay.experiment.invoiced"


class ExperimentPaid(_OfInvoice):
    """The invoice is paid, by the run or by a person."""

    event: ClassVar = "assay.experiment.paid"


class StatusChanged(_OfExperiment):
    """The service shows another status of the experiment: `status`."""

    event: ClassVar = "assay.experiment.status-changed"
    identity: ClassVar = ("status",)
    labels: ClassVar = ("status",)

    status: str
    results_status: str


class _OfResults(_OfExperiment):
    version: int
    table: str
    rows: int


class PartialResults(_OfResults):
    """Preliminary results are archived; the wait goes on."""

    event: ClassVar = "assay.experiment.partial-results"
    identity: ClassVar = ("version",)


class ResultsReady(_OfResults):
    """All results are released and archived: the moment to start what reads them."""

    event: ClassVar = "assay.experiment.results-ready"


class ExperimentArchived(_OfExperiment):
    """A version of the experiment is complete in the archive. `location` is its folder, `table` its tidy table."""

    event: ClassVar = "assay.experiment.archived"
    identity: ClassVar = ("manifest_sha256",)
    labels: ClassVar = ("results_status",)

    version: int
    location: str
    table: str
    files: int
    total_bytes: int
    manifest_sha256: str
    results_status: str


class ExperimentOverdue(_OfExperiment):
    """The deadline has passed and the results are not complete."""

    event: ClassVar = "assay.experiment.overdue"
    identity: ClassVar = ("deadline_days",)

    status: str
    deadline_days: int


class ExperimentCanceled(_OfExperiment):
    """The laboratory or a person has canceled the experiment at the service."""

    event: ClassVar = "assay.experiment.canceled"


class OrderSurplus(_OfExperiment):
    """Other experiments carry the order's key: no run confirms or pays them."""

    event: ClassVar = "assay.order.surplus"
    identity: ClassVar = ("surplus",)

    surplus: tuple[str, ...]


class _OfApproval(Fact):
    resource: ClassVar = "assay.approval.{approval}"
    labels: ClassVar[tuple[str, ...]] = ("about",)

    approval: str  # the name of the suspension: unique for each time that a person is asked
    about: Literal["spending", "payment"]


class ApprovalRequested(_OfApproval):
    """A person has to answer a question until `until`: the price in the form of the suspended run, a later one by its artifact."""

    event: ClassVar = "assay.approval.requested"

    question: str
    until: datetime


class ApprovalAnswered(_OfApproval):
    """A person has decided, and the run has read the decision."""

    event: ClassVar = "assay.approval.answered"
    labels: ClassVar[tuple[str, ...]] = ("about", "decision")

    decision: str


class ApprovalExpired(_OfApproval):
    """The form was not answered in time."""

    event: ClassVar = "assay.approval.expired"


class BudgetReached(Fact):
    """Spending would exceed a cap. Nothing is spent unless a person approves it; `asks`: this run asks one."""

    event: ClassVar = "assay.budget.reached"
    resource: ClassVar = "assay.budget.{key}"
    identity: ClassVar = ("amount_cents", "cap_cents")

    key: str  # the campaign or the order, and the cap if it is one of a sum
    what: str
    amount_cents: int
    cap_cents: int
    asks: bool


class RoundCompleted(Fact):
    """A round of a loop has its table, or has failed. K_D in M."""

    event: ClassVar = "assay.round.completed"
    resource: ClassVar = "assay.loop.{loop_id}"
    identity: ClassVar = ("round", "table")  # a round that failed may succeed later

    loop_id: str
    round: str
    table: str | None = None
    best_kd_M: float | None = None  # noqa: N815 - M is the unit
    problem: str | None = None


class CurveReview(Fact):
    """Raw curves of a campaign need a person's look before their numbers are used; see the report."""

    event: ClassVar = "assay.curve.review"
    resource: ClassVar = "assay.campaign.{campaign_id}"
    identity: ClassVar = ("manifest_sha256",)

    report: str
    manifest_sha256: str  # of the report's version
    curves: int  # all of them
    designs: tuple[str, ...]  # the first hundred


class _OfProblem(Fact):
    resource: ClassVar = "assay.problem.{kind}.{subject}"
    identity: ClassVar = ("since",)
    labels: ClassVar = ("kind",)

    kind: str  # a kind of docs/operating.md
    subject: str
    since: datetime

    @property
    def name(self) -> str:
        """The subject."""
        return self.subject


class ProblemOpened(_OfProblem):
    """Something needs an operator. It stays open until `assay.problem.resolved` for the same resource."""

    event: ClassVar = "assay.problem.opened"

    text: str
    next_step: str
    runs: tuple[str, ...] = ()


class ProblemResolved(_OfProblem):
    """A problem is over."""

    event: ClassVar = "assay.problem.resolved"

    until: datetime


# The classes that name an event, in the order of this module.
KINDS: Final[tuple[type[Fact], ...]] = tuple(
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Fact) and "event" in vars(kind)
)
