"""The commands that keep a process running or set something up; each imports its module when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from prefect_assay.cli.failures import refuse_ignored, report_errors
from prefect_assay.cli.options import MAIN, AsJson

AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A further host name under which browsers and programs reach it; repeatable. Default: those of the loopback.",
    ),
]
Password = Annotated[
    bool,
    typer.Option(
        "--password",
        help="Protect the Prefect API with a password, from PREFECT_ASSAY_SERVER_PASSWORD, a prompt or the standard input.",
    ),
]

Automations = Annotated[
    bool,
    typer.Option(
        help="Register the automation that cancels the campaign of a canceled run; the sweep also does so."
    ),
]
Chosen = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=TARGET",
        help="An automation on events, such as notify-status=slack-webhook/team; repeatable.",
    ),
]

services = typer.Typer()


@services.command()
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
    with report_errors():
        from prefect_assay.cli.demo import run_demo

        run_demo(folder, keep=keep)


@services.command()
def up(
    *,
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65_535,
            help="Port of the Prefect server, where no Prefect API is configured. Default: 4200.",
        ),
    ] = None,
    receiver_host: Annotated[str, typer.Option(help="Address that the receiver listens on.")] = "127.0.0.1",
    receiver_port: Annotated[
        int, typer.Option(min=1, max=65_535, help="Port that the receiver listens on.")
    ] = 8100,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Flow runs at once. Default: what half of the memory takes, at most four per core.",
        ),
    ] = None,
    allow_host: AllowHost = None,
    password: Password = False,
) -> None:
    """Run everything that campaigns need on this machine: Prefect server, worker, receiver, sweep; one log."""
    with report_errors():
        from prefect_assay.cli.services.up import run_up

        run_up(
            port=port,
            receiver_host=receiver_host,
            receiver_port=receiver_port,
            worker_limit=limit,
            allow_hosts=allow_host or (),
            ask_password=password,
        )


@services.command()
def init(
    *,
    name: Annotated[str, typer.Option(help="Name of the account.")] = MAIN,
    base_url: Annotated[str | None, typer.Option(help="Address of the service.")] = None,
    provider_word: Annotated[
        str | None, typer.Option(help="How the service spells the payment provider (docs/reference.md).")
    ] = None,
    service_word: Annotated[
        str | None, typer.Option(help="How it spells itself in header names (docs/reference.md).")
    ] = None,
    per_experiment: Annotated[
        str | None,
        typer.Option(metavar="USD", help="Cap: an experiment that costs more waits for a person's approval."),
    ] = None,
    per_campaign: Annotated[
        str | None,
        typer.Option(metavar="USD", help="Cap: a campaign that costs more waits for a person's approval."),
    ] = None,
    archive: Annotated[
        str | None, typer.Option(help="Where results are kept: a folder, or s3://bucket/prefix.")
    ] = None,
    s3_endpoint: Annotated[
        str | None, typer.Option(help="Address of an S3 server other than AWS; `none` returns to AWS.")
    ] = None,
    receiver: Annotated[
        str | None, typer.Option(help="Public https address that leads to the receiver, or none.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(help="Whose account this is; recorded with what it orders.")
    ] = None,
    purchase_order: Annotated[
        str | None, typer.Option(help="Purchase order number, for your finance; `none` removes it.")
    ] = None,
    cost_center: Annotated[
        str | None, typer.Option(help="Cost center, for your finance; `none` removes it.")
    ] = None,
    forms: Annotated[
        bool | None,
        typer.Option(help="Fill the account into the deployments' forms. Default: ask at a terminal."),
    ] = None,
) -> None:
    """Ask for service, token, budget and archive, and save them as an account; what is not given stays as saved.

    The token is not an option: it comes from PREFECT_ASSAY_TOKEN, a prompt or the standard input.
    """
    with report_errors():
        from prefect_assay.cli.services.init import Answers, run_init

        run_init(
            Answers(
                name=name,
                base_url=base_url,
                provider_word=provider_word,
                service_word=service_word,
                per_experiment=per_experiment,
                per_campaign=per_campaign,
                archive=archive,
                s3_endpoint=s3_endpoint,
                receiver=receiver,
                owner=owner,
                purchase_order=purchase_order,
                cost_center=cost_center,
                forms=forms,
            )
        )


@services.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(
    context: typer.Context,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.")
    ] = 8000,
    database: Annotated[
        Path | None, typer.Option(help="SQLite file; without it nothing survives the lab's end.")
    ] = None,
    clock: Annotated[
        str,
        typer.Option(
            help="How lab days pass: manual (by command), auto, or scaled:SECONDS_PER_DAY of real time."
        ),
    ] = "manual",
    landscape: Annotated[
        str | None,
        typer.Option(
            help="Table to measure designs from, or gb1, which is bundled (lab/docs/lab-measurements.md)."
        ),
    ] = None,
    allow_http_webhooks: Annotated[
        bool, typer.Option(help="Let webhook addresses be plain http on loopback.")
    ] = False,
    save_blocks: Annotated[
        bool,
        typer.Option(
            "--save-blocks", help="Save an account named lab: token, caps, archive, wallet, webhook."
        ),
    ] = False,
    receiver: Annotated[
        str | None,
        typer.Option(help="With --save-blocks: address of the receiver. Default: where `up` runs it."),
    ] = None,
) -> None:
    """Run the local stand-in of the laboratory service; further options go to `assay-lab`."""
    with report_errors():
        if not save_blocks:
            refuse_ignored({"--receiver": receiver}, "it belongs to --save-blocks")
        from prefect_assay.cli.services.lab import run_lab

        run_lab(
            host=host,
            port=port,
            database=database,
            clock=clock,
            landscape=landscape,
            allow_http_webhooks=allow_http_webhooks or save_blocks,
            save_blocks=save_blocks,
            receiver=receiver,
            options=context.args,
        )


@services.command()
def receiver(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on.")] = 8100,
    prefix: Annotated[
        str | None, typer.Option(help="Path in front of the order key. Default: /assay.")
    ] = None,
    keys_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the signing keys, one per line; `# ` begins a comment. Default: PREFECT_ASSAY_RECEIVER_SIGNING_KEYS."
        ),
    ] = None,
    allow_host: AllowHost = None,
) -> None:
    """Run the webhook receiver that wakes waiting runs. Its settings: PREFECT_ASSAY_RECEIVER_*."""
    with report_errors():
        from prefect_assay.cli.services.receiver import run_receiver

        run_receiver(host=host, port=port, prefix=prefix, keys_file=keys_file, allow_hosts=allow_host or ())


@services.command()
def register(*, automations: Automations = True, automation: Chosen = None, as_json: AsJson = False) -> None:
    """Register block types and the automation on canceled runs; safe to repeat."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.services.setup import run_register

        run_register(with_automations=automations, chosen=automation or (), as_json=as_json)


