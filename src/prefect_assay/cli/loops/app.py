"""The command `loop` and its options; `start` does the work when the command runs."""

from typing import Annotated, Final

import typer

from prefect_assay.cli.failures import refuse_direction, refuse_ignored, reported
from prefect_assay.cli.options import (
    BLOCKS,
    ArchiveName,
    AsJson,
    AsProtein,
    Chain,
    CredentialsName,
    Here,
    HigherIsBetter,
    KeepNative,
    KeepShared,
    Method,
    NameColumn,
    Payment,
    PerExperiment,
    PolicyName,
    PolicyWord,
    Replicates,
    SequenceColumn,
    TargetName,
    TargetSequence,
    Type,
    WalletName,
    WebhookName,
    Yes,
    number,
)
from prefect_assay.models.bounds import CENTS_MAX, COUNT_MAX, NUMBER_MAX

loop_app = typer.Typer()
_ROUNDS_MAX: Final = 1000  # the flow's own limit


@loop_app.command()
def loop(
    loop_id: Annotated[str, typer.Argument(help="Names the loop: its rounds are measured once, ever.")],
    source: Annotated[
        str | None, typer.Argument(help="Folder or s3://bucket/prefix/ with design files; each is a round.")
    ] = None,
    *,
    credentials: CredentialsName = BLOCKS,
    policy: PolicyName = BLOCKS,
    archive: ArchiveName = BLOCKS,
    designer: Annotated[
        str | None, typer.Option(help="A function, module:function, or a deployment, flow/name.")
    ] = None,
    designs: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Designs that a round measures at most.")
    ] = None,
    select: Annotated[
        PolicyWord | None, typer.Option(help="How they are chosen. Default: the first ones proposed.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=NUMBER_MAX, help="With --select: its seed. Default: 0.")
    ] = None,
    score_column: Annotated[
        str | None, typer.Option(help="With --select: the designer's column of scores.")
    ] = None,
    higher_is_better: HigherIsBetter = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=_ROUNDS_MAX,
            help="Rounds at most, over all starts of the loop. Default: 10; of files on a schedule 1000.",
        ),
    ] = None,
    budget_cents: Annotated[
        int | None,
        typer.Option(min=0, max=CENTS_MAX, help="What all rounds may cost, in US cents without VAT."),
    ] = None,
    goal_kd_nm: Annotated[float | None, number("Stop at a K_D of so many nM or less.", 0)] = None,
    goal_tm_c: Annotated[
        float | None, number("Stop at a melting temperature of so many degrees C or more.")
    ] = None,
    goal_expression_nm: Annotated[
        float | None, number("Stop at a concentration of so many nM or more.", 0)
    ] = None,
    flat_rounds: Annotated[
        int | None,
        typer.Option(min=1, max=COUNT_MAX, help="Stop after so many rounds without an improvement."),
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask a person before each round is ordered.")] = False,
    wait_days: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=365,
            help="Without a designer: how long to wait for the next file. Default: 30; with --cron 0.",
        ),
    ] = None,
    experiment_type: Type = "affinity",
    target: TargetName = None,
    method: Method = None,
    replicates: Replicates = None,
    payment: Payment = "async_invoice",
    wallet: WalletName = None,
    webhook: WebhookName = None,
    per_experiment: PerExperiment = 96,
    deadline_days: Annotated[
        int, typer.Option(min=1, max=365, help="When to stop waiting for results.")
    ] = 45,
    cron: Annotated[
        str | None,
        typer.Option(
            help="Also start the loop on a schedule, such as '0 6 * * 1-5': it takes the designs that have come."
        ),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            help="With --cron: its time zone, such as Europe/Berlin. Default: this machine's, else UTC."
        ),
    ] = None,
    reopen: Annotated[
        bool, typer.Option("--reopen", help="Go on with a loop, or a round of it, that was canceled.")
    ] = False,
    here: Here = False,
    name_column: NameColumn = None,
    sequence_column: SequenceColumn = None,
    keep_native: KeepNative = False,
    chain: Chain = None,
    target_sequence: TargetSequence = None,
    keep_shared: KeepShared = False,
    as_protein: AsProtein = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Start a loop, or go on with it: rounds of proposals and measurements until a rule stops it."""
    with reported(as_json=as_json):
        if select is None:
            refuse_ignored({"--seed": seed, "--score-column": score_column}, "they belong to --select")
        if score_column is None:
            refuse_direction(higher_is_better, "it belongs to --score-column")
        if cron is None:
            refuse_ignored({"--timezone": timezone}, "it belongs to --cron")
        if designer is not None:
            refuse_ignored({"--wait-days": wait_days}, "it belongs to loops without --designer")
        from prefect_assay.cli.loops.start import LoopRequest, run_loop
        from prefect_assay.models.options import ReadingOptions

        request = LoopRequest(
            loop_id=loop_id,
            source=source,
            credentials=credentials,
            policy=policy,
            archive=archive,
            wallet=wallet,
            webhook=webhook,
            experiment_type=experiment_type,
            target=target,
            method=method,
            replicates=replicates,
            payment=payment,
            per_experiment=per_experiment,
            deadline_days=deadline_days,
            reading=ReadingOptions(
                name_column=name_column,
                sequence_column=sequence_column,
                keep_native=keep_native,
                chain=chain,
                target_sequence=target_sequence,
                keep_shared=keep_shared,
                as_protein=as_protein,
            ),
            select=select,
            seed=seed or 0,
            score_column=score_column,
            higher_is_better=higher_is_better,
            cron=cron,
            timezone=timezone,
            reopen=reopen,
            yes=yes,
            own={
                "designer": designer,
                "designs_per_round": designs,
                # A schedule of files ends with `cancel`, and each of its runs when the files are measured. A designer
                # never runs out of designs.
                "max_rounds": rounds or (_ROUNDS_MAX if cron and not designer else 10),
                "budget_cents": budget_cents,
                "goal_kd_nM": goal_kd_nm,
                "goal_tm_C": goal_tm_c,
                "goal_expression_nM": goal_expression_nm,
                "stop_after_flat_rounds": flat_rounds,
                "ask_each_round": ask,
                "wait_days": (0 if cron else 30) if wait_days is None else wait_days,
            },
        )
        run_loop(request, here=here, as_json=as_json)
