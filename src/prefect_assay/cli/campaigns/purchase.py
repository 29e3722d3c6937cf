"""Shows what `run` and `loop` are about to buy, before anything is ordered; at a terminal a person confirms it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from prefect_assay.archive.layout import BOOKS_FOLDER, LAKE_FOLDER, LOOPS_FOLDER, safe_prefix
from prefect_assay.books import Books
from prefect_assay.cli.campaigns.estimate import PricedExperiment, price
from prefect_assay.cli.output import TerminalConsole, plain_table
from prefect_assay.designs import refuse_target
from prefect_assay.errors import AssayError, InvalidSpec
from prefect_assay.models.billing import usd
from prefect_assay.models.options import ReadingOptions
from prefect_assay.models.sequences import Sequences
from prefect_assay.models.spec import Assay, Plan, Target
from prefect_assay.models.vocabulary import (
    CHAIN_SEPARATOR,
    MACHINE_RAILS,
    REPLICATES_DEFAULT,
    ExperimentType,
    PaymentMethod,
)
from prefect_assay.models.words import in_words, many
from prefect_assay.ordering import resolve_target
from prefect_assay.tasks.collate import kept_plan
from prefect_assay.tasks.read import plan_campaign

if TYPE_CHECKING:
    from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy

_READERS: Final = 16
_OWN_FOLDERS: Final = frozenset({BOOKS_FOLDER, LAKE_FOLDER, LOOPS_FOLDER})
_NAMES_SHOWN: Final = 3


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """A campaign before it is ordered; `before` are the campaigns that have bought a design for the same assay."""

    sequences: Sequences
    assay: Assay
    target: Target | None
    plan: Plan
    priced: Sequence[PricedExperiment]
    goes_on: bool  # the campaign has this plan already: its orders are found
    before: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()

    @property
    def known_cents(self) -> int:
        """The sum of the known prices, in US cents without VAT."""
        return sum(one.cents or 0 for one in self.priced)

    @property
    def total(self) -> str:
        """The price in words."""
        quotes = sum(one.by_quote or one.cents is None for one in self.priced)
        known = f"{usd(self.known_cents)} without VAT"
        if not quotes:
            return known
        which = (
            "" if quotes == len(self.priced) else f" for {quotes} of {many(len(self.priced), 'experiment')}"
        )
        return f"by quote{which}; the estimate is {known}" if self.known_cents else f"by quote{which}"


def look_up(
    sequences: Sequences,
    assay: Assay,
    reading: ReadingOptions,
    *,
    campaign_id: str | None,
    per_experiment: int,
    credentials: "AssayCredentials",
    archive: "Archive",
) -> Purchase:
    """The purchase, with target and prices of the service and what the archive has of it. Nothing is written.

    Raises:
        InvalidSpec: the target is wrong, or the campaign id was used for other designs or another assay.
        InvalidSequences: the designs contain the target.
    """
    with credentials.get_client() as service:
        target = resolve_target(service, assay)
        refuse_target(sequences, target.sequence if target else None, reading)
        priced = price(service, sequences, assay, target, per_experiment)
    plan = plan_campaign.fn(sequences, assay, target, campaign_id=campaign_id, per_experiment=per_experiment)
    kept = kept_plan(archive, plan.campaign_id)
    if kept is not None and kept.order_keys != plan.order_keys:
        used = f"campaign_id: {plan.campaign_id} has been used for other designs or another assay; nothing was ordered"
        raise InvalidSpec([f"{used}. Choose a new campaign id"])
    notes: tuple[str, ...] = ()
    before: dict[str, tuple[str, ...]] = {}
    try:
        before = bought_before(archive, plan)
    except AssayError as error:  # only shown
        notes = (f"not compared with earlier campaigns: {error.message}",)
    return Purchase(
        sequences=sequences,
        assay=assay,
        target=target,
        plan=plan,
        priced=priced,
        goes_on=kept is not None,
        before=before,
        notes=notes,
    )


def bought_before(archive: "Archive", plan: Plan) -> dict[str, tuple[str, ...]]:
    """The designs of a plan that other campaigns of the archive have ordered for the same assay, with these campaigns."""
    store, prefix = archive.get_store(), safe_prefix(archive.prefix)
    wanted = {value.aa_string.upper(): name for name, value in plan.sequences.items() if not value.control}
    same = {_measures(one.spec) for one in plan.experiments}
    folders = [name for name in store.folders(prefix) if name not in _OWN_FOLDERS]
    found: dict[str, list[str]] = {}
    logs = Books.every(store, archive.prefix)
    with ThreadPoolExecutor(_READERS) as pool:
        for other in pool.map(lambda name: kept_plan(archive, name), folders):
            if other is None or other.campaign_id == plan.campaign_id:
                continue
            for one in other.experiments:
                shared = [
                    wanted[v.aa_string.upper()]
                    for v in one.spec.sequences.values()
                    if v.aa_string.upper() in wanted
                ]
                if not shared or _measures(one.spec) not in same:
                    continue
                if any(books.order(other.campaign_id, one.order_key).read().placed for books in logs):
                    for name in shared:
                        found.setdefault(name, []).append(other.campaign_id)
    return {name: tuple(dict.fromkeys(campaigns)) for name, campaigns in found.items()}


def _measures(spec: Any) -> tuple[object, ...]:
    return spec.experiment_type, spec.method, spec.target_id


def show(
    purchase: Purchase, policy: "SpendingPolicy", method: PaymentMethod, wallet: str | None, *, here: bool
) -> None:
    """Print what is bought, what it costs, and who is asked; 80 columns are enough."""
    rows = {
        "designs": "; ".join(_designs(purchase)),
        "measured before": _before(purchase.before),
        "assay": assay_line(purchase.assay, purchase.target),
        "price": f"{many(len(purchase.priced), 'experiment')}, {purchase.total}",
        "caps": caps_line(policy),
        "paid": paid_line(method, wallet),
        "asked": "; ".join(_asked(purchase, policy, here=here)),
        "campaign": f"{purchase.plan.campaign_id}{', which goes on: what it has ordered is found' if purchase.goes_on else ''}",
        "note": "; ".join(purchase.notes),
    }
    show_rows("To be bought", rows)


def show_rows(title: str, rows: Mapping[str, str]) -> None:
    """A table of two columns on stderr, without the empty rows."""
    table = plain_table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for name, value in rows.items():
        if value:
            table.add_row(f"  {name}", value)
    console = TerminalConsole(stderr=True, highlight=False, markup=False, emoji=False)
    console.print(title)
    console.print(table)


def assay_line(assay: Assay, target: Target | None) -> str:
    """What is measured, against what and how often."""
    by = f" by {assay.effective_method.upper()}" if assay.effective_method else ""
    against = f" against {target.name or target.id}" if target else ""
    if assay.experiment_type is ExperimentType.EPITOPE_BINNING:
        return f"{in_words(assay.experiment_type)}{by}{against}"
    replicates = assay.n_replicates or REPLICATES_DEFAULT
    default = "" if assay.n_replicates else ", the service's default"
    return f"{in_words(assay.experiment_type)}{by}{against}, {many(replicates, 'replicate')}{default}"


def caps_line(policy: "SpendingPolicy") -> str:
    """The caps of the policy."""
    return f"{usd(policy.per_experiment_cents)} per experiment, {usd(policy.per_campaign_cents)} per campaign"


def paid_line(method: PaymentMethod, wallet: str | None) -> str:
    """Who pays, and how."""
    if method in MACHINE_RAILS:
        return f"by machine, {method}, with the wallet of the account {wallet}"
    return "by a person, at the page of the invoice"


def _designs(purchase: Purchase) -> Iterator[str]:
    items = purchase.sequences.items
    lengths = [len(item.aa_string) - item.aa_string.count(CHAIN_SEPARATOR) for item in items]
    span = f"{min(lengths)}" if min(lengths) == max(lengths) else f"{min(lengths)} to {max(lengths)}"
    controls = sum(item.control for item in items)
    named = f", of them {many(controls, 'control')}" if controls else ""
    yield f"{len(items)} of {purchase.sequences.source}, {span} residues{named}"
    chains = Counter(item.aa_string.count(CHAIN_SEPARATOR) + 1 for item in items)
    if set(chains) != {1}:
        yield ", ".join(f"{count} with {many(number, 'chain')}" for number, count in sorted(chains.items()))
    if left := len(purchase.sequences.duplicates):
        yield f"{many(left, 'duplicate')} left out"
    if dropped := purchase.sequences.report.left_out_count:
        yield f"{many(dropped, 'row')} left out"


def _before(before: Mapping[str, tuple[str, ...]]) -> str:
    if not before:
        return ""
    campaigns = list(dict.fromkeys(name for names in before.values() for name in names))
    shown = ", ".join(campaigns[:_NAMES_SHOWN]) + (" and others" if len(campaigns) > _NAMES_SHOWN else "")
    names = ", ".join(list(before)[:_NAMES_SHOWN]) + (" ..." if len(before) > _NAMES_SHOWN else "")
    return f"{len(before)} of them are ordered already for this assay, in {shown}: {names}"


def _asked(purchase: Purchase, policy: "SpendingPolicy", *, here: bool) -> Iterator[str]:
    over = purchase.known_cents > policy.per_campaign_cents or any(
        (one.cents or 0) > policy.per_experiment_cents for one in purchase.priced
    )
    quotes = any(one.by_quote for one in purchase.priced)
    if over and here:
        yield "nobody can be: it is over a cap, so nothing is ordered. Deploy it, or raise the cap"
    elif over:
        yield "a person, because it is over a cap: prefect-assay approve. Nothing is ordered before"
    if quotes:
        yield (
            "nobody about a quote within the caps, which is accepted"
            if policy.accept_quotes
            else "a person, about each quote, before it is accepted"
        )
    if not over and not quotes:
        yield "nobody: it is within the caps, and ordered at once. An order cannot be withdrawn"
