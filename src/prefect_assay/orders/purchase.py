"""What a campaign is about to buy, and what it has bought: one frozen record that every place shows.

Amounts are US cents without VAT. None is an amount that nobody has stated.
"""

from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime, Field

from prefect_assay.service.assays import ASSAY_TYPES
from prefect_assay.service.models.base import StoredModel
from prefect_assay.service.models.billing import Breakdown, CostEstimate, usd
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from prefect_assay.service.models.vocabulary import REPLICATES_DEFAULT, PaymentMethod
from prefect_assay.service.words import in_words, many

# Parts of the lines that are read; the published shapes show them next to the contract's.
_KNOWN_PARTS: Final = frozenset({"unit_price_cents", "replicate_price_cents"})


class PurchaseState(StrEnum):
    """How far an experiment of a plan is bought."""

    NEW = "new"
    QUOTED = "waits for its quote to be accepted"
    UNKNOWN = "its order has an unknown outcome"
    ORDERED = "ordered"
    MEASURED = "measured"
    ENDED = "ended without an order"


PAID_AGAIN: Final = "You pay for them once more: leave out what you do not want to buy twice"
OPEN_STATES: Final = frozenset({PurchaseState.NEW, PurchaseState.QUOTED, PurchaseState.UNKNOWN})


class PriceLine(StoredModel):
    """One line of a price; `cents` is None if the estimate does not show it."""

    name: str
    cents: int | None
    detail: str = ""


class PurchasedExperiment(StoredModel):
    """One experiment. `cents` is its estimate, its quote, or what is billed for it; `number` counts from 1."""

    number: int
    designs: int
    controls: int
    state: PurchaseState
    cents: int | None
    lines: tuple[PriceLine, ...] = ()
    unread: tuple[str, ...] = ()  # what the estimate also shows, and nobody reads
    by_quote: str | None = None  # why only a quote says the price
    warnings: tuple[str, ...] = ()  # of the service


class EarlierPurchase(StoredModel):
    """Designs of the plan that another campaign of the archive has ordered for the same assay and target."""

    campaign_id: str
    designs: tuple[str, ...]  # names in the present plan
    ordered_at: AwareDatetime | None = None
    measured: bool = False  # all results of the orders that have them are archived


class PurchaseSummary(StoredModel):
    """What is new, what was ordered before, what is due now, and under which account and caps.

    Attributes:
        account: the account for people, with its name and `simulated` or `LIVE`.
        due_cents: the sum of what is not committed yet and has a price.
        committed_cents: what the campaign's placed orders cost.
        unpriced: experiments that only a quote can price.
        unasked_cents: what may be spent without asking; None where nobody has said it yet.
        earlier_unread: why other campaigns were not compared, or not all of them.
    """

    campaign_id: str
    continues: bool = False  # the campaign is in the archive already
    source: str = ""
    designs: int
    residues: tuple[int, int]  # fewest and most of a design
    controls: int
    duplicates: int = 0
    assay: str
    account: str
    account_name: str | None = None
    service: str
    organisation: str | None = None
    simulated: bool | None
    owner: str | None = None
    purchase_order: str | None = None
    cost_centre: str | None = None
    requester: str | None = None
    experiments: tuple[PurchasedExperiment, ...]
    earlier: tuple[EarlierPurchase, ...] = ()
    earlier_unread: str | None = None
    due_cents: int
    committed_cents: int
    unpriced: int
    per_experiment_cents: int
    per_campaign_cents: int
    answer_ceiling_cents: int
    second_person_above_cents: int | None = None
    accept_quotes: bool
    unasked_cents: int | None = None
    payment_method: PaymentMethod
    paid: str
    asked: str = Field(description="Who is asked before the order, and why.")
    warnings: tuple[str, ...] = ()

    @property
    def total_cents(self) -> int:
        """What an approval has to cover: the whole campaign, as far as its prices are known."""
        return self.committed_cents + self.due_cents

    @property
    def new(self) -> tuple[PurchasedExperiment, ...]:
        """The experiments that are not committed yet."""
        return tuple(one for one in self.experiments if one.state in OPEN_STATES)

    @property
    def earlier_designs(self) -> tuple[str, ...]:
        """The names of the designs that were ordered before in other campaigns."""
        return tuple(dict.fromkeys(name for one in self.earlier for name in one.designs))

    @property
    def due(self) -> str:
        """What is due now, in words."""
        if not self.new:
            return "nothing more to order: 0.00 USD"
        known = f"{usd(self.due_cents)} without VAT"
        if not self.unpriced:
            return known
        if self.unpriced == len(self.new) and not self.due_cents:
            return "by quote"
        return f"{known}, and {many(self.unpriced, 'experiment')} by quote"


def describe_assay(assay: Assay | ExperimentSpec, target: str | None) -> str:
    """What is measured, against what and how often."""
    method = assay.effective_method if isinstance(assay, Assay) else assay.method
    by = f" by {method.upper()}" if method else ""
    against = f" against {target}" if target else ""
    if "n_replicates" not in ASSAY_TYPES[assay.experiment_type].takes:
        return f"{in_words(assay.experiment_type)}{by}{against}"
    default = (
        ""
        if assay.n_replicates
        else ", the service's default (--replicates, or Replicates in the form, changes it)"
    )
    repeats = many(assay.n_replicates or REPLICATES_DEFAULT, "replicate")
    return f"{in_words(assay.experiment_type)}{by}{against}, {repeats}{default}"


def describe_caps(per_experiment_cents: int, per_campaign_cents: int, two_above_cents: int | None) -> str:
    """The caps of a policy."""
    two = "" if two_above_cents is None else f"; two persons above {usd(two_above_cents)}"
    return f"{usd(per_experiment_cents)} per experiment, {usd(per_campaign_cents)} per campaign{two}"


def itemise_price(estimate: CostEstimate) -> tuple[tuple[PriceLine, ...], tuple[str, ...]]:
    """The lines of a complete estimate (contract 2.5), and what it shows besides; both empty without one."""
    price = estimate.breakdown
    if price is None:
        return (), ()
    assay, materials = price.assay, price.materials
    lines = [
        PriceLine(name="assay", cents=assay.base_cents if assay else None),
        PriceLine(name="replicates", cents=assay.replicate_addon_cents if assay else None),
    ]
    if materials is not None:
        unit = materials.price_per_sequence_cents
        detail = f"{usd(unit)} per sequence" if unit is not None and not materials.lots else ""
        lines.append(PriceLine(name="materials", cents=materials.subtotal_cents, detail=detail))
    return tuple(lines), _unread_lines(price)


def _unread_lines(price: Breakdown) -> tuple[str, ...]:
    unread = list(price.model_extra or {})
    for name, part in (("assay", price.assay), ("materials", price.materials)):
        extra = part.model_extra or {} if part else {}
        unread += [f"{name}.{key}" for key in extra if key.endswith("_cents") and key not in _KNOWN_PARTS]
    return tuple(unread)


def sum_lines(experiments: tuple[PurchasedExperiment, ...]) -> tuple[PriceLine, ...]:
    """The lines of several experiments as one; a line that one of them does not show has no sum."""
    names = dict.fromkeys(line.name for one in experiments for line in one.lines)
    totals = []
    for name in names:
        parts = [line for one in experiments for line in one.lines if line.name == name]
        cents = [line.cents for line in parts if line.cents is not None]
        details = {line.detail for line in parts}
        totals.append(
            PriceLine(
                name=name,
                cents=sum(cents) if len(cents) == len(parts) else None,
                detail=details.pop() if len(details) == 1 else "",
            )
        )
    return tuple(totals)
