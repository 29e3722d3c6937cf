"""What a campaign may cost, and its patience: the steps of its first execution that a person may have to answer.

The cap is the campaign's. An experiment's own cap holds beside it, unless a person has approved the whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Final, TypeVar

from prefect.runtime import flow_run as current_run

from prefect_assay.approvals.spending import Approval, approve_spending
from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy, Wallet, WebhookEndpoint
from prefect_assay.blocks.order_books import open_books
from prefect_assay.books import Books, OrderBook
from prefect_assay.books.records import Approved
from prefect_assay.models.plan import Plan, PlannedExperiment
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments.api import address
from prefect_assay.reporting import artifacts
from prefect_assay.reporting.money import usd
from prefect_assay.runs import PollPolicy, outlast, was_suspended
from prefect_assay.tasks.price import open_price

T = TypeVar("T")

# Longer than any child's path: its own deadline, its quote and its approvals.
SUSPENSION_MARGIN: Final = timedelta(days=200)


@dataclass(frozen=True)
class CampaignJob:
    """The parameters of one run that its steps share."""

    credentials: AssayCredentials
    policy: SpendingPolicy
    archive: Archive
    payment_method: PaymentMethod
    wallet: Wallet | None
    webhook: WebhookEndpoint | None
    request_quote: bool
    deadline_days: int
    poll_seconds: float

    @cached_property
    def books(self) -> Books:
        """The logs of orders and payments, opened when they are first needed."""
        return open_books(self.credentials, self.archive)

    @cached_property
    def scope(self) -> str:
        """What sets this campaign's runs apart from those at another service, organisation or archive."""
        return self.books.scope(address(self.credentials.base_url))

    def book(self, plan: Plan, planned: PlannedExperiment) -> OrderBook:
        """The log of one order."""
        return self.books.order(plan.campaign_id, planned.order_key)


@dataclass(frozen=True)
class Limits:
    """What each experiment may cost without asking, in US cents, by its order key."""

    each: dict[str, int] = field(default_factory=dict)


def outlasting(job: CampaignJob, name: str, step: Callable[[], T]) -> T:
    """The service or the archive may be away for a while: the campaign goes on when they are back."""
    poll = PollPolicy(first_seconds=min(2.0, job.poll_seconds), longest_seconds=job.poll_seconds)
    return outlast(step, key=name, timeout=timedelta(days=job.deadline_days) + SUSPENSION_MARGIN, poll=poll)


def approved_in_time(job: CampaignJob, plan: Plan) -> Limits:
    """Nothing is ordered yet: trouble ends the run, unless a person's answer has woken it already."""
    if was_suspended(current_run.tags or []):
        return outlasting(job, "price", lambda: _approved_limits(job, plan))
    return _approved_limits(job, plan)


def _approved_limits(job: CampaignJob, plan: Plan) -> Limits:
    """What each experiment may cost, by order key, after one budget check for the whole campaign.

    An experiment that has its invoice needs no new approval, but its money counts: the cap is the campaign's.
    """
    prices = {e.order_key: open_price(job.credentials, e, book=job.book(plan, e)) for e in plan.experiments}
    totals = {key: price.total_cents for key, price in prices.items() if not price.committed}
    if not totals:
        return Limits()
    artifacts.show_campaign_estimate(plan, totals)
    committed = sum(price.total_cents or 0 for price in prices.values() if price.committed)
    known = sum(total for total in totals.values() if total is not None)
    unpriced = [key for key, total in totals.items() if total is None]
    cap = max(job.policy.per_campaign_cents, job.books.budget.read().caps.get(plan.campaign_id, 0))
    approval = approve_spending(
        job.policy,
        key=plan.campaign_id,
        what=f"Campaign {plan.campaign_id} ({len(plan.experiments)} experiments)",
        amount_cents=committed + known,
        cap_cents=cap,
        figures={
            "ordered already": usd(committed),
            "still to be ordered": usd(known),
            "experiments without a price yet": str(len(unpriced)),
            "cap per experiment, in the policy": usd(job.policy.per_experiment_cents),
        },
    )
    if committed + known > cap:
        _record_approval(job, plan, totals, approval)
    # A quote that is still to come may use an equal share of what the campaign has left.
    left = max(0, max(approval.cents, cap) - committed - known)
    share = min(job.policy.per_experiment_cents, left // len(unpriced)) if unpriced else 0
    return Limits(each={key: share if total is None else total for key, total in totals.items()})


def _record_approval(
    job: CampaignJob, plan: Plan, totals: Mapping[str, int | None], approval: Approval
) -> None:
    """A person has approved the whole: write it down where every run of these orders reads it, the cap at last."""
    for planned in plan.experiments:
        total = totals.get(planned.order_key)
        if total is not None:
            approved = Approved(amount_cents=total, approver=approval.approver)
            job.book(plan, planned).record(
                lambda state, new=approved: (
                    None  # type: ignore[misc]
                    if state.approved and state.approved.amount_cents >= new.amount_cents
                    else new
                )
            )
    job.books.budget.raise_cap(plan.campaign_id, approval.cents, approval.approver)
