"""`campaign`: a file of designs becomes experiments, one table and one report, in one run that waits for days.

The archive is the truth: the plan, a ledger for each order, and the campaign's log. Every execution starts from the top
and takes each order as far as it goes now, so a run may be killed, deleted or replaced by another at any time.
"""

from typing import Annotated, Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.states import Cancelled, Completed, Failed

from prefect_assay.campaigns.flow_results import CampaignReport
from prefect_assay.campaigns.lasting import outlast_failures
from prefect_assay.campaigns.plan import CampaignInput, make_plan, read_kept_plan
from prefect_assay.campaigns.play import (
    CampaignStopped,
    CarriedByAnotherRun,
    approve_price,
    begin_campaign,
    play_orders,
)
from prefect_assay.campaigns.runs.tags import name_run, own_campaign
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.campaigns.suspension import RunContinues, was_retried
from prefect_assay.campaigns.sweep.restart import CONTINUED
from prefect_assay.designs.options import USUAL, Usd, usd_to_cents
from prefect_assay.errors import ApprovalExpired, CampaignFailed, InputError, shortened
from prefect_assay.flows import form
from prefect_assay.orders.ledger.campaign_log import Over
from prefect_assay.service.bounds import CampaignId, Text
from prefect_assay.service.words import many
from prefect_assay.tasks.current_run import this_run
from prefect_assay.tasks.report import report_command


@flow(name="campaign", retries=0, retry_delay_seconds=0)
def campaign(
    designs: Annotated[Text, form.title_field("Designs")],
    assay: form.Assay,
    *,
    account: form.Account,
    spend_up_to_usd: Annotated[
        Usd | None, form.AT_ONCE, form.title_field("Spend without asking up to (USD)")
    ] = None,
    campaign_id: Annotated[CampaignId | None, form.AT_ONCE, form.title_field("Campaign name")] = None,
    options: form.MoreOptions = USUAL,
) -> State[CampaignReport]:
    """Measure a file of designs: estimate, order, pay, wait for the laboratory, archive, report.

    Args:
        designs: a FASTA file, a table or a workbook: a path on the worker, an s3:// address, or pasted FASTA text; a round of
            a loop in this archive, `loop:<loop>/<round>`; or `campaign:<id>`, which continues a campaign.
        assay: the type of assay, its target, and how often each design is measured.
        account: the service with your token, the spending policy, the archive, and how you pay.
        spend_up_to_usd: what the whole campaign may cost without asking, in USD without VAT, within the policy's caps.
            Empty: you are asked with the price before anything is ordered.
        campaign_id: the same name is ordered only once. Empty: a digest of designs and assay, so the same file
            submitted twice is ordered once; to measure again, choose another name.
        options: how the designs are read, how long to wait, and how to pay.

    Returns:
        CampaignReport: every experiment with its archive or its problem, and the table of all rows.

    Raises:
        InputError: the designs or the assay are wrong, with every finding; nothing was ordered.
        BudgetExceeded: it costs more than `spend_up_to_usd`, and this run cannot ask a person; nothing was ordered.
        ApprovalRejected: a person has rejected the price; nothing was ordered.
    """
    setup = CampaignSetup(account, options)
    campaign_input = CampaignInput(designs, assay, campaign_id, options.reading)
    if own_campaign() is None:
        name_run(this_run(), campaign_input.title)  # before anything of it can be refused
    try:
        return play_campaign(setup, campaign_input, usd_to_cents(spend_up_to_usd or 0))
    except RunContinues as error:
        return Completed(name=CONTINUED, message=str(error))
    except InputError as error:  # a person has to change it, and no traceback helps
        get_run_logger().error("%s", error)
        return Failed(message=shortened(str(error)), data=error)


def play_campaign(setup: CampaignSetup, campaign_input: CampaignInput, unasked_cents: int) -> State[Any]:
    """One execution of the campaign's run, from the plan to its final state, unless it suspends."""
    with outlast_failures(setup) as execution:
        continued_id = own_campaign() or campaign_input.continued_id
        plan = read_kept_plan(setup, continued_id) if continued_id else make_plan(setup, campaign_input)
        execution.campaign_id = plan.campaign_id
        get_run_logger().info("Campaign %s: %s", plan.campaign_id, many(len(plan.experiments), "experiment"))
        end = setup.log(plan.campaign_id).read().over
        # A job's first execution names the plan as well; it is a new start, and so is a person's retry of a failed run.
        if own_campaign() and end is not None and not was_retried():
            return Completed(name="Over", message=end.words)
        try:
            running = begin_campaign(setup, plan, unasked_cents=unasked_cents, carries=True)
            approve_price(running)
            report = play_orders(running)
        except CampaignStopped as error:
            return Cancelled(message=str(error))
        except CarriedByAnotherRun as error:
            return Completed(name="CarriedOn", message=str(error))
        except ApprovalExpired as error:
            execution.finish(error)
            return Failed(name="ApprovalExpired", message=str(error), data=error)
        stopped = running.log.read().stopped
        if stopped is not None:
            return Cancelled(message=f"canceled by {stopped.person}")
        return final_state(setup, running.log.state.over, report)
    raise AssertionError("`outlast_failures` returns or raises")


def final_state(setup: CampaignSetup, end: Over | None, report: CampaignReport) -> State[Any]:
    """The final state of the run, with the report as its result."""
    command = report_command(setup.archive, report.campaign_id)
    words = end.words if end is not None else f"results of {report.campaign_id}"
    if not report.rows:
        # Prefect can only raise an exception for a failed run.
        return Failed(message=shortened(words), data=CampaignFailed(words, report=report))
    message = shortened(f"{words}; report: {command}" if report.page else words)
    return Completed(
        name="CompletedWithGaps" if report.problems else "Completed", message=message, data=report
    )
