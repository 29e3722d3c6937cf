"""The commands with their options. Everything that takes time to import is imported when its command runs.

`prefect-assay --help` must not pay for Prefect, httpx or boto3; so the choices stand here as plain words, and a
test compares them with the vocabulary.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from prefect_assay.cli.failures import reported

TypeWord = Literal[
    "affinity",
    "screening",
    "thermostability",
    "fluorescence",
    "expression",
    "epitope_binning",
    "enzyme_activity",
]
MethodWord = Literal["bli", "spr"]
PaymentWord = Literal["async_invoice", "x402-exact", "mpp-spt"]
ClockWord = Literal["manual", "scaled", "auto"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Automations = Annotated[
    bool, typer.Option(help="Register the automations that take crashed runs up; the sweep does it as well.")
]

app = typer.Typer(
    help="Measure protein designs: order once, pay once, wait without a process, archive.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
archive_app = typer.Typer(help="Work with archives.", no_args_is_help=True)
sequences_app = typer.Typer(help="Work with design files.", no_args_is_help=True)
app.add_typer(archive_app, name="archive")
app.add_typer(sequences_app, name="sequences")


@app.command()
def demo(
    *,
    folder: Annotated[
        Path | None, typer.Option(help="Where the archive goes. Default: assay-demo/<number> here.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running for a look around; Ctrl-C ends it.")
    ] = False,
) -> None:
    """Run one campaign end to end on this machine: no account, no network, real measured data."""
    with reported():
        from prefect_assay.cli.demo import run_demo

        run_demo(folder, keep=keep)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(
    context: typer.Context,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8000,
    database: Annotated[
        Path | None, typer.Option(help="SQLite file; without it the lab forgets everything at its end.")
    ] = None,
    clock: Annotated[
        ClockWord, typer.Option(help="How lab days pass: when moved, scaled to real time, or on their own.")
    ] = "manual",
    seconds_per_day: Annotated[
        float, typer.Option(help="Real seconds that a lab day takes on the scaled clock.")
    ] = 1.0,
    allow_http_webhooks: Annotated[
        bool, typer.Option(help="Let webhook addresses be plain http on loopback.")
    ] = False,
) -> None:
    """Run the local stand-in of the laboratory service; further options go to `python -m prefect_assay.lab`."""
    with reported():
        from prefect_assay.cli.lab_command import run_lab

        run_lab(
            host=host,
            port=port,
            database=database,
            clock=clock,
            seconds_per_day=seconds_per_day,
            allow_http_webhooks=allow_http_webhooks,
            options=context.args,
        )


@app.command()
def receiver(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8100,
    prefix: Annotated[
        str | None, typer.Option(help="Path in front of the order key. Default: /assay.")
    ] = None,
    keys_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the signing keys, one per line. Default: PREFECT_ASSAY_RECEIVER_SIGNING_KEYS."
        ),
    ] = None,
) -> None:
    """Run the webhook receiver that wakes waiting runs. Its settings: PREFECT_ASSAY_RECEIVER_*."""
    with reported():
        from prefect_assay.cli.receiver import run_receiver

        run_receiver(host=host, port=port, prefix=prefix, keys_file=keys_file)


@app.command()
def register(*, automations: Automations = True, as_json: AsJson = False) -> None:
    """Register block types, concurrency limits and the automations for crashed runs; safe to repeat."""
    with reported(as_json=as_json):
        from prefect_assay.cli.setup import run_register

        run_register(with_automations=automations, as_json=as_json)


@app.command()
def deploy(
    *,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the flows from this process instead of a work pool.")
    ] = False,
    sweep_seconds: Annotated[
        float, typer.Option(min=1, help="With --serve: seconds between two sweeps.")
    ] = 300.0,
    check: Annotated[
        bool, typer.Option("--check", help="Only say what would be created or updated.")
    ] = False,
    automations: Automations = True,
    as_json: AsJson = False,
) -> None:
    """Deploy the flows to the work pool `assay`, or serve them from this process; safe to repeat."""
    with reported(as_json=as_json):
        from prefect_assay.cli.setup import run_deploy, run_serve

        if serve:
            run_serve(sweep_seconds, with_automations=automations)
        else:
            run_deploy(check=check, with_automations=automations, as_json=as_json)


@app.command()
def run(
    designs: Annotated[str, typer.Argument(help="FASTA, CSV or TSV file, or an s3:// address.")],
    *,
    credentials: Annotated[str, typer.Option(help="Name of the AssayCredentials block.")],
    policy: Annotated[str, typer.Option(help="Name of the SpendingPolicy block.")],
    archive: Annotated[
        str,
        typer.Option(help="Archive block: a name, or <slug>/<name> as in assay-s3-archive/main."),
    ],
    experiment_type: Annotated[TypeWord, typer.Option("--type", help="What is measured.")] = "affinity",
    target: Annotated[
        str | None, typer.Option(help="Catalog target: id, catalog number or exact name.")
    ] = None,
    method: Annotated[
        MethodWord | None, typer.Option(help="For affinity and screening. Default: bli.")
    ] = None,
    replicates: Annotated[
        int | None, typer.Option(min=1, max=5, help="Replicates per design. Default: the service's 3.")
    ] = None,
    payment: Annotated[
        PaymentWord, typer.Option(help="How the invoice is paid: by a person, or by a machine rail.")
    ] = "async_invoice",
    wallet: Annotated[
        str | None,
        typer.Option(help="Name of the X402Wallet block, or for mpp-spt of the SharedPaymentTokens block."),
    ] = None,
    webhook: Annotated[str | None, typer.Option(help="Name of the WebhookEndpoint block.")] = None,
    campaign_id: Annotated[
        str | None,
        typer.Option(help="The same id is ordered once, ever. Default: a digest of designs and assay."),
    ] = None,
    per_experiment: Annotated[
        int, typer.Option(min=1, max=384, help="Designs that one experiment takes at most.")
    ] = 96,
    deadline_days: Annotated[int, typer.Option(min=1, max=365, help="When to stop waiting.")] = 45,
    here: Annotated[
        bool, typer.Option("--here", help="Run in this process, without a deployment, and poll.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the campaign until it ends.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a campaign: check the designs, then order, pay, wait, archive and collate."""
    with reported(as_json=as_json):
        from prefect_assay.cli.run import Request, run_campaign

        request = Request(
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
        )
        run_campaign(request, here=here, wait=wait, as_json=as_json)


