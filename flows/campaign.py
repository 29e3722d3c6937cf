"""`campaign`: a file of designs becomes experiments, one table and one report.

The first execution fixes the plan in the archive, because a campaign waits for days and its designs file may change
meanwhile. A failed or canceled experiment never hides the results of the others.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

from prefect.client.schemas.objects import FlowRun, State
from prefect.logging import get_run_logger
from prefect.runtime import flow_run as current_run
from prefect.states import Completed, Failed

from prefect_assay.approvals.questions import unanswered
from prefect_assay.designs import Reading
from prefect_assay.errors import (
    ApprovalExpired,
    CampaignFailed,
    OrderMismatch,
    OrderOutcomeUnknown,
    shortened,
)
from prefect_assay.events import concerning
from prefect_assay.flows import form
from prefect_assay.flows.campaign_plan import CampaignInput, approved_limits, make_plan, pinned_plan
from prefect_assay.flows.experiment import experiment
from prefect_assay.flows.run_options import CampaignRun, ExperimentRun, RunOptions
from prefect_assay.models.bounds import CampaignId, Line, Text
from prefect_assay.models.job import Order
from prefect_assay.models.report import CampaignExperiment, CampaignReport
from prefect_assay.models.spec import Plan, PlannedExperiment
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.models.words import many
from prefect_assay.reporting import artifacts, facts
from prefect_assay.results import outcome_line, summarize
from prefect_assay.runs import can_suspend, was_suspended
from prefect_assay.runs.block_references import require_blocks
from prefect_assay.runs.children import call_children, start_child, wait_for_children, wake_waiting_parent
from prefect_assay.runs.crashes import stop_crash_loop
from prefect_assay.runs.durable import durable_flow
from prefect_assay.runs.tags import (
    ORDER_OVER_LABEL,
    WAITS_TAG,
    campaign_group,
    own_tags,
    set_labels,
)
from prefect_assay.sweeping.cancellations import report_cancellation
from prefect_assay.tasks.archive import kept_location
from prefect_assay.tasks.collate import collate_campaign
from prefect_assay.tasks.order import find_order
from prefect_assay.tasks.report import report_campaign, report_command
from prefect_assay.waiting import DEADLINE_DAYS


@durable_flow(
    name="campaign",
    asks_for=("wallet", "webhook"),
    on_completion=[wake_waiting_parent],
    on_failure=[wake_waiting_parent],
    on_crashed=[wake_waiting_parent],
    on_cancellation=[report_cancellation, wake_waiting_parent],
)
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
    """Measure a file of designs: estimate, order, pay, wait for the laboratory, archive, collate.

    Args:
        designs: a FASTA file, a table or a workbook: a path on the worker, an s3:// address, or pasted FASTA text; or a round of
            a loop in this archive, `loop:<loop>/<round>`.
        assay: the type of assay, its target, and how often each design is measured.
        campaign_id: the same id is ordered only once. Empty: a digest of designs and assay, so the same file
            submitted twice is ordered once; to measure again, choose another id.
        limit_cents: a lower cap for the whole campaign. Empty: the policy's cap.
        credentials: the service's address and your API token.
        policy: caps, and permission for machine payments.
        archive: where results are archived.
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
        deadline_days: how long to wait for an experiment, counted from its order.
        poll_seconds: longest pause between two polls of a run that is not deployed.

    Returns:
        CampaignReport: every experiment with its archive or its problem, and the table of all rows.

    Raises:
        InputError: the designs or the assay are wrong, with every finding; nothing was ordered.
        PaymentError: over the campaign's cap, and this run cannot ask a person; nothing was ordered.
        Stopped: the spending was not approved; nothing was ordered.
        CrashedTooOften: its process was killed more than five times since its last suspension.
    """
    stop_crash_loop()
    options = RunOptions(
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
    run = CampaignRun(options, limit_cents)
    given = CampaignInput(
        designs,
        designs_name,
        Reading(name_column, sequence_column, keep_native, chain, target_sequence, keep_shared, as_protein),
        assay,
        campaign_id,
        sequences_per_experiment,
    )
    plan = run.outlasting("plan", lambda: pinned_plan(run))
    plan = plan or make_plan(run, given)
    concerning(campaign_id=plan.campaign_id)
    get_run_logger().info("Campaign %s: %d experiments", plan.campaign_id, len(plan.experiments))
    try:
        # A run with started children has its approval; their results count, whatever they are.
        started = WAITS_TAG + campaign_group(plan.campaign_id, run.options.scope) in own_tags()
        limits = {} if started else approved_limits(run, plan)
    except ApprovalExpired as error:
        return unanswered(error)
    if can_suspend():
        problems = run.outlasting("children", lambda: _run_deployed(run, plan, limits))
    else:
        problems = _run_here(run, plan, limits)
    return run.outlasting("report", lambda: _report(run, plan, problems))


def _child(
    run: CampaignRun, plan: Plan, planned: PlannedExperiment, limits: Mapping[str, int]
) -> ExperimentRun:
    return ExperimentRun(
        run.options,
        spec=planned.spec,
        planned=planned.order_key,
        campaign_id=plan.campaign_id,
        batch_index=planned.batch_index,
        batch_count=len(plan.experiments),
        limit_cents=limits.get(planned.order_key),
        campaign_limit_cents=run.limit_cents,
    )


def _run_deployed(run: CampaignRun, plan: Plan, limits: Mapping[str, int]) -> dict[str, str]:
    """Start one top-level run per experiment and wait for all; returns the problems by order key."""
    group = campaign_group(plan.campaign_id, run.options.scope)
    if WAITS_TAG + group not in own_tags():
        require_blocks("wallet", "webhook")
    children: dict[str, FlowRun] = {}
    for planned in plan.experiments:
        children[planned.order_key] = start_child(
            "experiment",
            f"assay-{run.options.scope}-{planned.order_key}",
            _child(run, plan, planned, limits).parameters(),
            run_name=f"{plan.campaign_id} {planned.batch_index + 1}/{len(plan.experiments)}",
            groups=list({group, campaign_group(plan.campaign_id)}),
            is_done=partial(_has_results, run, plan, planned),
        )
    final = wait_for_children([c.id for c in children.values()], group=group, timeout=run.timeout)
    ended = {child.id: child for child in final}
    return {
        key: _problem_of(ended.get(child.id))
        for key, child in children.items()
        if child.id not in ended or not _completed(ended[child.id])
    }


def _has_results(run: CampaignRun, plan: Plan, planned: PlannedExperiment, _run: FlowRun) -> bool:
    """An earlier child's success counts only if this campaign's archive has its results."""
    order = _order_of(run, plan, planned)
    code = order.experiment_code if order else None
    return code is not None and kept_location(run.options.archive, plan.campaign_id, code) is not None


def _order_of(run: CampaignRun, plan: Plan, planned: PlannedExperiment) -> Order | None:
    """The order, or None if it cannot be read: it must not hide the other results, and its own run reports it.

    Raises:
        OrderNotVisible: the credentials lead to another service or organisation by now, which says nothing about it.
    """
    book = run.book(plan, planned)
    try:
        found = find_order(run.options.credentials, book, planned.spec)
    except (OrderMismatch, OrderOutcomeUnknown) as error:
        get_run_logger().warning("Experiment %d: %s", planned.batch_index + 1, error)
        return None
    if found is None:
        book.require_only_log()
    return found


def _completed(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_completed()


def _problem_of(run: FlowRun | None) -> str:
    if run is None or run.state is None:
        return "its run was deleted"
    return shortened(f"{run.state.name}: {run.state.message}", 600)


def _run_here(run: CampaignRun, plan: Plan, limits: Mapping[str, int]) -> dict[str, str]:
    """Without a deployment: run the children side by side in this process."""
    calls = [
        partial(experiment, **_child(run, plan, planned, limits).parameters()) for planned in plan.experiments
    ]
    results = call_children(calls)
    return {
        planned.order_key: shortened(str(result), 600)
        for planned, result in zip(plan.experiments, results, strict=True)
        if isinstance(result, BaseException)
    }


def _report(run: CampaignRun, plan: Plan, problems: dict[str, str]) -> State[CampaignReport]:
    """Collate the archived results; the archive, not a run's result, decides what exists."""
    lines = tuple(_line(run, plan, planned, problems.get(planned.order_key)) for planned in plan.experiments)
    table = collate_campaign(
        run.options.archive,
        plan.campaign_id,
        [e.experiment_code for e in lines if e.location and e.experiment_code],
    )
    page = report_campaign(run.options.archive, plan.campaign_id)
    report = CampaignReport(
        campaign_id=plan.campaign_id,
        experiments=lines,
        rows=len(table.rows),
        table=table.location,
        report=page.location,
    )
    designs = page.designs or summarize(table.rows)
    command = report_command(run.options.archive, plan.campaign_id)
    artifacts.show_campaign(
        plan,
        report,
        designs,
        decision=page.decision,
        opening=f"[open it in the S3 console]({page.link}), or run `{command}`"
        if page.link
        else f"`{command}`",
        images=page.images,
        notes=page.notes,
    )
    facts.campaign_archived(
        table,
        page.record,
        experiments=[e.location for e in lines if e.location],
        reviews=page.reviews,
        news=was_suspended(own_tags()),
    )
    measured = f"results of {sum(1 for e in lines if e.location)} of {many(len(lines), 'experiment')}"
    if table.rows:
        said = [outcome_line(designs), measured, *report.problems]
        message = "; ".join([*said, *([f"report: {command}"] if page.location else [])])
    else:
        message = "; ".join([f"{measured}, 0 rows", *report.problems])
    if not table.rows:
        set_labels(current_run.id, {ORDER_OVER_LABEL: "reported"})
        # Prefect can only raise an exception for a failed run.
        return Failed(message=shortened(message), data=CampaignFailed(message, report=report))
    return Completed(
        name="CompletedWithGaps" if report.problems else "Completed", message=shortened(message), data=report
    )


def _line(
    run: CampaignRun, plan: Plan, planned: PlannedExperiment, problem: str | None
) -> CampaignExperiment:
    order = _order_of(run, plan, planned)
    code = order.experiment_code if order else None
    location = kept_location(run.options.archive, plan.campaign_id, code) if code else None
    if location is None and problem is None:
        problem = "ended without results in the archive"
    return CampaignExperiment(
        order_key=planned.order_key,
        batch_index=planned.batch_index,
        experiment_id=order.experiment_id if order else None,
        experiment_code=code,
        location=location,
        problem=f"experiment {code or planned.batch_index + 1}: {problem}" if problem else None,
    )
