"""The commands that start and follow campaigns; each imports its module when it runs."""

from typing import Annotated

import typer

from prefect_assay.cli.failures import reported
from prefect_assay.cli.options import (
    BLOCKS,
    ArchiveName,
    AsJson,
    CredentialsName,
    Here,
    KeepNative,
    Method,
    NameColumn,
    Payment,
    PerExperiment,
    PolicyName,
    Replicates,
    SequenceColumn,
    TargetName,
    Type,
    WalletName,
    WebhookName,
)

campaigns = typer.Typer()


@campaigns.command()
def run(
    designs: Annotated[str, typer.Argument(help="FASTA, CSV or TSV file, or an s3:// address.")],
    *,
    credentials: CredentialsName = BLOCKS,
    policy: PolicyName = BLOCKS,
    archive: ArchiveName = BLOCKS,
    experiment_type: Type = "affinity",
    target: TargetName = None,
    method: Method = None,
    replicates: Replicates = None,
    payment: Payment = "async_invoice",
    wallet: WalletName = None,
    webhook: WebhookName = None,
    campaign_id: Annotated[
        str | None,
        typer.Option(help="The same id is ordered once, ever. Default: a digest of designs and assay."),
    ] = None,
    per_experiment: PerExperiment = 96,
    deadline_days: Annotated[int, typer.Option(min=1, max=365, help="When to stop waiting.")] = 45,
    here: Here = False,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the campaign until it ends.")] = False,
    name_column: NameColumn = None,
    sequence_column: SequenceColumn = None,
    keep_native: KeepNative = False,
    as_json: AsJson = False,
) -> None:
    """Start a campaign: check the designs, then order, pay, wait, archive and collate."""
    with reported(as_json=as_json):
        from prefect_assay.cli.campaigns.run import CampaignRequest, run_campaign
        from prefect_assay.designs import Reading

        request = CampaignRequest(
            designs=designs,
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
            campaign_id=campaign_id,
            per_experiment=per_experiment,
            deadline_days=deadline_days,
            reading=Reading(name_column, sequence_column, keep_native),
        )
        run_campaign(request, here=here, wait=wait, as_json=as_json)


@campaigns.command()
def status(
    which: Annotated[
        str | None,
        typer.Argument(metavar="[CAMPAIGN, LOOP OR RUN]", help="Campaign id, loop id or flow run id."),
    ] = None,
    *,
    credentials: Annotated[
        str | None,
        typer.Option(help="Name of an AssayCredentials block: also ask the service for each status."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Campaigns and loops to list at most.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show loops, campaigns and experiments: the states of their runs and what they wait for."""
    with reported(as_json=as_json):
        from prefect_assay.cli.campaigns.status import show_status

        show_status(which, credentials=credentials, limit=limit, as_json=as_json)
