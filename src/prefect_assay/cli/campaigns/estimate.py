"""`prefect-assay estimate`: checks designs, and asks the service for the price of each experiment; orders nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prefect_assay.cli.campaigns.run import check_target
from prefect_assay.cli.designs.sequences import check_locally, read_file, warnings_of
from prefect_assay.cli.options import MAIN
from prefect_assay.cli.output import TerminalConsole, plain, plain_table, print_json
from prefect_assay.cli.service import describe_service, is_in_environment, open_service
from prefect_assay.client import AssayClient
from prefect_assay.designs import order_lines, refuse_target, split
from prefect_assay.models.billing import CostEstimate, usd
from prefect_assay.models.options import ReadingOptions
from prefect_assay.models.sequences import Sequences
from prefect_assay.models.spec import Assay, ExperimentSpec, Target
from prefect_assay.models.words import in_words, many
from prefect_assay.ordering import resolve_target

if TYPE_CHECKING:
    from prefect_assay.blocks import SpendingPolicy


@dataclass(frozen=True, kw_only=True)
class PricedExperiment:
    """One experiment of a campaign: `cents` without VAT, None as long as only a quote can say it."""

    number: int
    designs: int
    cents: int | None
    remark: str | None
    warnings: tuple[str, ...]
    by_quote: bool


def estimate_campaign(
    designs: str,
    assay: Assay,
    reading: ReadingOptions,
    *,
    account: str | None,
    as_json: bool,
) -> None:
    """Print what a campaign would cost, experiment by experiment, next to the caps of the account.

    Raises:
        InputError: the designs, the assay or the target are wrong, with every finding.
        ConfigurationError: no service is named, or a block does not exist.
    """
    sequences = read_file(designs, reading)
    check_target(assay)
    check_locally(sequences, assay, reading.designs_per_experiment)
    caps = _caps(account)
    with open_service(account) as service:
        target = resolve_target(service, assay)
        refuse_target(sequences, target.sequence if target else None, reading)
        priced = price(service, sequences, assay, target, reading.designs_per_experiment)
        service_line = describe_service(service, account)
    if as_json:
        print_json({"service": service_line, **_as_json(sequences, assay, target, priced, caps)})
    else:
        plain().print(service_line)
        _show(sequences, assay, target, priced, caps)


def price(
    service: AssayClient, sequences: Sequences, assay: Assay, target: Target | None, per_experiment: int
) -> list[PricedExperiment]:
    """The service's price of each experiment of the campaign that these designs would be."""
    found = []
    for batch in split(sequences, assay, per_experiment):
        estimate = service.estimate(ExperimentSpec.of(assay, batch, target.id if target else None))
        found.append(
            PricedExperiment(
                number=batch.index + 1,
                designs=len(batch.items),
                cents=estimate.total_cents,
                remark=_remark(estimate, target),
                warnings=tuple(map(str, estimate.warnings)),
                by_quote=estimate.total_cents is None or target is None,
            )
        )
    return found


def _remark(estimate: CostEstimate, target: Target | None) -> str | None:
    if estimate.incomplete:
        return f"by quote: {estimate.reason}"
    return "by quote: the assay takes no target" if target is None else None


def _caps(account: str | None) -> "SpendingPolicy | None":
    from prefect_assay.cli.prefect_api import saved_account

    if account is None and is_in_environment():
        return None
    return saved_account(account or MAIN).policy


def _over(cents: int | None, cap_cents: int) -> bool:
    return cents is not None and cents > cap_cents


def _known(priced: Sequence[PricedExperiment]) -> int:
    return sum(experiment.cents or 0 for experiment in priced)


def _as_json(
    sequences: Sequences,
    assay: Assay,
    target: Target | None,
    priced: Sequence[PricedExperiment],
    caps: "SpendingPolicy | None",
) -> dict[str, Any]:
    return {
        "source": sequences.source,
        "designs": len(sequences),
        "experiment_type": str(assay.experiment_type),
        "target": {"id": target.id, "name": target.name} if target else None,
        "experiments": [
            {
                "number": experiment.number,
                "designs": experiment.designs,
                "total_cents": experiment.cents,
                "by_quote": experiment.by_quote,
                "remark": experiment.remark,
                "warnings": list(experiment.warnings),
                "over_cap": _over(experiment.cents, caps.per_experiment_cents) if caps else None,
            }
            for experiment in priced
        ],
        "known_cents": _known(priced),
        "without_price": sum(experiment.cents is None for experiment in priced),
        "over_campaign_cap": _over(_known(priced), caps.per_campaign_cents) if caps else None,
        "caps": {
            "per_experiment_cents": caps.per_experiment_cents,
            "per_campaign_cents": caps.per_campaign_cents,
        }
        if caps
        else None,
        "reading": list(order_lines(sequences)),
        "warnings": list(warnings_of(sequences)),
    }


def _show(
    sequences: Sequences,
    assay: Assay,
    target: Target | None,
    priced: Sequence[PricedExperiment],
    caps: "SpendingPolicy | None",
) -> None:
    console = TerminalConsole(highlight=False)
    against = f" against {target.name or target.id}" if target else ""
    by = f" by {assay.effective_method.upper()}" if assay.effective_method else ""
    console.print(
        f"{sequences.source}: {many(len(sequences), 'design')}, {in_words(assay.experiment_type)}{by}{against}",
        markup=False,
    )
    table = plain_table()
    for heading in ("Experiment", "Designs", "Without VAT"):
        table.add_column(heading, justify="right")
    table.add_column("", overflow="fold")
    for experiment in priced:
        over = caps is not None and _over(experiment.cents, caps.per_experiment_cents)
        remarks = [experiment.remark or "", "over the cap per experiment" if over else ""]
        amount = usd(experiment.cents) if experiment.cents is not None else "quote needed"
        table.add_row(
            str(experiment.number), str(experiment.designs), amount, "; ".join(filter(None, remarks))
        )
    missing = sum(experiment.cents is None for experiment in priced)
    total = usd(_known(priced)) if missing < len(priced) else "quote needed"
    table.add_row(
        "total", str(len(sequences)), total, f"without {missing} that need a quote" if missing else ""
    )
    console.print(table)
    if caps is not None:
        for line in _compared(priced, caps):
            plain().print(line)
    for warning in (*dict.fromkeys(w for e in priced for w in e.warnings), *warnings_of(sequences)):
        plain().print(warning, style="yellow")
    console.print("Nothing was ordered. `prefect-assay run` with the same options orders it.")


def _compared(priced: Sequence[PricedExperiment], caps: "SpendingPolicy") -> list[str]:
    """The caps in a person's words: over one, the run asks before it orders."""
    total = _known(priced)
    over = [str(e.number) for e in priced if _over(e.cents, caps.per_experiment_cents)]
    lines = [f"Cap per campaign {usd(caps.per_campaign_cents)}: {_verdict(total, caps.per_campaign_cents)}"]
    each = f"over it: experiment {', '.join(over)}; the run asks a person" if over else "within it"
    lines.append(f"Cap per experiment {usd(caps.per_experiment_cents)}: {each}")
    if any(e.by_quote for e in priced) and not caps.accept_quotes:
        lines.append("A person is asked before a quote is accepted (accept_quotes is off in the policy).")
    return lines


def _verdict(cents: int, cap_cents: int) -> str:
    return f"{usd(cents - cap_cents)} over it; the run asks a person" if cents > cap_cents else "within it"
