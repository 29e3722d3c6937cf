"""The commands on design files; each imports its module when it runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from prefect_assay.cli.failures import refuse_direction, refuse_ignored, report_errors
from prefect_assay.cli.model_options import takes_models
from prefect_assay.cli.options import (
    ArchiveAccount,
    ArchiveBlock,
    ArchiveFolder,
    AsJson,
    HigherIsBetter,
    ServiceAccount,
    number_option,
)
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.selection import Aim, SelectionPolicy, SelectionSettings
from prefect_assay.service.assays import Objective
from prefect_assay.service.bounds import COUNT_MAX, NUMBER_MAX
from prefect_assay.service.models.vocabulary import ExperimentType

designs_app = typer.Typer(
    help="Check design files, and choose the designs of the next round.", no_args_is_help=True
)
custom_target_app = typer.Typer(
    help="Request a target that the catalog lacks, and follow the decision.", no_args_is_help=True
)
catalog = typer.Typer()

KdUnitWord = Literal["M", "mM", "uM", "nM", "pM"]
Goal = Annotated[
    Objective, typer.Option("--objective", help="What a round should improve, and a hit is measured by.")
]
HitLimit = Annotated[
    float | None,
    number_option("What a hit reaches: nM at most for affinity, degrees Celsius or nM at least else.", 0),
]
MethodColumn = Annotated[str | None, typer.Option(help="The column that names the method. Default: method.")]


def _make_selection_settings(
    score: str | None, *, higher_is_better: bool | None, **others: object
) -> dict[str, object]:
    """What is looked for, as settings of a selection; refuses the direction of a score that is not named."""
    if score is None:
        refuse_direction(higher_is_better, "it belongs to --score-column")
    return {"score_column": score, "higher_is_better": higher_is_better, **others}


@catalog.command()
def targets(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORDS]", help="Words of its name or number, in any order.")
    ] = None,
    *,
    account: ServiceAccount = None,
    as_json: AsJson = False,
) -> None:
    """Search the service's catalog of targets: name, id, price, and what is measured against them."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.designs.targets import show_targets

        show_targets(words or (), account=account, as_json=as_json)


@custom_target_app.command("request")
def custom_target_request(
    name: Annotated[str, typer.Argument(help="What the target is called.")],
    *,
    product_id: Annotated[
        str, typer.Option(help="Your own number for it, or the vendor's; the service takes each one once.")
    ],
    sequence: Annotated[
        str | None, typer.Option(help="Its residues; chains are separated by a colon.")
    ] = None,
    pdb_id: Annotated[
        str | None,
        typer.Option(
            help="Its accession in the Protein Data Bank, instead of residues, or in addition to them."
        ),
    ] = None,
    account: ServiceAccount = None,
    as_json: AsJson = False,
) -> None:
    """Ask the service for a target of your own; nothing is ordered."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.designs.custom_target import request_target

        request_target(
            name,
            product_id=product_id,
            sequence=sequence,
            pdb_id=pdb_id,
            account=account,
            as_json=as_json,
        )


@custom_target_app.command("status")
def custom_target_status(
    request_id: Annotated[str | None, typer.Argument(help="One request. Default: all of them.")] = None,
    *,
    account: ServiceAccount = None,
    as_json: AsJson = False,
) -> None:
    """Show the requests with their decisions, and how to measure against those that were approved."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.designs.custom_target import show_requests

        show_requests(request_id, account=account, as_json=as_json)


