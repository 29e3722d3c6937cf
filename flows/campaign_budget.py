"""The budget of a campaign: its estimate, its approval, and the limit of each experiment.

The campaign's cap applies to the total. Each experiment's own cap applies as well, unless a person approved the total.
"""

from collections.abc import Mapping

from prefect_assay.approvals.spending import Approval, approve_spending
from prefect_assay.books.log import Approved
from prefect_assay.events import emit, kinds
from prefect_assay.flows.run_options import CAMPAIGN_CAP, EXPERIMENT_CAP, CampaignRun
from prefect_assay.models.billing import usd
from prefect_assay.models.spec import Plan
from prefect_assay.reporting import artifacts
from prefect_assay.runs import was_suspended
from prefect_assay.runs.tags import own_tags
from prefect_assay.tasks.estimate import open_price

__all__ = ["approved_limits"]


def approved_limits(run: CampaignRun, plan: Plan) -> dict[str, int]:
    """What each experiment may cost without approval, in US cents, by order key, after one check of the whole budget.

    Nothing is ordered yet, so a failure ends the run, unless it was suspended before.
    """
    if was_suspended(own_tags()):
        return run.outlasting("price", lambda: _check_budget(run, plan))
    return _check_budget(run, plan)


def _check_budget(run: CampaignRun, plan: Plan) -> dict[str, int]:
    """Check the campaign's total. An experiment with an invoice needs no new approval, but counts."""
    prices = {
        e.order_key: open_price(run.options.credentials, e, book=run.book(plan, e)) for e in plan.experiments
    }
    totals = {key: price.total_cents for key, price in prices.items() if not price.committed}
    if not totals:
        return {}
    artifacts.show_campaign_estimate(plan, totals)
    committed = sum(price.total_cents or 0 for price in prices.values() if price.committed)
    known = sum(total for total in totals.values() if total is not None)
    unpriced = [key for key, total in totals.items() if total is None]
    emit(
        kinds.EstimateCompleted(
            campaign_id=plan.campaign_id,
            experiments=len(totals),
            designs=sum(len(e.spec.sequences) for e in plan.experiments if e.order_key in totals),
            total_cents=known,
            unpriced=len(unpriced),
        )
    )
    cap = max(run.cap_cents, run.options.books.budget.read().caps.get(plan.campaign_id, 0))
    approval = approve_spending(
        run.options.policy,
        key=plan.campaign_id,
        what=f"Campaign {plan.campaign_id} ({len(plan.experiments)} experiments)",
        amount_cents=committed + known,
        cap_cents=cap,
        cap_name=CAMPAIGN_CAP,
        figures={
            "ordered already": usd(committed),
            "still to be ordered": usd(known),
            "experiments without a price yet": str(len(unpriced)),
            EXPERIMENT_CAP: usd(run.options.policy.per_experiment_cents),
        },
    )
    if committed + known > cap:
        _record_approval(run, plan, totals, approval)
    # Each pending quote may use an equal share of the remaining budget.
    left = max(0, max(approval.cents, cap) - committed - known)
    share = min(run.options.policy.per_experiment_cents, left // len(unpriced)) if unpriced else 0
    return {key: share if total is None else total for key, total in totals.items()}


def _record_approval(
    run: CampaignRun, plan: Plan, totals: Mapping[str, int | None], approval: Approval
) -> None:
    """Record a person's approval of the total in every order's log; the campaign's cap comes last."""
    for planned in plan.experiments:
        total = totals.get(planned.order_key)
        if total is not None:
            approved = Approved(amount_cents=total, approver=approval.approver)
            run.book(plan, planned).record(
                lambda state, new=approved: (
                    None  # type: ignore[misc]
                    if state.approved and state.approved.amount_cents >= new.amount_cents
                    else new
                )
            )
    run.options.books.budget.raise_cap(plan.campaign_id, approval.cents, approval.approver)
