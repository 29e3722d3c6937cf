"""What the starts of campaigns and loops share: their origin, changed terms, and a cancellation at the same moment."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from prefect.client.orchestration import get_client

from prefect_assay.campaigns.approval.questions import Questions
from prefect_assay.campaigns.approval.terms import describe_account, terms_question
from prefect_assay.campaigns.runs.looks import Look
from prefect_assay.campaigns.runs.queries import read_run
from prefect_assay.campaigns.runs.states import is_canceled_by_person, is_canceling_by_person
from prefect_assay.campaigns.runs.variables import home_id
from prefect_assay.campaigns.setup import CampaignSetup, recorded_parameters
from prefect_assay.campaigns.suspension import failures_before, suspend_until_news, utc_now
from prefect_assay.errors import DecisionNeeded
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    Started,
    Stopped,
    Terms,
)
from prefect_assay.orders.next_action import APPROVE
from prefect_assay.tasks.current_run import can_suspend, this_run


def read_restart_fields(setup: CampaignSetup) -> dict[str, Any]:
    """Read from Prefect how the sweep starts another run in place of this deployed one, as fields of `Started`."""
    run = this_run()
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment(run.deployment_id)  # type: ignore[arg-type]  # it is deployed
        name = f"{client.read_flow(deployment.flow_id).name}/{deployment.name}"
        home = home_id(client)
    return {
        "deployment": name,
        "home": home,
        "parameters": recorded_parameters(run.parameters, setup.account),
    }


def start_again(started: Started, **changes: Any) -> Started:
    """Another record of a start, with changes."""
    return Started(**{**dict(started.model_copy(update=changes)), "id": uuid4().hex, "at": datetime.now(UTC)})


def decide_terms(log: CampaignLog, setup: CampaignSetup, recorded: Started, present: Terms) -> Started:
    """Go on under changed terms if a person has accepted them; else wait, and send nothing.

    Raises:
        DecisionNeeded: this run cannot suspend.
    """
    question = terms_question(log.name, recorded.terms, present)
    account = describe_account(recorded.terms)
    questions = Questions(log, setup.read_service_time(), setup.policy.approval_hours, account)
    if questions.decide(question, order_key=None, may_expire=False) != APPROVE:
        if not can_suspend():
            raise DecisionNeeded(question)
        suspend_until_news(
            f"{question.subject} Nothing is sent until you decide, or the account is as it was",
            look=Look.after_failure(utc_now(), failures_before() + 1),
            has_news=lambda: False,
        )
    # Whoever accepts the account has not accepted a higher amount.
    cents = min(recorded.terms.per_campaign_cents, present.per_campaign_cents)
    accepted = start_again(recorded, terms=present.model_copy(update={"per_campaign_cents": cents}))
    log.append(accepted)
    return accepted


def stop_with_run(log: CampaignLog, run_id: UUID) -> Stopped | None:
    """Stop what a run has just begun if a person has canceled the run meanwhile; who has stopped it, None if nobody.

    The command cancels such a run first, and then looks for what it has begun; so one of the two sees the other.
    """
    with get_client(sync_client=True) as client:
        run = read_run(client, run_id)
    if is_canceling_by_person(run) or is_canceled_by_person(run):
        log.stop("a person who gave no name", "Cancel of its run")
    return log.read().stopped


def describe_stop(what: str, stopped: Stopped) -> str:
    """Who has canceled a campaign, a loop or a round of one, and how it goes on."""
    started = "campaign" if what.startswith("campaign ") else "loop"
    return (
        f"{what} was canceled on {stopped.at:%Y-%m-%d} by {stopped.person} ({stopped.how}), and nothing more is ordered. "
        f"To go on, start the {started} by command with --reopen"
    )
