"""`design_build_test`: propose, select, measure, learn, and the next round, until a stop rule ends it; see docs/loop.md.

All rounds are played in one run (`campaigns.loop`). The log of the loop in the archive says which designs each round
measures; one round is one campaign. So a repeat finds what was decided, and nothing is proposed or ordered twice.
"""

from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.states import Completed, Failed
from pydantic import Field

from prefect_assay.campaigns.lasting import recording_events
from prefect_assay.campaigns.loop import play_loop
from prefect_assay.campaigns.restart import CONTINUED
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.campaigns.suspension import RunContinues
from prefect_assay.designs import Reading
from prefect_assay.errors import ApprovalExpired, ConfigurationError, InvalidSpec, short_messages
from prefect_assay.flows import form
from prefect_assay.looping import Loop, Stop, StopRules, objective_of
from prefect_assay.looping.loop import LOOP_ID, SETTLE_SECONDS
from prefect_assay.models.bounds import Cents, Count, Line, Number, Positive
from prefect_assay.models.report import LoopReport
from prefect_assay.models.selection import Objective, SelectionSettings
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.tasks.propose import check_designer
from prefect_assay.waiting import DEADLINE_DAYS


@flow(name="design-build-test", retries=0, retry_delay_seconds=0)
def design_build_test(
    source: Annotated[Line | None, form.titled("Folder of design files")] = None,
    *,
    designer: Annotated[Line | None, form.titled("Designer")] = None,
    loop_id: Annotated[str, Field(max_length=30, pattern=f"^{LOOP_ID}$"), form.titled("Loop id")],
    assay: form.Assay,
    designs_per_round: Annotated[int | None, Field(ge=1, le=10_000), form.titled("Designs per round")] = None,
    selection: Annotated[SelectionSettings | None, form.titled("Selection")] = None,
    budget_cents: Annotated[Cents | None, form.titled("Budget of all rounds (US cents)")] = None,
    max_rounds: Annotated[int, Field(ge=1, le=1000), form.titled("Most rounds")] = 10,
    goal_kd_nM: Annotated[Positive | None, form.titled("Goal: K_D (nM)")] = None,  # noqa: N803 - nM is the unit
    goal_tm_C: Annotated[Number | None, form.titled("Goal: T_m (°C)")] = None,  # noqa: N803 - as scientists spell it
    goal_expression_nM: Annotated[Positive | None, form.titled("Goal: expression (nM)")] = None,  # noqa: N803
    stop_after_flat_rounds: Annotated[
        Count | None, form.titled("Stop after rounds without improvement")
    ] = None,
    ask_each_round: Annotated[bool, form.titled("Ask before each round")] = False,
    wait_days: Annotated[float, Field(ge=0, le=365), form.titled("Wait for the next file (days)")] = 0,
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
    sequences_per_experiment: form.PerExperiment = 96,
    deadline_days: form.Deadline = DEADLINE_DAYS,
    settle_seconds: Annotated[
        float, Field(ge=0, le=3600), form.titled("A file is complete after (seconds)")
    ] = SETTLE_SECONDS,
    poll_seconds: form.Poll = 300.0,
) -> State[LoopReport]:
    """Run rounds until a stop rule ends the loop: propose designs, measure them as one campaign, learn, propose again.

    Start it by hand, on a schedule or by an event: what was decided and measured is found and not repeated.

    Args:
        source: a folder that the worker sees, or s3://bucket/prefix/; each FASTA file, table or
            workbook in it is a round, in the order of the names. With a designer these rounds come first.
        designer: what proposes the next round: an importable function (`module:function`), or a deployment (`flow/name`).
        loop_id: names the loop; part of every round's campaign id.
        assay: the type of assay, its target, and how often each design is measured, in every round.
        designs_per_round: most designs that a round measures. Empty: all of a file; of a designer one experiment's.
        selection: how the designs of a round are chosen from what was proposed. Empty: the first ones, in their order.
        budget_cents: what all rounds together may cost, in US cents without VAT.
        max_rounds: most rounds of the loop.
        goal_kd_nM: stop as soon as a round's best K_D is at or below this, in nM.
        goal_tm_C: stop as soon as a melting temperature is at or above this, in degrees Celsius.
        goal_expression_nM: stop as soon as a concentration is at or above this, in nM.
        stop_after_flat_rounds: stop after so many rounds in a row without an improvement.
        ask_each_round: ask a person before each round is ordered.
        wait_days: without a designer: how long to wait for the next file. 0: end when every file has been measured.
        credentials: the service's address and your API token.
        policy: caps, and permission for machine payments.
        archive: where results and the loop's log are archived.
        webhook: where the service delivers updates.
        payment_method: async_invoice: a person pays the hosted invoices; a machine rail pays with the wallet.
        wallet: for a machine rail: an X402Wallet for x402-exact, SharedPaymentTokens for mpp-spt.
        request_quote: order by quote, even if the estimates are complete.
        name_column: title of the tables' column of names. Empty: found by usual titles.
        sequence_column: title of the tables' column of sequences. Empty: found by usual titles.
        chain: order only this chain of each design: its number from 1, or its name in files of complexes; several as 1,2.
        target_sequence: residues of the target, which must not be ordered; beside those of the service's catalog.
        keep_native: also measure the native inputs in files of ProteinMPNN and LigandMPNN.
        keep_shared: order what is in doubt as it is, such as a chain that all designs share.
        as_protein: take residues that look like nucleotides as amino acids.
        sequences_per_experiment: most designs in one experiment.
        deadline_days: how long to wait for an experiment, counted from its order.
        settle_seconds: a file of a folder is complete when it has not changed for so long.
        poll_seconds: longest pause between two polls of a run that is not deployed.

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
    goals = {
        Objective.AFFINITY: goal_kd_nM and goal_kd_nM / 1e9,
        Objective.MELTING: goal_tm_C,
        Objective.EXPRESSION: goal_expression_nM,
    }
    rules = StopRules(
        objective=objective_of(assay.experiment_type),
        max_rounds=max_rounds,
        goals={objective: goal for objective, goal in goals.items() if goal is not None},
        budget_cents=budget_cents,
        flat_rounds=stop_after_flat_rounds,
    )
    loop = Loop(
        loop_id=loop_id,
        source=source or None,
        designer=designer or None,
        assay=assay,
        credentials=credentials,
        archive=archive,
        reading=Reading(
            name_column, sequence_column, keep_native, chain, target_sequence, keep_shared, as_protein
        ),
        designs_per_round=designs_per_round,
        max_rounds=max_rounds,
        selection=selection,
        per_experiment=sequences_per_experiment,
        settle_seconds=settle_seconds,
        wait_days=wait_days,
        placed=lambda campaign_id, key: setup.books.order(campaign_id, key).read().placed,
    )
    _check(loop, rules)
    try:
        with short_messages(), recording_events():
            report = play_loop(setup, loop, rules, ask_each_round=ask_each_round)
    except RunContinues as error:
        return Completed(name=CONTINUED, message=str(error))
    except ApprovalExpired as error:
        return Failed(name="ApprovalExpired", message=str(error), data=error)
    get_run_logger().info("Loop %s: %d rounds; %s", loop_id, len(report.rounds), report.stopped)
    name = "RunsElsewhere" if report.stop == Stop.RUNS_ELSEWHERE else "Completed"
    return Completed(name=name, message=report.stopped, data=report)


def _check(loop: Loop, rules: StopRules) -> None:
    """Refuse, before anything is proposed, what cannot work."""
    if not loop.source and not loop.designer:
        raise ConfigurationError(
            "a loop needs designs: give `source`, a folder or an s3:// prefix, or `designer`; nothing was ordered"
        )
    if loop.designer:
        check_designer(loop.designer)
    if loop.selection is not None and (problem := loop.selection.find_direction_problem()):
        raise ConfigurationError(f"selection: {problem}; nothing was ordered")
    InvalidSpec.check(rules.misfits())
