"""The commands and their options.

`prefect-assay --help` must not import Prefect, httpx or boto3: each command imports its module when it runs, and
choices are literals, which a test compares with the vocabulary.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from prefect_assay.cli.failures import reported
from prefect_assay.cli.loops.app import loop_app
from prefect_assay.cli.loops.options import (
    ArchiveName,
    CredentialsName,
    Here,
    KeepNative,
    Method,
    NameColumn,
    Payment,
    PerExperiment,
    PolicyName,
    PolicyWord,
    Replicates,
    SequenceColumn,
    TargetName,
    Type,
    TypeWord,
    WalletName,
    WebhookName,
)
from prefect_assay.cli.services.app import AsJson, services

OutcomeWord = Literal["measured", "binding", "no_binding", "no_expression", "unknown", "pending", "missing"]

ObjectiveWord = Literal["affinity", "melting", "expression"]
AcquisitionWord = Literal["expected_improvement", "thompson"]

ArchiveFolder = Annotated[Path | None, typer.Argument(help="An archive in a folder.")]
ArchiveBlock = Annotated[str | None, typer.Option(help="Archive block instead: a name, or <slug>/<name>.")]

app = typer.Typer(
    help="Measure protein designs: order once, pay once, wait without a process, archive.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
archive_app = typer.Typer(help="Work with archives.", no_args_is_help=True)
sequences_app = typer.Typer(help="Work with design files.", no_args_is_help=True)
designs_app = typer.Typer(help="Choose the designs of the next round.", no_args_is_help=True)
app.add_typer(services)
app.add_typer(loop_app)
app.add_typer(archive_app, name="archive")
app.add_typer(sequences_app, name="sequences")
app.add_typer(designs_app, name="designs")


@app.command()
def run(
    designs: Annotated[str, typer.Argument(help="FASTA, CSV or TSV file, or an s3:// address.")],
    *,
    credentials: CredentialsName,
    policy: PolicyName,
    archive: ArchiveName,
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
        from prefect_assay.cli.run import CampaignRequest, run_campaign
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


@app.command()
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
        from prefect_assay.cli.status import show_status

        show_status(which, credentials=credentials, limit=limit, as_json=as_json)


@app.command()
def spending(
    path: ArchiveFolder = None,
    *,
    archive: ArchiveBlock = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Name of a SpendingPolicy block: compare with its rolling cap, over its window."),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=366, help="Window of the sum. Default: the policy's, else 30 days."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every order and payment in an archive's log, and what counts against the rolling cap."""
    with reported(as_json=as_json):
        from prefect_assay.cli.spending import show_spending

        show_spending(path, archive, policy, days=days, as_json=as_json)


