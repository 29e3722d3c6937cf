"""The purchase summary for people: rows of words, as Markdown or, by the command line, as a table of 80 columns."""

from collections.abc import Iterator, Sequence
from typing import Final

from prefect_assay.analysis.results.formats import make_markdown_cell
from prefect_assay.orders.purchase import (
    PAID_AGAIN,
    EarlierPurchase,
    PriceLine,
    PurchasedExperiment,
    PurchaseState,
    PurchaseSummary,
    describe_caps,
    sum_lines,
)
from prefect_assay.service.models.billing import usd
from prefect_assay.service.words import listed, many

NOT_WITHDRAWN: Final = "An order cannot be withdrawn."
_CAMPAIGNS_SHOWN: Final = 3
_NAMES_SHOWN: Final = 3
_EXPERIMENTS_SHOWN: Final = 100


def purchase_rows(summary: PurchaseSummary) -> dict[str, str]:
    """The summary as rows: a word and its text, the amount that is due first."""
    rows = {
        "due now": summary.due,
        "bought again" if summary.new else "before": _describe_earlier_campaigns(summary),
        "price": "; ".join(_describe_price(summary)),
        "account": summary.account,
        "campaign": f"{summary.campaign_id}{', which goes on: what it has ordered is found' if summary.continues else ''}",
        "designs": "; ".join(_describe_designs(summary)),
        "assay": summary.assay,
        "already": _describe_ordered(summary),
        "caps": "; ".join(_describe_caps(summary)),
        "paid": summary.paid,
        "asked": f"{summary.asked}.{f' {NOT_WITHDRAWN}' if summary.new else ''}",
        "warning": "; ".join(_list_warnings(summary)),
    }
    return {name: text for name, text in rows.items() if text}


def price_table(summary: PurchaseSummary) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows of the itemised price, one for each experiment and, of several, one for their sum."""
    lines = sum_lines(summary.experiments)
    names = [line.name for line in lines]
    rows = [_format_row(one, names) for one in summary.experiments[:_EXPERIMENTS_SHOWN]]
    if len(summary.experiments) > 1:
        cells = [_format_cents(line.cents) for line in lines]
        rows.append(("all", str(summary.designs), *cells, _format_cents(summary.total_cents), summary.due))
    return ("experiment", "designs", *names, "USD without VAT", ""), rows


def purchase_markdown(summary: PurchaseSummary) -> list[str]:
    """The summary as Markdown: one list, in the order of its rows."""
    return [f"- **{name}**: {make_markdown_cell(text)}" for name, text in purchase_rows(summary).items()]


def price_markdown(summary: PurchaseSummary) -> list[str]:
    """The itemised price of each experiment as a Markdown table."""
    headings, rows = price_table(summary)
    align = ["---:"] * (len(headings) - 1) + ["---"]
    return [
        _format_cells(headings),
        f"|{'|'.join(align)}|",
        *(_format_cells(map(make_markdown_cell, row)) for row in rows),
    ]


def _format_cells(cells: Sequence[str] | Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _format_row(one: PurchasedExperiment, names: Sequence[str]) -> tuple[str, ...]:
    cents = {line.name: line.cents for line in one.lines}
    state = "" if one.state is PurchaseState.NEW else str(one.state)
    remark = f"by quote: {one.by_quote}" if one.by_quote else state
    return (
        str(one.number),
        str(one.designs),
        *(_format_cents(cents.get(name)) for name in names),
        _format_cents(one.cents),
        remark,
    )


def _format_cents(cents: int | None) -> str:
    return "" if cents is None else usd(cents).removesuffix(" USD")


def itemise_experiments(experiments: Sequence[PurchasedExperiment]) -> str:
    """The price lines of experiments in one sentence; empty where no estimate shows them."""
    shown = tuple(one for one in experiments if one.lines)
    lines = sum_lines(shown)
    return f"{' + '.join(map(_format_line, lines))}, for {many(len(shown), 'experiment')}" if lines else ""


def _describe_price(summary: PurchaseSummary) -> Iterator[str]:
    new = tuple(one for one in summary.new if one.lines)
    lines = sum_lines(new)
    if lines:
        yield itemise_experiments(new)
    missing = [line.name for line in lines if line.cents is None]
    if missing:
        yield f"the estimate shows no amount for {' and '.join(missing)}"
    if unread := list(dict.fromkeys(name for one in new for name in one.unread)):
        yield f"the estimate also shows {', '.join(unread)}, which is not read"
    for reason in dict.fromkeys(one.by_quote for one in summary.new if one.by_quote):
        yield f"by quote: {reason}"


def _format_line(line: PriceLine) -> str:
    detail = f" ({line.detail})" if line.detail else ""
    return f"{line.name} {_format_cents(line.cents) or 'not shown'}{detail}"


def _describe_designs(summary: PurchaseSummary) -> Iterator[str]:
    fewest, most = summary.residues
    span = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    of = f" of {summary.source}" if summary.source else ""
    controls = f", of them {many(summary.controls, 'control')}" if summary.controls else ""
    yield f"{summary.designs}{of}, {span} residues{controls}"
    if summary.duplicates:
        yield f"{many(summary.duplicates, 'duplicate')} left out"


def _describe_ordered(summary: PurchaseSummary) -> str:
    placed = [
        one for one in summary.experiments if one.state in {PurchaseState.ORDERED, PurchaseState.MEASURED}
    ]
    if not placed:
        return ""
    measured = sum(one.state is PurchaseState.MEASURED for one in placed)
    return (
        f"{many(len(placed), 'experiment')} of this campaign with {many(sum(one.designs for one in placed), 'design')} "
        f"ordered, {measured} of them measured: {usd(summary.committed_cents)}"
    )


def _describe_earlier_campaigns(summary: PurchaseSummary) -> str:
    names = summary.earlier_designs
    unread = [summary.earlier_unread] if summary.earlier_unread else []
    if not names:
        return "; ".join(unread)
    ordered = (
        f"{len(names)} of the {many(summary.designs, 'design')} {'was' if len(names) == 1 else 'were'} ordered before for "
        f"the same assay and target ({listed(names, _NAMES_SHOWN)}), "
        f"{listed([*map(_format_earlier, summary.earlier)], _CAMPAIGNS_SHOWN)}"
    )
    return ". ".join(["; ".join([ordered, *unread]), *([PAID_AGAIN] if summary.new else [])])


def _format_earlier(one: EarlierPurchase) -> str:
    when = f" on {one.ordered_at:%Y-%m-%d %H:%M} UTC" if one.ordered_at else ""
    return f"in {one.campaign_id} ({len(one.designs)} of them{when}{', measured' if one.measured else ''})"


def _describe_caps(summary: PurchaseSummary) -> Iterator[str]:
    yield describe_caps(
        summary.per_experiment_cents, summary.per_campaign_cents, summary.second_person_above_cents
    )
    if summary.unasked_cents:
        yield f"{usd(summary.unasked_cents)} may be spent without asking"


def _list_warnings(summary: PurchaseSummary) -> Iterator[str]:
    yield from summary.warnings
    yield from dict.fromkeys(line for one in summary.new for line in one.warnings)
