"""Plays a campaign: each execution takes every open order as far as it goes now, then the run waits or ends.

Nothing is kept between two executions but what the archive holds: the plan, the ledger of each order, and the
campaign's log. One order's problem never hides or holds up the others.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger

from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.plans import campaign_address
from prefect_assay.campaigns.advance import OrderLook, advance
from prefect_assay.campaigns.approval.price import approve_orders
from prefect_assay.campaigns.approval.questions import Questions
from prefect_assay.campaigns.approval.requester import Requester, describe_approval, identify_requester
from prefect_assay.campaigns.approval.terms import describe_account, find_differences, is_another_ledger
from prefect_assay.campaigns.events import describe_subject, facts
from prefect_assay.campaigns.flow_results import CampaignReport
from prefect_assay.campaigns.orders import PlannedOrder
from prefect_assay.campaigns.progress_artifact import expected_day, show_progress
from prefect_assay.campaigns.report import report_campaign_end
from prefect_assay.campaigns.runs.looks import Look
from prefect_assay.campaigns.runs.tags import (
    CAMPAIGN_TAG,
    EXPERIMENT_TAG,
    ORDER_TAG,
    add_tags,
    name_run,
    own_expected_time,
)
from prefect_assay.campaigns.setup import CampaignSetup, recorded_parameters
from prefect_assay.campaigns.starts import (
    decide_terms,
    describe_stop,
    read_restart_fields,
    start_again,
    stop_with_run,
)
from prefect_assay.campaigns.suspension import PollPolicy, failures_before, suspend_until_news, utc_now
from prefect_assay.errors import (
    AssayError,
    ConfigurationError,
    DecisionNeeded,
    OutcomeUnknown,
    Overdue,
    shortened,
)
from prefect_assay.errors import Stopped as StoppedError
from prefect_assay.orders.billing import (
    CONFIRMABLE,
    Billing,
    BillingStage,
    is_hosted_invoice_paid,
    read_billing,
)
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    Looked,
    ShownExperiment,
    Started,
    StartedKind,
    Terms,
)
from prefect_assay.orders.next_action import Seen, Wait, next_action
from prefect_assay.orders.purchase import PurchaseSummary
from prefect_assay.orders.stages import (
    OVER,
    Stage,
    count_stages,
    stage_of,
)
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.http.dates import time_at
from prefect_assay.service.models.billing import CostEstimate
from prefect_assay.service.models.experiment import ExperimentSummary
from prefect_assay.service.transient_failures import is_temporary
from prefect_assay.tasks.current_run import can_suspend, this_run

_DAILY: Final = timedelta(days=1)
_PATIENT_LOOKS: Final = 3  # for data packages that cannot be read now
_PROBLEM_MAX: Final = 1_000  # a refused payment names every offer, and the page to pay by hand
_INVOICED: Final = Billing(stage=BillingStage.INVOICED)


@dataclass
class Campaign:
    """A campaign during one execution."""

    setup: CampaignSetup
    plan: Plan
    log: CampaignLog
    terms: Terms
    carries: bool = False  # this run is the campaign's own
    estimates: dict[str, CostEstimate] = field(default_factory=dict)
    purchase: PurchaseSummary | None = None  # as this execution has computed it
    failed_looks: int = 0  # in a row, of a process that polls
    retrieved: dict[str, ExperimentSummary] = field(
        default_factory=dict
    )  # rows whose results this process has archived

    @cached_property
    def orders(self) -> list[PlannedOrder]:
        """Its orders, in the order of the plan."""
        return [PlannedOrder(self.setup, self.plan, planned, self.log) for planned in self.plan.experiments]

    @property
    def account(self) -> str:
        """The account, for people."""
        return describe_account(self.terms)


@dataclass(frozen=True)
class CampaignLook:
    """Where the orders are after one execution, by order key, and what the service's list showed."""

    orders: Mapping[str, OrderLook]
    rows: Mapping[str, ExperimentSummary]  # by experiment id, as read before the orders advanced
    heard: frozenset[str]  # what persons had told the campaign

    @property
    def is_over(self) -> bool:
        """Return True if all orders are over."""
        return all(look.stage in OVER for look in self.orders.values())

    @property
    def problems(self) -> list[str]:
        """What keeps open orders where they are."""
        return [look.problem for look in self.orders.values() if look.problem and look.stage not in OVER]

    @property
    def has_failed(self) -> bool:
        """Return True if something could not be read or done that may pass."""
        return any(look.retriable for look in self.orders.values() if look.stage not in OVER)


