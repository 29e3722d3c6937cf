"""`campaign`: a file of designs becomes experiments, one table and one report, in one run that waits for days.

The archive is the truth: the plan, a ledger for each order, and the campaign's log. Every execution starts from the top
and takes each order as far as it goes now, so a run may be killed, deleted or replaced by another at any time.
"""

from typing import Annotated, Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.states import Cancelled, Completed, Failed

from prefect_assay.campaigns.lasting import lasting
from prefect_assay.campaigns.plan import CampaignInput, make_plan, read_kept_plan
from prefect_assay.campaigns.play import (
    CampaignStopped,
    CarriedByAnotherRun,
    approve_price,
    begin_campaign,
    play,
)
from prefect_assay.campaigns.restart import CONTINUED
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.campaigns.suspension import RunContinues
from prefect_assay.designs import Reading
from prefect_assay.errors import ApprovalExpired, CampaignFailed, shortened
from prefect_assay.events import concerning
from prefect_assay.flows import form
from prefect_assay.models.bounds import CampaignId, Line, Text
from prefect_assay.models.report import CampaignReport
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.models.words import many
from prefect_assay.runs.tags import own_campaign
from prefect_assay.tasks.report import report_command
from prefect_assay.waiting import DEADLINE_DAYS


@flow(name="campaign", retries=0, retry_delay_seconds=0)
def campaign(
    designs: Annotated[Text, form.titled("Designs")],
    assay: form.Assay,
    *,
    campaign_id: Annotated[CampaignId | None, form.titled("Campaign id")] = None,
    limit_cents: form.LowerCap = None,
    credentials: form.Credentials,
    policy: form.Policy,
    archive: form.Archive,
    webhook: form.Webhook = None,
    payment_method: form.Payment = PaymentMethod.ASYNC_INVOICE,
    wallet: form.Wallet = None,
    request_quote: form.ByQuote = False,
    name_column: form.NameColumn = None,
    sequence_column: form.SequenceColumn = None,
    chain: form.Chain = None,
    target_sequence: form.TargetSequence = None,
    keep_native: form.KeepNative = False,
    keep_shared: form.KeepShared = False,
    as_protein: form.AsProtein = False,
    designs_name: Annotated[Line | None, form.titled("Name of pasted designs")] = None,
    sequences_per_experiment: form.PerExperiment = 96,
    deadline_days: form.Deadline = DEADLINE_DAYS,
    poll_seconds: form.Poll = 300.0,
) -> State[CampaignReport]:
    """Measure a file of designs: estimate, order, pay, wait for the laboratory, archive, report.

    Args:
        designs: a FASTA file, a table or a workbook: a path on the worker, an s3:// address, or pasted FASTA text; a round of
            a loop in this archive, `loop:<loop>/<round>`; or `campaign:<id>`, a campaign that goes on by its archived plan.
        assay: the type of assay, its target, and how often each design is measured.
        campaign_id: the same id is ordered only once. Empty: a digest of designs and assay, so the same file
            submitted twice is ordered once; to measure again, choose another id.
        limit_cents: a lower cap for the whole campaign. Empty: the policy's cap.
        credentials: the service's address and your API token.
        policy: caps, and permission for machine payments.
        archive: where results and ledgers are archived.
        webhook: where the service delivers updates; without it the sweep or polling finds them.
        payment_method: async_invoice: a person pays the hosted invoices; a machine rail pays with the wallet.
        wallet: for a machine rail: an X402Wallet for x402-exact, SharedPaymentTokens for mpp-spt.
        request_quote: order by quote, even if the estimates are complete.
        name_column: title of the table's column of names. Empty: found by usual titles.
        sequence_column: title of the table's column of sequences. Empty: found by usual titles.
        chain: order only this chain of each design: its number from 1, or its name in files of complexes; several as 1,2.
        target_sequence: residues of the target, which must not be ordered; beside those of the service's catalog.
        keep_native: also measure the native inputs in files of ProteinMPNN and LigandMPNN.
        keep_shared: order what is in doubt as it is, such as a chain that all designs share.
        as_protein: take residues that look like nucleotides as amino acids.
        designs_name: what pasted text is called in messages and artifacts, such as the file it came from.
        sequences_per_experiment: most designs in one experiment.
        deadline_days: how long to wait for an experiment, counted from its order; it is read daily afterwards.
        poll_seconds: longest pause between two polls of a run that is not deployed.

    Returns:
        CampaignReport: every experiment with its archive or its problem, and the table of all rows.

    Raises:
        InputError: the designs or the assay are wrong, with every finding; nothing was ordered.
        BudgetExceeded: over the campaign's cap, and this run cannot ask a person; nothing was ordered.
        ApprovalRejected: a person has rejected the price; nothing was ordered.
    """
    setup = CampaignSetup(
        credentials=credentials,
        policy=policy,
        archive=archive,
        payment_method=payment_method,
        wallet=wallet,
        webhook=webhook,
        request_quote=request_quote,
        deadline_days=deadline_days,
        poll_seconds=poll_seconds,
    )
    given = CampaignInput(
        designs,
        designs_name,
        Reading(name_column, sequence_column, keep_native, chain, target_sequence, keep_shared, as_protein),
        assay,
        campaign_id,
        sequences_per_experiment,
    )
    try:
        return play_campaign(setup, given, limit_cents)
    except RunContinues as error:
        return Completed(name=CONTINUED, message=str(error))


def play_campaign(setup: CampaignSetup, given: CampaignInput, limit_cents: int | None) -> State[Any]:
    """One execution of the campaign's run, from the plan to its final state, unless it suspends."""
    with lasting(setup) as execution:
        known = own_campaign() or given.continued_id
        plan = read_kept_plan(setup, known) if known else make_plan(setup, given)
        execution.campaign_id = plan.campaign_id
        concerning(campaign_id=plan.campaign_id)
        get_run_logger().info("Campaign %s: %s", plan.campaign_id, many(len(plan.experiments), "experiment"))
        over = setup.log(plan.campaign_id).read().over
        if (
            own_campaign() and over is not None
        ):  # a job's first execution names the plan as well, and is a new start
            return Completed(name="Over", message=over.words)
        try:
            running = begin_campaign(setup, plan, limit_cents=limit_cents, carries=True)
            approve_price(running)
            report = play(running)
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
    raise AssertionError("`lasting` returns or raises")


def final_state(setup: CampaignSetup, over: Any, report: CampaignReport) -> State[Any]:
    """The final state of the run, with the report as its result."""
    command = report_command(setup.archive, report.campaign_id)
    words = over.words if over is not None else f"results of {report.campaign_id}"
    if not report.rows:
        # Prefect can only raise an exception for a failed run.
        return Failed(message=shortened(words), data=CampaignFailed(words, report=report))
    message = shortened(f"{words}; report: {command}" if report.report else words)
    return Completed(
        name="CompletedWithGaps" if report.problems else "Completed", message=message, data=report
    )
