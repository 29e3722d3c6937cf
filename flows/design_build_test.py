"""`design_build_test`: propose, select, measure, learn, and the next round, until a stop rule ends it; see docs/loops.md.

All rounds are played in one run (`campaigns.loop`). The log of the loop in the archive says which designs each round
measures; one round is one campaign. So a repeat finds what was decided, and nothing is proposed or ordered twice.
"""

from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.states import Completed, Failed
from pydantic import Field

from prefect_assay.campaigns.flow_results import LoopReport
from prefect_assay.campaigns.lasting import recording_events
from prefect_assay.campaigns.loops.loop import LOOP_ID, Loop
from prefect_assay.campaigns.loops.play import play_loop
from prefect_assay.campaigns.loops.rules import Stop, StopRules
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.campaigns.suspension import RunContinues
from prefect_assay.campaigns.sweep.restart import CONTINUED
from prefect_assay.designs.options import (
    USUAL,
    USUAL_ROUNDS,
    LoopOptions,
    Usd,
    usd_to_cents,
)
from prefect_assay.errors import ApprovalExpired, ConfigurationError, InvalidSpec, short_messages
from prefect_assay.flows import form
from prefect_assay.service.assays import ASSAY_TYPES, Objective
from prefect_assay.service.bounds import Line
from prefect_assay.service.words import many
from prefect_assay.tasks.propose import check_designer


@flow(name="design-build-test", retries=0, retry_delay_seconds=0)
def design_build_test(
    source: Annotated[Line | None, form.AT_ONCE, form.title_field("Folder of design files")] = None,
    *,
    designer: Annotated[Line | None, form.AT_ONCE, form.title_field("Designer")] = None,
    loop_id: Annotated[str, Field(max_length=30, pattern=f"^{LOOP_ID}$"), form.title_field("Loop name")],
    assay: form.Assay,
    account: form.Account,
    budget_usd: Annotated[Usd | None, form.AT_ONCE, form.title_field("Budget of all rounds (USD)")] = None,
    rounds: Annotated[LoopOptions, form.title_field("Rounds")] = USUAL_ROUNDS,
    options: form.MoreOptions = USUAL,
) -> State[LoopReport]:
    """Run rounds until a stop rule ends the loop: propose designs, measure them as one campaign, learn, propose again.

    Start it by hand, on a schedule or by an event: what was decided and measured is found and not repeated.

    Args:
        source: a folder that the worker sees, or s3://bucket/prefix/; each FASTA file, table or
            workbook in it is a round, in the order of the names. With a designer these rounds come first.
        designer: what proposes the next round: an importable function (`module:function`), or a deployment (`flow/name`).
        loop_id: names the loop; part of every round's campaign name.
        assay: the type of assay, its target, and how often each design is measured, in every round.
        account: the service with your token, the spending policy, the archive, and how you pay.
        budget_usd: what all rounds together may cost without asking, in USD without VAT, within the policy's caps; the loop
            stops when it is spent. Empty: you are asked with the price of each round before it is ordered.
        rounds: how the designs of a round are chosen, and when the loop stops.
        options: how the designs are read, how long to wait, and how to pay.

    Returns:
        LoopReport: every round with its table and best value, what it cost, and why the loop stopped.

    Raises:
        InvalidSequences: the folder does not exist, or a designer's designs cannot be ordered.
        InvalidSpec: a goal does not fit the assay.
        ConfigurationError: the loop has no designs, or the score's direction is not known.
        DesignerFailed: the designer failed or proposed nothing.
        LoopFailed: a designer's round gave no measurement to go on with.
        ApprovalExpired: nobody has answered whether a round is ordered; nothing was.
    """
    setup = CampaignSetup(account, options)
    goals = {
        Objective.AFFINITY: rounds.goal_kd_nM and rounds.goal_kd_nM / 1e9,
        Objective.MELTING: rounds.goal_tm_C,
        Objective.EXPRESSION: rounds.goal_expression_nM,
    }
    rules = StopRules(
        objective=ASSAY_TYPES[assay.experiment_type].objective,
        max_rounds=rounds.max_rounds,
        goals={objective: goal for objective, goal in goals.items() if goal is not None},
        budget_cents=usd_to_cents(budget_usd),
        flat_rounds=rounds.stop_after_flat_rounds,
    )
    loop = Loop(
        loop_id=loop_id,
        source=source or None,
        designer=designer or None,
        assay=assay,
        credentials=account.credentials,
        archive=account.archive,
        reading=options.reading,
        options=rounds,
        placed=lambda campaign_id, key: setup.ledgers.open_order(campaign_id, key).read().placed,
    )
    _check_rules(loop, rules)
    try:
        with short_messages(), recording_events():
            report = play_loop(setup, loop, rules)
    except RunContinues as error:
        return Completed(name=CONTINUED, message=str(error))
    except ApprovalExpired as error:
        return Failed(name="ApprovalExpired", message=str(error), data=error)
    get_run_logger().info("Loop %s: %s; %s", loop_id, many(len(report.rounds), "round"), report.stop_message)
    name = "RunsElsewhere" if report.stop_reason == Stop.RUNS_ELSEWHERE else "Completed"
    return Completed(name=name, message=report.stop_message, data=report)


def _check_rules(loop: Loop, rules: StopRules) -> None:
    """Refuse, before anything is proposed, what cannot work."""
    if not loop.source and not loop.designer:
        raise ConfigurationError(
            "a loop needs designs: give `source`, a folder or an s3:// prefix, or `designer`; nothing was ordered"
        )
    if loop.designer:
        check_designer(loop.designer)
    if loop.options.selection is not None and (problem := loop.options.selection.find_direction_problem()):
        raise ConfigurationError(f"selection: {problem}; nothing was ordered")
    InvalidSpec.check(rules.misfits())