def begin_campaign(
    setup: CampaignSetup,
    plan: Plan,
    *,
    unasked_cents: int = 0,
    carries: bool = False,
    asked_by: Requester | None = None,
    loop_id: str | None = None,
) -> Campaign:
    """Open the campaign's log, or go on under its recorded terms; the lower caps of recorded and present count.

    With `carries`, this run is the campaign's own, which the sweep starts again in its place; a loop's run carries the
    campaigns of its rounds itself, for whoever has started the loop, within its budget.

    Raises:
        CampaignStopped: a person has canceled it, and nobody has reopened it.
        DecisionNeeded: the account differs from the recorded terms, and this run cannot wait for an answer.
    """
    log = setup.log(plan.campaign_id)
    state = log.read()
    if state.stopped is not None:
        raise CampaignStopped(describe_stop(f"campaign {plan.campaign_id}", state.stopped))
    present = setup.terms(unasked_cents)
    run = this_run() if FlowRunContext.get() else None
    if state.terms is not None and state.over is not None and is_another_ledger(state.terms, present):
        changed = ", ".join(find_differences(state.terms, present))
        raise ConfigurationError(
            f"campaign {plan.campaign_id} was started and ended under another account ({changed}); nothing was ordered. "
            "To measure the same designs there, choose another campaign id"
        )
    is_new = state.started is None or state.over is not None
    if is_new:
        started = Started(what=StartedKind.CAMPAIGN, name=plan.campaign_id, terms=present)
        started = started.model_copy(
            update={"experiments": len(plan.experiments), **_describe_origin(setup, plan, carries=carries)}
        )
        asked_by = asked_by or identify_requester(setup)
        started = started.model_copy(
            update={
                "requester": asked_by.name,
                "requester_known_by": asked_by.known_by,
                "approved_by": describe_approval(loop_id) if unasked_cents else None,
            }
        )
        if state.over is not None:
            _reopen_unordered(setup, plan)
        state = log.start(started)
        if state.stopped is not None:  # canceled at this moment
            raise CampaignStopped(describe_stop(f"campaign {plan.campaign_id}", state.stopped))
    elif carries and can_suspend() and state.started is not None and state.started.deployment is None:
        # It was started in a notebook or with --here; from now on the sweep looks after it.
        origin = _describe_origin(setup, plan, carries=True)
        state = log.start(start_again(state.started, **origin))
    assert state.terms is not None  # noqa: S101 - it was just written or read
    campaign = Campaign(setup.under(state.terms), plan, log, state.terms, carries)
    if run is not None and carries:
        name_run(run, plan.campaign_id)
    if run is not None and can_suspend():
        _note_run(campaign, run, is_new=is_new)
    assert state.started is not None  # noqa: S101 - likewise
    if find_differences(state.terms, present):
        terms = decide_terms(log, campaign.setup, state.started, present).terms
        campaign = replace(campaign, setup=setup.under(terms), terms=terms)
    describe_subject(campaign_id=plan.campaign_id, account=campaign.account)
    return campaign


def _note_run(campaign: Campaign, run: FlowRun, *, is_new: bool) -> None:
    """Note that a run carries the campaign.

    Raises:
        CampaignStopped: a person has canceled the run before it had begun the campaign.
    """
    if campaign.carries:
        campaign.log.note_run(str(run.id), run.name)
    add_tags(run.id, [CAMPAIGN_TAG + campaign.plan.campaign_id])
    stopped = stop_with_run(campaign.log, run.id) if campaign.carries and is_new else None
    if stopped is not None:
        raise CampaignStopped(describe_stop(f"campaign {campaign.plan.campaign_id}", stopped))


class CampaignStopped(StoppedError):
    """A person has canceled the campaign: nothing more is ordered, accepted or paid."""


class CarriedByAnotherRun(Exception):
    """Another run was started for the same campaign, and carries it from now on."""