@app.command()
def results(
    path: ArchiveFolder = None,
    *,
    archive: ArchiveBlock = None,
    campaign: Annotated[str | None, typer.Option(help="One campaign, by its id.")] = None,
    experiment: Annotated[str | None, typer.Option(help="One experiment, by its code.")] = None,
    target: Annotated[str | None, typer.Option(help="A part of the target's name.")] = None,
    name: Annotated[str | None, typer.Option(help="A part of the design's name.")] = None,
    experiment_type: Annotated[TypeWord | None, typer.Option("--type", help="What was measured.")] = None,
    outcome: Annotated[OutcomeWord | None, typer.Option(help="One outcome only.")] = None,
    replicates: Annotated[bool, typer.Option("--replicates", help="Also one row per replicate.")] = False,
    all_versions: Annotated[
        bool,
        typer.Option("--all-versions", help="Also rows that a later version of their experiment replaced."),
    ] = False,
    sort: Annotated[
        str | None, typer.Option(help="Column. Default: measured designs by K_D, then the other outcomes.")
    ] = None,
    descending: Annotated[bool, typer.Option("--descending", help="With --sort: highest first.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows at most.")] = None,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write CSV for a spreadsheet; - prints it.")
    ] = None,
    parquet: Annotated[str | None, typer.Option(metavar="FILE", help="Write Parquet; - prints it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the results of all campaigns in an archive, best first."""
    with reported(as_json=as_json):
        from prefect_assay.cli.results import show_results
        from prefect_assay.lake import Query
        from prefect_assay.results import Outcome

        wanted = Query(
            campaign=campaign,
            experiment=experiment,
            target=target,
            name=name,
            result_type=experiment_type,
            outcome=Outcome(outcome) if outcome else None,
            replicates=replicates,
            all_versions=all_versions,
            sort=sort,
            descending=descending,
            limit=limit,
        )
        show_results(path, archive, wanted, csv_file=csv, parquet_file=parquet, as_json=as_json)


@app.command()
def report(
    campaign: Annotated[str, typer.Argument(help="Campaign id.")],
    path: ArchiveFolder = None,
    *,
    archive: ArchiveBlock = None,
    output: Annotated[
        Path | None, typer.Option(help="The file to write. Default: <campaign>-report.html, here.")
    ] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make the report of a campaign again from its archive alone: one HTML file, which needs no network."""
    with reported(as_json=as_json):
        from prefect_assay.cli.report import write_report

        write_report(campaign, path, archive, output=output, browse=browse, as_json=as_json)


@archive_app.command("verify")
def archive_verify(
    path: Annotated[
        Path | None, typer.Argument(help="An archive in a folder, or one campaign or experiment of it.")
    ] = None,
    *,
    archive: ArchiveBlock = None,
    as_json: AsJson = False,
) -> None:
    """Read every archived file again and compare it with what was archived; exit code 1 on damage."""
    with reported(as_json=as_json):
        from prefect_assay.cli.archive import verify_archive

        verify_archive(path, archive, as_json=as_json)


@archive_app.command("lake")
def archive_lake(
    path: ArchiveFolder = None,
    *,
    archive: ArchiveBlock = None,
    as_json: AsJson = False,
) -> None:
    """Write the Parquet files that an archive's lake lacks, from its versions; exit code 1 if one cannot be read."""
    with reported(as_json=as_json):
        from prefect_assay.cli.archive import write_lake

        write_lake(path, archive, as_json=as_json)


@app.command()
def kinetics(
    packages: Annotated[
        list[Path], typer.Argument(metavar="PACKAGE.zip...", help="Data packages as the service gives them.")
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Fit the raw curves of data packages and compare with the service's values; needs the extra `kinetics`."""
    with reported(as_json=as_json):
        from prefect_assay.cli.kinetics import show_kinetics

        show_kinetics(packages, as_json=as_json)


@sequences_app.command("check")
def sequences_check(
    file: Annotated[str, typer.Argument(help="FASTA, CSV or TSV file, or an s3:// address.")],
    *,
    experiment_type: Annotated[
        TypeWord, typer.Option("--type", help="The assay whose rules are applied.")
    ] = "affinity",
    per_experiment: PerExperiment = 96,
    name_column: NameColumn = None,
    sequence_column: SequenceColumn = None,
    keep_native: KeepNative = False,
    as_json: AsJson = False,
) -> None:
    """Check a design file as a campaign would, without ordering anything; exit code 1 when it cannot be ordered."""
    with reported(as_json=as_json):
        from prefect_assay.cli.sequences import check_sequences
        from prefect_assay.designs import Reading

        reading = Reading(name_column, sequence_column, keep_native)
        check_sequences(file, experiment_type, per_experiment, reading, as_json=as_json)


@designs_app.command("select")
def designs_select(
    pool: Annotated[str, typer.Argument(help="FASTA, CSV or TSV file with candidates, or an s3:// address.")],
    *,
    history: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE.csv", help="Results of earlier rounds; can be repeated."),
    ] = None,
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="Designs to buy at most.")] = 24,
    policy: Annotated[PolicyWord, typer.Option(help="How candidates are ranked.")] = "method_history",
    seed: Annotated[int, typer.Option(min=0, help="The same seed and input give the same choices.")] = 0,
    score: Annotated[str | None, typer.Option(help="The column to rank by, by its title.")] = None,
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="With --score: a low score is a good one.")
    ] = False,
    method_column: Annotated[
        str | None, typer.Option(help="The column that names the method. Default: method.")
    ] = None,
    objective: Annotated[ObjectiveWord, typer.Option(help="What the round should improve.")] = "affinity",
    hit_limit: Annotated[
        float | None,
        typer.Option(
            help="What a hit reaches: nM at most for affinity, degrees Celsius or nM at least else."
        ),
    ] = None,
    acquisition: Annotated[
        AcquisitionWord, typer.Option(help="How gp turns predictions into a ranking.")
    ] = "expected_improvement",
    control: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A design that is always bought; can be repeated."),
    ] = None,
    repeat_measured: Annotated[
        bool, typer.Option("--repeat-measured", help="Also buy designs that were measured already.")
    ] = False,
    max_per_method: Annotated[int | None, typer.Option(min=1, help="Designs of one method at most.")] = None,
    max_per_parent: Annotated[int | None, typer.Option(min=1, help="Designs of one parent at most.")] = None,
    identity: Annotated[
        float | None, typer.Option(min=0.7, max=1, help="Designs at least this identical are one cluster.")
    ] = None,
    max_per_cluster: Annotated[
        int, typer.Option(min=1, help="With --identity: designs of one cluster at most.")
    ] = 1,
    price_cents: Annotated[
        int | None, typer.Option(min=0, help="Price of a design. Default: the median of the history.")
    ] = None,
    budget_cents: Annotated[int | None, typer.Option(min=0, help="What all may cost together.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file of designs to write.")
    ] = None,
    name_column: NameColumn = None,
    sequence_column: SequenceColumn = None,
    keep_native: KeepNative = False,
    as_json: AsJson = False,
) -> None:
    """Select the designs of the next round from a pool of up to a million candidates; needs the extra `design`."""
    with reported(as_json=as_json):
        from prefect_assay.cli.designs.select import Purchase, select_designs
        from prefect_assay.designs import Reading

        chosen = {
            "policy": policy,
            "seed": seed,
            "score_column": score,
            "higher_is_better": not lower_is_better,
            "method_column": method_column,
            "objective": objective,
            "hit_limit": hit_limit,
            "acquisition": acquisition,
            "controls": control or (),
            "repeat_measured": repeat_measured,
            "max_per_method": max_per_method,
            "max_per_parent": max_per_parent,
            "identity": identity,
            "max_per_cluster": max_per_cluster,
        }
        select_designs(
            pool,
            history or (),
            Purchase(number, price_cents, budget_cents),
            chosen,
            Reading(name_column, sequence_column, keep_native),
            output=output,
            as_json=as_json,
        )


@designs_app.command("history")
def designs_history(
    path: ArchiveFolder = None,
    *,
    archive: ArchiveBlock = None,
    loop: Annotated[str | None, typer.Option(help="Only this loop. Default: all campaigns.")] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A designer's score; can be repeated. Default: all numbers."),
    ] = None,
    objective: Annotated[ObjectiveWord, typer.Option(help="What a hit is measured by.")] = "affinity",
    hit_limit: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="What a hit reaches: nM at most for affinity, degrees Celsius or nM at least else.",
        ),
    ] = None,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write one line per measured design; - prints it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what became of earlier proposals: hit rates per method, and scores against what was measured."""
    with reported(as_json=as_json):
        from prefect_assay.cli.designs.history import show_history
        from prefect_assay.cli.designs.select import settings_of

        show_history(
            path,
            archive,
            settings_of({"objective": objective, "hit_limit": hit_limit}),
            loop=loop,
            columns=score or (),
            csv_file=csv,
            as_json=as_json,
        )


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
        from prefect_assay.cli.drift import show_drift, wire_words

        words = wire_words(provider_word, service_word)
        show_drift(document, base_url=base_url, credentials=credentials, words=words, as_json=as_json)


def main() -> None:
    """Entry point of `prefect-assay`."""
    app()
