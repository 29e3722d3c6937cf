"""The commands that start and follow campaigns; each imports its module when it runs."""

from typing import Annotated

import typer

from prefect_assay.cli.failures import refuse_ignored, report_errors
from prefect_assay.cli.model_options import takes_models
from prefect_assay.cli.options import MAIN, AccountName, AsJson, Here, Yes
from prefect_assay.designs.options import CampaignOptions, ReadingOptions, SpendingOptions
from prefect_assay.service.bounds import COUNT_MAX
from prefect_assay.service.models.spec import Assay

campaigns = typer.Typer()

Which = Annotated[
    str, typer.Argument(metavar="CAMPAIGN, LOOP OR RUN", help="Campaign id, loop id or flow run id.")
]
By = Annotated[str | None, typer.Option(help="Who decides; recorded. Default: this machine's user.")]
InArchive = Annotated[
    str | None,
    typer.Option("--archive", help="Look into this archive only: an archive block, or a folder."),
]
QuestionId = Annotated[
    str | None, typer.Option("--question", metavar="ID", help="Answer this question, as status names it.")
]
Revision = Annotated[
    int | None,
    typer.Option(min=1, max=COUNT_MAX, help="Answer only this revision, as it was shown; with --yes needed."),
]
CampaignName = Annotated[
    str | None,
    typer.Option(
        "--campaign-id", help="The same name is ordered once, ever. Default: a digest of designs and assay."
    ),
]


@campaigns.command()
@takes_models()
def run(
    designs: Annotated[str, typer.Argument(help="FASTA file, table or workbook, or an s3:// address.")],
    *,
    account: AccountName = MAIN,
    assay: Assay,
    max_usd: Annotated[
        str | None,
        typer.Option(metavar="USD", help="What the campaign may cost without asking, within the caps."),
    ] = None,
    campaign_id: CampaignName = None,
    reopen: Annotated[
        bool, typer.Option("--reopen", help="Go on with a campaign that was canceled or has ended.")
    ] = False,
    here: Here = False,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the campaign until it is over.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for a confirmation; needs --max-usd.")
    ] = False,
    options: CampaignOptions,
    as_json: AsJson = False,
) -> None:
    """Start a campaign: check the designs, then order, pay, wait, archive and collate."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.campaigns.run import CampaignRequest, run_campaign

        request = CampaignRequest(
            designs=designs,
            account=account,
            assay=assay,
            options=options,
            max_usd=max_usd,
            campaign_id=campaign_id,
            reopen=reopen,
            yes=yes,
        )
        run_campaign(request, here=here, wait=wait, as_json=as_json)


@campaigns.command()
def status(
    which: Annotated[
        str | None,
        typer.Argument(metavar="[CAMPAIGN, LOOP OR RUN]", help="Campaign id, loop id or flow run id."),
    ] = None,
    *,
    archive: Annotated[
        str | None,
        typer.Option(
            help="Look into this archive only: a folder, or an archive block. Default: all saved blocks."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=200, help="List so many of those that are over, by their newest runs.")
    ] = 10,
    every: Annotated[bool, typer.Option("--all", help="List everything that the archives have.")] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Show it again and again until all has ended; Ctrl-C ends the view only."
        ),
    ] = False,
    problems: Annotated[
        bool, typer.Option("--problems", help="Show what needs an operator, each with the next step.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show campaigns and loops, newest first: stages, money, questions, runs."""
    with report_errors(as_json=as_json):
        if as_json:
            refuse_ignored({"--watch": watch}, "--json prints once")
        if problems:
            unread = {"CAMPAIGN, LOOP OR RUN": which, "--watch": watch}
            unread |= {"--archive": archive, "--all": every}
            refuse_ignored(unread, "--problems shows those of all campaigns, once")
            from prefect_assay.cli.campaigns.problems import show_problems

            show_problems(as_json=as_json)
            return
        from prefect_assay.cli.campaigns.status import show_status

        if which is not None:
            refuse_ignored({"--all": every}, "one campaign or loop is shown")
        show_status(
            which,
            archive=archive,
            limit=limit,
            every=every,
            watch=watch,
            as_json=as_json,
        )


@campaigns.command()
@takes_models()
def estimate(
    designs: Annotated[str, typer.Argument(help="FASTA file, table or workbook, or an s3:// address.")],
    *,
    account: AccountName = MAIN,
    assay: Assay,
    reading: ReadingOptions,
    spending: SpendingOptions,
    campaign_id: CampaignName = None,
    as_json: AsJson = False,
) -> None:
    """Check designs and show what a campaign would buy and cost; nothing is ordered."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.campaigns.estimate import estimate_campaign

        options = CampaignOptions(reading=reading, spending=spending)
        estimate_campaign(designs, assay, options, account=account, campaign_id=campaign_id, as_json=as_json)


@campaigns.command()
def approve(
    which: Which,
    *,
    question: QuestionId = None,
    revision: Revision = None,
    usd: Annotated[
        str | None, typer.Option(metavar="USD", help="The exact amount that was shown; with --yes needed.")
    ] = None,
    decision: Annotated[
        str, typer.Option(help="Another decision of the question: paid, pay_again, an experiment's id.")
    ] = "approve",
    by: By = None,
    archive: InArchive = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Answer a campaign's open question: shows its figures, and records exactly that."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.campaigns.answer import AnswerRequest, show_and_answer

        request = AnswerRequest(
            decision=decision,
            question=question,
            revision=revision,
            amount=usd,
            by=by,
            archive=archive,
            yes=yes,
        )
        show_and_answer(which, request, as_json=as_json)


@campaigns.command()
def reject(
    which: Which,
    *,
    question: QuestionId = None,
    revision: Revision = None,
    by: By = None,
    archive: InArchive = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Decline what a campaign asks."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.campaigns.answer import AnswerRequest, show_and_answer

        request = AnswerRequest(
            decision="reject",
            question=question,
            revision=revision,
            amount=None,
            by=by,
            archive=archive,
            yes=yes,
        )
        show_and_answer(which, request, as_json=as_json)


@campaigns.command()
def cancel(
    which: Which, *, by: By = None, archive: InArchive = None, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Cancel a campaign or a loop: withdraws open quotes, and says what the laboratory still does and bills."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.campaigns.cancel import cancel_campaign

        cancel_campaign(which, archive=archive, by=by, yes=yes, as_json=as_json)


@campaigns.command()
def adopt(*, by: By = None, archive: InArchive = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Look after the open campaigns of a Prefect server that is lost; the next sweep starts their runs here."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.campaigns.adopt import adopt_campaigns

        adopt_campaigns(archive, by=by, yes=yes, as_json=as_json)