def _require_carrier(campaign: Campaign) -> None:
    """Raise CarriedByAnotherRun if a later run carries the campaign: two would wake for everything."""
    carrier = campaign.log.read().carrier
    if campaign.carries and carrier != str(this_run().id):
        name = campaign.log.state.runs[carrier].name if carrier else "none"
        raise CarriedByAnotherRun(f"run {name} was started later and carries the campaign")


def _describe_origin(setup: CampaignSetup, plan: Plan, *, carries: bool) -> dict[str, Any]:
    """How the sweep starts another run of the campaign; only the account where none is started."""
    if not (carries and can_suspend()):
        return {"parameters": recorded_parameters({}, setup.account)}
    origin = read_restart_fields(setup)
    # Its designs are in the archived plan; the file may hold others by then.
    return origin | {"parameters": origin["parameters"] | {"designs": campaign_address(plan.campaign_id)}}


def _reopen_unordered(setup: CampaignSetup, plan: Plan) -> None:
    """Let orders be tried again that were refused, or not approved, before they were sent."""
    for planned in plan.experiments:
        setup.ledgers.open_order(plan.campaign_id, planned.order_key).allow_retry(
            "a new start of the campaign"
        )


def open_questions(campaign: Campaign, now: datetime) -> Questions:
    """The campaign's questions; `now` is the service's clock."""
    return Questions(campaign.log, now, campaign.setup.policy.approval_hours, campaign.account)


def approve_price(campaign: Campaign) -> None:
    """Check the price of everything that is not ordered yet; a person is asked about what was not approved before.

    Raises:
        BudgetExceeded: it was not approved, and this run cannot ask; nothing was ordered.
        ApprovalRejected: a person has rejected the price; nothing was ordered.
        ApprovalExpired: nobody has answered in time; nothing was ordered.
    """
    estimates, campaign.purchase = approve_orders(campaign.orders, campaign.account)
    campaign.estimates |= estimates


def play_orders(campaign: Campaign) -> CampaignReport:
    """Advance all orders until they are over, then report. A deployed run suspends in between; any other polls.

    Raises:
        AssayError: it failed for certain before anything was ordered, or cannot go on without a deployment.
    """
    attempt = 0
    while True:
        look = look_at_orders(campaign)
        if look.is_over:
            stages = {key: one.stage for key, one in look.orders.items()}
            problems = {key: one.problem for key, one in look.orders.items() if one.problem}
            report = report_campaign_end(
                campaign.setup, campaign.plan, campaign.log, campaign.orders, stages, problems
            )
            return report.model_copy(update={"purchase": _purchase_of(campaign)})
        if can_suspend():
            _require_carrier(campaign)
            _wait_suspended(campaign, look)
        _refuse_endless_polling(campaign, look)
        campaign.failed_looks = campaign.failed_looks + 1 if look.has_failed else 0
        time.sleep(
            PollPolicy(longest_seconds=campaign.setup.options.waiting.poll_seconds).pause_seconds(attempt)
        )
        attempt += 1


def _purchase_of(campaign: Campaign) -> PurchaseSummary | None:
    """What this start has bought, as it was shown before the first order; else that there is nothing more to order."""
    state = campaign.log.read()
    is_of_this_start = state.offered and state.started and state.offered.at >= state.started.at
    return state.offered.purchase if state.offered and is_of_this_start else campaign.purchase


def look_at_orders(campaign: Campaign) -> CampaignLook:
    """Read the states of all experiments with one request, and advance each order as far as it goes now."""
    heard = campaign.log.read().heard  # what comes while this execution goes on is news at its end
    rows, now = _read_rows(campaign)
    questions = open_questions(campaign, now)

    def is_patient() -> bool:
        return (failures_before() if can_suspend() else campaign.failed_looks) < _PATIENT_LOOKS

    looks: dict[str, OrderLook] = {}
    errors: list[Exception] = []
    # Those that have to be searched for come last: the search takes a while.
    for order in sorted(campaign.orders, key=lambda order: bool(order.ledger.state.open_attempts)):
        ordered = order.ledger.state.ordered
        row = rows.get(ordered.experiment_id) if ordered else None
        is_retrieved = row is not None and _words_of(row) == _words_of(campaign.retrieved.get(order.key))
        seen = Seen(now, row=row, estimate=campaign.estimates.get(order.key), retrieved=is_retrieved)
        try:
            looks[order.key] = advance(order, seen, questions, is_patient=is_patient)
            if row is not None and looks[order.key].stage is Stage.PARTLY_MEASURED:
                campaign.retrieved[order.key] = row
        except Exception as error:  # noqa: BLE001 - one order's failure must not hold up the others
            errors.append(error)
            looks[order.key] = _look_after(order, error)
    if errors and not any(
        order.ledger.state.placed or order.ledger.state.delivered for order in campaign.orders
    ):
        lasting = [error for error in errors if not is_temporary(error)]
        if lasting or not can_suspend():
            raise (lasting or errors)[0]  # nothing is ordered, so the run may end
    _show_changes(campaign, looks, rows, now)
    return CampaignLook(looks, rows, heard)


