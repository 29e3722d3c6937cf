"""`prefect-assay designs backtest`: what each policy would have bought from a table of measured designs, and found."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from rich.table import Table
from rich.text import Text

from prefect_assay.analysis.results.quantities import finite_or_none
from prefect_assay.analysis.selection import History, read_history
from prefect_assay.cli.designs.select import expand_home, make_settings
from prefect_assay.cli.output import TerminalConsole, make_plain_console, print_json
from prefect_assay.errors import ConfigurationError
from prefect_assay.service.words import many


def play_policies(
    tables: Sequence[str],
    kd_unit: str | None,
    chosen: Mapping[str, Any],
    purchases: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Play all policies, and print what they found and which one to take."""
    history = read_history(*map(expand_home, tables), kd_unit=kd_unit)
    settings = make_settings(chosen)
    if not as_json:  # also of a table that cannot be played: a word that is not read may be the reason
        _print_notes(history)
    try:
        from prefect_assay.analysis.selection.backtest import (
            ENOUGH_SPLITS,
            Plan,
            compute_standard_error,
            play_purchases,
        )
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"numpy", "scipy", "sklearn", "threadpoolctl"}:
            raise
        raise ConfigurationError.missing_extra("design", "selecting designs") from None
    plan = Plan(**purchases)
    backtest = play_purchases(
        history.designs, settings, plan, lambda line: make_plain_console(stderr=True).print(line)
    )
    verdict = backtest.give_verdict()
    rows = [
        {
            "policy": record.policy,
            "first": fmean(record.first),
            "first_error": finite_or_none(compute_standard_error(record.first)),
            "last": fmean(record.last),
            "last_error": finite_or_none(compute_standard_error(record.last)),
            "families": fmean(record.families),
        }
        for record in backtest.played
    ]
    if as_json:
        print_json(
            {
                "policies": rows,
                "designs": backtest.designs,
                "designs_that_hit": backtest.designs_that_hit,
                "pool": backtest.pool,
                "hits": backtest.hits,
                "families": backtest.families,
                "splits_left_out": backtest.left_out,
                "counts": "hits" if backtest.more_is_better else "distance of the best value",
                "verdict": {
                    **asdict(verdict),
                    "error": finite_or_none(verdict.error),
                    "real": verdict.is_real,
                },
                "notes": list(history.notes),
            }
        )
        return
    _show_policies(rows, plan.batch, plan.rounds, more=backtest.more_is_better)
    out = make_plain_console()
    if backtest.left_out:
        out.print(
            f"{many(backtest.left_out, 'split')} left out: no value among the designs that can be bought"
        )
    out.print(
        f"{backtest.designs} designs with an outcome, {backtest.designs_that_hit} of them hits; a pool of {backtest.pool:.0f} designs with {backtest.hits:.0f} hits on average; {backtest.families} families in the table; "
        f"{plan.splits - backtest.left_out} splits, the same for all policies; ± is a standard error"
    )
    what = "hits" if backtest.more_is_better else "decades or degrees nearer to the best value"
    sure = "the difference is real" if verdict.is_real else "the difference may be chance"
    if verdict.splits < ENOUGH_SPLITS:
        sure += f": {many(verdict.splits, 'independent split')}, and fewer than {ENOUGH_SPLITS} cannot tell"
    difference = _with_error(verdict.difference, finite_or_none(verdict.error), "+.2f")
    out.print(f"take {verdict.policy}: {difference} {what} compared with {verdict.beside}; {sure}")


def _show_policies(rows: Sequence[Mapping[str, Any]], batch: int, rounds: int, *, more: bool) -> None:
    what = "hits" if more else "behind the best value"
    table = Table("Policy", f"After {batch}, {what}", f"After {batch * rounds}, {what}", "Families of hits")
    for row in rows:
        table.add_row(
            Text(row["policy"]),
            _with_error(row["first"], row["first_error"]),
            _with_error(row["last"], row["last_error"]),
            f"{row['families']:.1f}",
        )
    TerminalConsole().print(table)


def _with_error(mean: float, error: float | None, form: str = ".2f") -> str:
    return f"{mean:{form}}" if error is None else f"{mean:{form}} ± {error:.2f}"


def _print_notes(history: History) -> None:
    for line in history.notes:
        make_plain_console(stderr=True).print(line)
