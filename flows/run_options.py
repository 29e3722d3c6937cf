"""The parameters of one run as typed values: shared ones, and those of an experiment or a campaign.

The flows keep flat parameters, because Prefect makes a form of them and stores them with suspended runs. Inside a flow
they travel as one frozen value, and a parent hands the same value to its child runs.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, TypeVar

from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy, Wallet, WebhookEndpoint
from prefect_assay.blocks.order_books import open_books
from prefect_assay.books import Books, OrderBook
from prefect_assay.errors import AssayError
from prefect_assay.looping import Loop, RoundFixed, StopRules, designs_address
from prefect_assay.models.billing import Quote
from prefect_assay.models.spec import ExperimentSpec, Plan, PlannedExperiment
from prefect_assay.models.vocabulary import MACHINE_RAILS, PaymentMethod
from prefect_assay.ordering import experiment_name, order_key
from prefect_assay.payments.interfaces import address
from prefect_assay.reporting import artifacts
from prefect_assay.reporting.artifacts import label_of
from prefect_assay.runs import PollPolicy, outlast
from prefect_assay.runs.block_references import passed_on
from prefect_assay.runs.parameters import bytes_max, bytes_of
from prefect_assay.tasks.collate import kept_plan

T = TypeVar("T")

# The caps, as the forms name them.
CAMPAIGN_CAP: Final = "cap of the campaign"
EXPERIMENT_CAP: Final = "policy's cap per experiment"

# Prefect's suspension time-out only backs up the run's own deadline: a server that was off fails what is over it at its
# start, before the sweep can wake it. Each level outlasts the level below it.
_EXPERIMENT_MARGIN: Final = timedelta(days=365)
_CAMPAIGN_MARGIN: Final = timedelta(days=535)
_ROUND_MARGIN: Final = timedelta(days=585)


@dataclass(frozen=True)
class RunOptions:
    """The parameters that `experiment`, `campaign` and `design_build_test` share."""

    credentials: AssayCredentials
    policy: SpendingPolicy
    archive: Archive
    payment_method: PaymentMethod
    wallet: Wallet | None
    webhook: WebhookEndpoint | None
    request_quote: bool
    deadline_days: int
    poll_seconds: float

    @property
    def paid(self) -> str:
        """How the orders are paid, for the form of an approval."""
        if self.payment_method in MACHINE_RAILS:
            return f"by machine ({self.payment_method})"
        return "by a person, at the invoice's page"

    @cached_property
    def books(self) -> Books:
        """The logs of orders and payments, opened on first use."""
        return open_books(self.credentials, self.archive)

    @cached_property
    def scope(self) -> str:
        """Separates this run's children from those at another service, organisation or archive."""
        return self.books.scope(address(self.credentials.base_url))

    def placed(self, campaign_id: str, order_key: str) -> bool:
        """Whether the service has an order, or may have it, by the order's log."""
        return self.books.order(campaign_id, order_key).read().placed

    @property
    def patience(self) -> timedelta:
        """How long to wait for an experiment, counted from its order."""
        return timedelta(days=self.deadline_days)

    @property
    def round_timeout(self) -> timedelta:
        """Prefect's time-out of a suspension for one round of a loop: longer than the campaign's own."""
        return self.patience + _ROUND_MARGIN

    @property
    def poll(self) -> PollPolicy:
        """Pauses of a run that is not deployed."""
        return PollPolicy(longest_seconds=self.poll_seconds)

    def parameters(self) -> dict[str, Any]:
        """The flat parameters of a child run. A deleted wallet or webhook is passed on as its reference."""
        flat = {field.name: getattr(self, field.name) for field in fields(self)}
        return flat | {name: passed_on(name, flat[name]) for name in ("wallet", "webhook")}