def _look_after(order: PlannedOrder, error: Exception) -> OrderLook:
    """Where an order is that could not be advanced; anything may pass, such as a token that is replaced."""
    text = shortened(
        error.message if isinstance(error, AssayError) else f"{type(error).__name__}: {error}", _PROBLEM_MAX
    )
    unexpected = not isinstance(error, AssayError | OSError)
    get_run_logger().warning("%s: %s", order.name, text, exc_info=unexpected)
    # After a lost answer the next look reads what came of the request.
    may_pass = is_temporary(error) or type(error) is OutcomeUnknown
    lasting = error if isinstance(error, AssayError) and not may_pass else None
    return OrderLook(stage_of(order.ledger.state), f"{order.name}: {text}", retriable=True, error=lasting)


def _read_rows(campaign: Campaign) -> tuple[dict[str, ExperimentSummary], datetime]:
    """The experiments' rows in the service's list, by id, and the service's clock."""
    ids = [
        state.ordered.experiment_id
        for order in campaign.orders
        if (state := order.ledger.read()).ordered is not None
        and state.delivered is None
        and state.stopped is None
    ]
    with campaign.setup.credentials.get_client() as client:
        if ids:
            label = campaign.orders[0].name.rsplit(" ", 2)[
                0
            ]  # the names of all its experiments begin with it
            return client.experiments.list_states(ids, search=label), time_at(client)
        client.targets.list(limit=1)
        return {}, time_at(client)


def _show_changes(
    campaign: Campaign,
    looks: Mapping[str, OrderLook],
    rows: Mapping[str, ExperimentSummary],
    now: datetime,
) -> None:
    """Record and show what has changed since the last look."""
    known = campaign.log.read().shown
    changed: dict[str, ShownExperiment] = {}
    for order in campaign.orders:
        shown = _make_shown(order, looks[order.key], rows, known.get(order.key))
        if shown == known.get(order.key):
            continue
        before = known.get(order.key)
        changed[order.key] = shown
        row = rows.get(shown.experiment_id or "")
        if (
            row is not None
            and shown.stage == Stage.OVERDUE
            and (before is None or before.stage != Stage.OVERDUE)
        ):
            facts.report_overdue(order.key, row, campaign.setup.options.waiting.deadline_days)
    if changed:
        facts.report_statuses(known, changed)
        campaign.log.append(Looked(read_at=now, experiments=changed))
        show_progress(campaign.plan, campaign.orders, campaign.log, campaign.account, rows)


def _make_shown(
    order: PlannedOrder,
    look: OrderLook,
    rows: Mapping[str, ExperimentSummary],
    before: ShownExperiment | None,
) -> ShownExperiment:
    ordered = order.ledger.state.ordered
    row = rows.get(ordered.experiment_id) if ordered else None
    return ShownExperiment(
        experiment_id=ordered.experiment_id if ordered else None,
        experiment_code=row.code if row else before.experiment_code if before else None,
        stage=look.stage,
        status=str(row.status) if row else before.status if before else None,
        results_status=str(row.results_status) if row else before.results_status if before else None,
        problem=look.problem,
        expected=own_expected_time(ordered.experiment_id if ordered else None)
        or (before.expected if before else None),
    )


def _words_of(row: ExperimentSummary | None) -> tuple[str, str] | None:
    return None if row is None else (str(row.status), str(row.results_status))