@app.command()
def status(
    which: Annotated[
        str | None, typer.Argument(metavar="[CAMPAIGN OR RUN]", help="Campaign id or flow run id.")
    ] = None,
    *,
    credentials: Annotated[
        str | None,
        typer.Option(help="Name of an AssayCredentials block: also ask the service for each status."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Campaigns to list at most.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show campaigns and experiments: how their runs stand and what they wait for."""
    with reported(as_json=as_json):
        from prefect_assay.cli.status import show_status

        show_status(which, credentials=credentials, limit=limit, as_json=as_json)


@app.command()
def spending(
    *,
    policy: Annotated[
        str | None,
        typer.Option(help="Name of a SpendingPolicy block: compare with its rolling cap, over its window."),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=3660, help="Window of the sum. Default: the policy's, else 30 days."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every machine payment in the ledger, and what counts against the rolling cap."""
    with reported(as_json=as_json):
        from prefect_assay.cli.spending import show_spending

        show_spending(policy, days=days, as_json=as_json)


@archive_app.command("verify")
def archive_verify(
    path: Annotated[
        Path | None, typer.Argument(help="An archive in a folder, or one campaign or experiment of it.")
    ] = None,
    *,
    archive: Annotated[
        str | None, typer.Option(help="Archive block instead: a name, or <slug>/<name>.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read every archived file again and compare it with its manifest; exit code 1 on damage."""
    with reported(as_json=as_json):
        from prefect_assay.cli.archive import verify_archive

        verify_archive(path, archive, as_json=as_json)


@sequences_app.command("check")
def sequences_check(
    file: Annotated[str, typer.Argument(help="FASTA, CSV or TSV file, or an s3:// address.")],
    *,
    experiment_type: Annotated[
        TypeWord, typer.Option("--type", help="The assay whose rules are applied.")
    ] = "affinity",
    per_experiment: Annotated[
        int, typer.Option(min=1, max=384, help="Designs that one experiment takes at most.")
    ] = 96,
    as_json: AsJson = False,
) -> None:
    """Check a design file as a campaign would, without ordering anything; exit code 1 when it cannot be ordered."""
    with reported(as_json=as_json):
        from prefect_assay.cli.sequences import check_sequences

        check_sequences(file, experiment_type, per_experiment, as_json=as_json)


@app.command()
def drift(
    document: Annotated[
        Path | None, typer.Argument(help="A saved openapi.json, instead of asking the service.")
    ] = None,
    *,
    base_url: Annotated[
        str | None, typer.Option(help="Address of the service. Default: PREFECT_ASSAY_BASE_URL.")
    ] = None,
    credentials: Annotated[
        str | None, typer.Option(help="Name of an AssayCredentials block with address, token and words.")
    ] = None,
    provider_word: Annotated[
        str, typer.Option(help="How the deployment spells the payment provider.")
    ] = "provider",
    service_word: Annotated[str, typer.Option(help="How the deployment spells the service.")] = "Service",
    as_json: AsJson = False,
) -> None:
    """Compare the service's openapi.json with what the client knows; exit code 1 when something would break."""
    with reported(as_json=as_json):
        from prefect_assay.cli.drift import show_drift
        from prefect_assay.cli.wire_words import checked_words

        words = checked_words(provider_word, service_word)
        show_drift(document, base_url=base_url, credentials=credentials, words=words, as_json=as_json)


def main() -> None:
    """Entry point of `prefect-assay`."""
    app()
