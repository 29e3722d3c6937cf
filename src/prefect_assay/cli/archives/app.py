"""The commands that read an archive; each imports its module when it runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from prefect_assay.cli.failures import refuse_ignored, report_errors
from prefect_assay.cli.options import (
    ArchiveAccount,
    ArchiveBlock,
    ArchiveFolder,
    ArchiveOrFolder,
    AsJson,
)
from prefect_assay.service.models.vocabulary import ExperimentType

OutcomeWord = Literal["measured", "binding", "no_binding", "no_expression", "unknown", "pending", "missing"]

archives = typer.Typer()
archive_app = typer.Typer(help="Work with archives.", no_args_is_help=True)


@archives.command()
def spending(
    path: ArchiveFolder = None,
    *,
    archive: ArchiveBlock = None,
    account: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="An account: its archive, compared with its rolling cap over its window."
        ),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=366, help="Window of the sum. Default: the policy's, else 30 days."),
    ] = None,
    csv: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the orders for finance as CSV; - prints them."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every order and payment in an archive's log, and what counts against the rolling cap."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.archives.spending import show_spending

        show_spending(path, archive, account, days=days, csv_file=csv, as_json=as_json)


@archives.command()
def results(
    campaigns: Annotated[
        list[str] | None, typer.Argument(metavar="[CAMPAIGN]...", help="Campaign ids. Default: all.")
    ] = None,
    *,
    archive: ArchiveOrFolder = None,
    account: ArchiveAccount = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Compare two campaigns or more, each design with the first campaign's."
        ),
    ] = False,
    experiment: Annotated[str | None, typer.Option(help="One experiment, by its code.")] = None,
    target: Annotated[str | None, typer.Option(help="A part of the target's name.")] = None,
    name: Annotated[str | None, typer.Option(help="A part of the design's name.")] = None,
    experiment_type: Annotated[
        ExperimentType | None, typer.Option("--type", help="What was measured.")
    ] = None,
    outcome: Annotated[OutcomeWord | None, typer.Option(help="One outcome only.")] = None,
    replicates: Annotated[
        bool, typer.Option("--replicates", help="The laboratory's own rows instead, one per replicate.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, max=10_000_000, help="Rows at most.")] = None,
    csv: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the table as CSV for a spreadsheet; - prints it."),
    ] = None,
    parquet: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the table as Parquet; - prints it.")
    ] = None,
    reread: Annotated[
        bool,
        typer.Option(
            "--reread", help="Read the raw answers again; a table that differs becomes a new version."
        ),
    ] = False,
    mapping: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --reread: which fields go to which columns, as TOML or JSON."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the designs of one campaign or of all, best first, as in their reports."""
    with report_errors(as_json=as_json):
        named = campaigns or []
        filters: dict[str, object] = {
            "--target": target, "--name": name, "--type": experiment_type, "--outcome": outcome,
            "--replicates": replicates, "--limit": limit, "--parquet": parquet,
        }  # fmt: skip
        if reread:
            from prefect_assay.cli.archives.reread import reread_results

            refuse_ignored(
                filters | {"--csv": csv, "--compare": compare},
                "--reread takes a campaign, --experiment and --mapping; show the results afterwards",
            )
            reread_results(
                archive,
                account,
                campaigns=named,
                experiment=experiment,
                mapping_file=mapping,
                as_json=as_json,
            )
            return
        refuse_ignored({"--mapping": mapping}, "it needs --reread")
        from prefect_assay.analysis.results import Outcome
        from prefect_assay.analysis.tables.rows import Query
        from prefect_assay.cli.archives.results import Files, Place, show_comparison, show_results, show_rows
        from prefect_assay.errors import InputError

        files = Files(csv, parquet, as_json)
        if compare:
            refuse_ignored(
                filters | {"--experiment": experiment}, "--compare takes campaigns, --csv and --json"
            )
            if len({*named}) < 2:  # noqa: PLR2004
                raise InputError(
                    "name at least two campaigns to compare: prefect-assay results --compare A B"
                )
            show_comparison(Place(archive, account), list(dict.fromkeys(named)), files)
            return
        query = Query(
            experiment=experiment,
            target=target,
            name=name,
            result_type=experiment_type,
            outcome=Outcome(outcome) if outcome else None,
            replicates=replicates,
            limit=limit,
        )
        (show_rows if replicates else show_results)(Place(archive, account), named, query, files)


@archives.command()
def report(
    campaign: Annotated[str, typer.Argument(help="Campaign id.")],
    path: ArchiveFolder = None,
    *,
    archive: ArchiveBlock = None,
    account: ArchiveAccount = None,
    output: Annotated[
        Path | None, typer.Option(help="The file to write. Default: <campaign>-report.html, here.")
    ] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make the report of a campaign again from its archive alone: one HTML file, which needs no network."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.archives.report import write_report

        write_report(campaign, path, archive, account, output=output, browse=browse, as_json=as_json)


@archive_app.command("verify")
def archive_verify(
    path: Annotated[
        Path | None, typer.Argument(help="An archive in a folder, or one campaign or experiment of it.")
    ] = None,
    *,
    archive: ArchiveBlock = None,
    account: ArchiveAccount = None,
    as_json: AsJson = False,
) -> None:
    """Read every archived file again and compare it with what was archived; exit code 1 on damage."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.archives.archive import verify_archive

        verify_archive(path, archive, account, as_json=as_json)


@archive_app.command("tables")
def archive_tables(
    path: ArchiveFolder = None,
    *,
    archive: ArchiveBlock = None,
    account: ArchiveAccount = None,
    as_json: AsJson = False,
) -> None:
    """Write the all-campaign tables that do not agree with the archive's newest versions; exit code 1 if one cannot be read."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.archives.archive import write_tables

        write_tables(path, archive, account, as_json=as_json)


@archives.command()
def kinetics(
    packages: Annotated[
        list[Path], typer.Argument(metavar="PACKAGE.zip...", help="Data packages as the service gives them.")
    ],
    *,
    association_s: Annotated[
        float | None,
        typer.Option(
            min=1.0, max=86_400.0, help="When the dissociation starts, in s. Default: as the curves show."
        ),
    ] = None,
    concentration_error: Annotated[
        float,
        typer.Option(min=0.0, max=2.0, help="Standard deviation of a design's concentrations, as a share."),
    ] = 0.2,
    as_json: AsJson = False,
) -> None:
    """Fit the raw curves of data packages and compare with the service's values; needs the extra `kinetics`."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.archives.kinetics import show_kinetics

        show_kinetics(packages, association_s, concentration_error, as_json=as_json)