@designs_app.command("check")
@takes_models()
def designs_check(
    file: Annotated[str, typer.Argument(help="FASTA file, table or workbook, or an s3:// address.")],
    *,
    experiment_type: Annotated[
        ExperimentType, typer.Option("--type", help="The assay whose rules are applied.")
    ] = ExperimentType.AFFINITY,
    reading: ReadingOptions,
    as_json: AsJson = False,
) -> None:
    """Check a design file as a campaign would, without ordering anything; exit code 1 when it cannot be ordered."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.designs.check import check_designs

        check_designs(file, experiment_type, reading, as_json=as_json)


@designs_app.command("select")
@takes_models(leave_out=frozenset({"designs_per_experiment"}))
def designs_select(
    pool: Annotated[
        str, typer.Argument(help="FASTA file, table or workbook with candidates, or an s3:// address.")
    ],
    *,
    history: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE.csv", help="Results of earlier rounds; can be repeated."),
    ] = None,
    kd_unit: Annotated[
        KdUnitWord | None, typer.Option(help="With --history: the unit of K_D, whatever titles say.")
    ] = None,
    number: Annotated[
        int, typer.Option("-n", "--number", min=1, max=COUNT_MAX, help="Designs to buy at most.")
    ] = 24,
    settings: SelectionSettings,
    rounds_left: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=COUNT_MAX,
            help="Purchases that follow; 0: the last one, which explores nothing. No effect with the aim best.",
        ),
    ] = None,
    price_usd: Annotated[
        str | None,
        typer.Option(metavar="USD", help="Price of a design. Default: the median of the history."),
    ] = None,
    budget_usd: Annotated[str | None, typer.Option(metavar="USD", help="What all may cost together.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file of designs to write.")
    ] = None,
    reading: ReadingOptions,
    as_json: AsJson = False,
) -> None:
    """Select the designs of the next round from a pool of up to a million candidates; needs the extra `design`."""
    with report_errors(as_json=as_json):
        if settings.policy is not SelectionPolicy.GP:
            idle = {"--rounds-left": rounds_left, "--one-family": settings.one_family}
            refuse_ignored(idle, "only the policy gp learns from results")
        if not history:
            refuse_ignored({"--kd-unit": kd_unit}, "it belongs to --history")
        from prefect_assay.cli.asking import parse_cents
        from prefect_assay.cli.designs.select import show_selection

        show_selection(
            pool,
            number,
            settings,
            reading,
            tables=history or (),
            kd_unit=kd_unit,
            price_cents=None if price_usd is None else parse_cents(price_usd, "--price-usd"),
            budget_cents=None if budget_usd is None else parse_cents(budget_usd, "--budget-usd"),
            rounds_left=rounds_left,
            output=output,
            as_json=as_json,
        )


@designs_app.command("backtest")
def designs_backtest(
    table: Annotated[
        list[str], typer.Argument(metavar="TABLE.csv...", help="Measured designs with residues and outcomes.")
    ],
    *,
    kd_unit: Annotated[KdUnitWord | None, typer.Option(help="The unit of K_D, whatever titles say.")] = None,
    target: Annotated[
        str | None, typer.Option(help="The target whose designs are the pool, where the table has several.")
    ] = None,
    number: Annotated[
        int, typer.Option("-n", "--number", min=1, max=COUNT_MAX, help="Designs of a purchase.")
    ] = 24,
    rounds: Annotated[int, typer.Option(min=1, max=50, help="Purchases, one after the other.")] = 3,
    splits: Annotated[int, typer.Option(min=1, max=1000, help="Splits that every policy plays.")] = 20,
    warm: Annotated[
        bool, typer.Option("--warm", help="The other half of the families is measured before.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Keep the groups of this column apart, such as author."),
    ] = None,
    score: Annotated[
        str | None, typer.Option("--score-column", help="A score for top_score, by its title.")
    ] = None,
    higher_is_better: HigherIsBetter = None,
    method_column: MethodColumn = None,
    objective: Goal = Objective.AFFINITY,
    hit_limit: HitLimit = None,
    aim: Annotated[
        Aim, typer.Option(help="Count hits, or how far the best value is from the best of all.")
    ] = Aim.HITS,
    seed: Annotated[int, typer.Option(min=0, max=NUMBER_MAX, help="Decides the splits.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Play purchases on a table of measured designs, by families, with all policies: which one would have found most?"""
    with report_errors(as_json=as_json):
        chosen = _make_selection_settings(
            score,
            higher_is_better=higher_is_better,
            method_column=method_column,
            objective=objective,
            hit_limit=hit_limit,
            aim=aim,
            target=target,
        )
        from prefect_assay.cli.designs.backtest import play_policies

        purchases = {
            "rounds": rounds,
            "batch": number,
            "splits": splits,
            "warm": warm,
            "by": by,
            "seed": seed,
        }
        play_policies(table, kd_unit, chosen, purchases, as_json=as_json)


@designs_app.command("history")
def designs_history(
    path: ArchiveFolder = None,
    *,
    archive: ArchiveBlock = None,
    account: ArchiveAccount = None,
    loop: Annotated[str | None, typer.Option(help="Only this loop. Default: all campaigns.")] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A designer's score; can be repeated. Default: all numbers."),
    ] = None,
    objective: Goal = Objective.AFFINITY,
    hit_limit: HitLimit = None,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write one line per measured design; - prints it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what became of earlier proposals: hit rates per method, and scores against what was measured."""
    with report_errors(as_json=as_json):
        from prefect_assay.cli.designs.history import show_history
        from prefect_assay.cli.designs.select import make_settings

        show_history(
            path,
            archive,
            make_settings({"objective": objective, "hit_limit": hit_limit}),
            account=account,
            loop=loop,
            columns=score or (),
            csv_file=csv,
            as_json=as_json,
        )
