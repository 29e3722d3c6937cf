"""What a campaign may cost, and its patience: the steps of its first execution that a person may have to answer.

The cap is the campaign's. An experiment's own cap holds beside it, unless a person has approved the whole.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

from prefect.runtime import flow_run as current_run

from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy, Wallet, WebhookEndpoint
from prefect_assay.flows import artifacts
from prefect_assay.flows.approval import approve_spending
from prefect_assay.flows.money import usd
from prefect_assay.models.plan import Plan
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.tasks.price import open_price
from prefect_assay.waiting import PollPolicy, outlast, was_suspended

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


@dataclass(frozen=True)
class Limits:
    """What has been approved, in US cents: for each experiment by its order key, and for all together."""

    each: dict[str, int] = field(default_factory=dict)
    campaign_cents: int | None = None


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
    prices = {e.order_key: open_price(job.credentials, e) for e in plan.experiments}
    totals = {key: price.total_cents for key, price in prices.items() if not price.committed}
    if not totals:
        return Limits()
    artifacts.show_campaign_estimate(plan, totals)
    committed = sum(price.total_cents or 0 for price in prices.values() if price.committed)
    known = sum(total for total in totals.values() if total is not None)
    unpriced = [key for key, total in totals.items() if total is None]
    cap = job.policy.per_campaign_cents
    approved = approve_spending(
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
    # A quote that is still to come may use an equal share of what the campaign has left.
    left = max(0, max(approved, cap) - committed - known)
    share = min(job.policy.per_experiment_cents, left // len(unpriced)) if unpriced else 0
    # An experiment's own cap still holds, unless a person has approved the whole campaign.
    most = None if committed + known > cap else job.policy.per_experiment_cents
    return Limits(
        campaign_cents=max(approved, cap),
        each={key: share if total is None else _limit(total, most) for key, total in totals.items()},
    )


def _limit(total: int, most: int | None) -> int:
    return total if most is None else min(total, most)
