"""The command `loop` and its options; `start` does the work when the command runs."""

from typing import Annotated

import typer

from prefect_assay.cli.failures import refuse_ignored, report_errors
from prefect_assay.cli.model_options import takes_models
from prefect_assay.cli.options import MAIN, AccountName, AsJson, Here
from prefect_assay.designs.options import CampaignOptions, LoopOptions
from prefect_assay.service.models.spec import Assay

loop_app = typer.Typer()


@loop_app.command()
@takes_models()
def loop(
    loop_id: Annotated[str, typer.Argument(help="Names the loop: its rounds are measured once, ever.")],
    source: Annotated[
        str | None, typer.Argument(help="Folder or s3://bucket/prefix/ with design files; each is a round.")
    ] = None,
    *,
    account: AccountName = MAIN,
    designer: Annotated[
        str | None, typer.Option(help="A function, module:function, or a deployment, flow/name.")
    ] = None,
    assay: Assay,
    budget_usd: Annotated[
        str | None,
        typer.Option(metavar="USD", help="What all rounds may cost without asking, within the caps."),
    ] = None,
    rounds: LoopOptions,
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
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for a confirmation; needs --budget-usd.")
    ] = False,
    options: CampaignOptions,
    as_json: AsJson = False,
) -> None:
    """Start a loop, or go on with it: rounds of proposals and measurements until a rule stops it."""
    with report_errors(as_json=as_json):
        if cron is None:
            refuse_ignored({"--timezone": timezone}, "it belongs to --cron")
        from prefect_assay.cli.loops.start import LoopRequest, run_loop

        request = LoopRequest(
            loop_id=loop_id,
            source=source,
            account=account,
            designer=designer,
            assay=assay,
            budget_usd=budget_usd,
            rounds=rounds,
            options=options,
            cron=cron,
            timezone=timezone,
            reopen=reopen,
            yes=yes,
        )
        run_loop(request, here=here, as_json=as_json)