@services.command()
def deploy(
    *,
    work_pool: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A work pool of any type. Default: that of the existing deployments, else `assay`, which is created.",
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the flows from this process instead of a work pool.")
    ] = False,
    sweep_seconds: Annotated[
        float | None,
        typer.Option(min=1, max=86_400, help="With --serve: seconds between two sweeps. Default: 300."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; report what exists and what would be created.")
    ] = False,
    automations: Automations = True,
    automation: Chosen = None,
    as_json: AsJson = False,
) -> None:
    """Deploy the flows to a work pool, or serve them from this process; safe to repeat."""
    if serve and (check or as_json):
        raise typer.BadParameter("--serve serves until it is stopped; leave out --check and --json")
    if serve and work_pool is not None:
        raise typer.BadParameter("--serve serves from this process, without a pool; leave out --work-pool")
    if serve and automation:
        raise typer.BadParameter("with --serve, choose automations by `prefect-assay register --automation`")
    with report_errors(as_json=as_json):
        if not serve:
            refuse_ignored(
                {"--sweep-seconds": sweep_seconds},
                "the sweep of a work pool has the schedule of prefect.yaml",
            )
        from prefect_assay.cli.services.setup import run_deploy, run_serve

        if serve:
            run_serve(sweep_seconds or 300.0, with_automations=automations)
        else:
            chosen = automation or ()
            run_deploy(
                work_pool=work_pool,
                check=check,
                with_automations=automations,
                chosen=chosen,
                as_json=as_json,
            )


@services.command()
def server(
    *,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. Default: PREFECT_SERVER_API_HOST, 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Port to listen on. Default: PREFECT_SERVER_API_PORT, 4200."),
    ] = None,
    allow_host: AllowHost = None,
    password: Password = False,
    no_services: Annotated[
        bool, typer.Option("--no-services", help="Only answer requests; the services run elsewhere.")
    ] = False,
) -> None:
    """Run Prefect's server in the foreground, on a PostgreSQL of its own, for its own web pages only."""
    with report_errors():
        from prefect_assay.cli.services.server import ServerOptions, run_server

        options = ServerOptions(host, port, tuple(allow_host or ()), services=not no_services)
        run_server(options, ask_password=password)


@services.command()
def backup(file: Annotated[Path, typer.Argument(help="A new file, which will hold secrets.")]) -> None:
    """Copy the database of `prefect-assay server`, while it runs or not."""
    with report_errors():
        from prefect_assay.cli.services.server import run_backup

        run_backup(file)


@services.command()
def restore(file: Annotated[Path, typer.Argument(help="What `backup` has written.")]) -> None:
    """Put a copy of the database back, while no server runs."""
    with report_errors():
        from prefect_assay.cli.services.server import run_restore

        run_restore(file)


@services.command()
def check(*, as_json: AsJson = False) -> None:
    """Look at the whole installation, and list each problem with its fix; exit code 1 if there is one."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.services.check import run_check

        run_check(as_json=as_json)
