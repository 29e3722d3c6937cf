"""The plan of a campaign and its budget.

The first execution fixes the plan in the archive, because a campaign waits for days and its designs file may change
meanwhile. The campaign's cap applies to the total; each experiment's own cap applies as well, unless a person approved
the total.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from prefect.logging import get_run_logger
from prefect.runtime import flow_run as current_run

from prefect_assay.approvals.spending import Approval, approve_spending
from prefect_assay.books.log import Approved
from prefect_assay.designs import Reading, design_warnings, order_lines, refuse_target
from prefect_assay.errors import ArchiveError
from prefect_assay.events import emit, kinds
from prefect_assay.flows.run_options import CAMPAIGN_CAP, CampaignRun
from prefect_assay.looping import LoopBook, of_designs_address
from prefect_assay.models.billing import usd
from prefect_assay.models.sequences import Sequences
from prefect_assay.models.spec import Assay, Plan, Target
from prefect_assay.models.words import many
from prefect_assay.reporting import artifacts
from prefect_assay.runs import can_suspend, was_suspended
from prefect_assay.runs.block_references import require_blocks
from prefect_assay.runs.tags import CAMPAIGN_TAG, CHILDREN_TAG, add_tags, campaign_group, own_tags, tag_values
from prefect_assay.tasks.archive import check_archive
from prefect_assay.tasks.collate import keep_plan, kept_plan
from prefect_assay.tasks.estimate import check_access, open_price, resolve_target
from prefect_assay.tasks.pay import require_rail
from prefect_assay.tasks.read import plan_campaign, read_designs


@dataclass(frozen=True)
class CampaignInput:
    """The parameters of `campaign` from which its plan follows."""

    designs: str
    designs_name: str | None
    reading: Reading
    assay: Assay
    campaign_id: str | None
    sequences_per_experiment: int

    def read(self, run: CampaignRun, reading: Reading) -> Sequences:
        """Read and check the designs, of a file or of a loop's round in the archive."""
        of_loop = of_designs_address(self.designs)
        if of_loop is None:
            return read_designs(self.designs, self.designs_name, reading)
        archive = run.options.archive
        return LoopBook(archive.get_store(), archive.prefix, of_loop[0]).designs(of_loop[1], reading)

    def plan(self, sequences: Sequences, target: Target | None) -> Plan:
        """Split the designs into experiments and check every specification."""
        return plan_campaign(
            sequences,
            self.assay,
            target,
            campaign_id=self.campaign_id,
            per_experiment=self.sequences_per_experiment,
        )


def pinned_plan(run: CampaignRun) -> Plan | None:
    """The plan of this run's first execution, found by the run's tag.

    A run with a plan never makes another one: its designs file may contain the next round by now.
    """
    for campaign_id in tag_values(own_tags(), CAMPAIGN_TAG):
        plan = kept_plan(run.options.archive, campaign_id)
        if plan is None or plan.archive_id not in {None, run.options.books.archive_id}:
            raise ArchiveError(
                f"the plan of campaign {campaign_id} is no longer in this archive; nothing new was ordered. "
                "Restore the archive, or point its block to it, and run it again"
            )
        return plan
    return None


def make_plan(run: CampaignRun, given: CampaignInput) -> Plan:
    """Read, validate, deduplicate, split; then archive the plan before anything costs money."""
    require_blocks("wallet", "webhook")
    require_rail(run.options.payment_method, run.options.policy, run.options.wallet)
    check_archive(run.options.archive)
    sequences = given.read(run, given.reading)
    check_access(run.options.credentials)
    target = resolve_target(run.options.credentials, given.assay)
    refuse_target(sequences, target.sequence if target else None, given.reading)
    plan = given.plan(sequences, target)
    keep_plan(run.options.archive, plan.model_copy(update={"archive_id": run.options.books.archive_id}))
    if can_suspend():
        group = campaign_group(plan.campaign_id, run.options.scope)
        add_tags(current_run.id, [CAMPAIGN_TAG + plan.campaign_id, CHILDREN_TAG + group])
    _log(sequences, plan)
    return plan


def _log(sequences: Sequences, plan: Plan) -> None:
    logger = get_run_logger()
    for line in order_lines(sequences):
        logger.info("%s: %s", sequences.source, line)
    for warning in design_warnings((s.name, s.aa_string) for s in sequences.items):
        logger.warning("%s", warning)
    if plan.attributes_left_out:
        left = plan.attributes_left_out
        logger.warning("The plan has no room for %d columns: %s", len(left), ", ".join(left[:10]))


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
        what=f"Campaign {plan.campaign_id} ({many(len(plan.experiments), 'experiment')})",
        amount_cents=committed + known,
        cap_cents=cap,
        cap_name=CAMPAIGN_CAP,
        bought=artifacts.bought(
            plan.campaign_id,
            [e.spec for e in plan.experiments if e.order_key in totals],
            plan.target_name,
            plan.source,
        ),
        figures={
            "paid": run.options.paid,
            **({"ordered already": usd(committed), "still to be ordered": usd(known)} if committed else {}),
            **({"experiments without a price yet": str(len(unpriced))} if unpriced else {}),
            **artifacts.reading_figures(plan),
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
            approved = Approved(amount_cents=total, approver=approval.approver, by_person=approval.by_person)
            run.book(plan, planned).record(
                lambda state, new=approved: (
                    None  # type: ignore[misc]
                    if state.approved
                    and state.approved.by_person
                    and state.approved.amount_cents >= new.amount_cents
                    else new
                )
            )
    run.options.books.budget.raise_cap(plan.campaign_id, approval.cents, approval.approver)