def describe_look(campaign: Campaign, look: CampaignLook) -> str:
    """One line for people, such as `3 in the laboratory, 1 measured; next results about 2 Dec 2026`."""
    words = count_stages([one.stage for one in look.orders.values()])
    shown = campaign.log.state.shown
    in_laboratory = [
        key for key, one in look.orders.items() if one.stage is Stage.LABORATORY and key in shown
    ]
    days = [expected for key in in_laboratory if (expected := shown[key].expected) is not None]
    next_results = f"; next results about {expected_day(min(days), campaign.terms)}" if days else ""
    problems = f"; will look again, because of: {'; '.join(look.problems)}" if look.has_failed else ""
    return f"{words}{next_results}{problems}"


def _wait_suspended(campaign: Campaign, look: CampaignLook) -> None:
    """Suspend this run until there is news, an answer, or its next look; does not return."""
    tags = [CAMPAIGN_TAG + campaign.plan.campaign_id]
    for order in campaign.orders:
        ordered = order.ledger.state.ordered  # of this execution's own reading and writing
        if ordered is not None and look.orders[order.key].stage not in OVER:
            tags += [EXPERIMENT_TAG + ordered.experiment_id, ORDER_TAG + order.key]
    if not set(tags) <= set(this_run().tags):
        add_tags(this_run().id, tags)
    if look.has_failed:
        next_look = Look.after_failure(utc_now(), failures_before() + 1)
    elif all(one.stage in OVER or one.stage is Stage.OVERDUE for one in look.orders.values()):
        next_look = Look.after_success(utc_now(), _DAILY)
    else:
        next_look = Look.after_success(utc_now())
    suspend_until_news(
        describe_look(campaign, look), look=next_look, has_news=lambda: _has_news(campaign, look)
    )


def _has_news(campaign: Campaign, look: CampaignLook) -> bool:
    """Whether anything has changed that a wake-up before the suspension could have told.

    That is an answer or a cancellation in the log, a row of the list that leads to an action, an invoice that a person has
    paid, and a quote.
    """
    if campaign.log.read().heard - look.heard:  # a question that is asked anew loses its answer
        return True
    rows, now = _read_rows(campaign)
    with campaign.setup.credentials.get_client() as client:
        return any(
            _has_order_news(client, order, rows, look, now)
            for order in campaign.orders
            if look.orders[order.key].stage not in OVER
        )


def _has_order_news(
    client: AssayClient,
    order: PlannedOrder,
    rows: Mapping[str, ExperimentSummary],
    look: CampaignLook,
    now: datetime,
) -> bool:
    state, stage = order.ledger.read(), look.orders[order.key].stage
    # What has failed is tried again after a pause that grows.
    if state.ordered is None or stage is Stage.ASKS or look.orders[order.key].retriable:
        return False
    experiment_id = state.ordered.experiment_id
    row, before = rows.get(experiment_id), look.rows.get(experiment_id)
    if row is None or stage is Stage.ORDERED:
        return row is not None
    if stage is Stage.QUOTE:
        billing = read_billing(client, experiment_id).stage
        is_read_late = billing in CONFIRMABLE and state.is_confirmation_answered
        return billing is not BillingStage.QUOTE_PENDING and not is_read_late
    is_due = state.settled is None and state.invoiced is not None and state.payment is None
    if is_due and not order.limits().by_machine and is_hosted_invoice_paid(client, experiment_id):
        return True
    if _words_of(row) == _words_of(before):
        return False
    seen = Seen(now, row=row, checked_again=True, payment_problem=True, billing=_INVOICED)
    return not isinstance(next_action(state, seen, order.limits()), Wait)


def _refuse_endless_polling(campaign: Campaign, look: CampaignLook) -> None:
    """Raise where a run without a deployment would poll for something that only a person can change."""
    left = [one for one in look.orders.values() if one.stage not in OVER]
    questions = campaign.log.read().open_questions
    if left and questions and all(one.stage is Stage.ASKS for one in left):
        raise DecisionNeeded(next(iter(questions.values())).question)
    lasting = [one.error for one in left if one.error is not None]
    if lasting and len(lasting) == len(left):
        raise lasting[0]
    if left and all(one.stage is Stage.OVERDUE for one in left):
        raise Overdue(
            f"campaign {campaign.plan.campaign_id}: {count_stages([one.stage for one in look.orders.values()])}; run it again "
            "with a later deadline to go on waiting"
        )