@dataclass(frozen=True)
class ExperimentRun:
    """One run of `experiment`: built by the flow from its parameters, and by a campaign for each child run."""

    options: RunOptions
    spec: ExperimentSpec
    campaign_id: str
    batch_index: int
    batch_count: int
    limit_cents: int | None = None
    campaign_limit_cents: int | None = None
    planned: str | None = None  # the order key, if the campaign's plan in the archive has the specification

    @cached_property
    def key(self) -> str:
        """The order key."""
        return order_key(self.campaign_id, self.batch_index, self.spec)

    @property
    def name(self) -> str:
        """The experiment's name at the service."""
        return experiment_name(self.campaign_id, self.batch_index, self.batch_count, self.key)

    @property
    def label(self) -> str:
        """The end of the artifacts' keys."""
        return label_of(self.campaign_id, self.batch_index)

    @property
    def cap_cents(self) -> int:
        """What the experiment may cost without approval, in US cents."""
        return _lower(self.options.policy.per_experiment_cents, self.limit_cents)

    @property
    def cap_name(self) -> str:
        """What the forms call this cap."""
        return (
            EXPERIMENT_CAP
            if self.cap_cents == self.options.policy.per_experiment_cents
            else "limit of this run"
        )

    @property
    def rolling_cap_name(self) -> str:
        """What the forms call the cap of machine payments."""
        return f"cap of machine payments in {self.options.policy.rolling_days} days"

    def bought(self, quote: Quote | None = None) -> dict[str, str]:
        """What is bought, how it is paid and, of a quote, from when to when it holds, for the form."""
        what = artifacts.bought(self.campaign_id, [self.spec], self._target_name())
        lines = {**what, "paid": self.options.paid}
        if quote is not None:
            begins = f"from {quote.created_at:%Y-%m-%d} " if quote.created_at else ""
            ends = (
                f"until {quote.expires_at:%Y-%m-%d %H:%M} UTC" if quote.expires_at else "without a stated end"
            )
            page = f", [its page]({quote.provider_quote_url})" if quote.provider_quote_url else ""
            lines["quote holds"] = f"{begins}{ends}{page}"
        return lines

    def _target_name(self) -> str | None:
        """The target's name: of the campaign's plan, or of the catalog for an experiment without one."""
        if self.spec.target_id is None:
            return None
        try:
            if plan := kept_plan(self.options.archive, self.campaign_id):
                return plan.target_name
            with self.options.credentials.get_client() as client:
                return client.target(self.spec.target_id).name
        except AssayError:  # a question waits for no name
            return None

    @property
    def campaign_cap_cents(self) -> int:
        """What all orders of the campaign may cost without approval, in US cents."""
        return _lower(self.options.policy.per_campaign_cents, self.campaign_limit_cents)

    @property
    def timeout(self) -> timedelta:
        """Prefect's time-out of a suspension."""
        return self.options.patience + _EXPERIMENT_MARGIN

    @cached_property
    def package_looks(self) -> list[datetime]:
        """When this process found data packages away."""
        return []

    @cached_property
    def book(self) -> OrderBook:
        """The order's log, opened on first use."""
        return self.options.books.order(self.campaign_id, self.key)

    def parameters(self) -> dict[str, Any]:
        """The flat parameters of `experiment`. A campaign's limit that is not set is left to the deployment's default.

        Sequences beyond what Prefect stores with a run stay in the campaign's plan.
        """
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "options"}
        if self.campaign_limit_cents is None:
            del own["campaign_limit_cents"]
        limit = bytes_max()
        if self.planned and limit is not None and bytes_of(self.spec.model_dump(mode="json")) > limit:
            own["spec"] = self.spec.model_copy(update={"sequences": {}})
        else:
            del own["planned"]
        return own | self.options.parameters()


@dataclass(frozen=True)
class CampaignRun:
    """One run of `campaign`."""

    options: RunOptions
    limit_cents: int | None = None

    @property
    def cap_cents(self) -> int:
        """What all orders of the campaign may cost without approval, in US cents."""
        return _lower(self.options.policy.per_campaign_cents, self.limit_cents)

    @property
    def timeout(self) -> timedelta:
        """Prefect's time-out of a suspension: longer than a child's deadline, its quote and its approvals."""
        return self.options.patience + _CAMPAIGN_MARGIN

    def outlasting(self, name: str, step: Callable[[], T]) -> T:
        """Repeat a step while the service or the archive is away."""
        return outlast(step, key=name, timeout=self.timeout, poll=self.options.poll)

    def book(self, plan: Plan, planned: PlannedExperiment) -> OrderBook:
        """The log of one order."""
        return self.options.books.order(plan.campaign_id, planned.order_key)


@dataclass(frozen=True)
class LoopRun:
    """One run of `design_build_test`."""

    options: RunOptions
    loop: Loop
    rules: StopRules
    ask_each_round: bool = False

    def outlasting(self, name: str, step: Callable[[], T]) -> T:
        """Repeat a step while the service or the archive is away."""
        return outlast(step, key=name, timeout=self.options.round_timeout, poll=self.options.poll)

    def spent_cents(self) -> int:
        """What the orders of all rounds cost, by the books."""
        campaigns = self.loop.book.read().campaigns
        budget = self.options.books.budget.read() if campaigns else None
        return sum(budget.campaign_cents(campaign_id) for campaign_id in campaigns) if budget else 0

    def campaign_parameters(self, fixed: RoundFixed) -> dict[str, Any]:
        """The flat parameters of `campaign` for one round."""
        own = {
            "designs": designs_address(self.loop.loop_id, fixed.number),
            "designs_name": None,  # the address names them
            "assay": self.loop.assay,
            "campaign_id": fixed.campaign_id,
            "sequences_per_experiment": self.loop.per_experiment,
            **asdict(self.loop.reading),
            "limit_cents": fixed.limit_cents,
        }
        return own | self.options.parameters()


def _lower(cap_cents: int, limit_cents: int | None) -> int:
    return cap_cents if limit_cents is None else min(cap_cents, limit_cents)
