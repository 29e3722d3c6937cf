"""Computes what a campaign buys: what is new, what was ordered before, what is due, by whom it is approved and paid.

`look_up_purchase` reads the service and the archive, and writes nothing. `summarize_purchase` is pure.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from prefect.context import FlowRunContext

from prefect_assay.analysis.results.affinity import UnclearAffinity, read_affinities
from prefect_assay.archive.campaign_plan import Plan, PlannedExperiment
from prefect_assay.archive.plans import find_plan
from prefect_assay.blocks import SpendingPolicy
from prefect_assay.blocks.order_ledger import read_organisation
from prefect_assay.campaigns.approval.terms import AccountIdentity, describe_account, identify_account
from prefect_assay.campaigns.orders import PlannedOrder
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.errors import AssayError, InvalidSpec
from prefect_assay.orders.ledger import Ledgers, OrderLedger, OrderState
from prefect_assay.orders.ledger.campaign_log import Terms
from prefect_assay.orders.ledger.state import NotBegun
from prefect_assay.orders.payments.interfaces import normalize_address
from prefect_assay.orders.purchase import (
    PAID_AGAIN,
    EarlierPurchase,
    PurchasedExperiment,
    PurchaseState,
    PurchaseSummary,
    describe_assay,
    itemise_price,
)
from prefect_assay.service.assays import ASSAY_TYPES
from prefect_assay.service.models.billing import CostEstimate, usd
from prefect_assay.service.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.service.models.vocabulary import (
    CHAIN_SEPARATOR,
    PaymentMethod,
)
from prefect_assay.service.words import listed, many
from prefect_assay.tasks.collate import kept_plan
from prefect_assay.tasks.estimate import estimate_cost, read_price

CAMPAIGNS_COMPARED: Final = 300  # the newest; each costs three requests to the archive
_READERS: Final = 16
_NAMES_SHOWN: Final = 3
_NANO: Final = 1e9
# Words of a title that say whose K_D it is, before the name that `read_affinities` knows.
_EXPECTATION: Final = re.compile(r"\b(?:expected|predicted|pred|target|design(?:ed)?)[\s_-]+", re.IGNORECASE)


@dataclass(frozen=True)
class OrderPrice:
    """The price of one experiment now. A committed one is billed, or has ended without a bill."""

    state: PurchaseState
    cents: int | None = None
    is_committed: bool = False
    estimate: CostEstimate | None = None


class Earlier(NamedTuple):
    """What other campaigns have ordered, newest first, and why not all of them were compared, if so."""

    purchases: tuple[EarlierPurchase, ...] = ()
    unread: str | None = None


@dataclass(frozen=True, kw_only=True)
class PurchaseFacts:
    """Everything that a summary is made of. `prices` are by order key."""

    plan: Plan
    account: Terms | AccountIdentity
    policy: SpendingPolicy
    payment_method: PaymentMethod
    prices: Mapping[str, OrderPrice]
    request_quote: bool = False
    continues: bool = False
    earlier: Earlier = field(default_factory=Earlier)
    unasked_cents: int | None = None
    raised_cents: int = 0  # the cap that persons have raised for this campaign
    requester: str | None = None


def look_up_purchase(
    setup: CampaignSetup, plan: Plan, *, unasked_cents: int | None = None, requester: str | None = None
) -> PurchaseSummary:
    """The purchase before its campaign is started: prices of the service, and what the archive has of it.

    Raises:
        InvalidSpec: the campaign id was used for other designs or another assay.
        AssayError: the service or the archive cannot be read.
    """
    kept = kept_plan(setup.archive, plan.campaign_id)
    if kept is not None and kept.order_keys != plan.order_keys:
        used = f"campaign_id: {plan.campaign_id} has been used for other designs or another assay; nothing was ordered"
        raise InvalidSpec([f"{used}. Choose a new campaign name"])
    service = normalize_address(setup.credentials.base_url)
    ledgers = Ledgers.find_recorded(setup.archive.get_store(), setup.archive.prefix, service)
    by_key = {key: ledgers.open_order(plan.campaign_id, key) for key in plan.order_keys} if ledgers else {}
    with setup.credentials.get_client() as client:
        named = None if ledgers else read_organisation(client)
        client.targets.list(limit=1)
        is_simulated = client.is_simulated
    return summarize_purchase(
        PurchaseFacts(
            plan=plan,
            account=identify_account(
                setup.account,
                service,
                ledgers.organisation if ledgers else named.id if named else None,
                ledgers.organisation_name if ledgers else named.name if named else None,
                is_simulated=is_simulated,
            ),
            policy=setup.policy,
            payment_method=setup.payment_method,
            prices=price_orders(setup, plan, by_key),
            request_quote=setup.options.spending.request_quote,
            continues=kept is not None,
            earlier=find_earlier(setup, [plan], ledgers),
            unasked_cents=unasked_cents,
            raised_cents=ledgers.budget.read().caps.get(plan.campaign_id, 0) if ledgers else 0,
            requester=requester,
        )
    )


def is_begun(state: OrderState) -> bool:
    """Whether the order is placed, or may be, or came to its end without being placed."""
    return bool(state.ordered or state.open_attempts or state.withdrawn or state.stopped)


def price_orders(
    setup: CampaignSetup, plan: Plan, by_key: Mapping[str, OrderLedger]
) -> dict[str, OrderPrice]:
    """The price of each experiment of a plan, by order key, like `ledgers`, which are empty before the first use.

    The service is asked about what is not placed and about open quotes. Once every order is placed, the ledgers answer.
    """
    states = {key: by_key[key].read() if key in by_key else NotBegun() for key in plan.order_keys}
    if all(map(is_begun, states.values())):
        return {key: _price_by_ledger(state) for key, state in states.items()}
    return {
        one.order_key: _price_order(setup, one, by_key.get(one.order_key), states[one.order_key])
        for one in plan.experiments
    }


def _price_order(
    setup: CampaignSetup, planned: PlannedExperiment, ledger: OrderLedger | None, state: OrderState
) -> OrderPrice:
    in_flow = FlowRunContext.get() is not None  # outside of one, a task would need Prefect's server
    if ledger is None or not is_begun(state):
        estimate = (estimate_cost if in_flow else estimate_cost.fn)(setup.credentials, planned.spec)
        return OrderPrice(PurchaseState.NEW, estimate.total_cents, estimate=estimate)
    known = _price_by_ledger(state)
    if known.state is PurchaseState.ENDED or (known.is_committed and known.cents is not None):
        return known
    price = (read_price if in_flow else read_price.fn)(setup.credentials, planned, ledger=ledger)
    now = PurchaseState.ORDERED if price.committed else known.state
    return OrderPrice(now, price.total_cents, is_committed=price.committed)


def _price_by_ledger(state: OrderState) -> OrderPrice:
    if state.delivered is not None:
        return OrderPrice(PurchaseState.MEASURED, state.amount_cents, is_committed=True)
    if state.is_accepted:
        return OrderPrice(PurchaseState.ORDERED, state.amount_cents, is_committed=True)
    if not state.placed or state.stopped is not None:
        return OrderPrice(PurchaseState.ENDED, 0, is_committed=True)
    if state.ordered is None:
        return OrderPrice(PurchaseState.UNKNOWN, state.amount_cents)
    return OrderPrice(PurchaseState.QUOTED, state.amount_cents)


# -- what was ordered before


def find_earlier(
    setup: CampaignSetup, plans: Sequence[Plan], ledgers: Ledgers | None, excluded_ids: Collection[str] = ()
) -> Earlier:
    """The designs of plans that other campaigns have ordered for the same type of assay, method and target.

    `excluded_ids` are campaigns that are not other ones, such as the rounds of the plans' loop.

    The budget names every campaign that has sent an order, so that one with a plan alone costs nothing. Best effort: a
    summary without it is still true.
    """
    if ledgers is None:
        return Earlier()
    try:
        return _find_earlier(
            setup, plans, ledgers, {None, *(plan.campaign_id for plan in plans), *excluded_ids}
        )
    except (AssayError, OSError) as error:
        return Earlier(unread=f"not compared with earlier campaigns: {error}")


def _find_earlier(
    setup: CampaignSetup, plans: Sequence[Plan], ledgers: Ledgers, excluded_ids: Collection[str | None]
) -> Earlier:
    store, prefix = setup.archive.get_store(), setup.archive.prefix
    names = defaultdict[tuple[str, str], list[str]](list)
    for plan in plans:
        for name, value in plan.sequences.items():
            if not value.control:
                names[_identify_protein(value)].append(name)
    measured = {_describe_measurement(one.spec) for plan in plans for one in plan.experiments}
    sent = {
        one.campaign_id: None
        for one in reversed(ledgers.budget.read().reservations.values())
        if one.campaign_id not in excluded_ids and (one.action or one.cents)
    }
    campaigns = [name for name in sent if name is not None]

    def compare(campaign_id: str) -> EarlierPurchase | None:
        other = find_plan(store, prefix, campaign_id)
        shared: list[str] = []
        states = []
        for one in other.experiments if other else ():
            proteins = [_identify_protein(value) for value in one.spec.sequences.values()]
            same = [name for protein in proteins for name in names.get(protein, ())]
            if not same or _describe_measurement(one.spec) not in measured:
                continue
            state = ledgers.open_order(campaign_id, one.order_key).read()
            if state.placed:
                shared += same
                states.append(state)
        if not shared:
            return None
        return EarlierPurchase(
            campaign_id=campaign_id,
            designs=tuple(dict.fromkeys(shared)),
            ordered_at=min((state.ordered.at for state in states if state.ordered), default=None),
            measured=all(state.delivered is not None for state in states),
        )

    with ThreadPoolExecutor(_READERS) as pool:
        purchases = [one for one in pool.map(compare, campaigns[:CAMPAIGNS_COMPARED]) if one is not None]
    more = len(campaigns) - CAMPAIGNS_COMPARED
    unread = (
        f"compared with the newest {CAMPAIGNS_COMPARED} of {len(campaigns)} campaigns" if more > 0 else None
    )
    return Earlier(tuple(purchases), unread)


def _identify_protein(value: SequenceValue) -> tuple[str, str]:
    """What makes two designs the same protein: residues and the location of the tag (contract 2.3)."""
    metadata = value.metadata or {}
    return value.aa_string.upper(), str(metadata.get("tag_location") or "").upper()


def _describe_measurement(spec: ExperimentSpec) -> tuple[str, str | None, str | None]:
    return spec.experiment_type, spec.method, spec.target_id


# -- the summary


def purchase_of_orders(orders: Sequence[PlannedOrder]) -> tuple[dict[str, CostEstimate], PurchaseSummary]:
    """The estimates of what is not placed, by order key, and the purchase of a campaign that has begun."""
    first = orders[0]
    setup, plan = first.setup, first.plan
    by_key = {order.key: order.ledger for order in orders}
    prices = price_orders(setup, plan, by_key)
    started = first.log.read().started
    is_open = not all(price.is_committed for price in prices.values())
    summary = summarize_purchase(
        PurchaseFacts(
            plan=plan,
            account=started.terms if started else setup.terms(setup.unasked_cents),
            policy=setup.policy,
            payment_method=setup.payment_method,
            prices=prices,
            request_quote=setup.options.spending.request_quote,
            continues=any(is_begun(ledger.state) for ledger in by_key.values()),
            earlier=find_earlier(setup, [plan], setup.ledgers) if is_open else Earlier(),
            unasked_cents=setup.unasked_cents,
            raised_cents=setup.ledgers.budget.read().caps.get(plan.campaign_id, 0),
            requester=started.requester if started else None,
        )
    )
    return {key: price.estimate for key, price in prices.items() if price.estimate is not None}, summary


def summarize_purchase(facts: PurchaseFacts) -> PurchaseSummary:
    """The summary of a purchase; nothing is read."""
    plan, policy = facts.plan, facts.policy
    values, first = plan.sequences.values(), plan.experiments[0].spec
    lengths = [len(value.aa_string) - value.aa_string.count(CHAIN_SEPARATOR) for value in values]
    experiments = tuple(
        _summarize_experiment(planned, facts.prices[planned.order_key], facts) for planned in plan.experiments
    )
    prices = facts.prices.values()
    uncommitted = [price for price in prices if not price.is_committed]
    summary = PurchaseSummary(
        campaign_id=plan.campaign_id,
        continues=facts.continues,
        source=plan.source,
        designs=len(lengths),
        residues=(min(lengths), max(lengths)),
        controls=sum(value.control for value in values),
        duplicates=len(plan.duplicates),
        assay=describe_assay(first, plan.target_name or first.target_id),
        account=describe_account(facts.account),
        account_name=facts.account.account_name,
        service=facts.account.service,
        organisation=facts.account.organisation,
        simulated=facts.account.simulated,
        owner=facts.account.owner,
        purchase_order=facts.account.purchase_order,
        cost_centre=facts.account.cost_centre,
        requester=facts.requester,
        experiments=experiments,
        earlier=facts.earlier.purchases,
        earlier_unread=facts.earlier.unread,
        due_cents=sum(price.cents or 0 for price in uncommitted),
        committed_cents=sum(price.cents or 0 for price in prices if price.is_committed),
        unpriced=sum(price.cents is None for price in uncommitted),
        per_experiment_cents=policy.per_experiment_cents,
        per_campaign_cents=policy.per_campaign_cents,
        answer_ceiling_cents=policy.answer_ceiling_cents,
        second_person_above_cents=policy.second_person_above_cents,
        accept_quotes=policy.accept_quotes,
        unasked_cents=facts.unasked_cents,
        payment_method=facts.payment_method,
        paid=describe_payment(facts.payment_method),
        asked="",
        warnings=tuple(find_warnings(plan)) if uncommitted else (),
    )
    return summary.model_copy(update={"asked": describe_asking(summary, facts.raised_cents)})


def _summarize_experiment(
    planned: PlannedExperiment, price: OrderPrice, facts: PurchaseFacts
) -> PurchasedExperiment:
    values = planned.spec.sequences.values()
    lines, unread = itemise_price(price.estimate) if price.estimate else ((), ())
    by_quote = None
    if price.estimate is not None:
        if price.estimate.total_cents is None:
            by_quote = price.estimate.reason
        elif not planned.spec.takes_target:
            by_quote = "the assay takes no target"
        elif facts.request_quote:
            by_quote = "you have asked for a quote"
    return PurchasedExperiment(
        number=planned.batch_index + 1,
        designs=len(values),
        controls=sum(value.control for value in values),
        state=price.state,
        cents=price.cents,
        lines=lines,
        unread=unread,
        by_quote=by_quote,
        warnings=tuple(map(str, price.estimate.warnings)) if price.estimate else (),
    )


def describe_payment(method: PaymentMethod) -> str:
    """Who pays, and how."""
    if method is PaymentMethod.ASYNC_INVOICE:
        return "by a person, at the page of the invoice"
    return f"by machine, {method}, with the account's wallet"


def describe_asking(summary: PurchaseSummary, raised_cents: int = 0) -> str:
    """Who is asked before the order, and why."""
    if not summary.new:
        return "nobody: there is nothing to order"
    return "; ".join(_ask_price(summary, raised_cents)) or (
        f"no further approval: {usd(summary.total_cents)} is within the approved amount"
    )


def _ask_price(summary: PurchaseSummary, raised_cents: int) -> Iterator[str]:
    total = summary.total_cents
    second = summary.second_person_above_cents
    if total > summary.answer_ceiling_cents:
        yield f"nothing is ordered: no answer may approve more than {usd(summary.answer_ceiling_cents)}"
    elif total > raised_cents:
        if second is not None and total > second:
            yield (
                f"another person than {summary.requester or 'who asks for it'}, before anything is ordered: the policy asks "
                f"for two above {usd(second)}"
            )
        elif total > summary.per_campaign_cents:
            yield f"a person, before anything is ordered: it is over the cap per campaign, {usd(summary.per_campaign_cents)}"
        elif summary.unasked_cents is None:
            yield "you, before anything is ordered"
        elif total > summary.unasked_cents:
            approved = f"{usd(summary.unasked_cents)} is" if summary.unasked_cents else "nothing is"
            yield f"a person, with this price, before anything is ordered: {approved} approved so far"
    limit = summary.per_experiment_cents if second is None else min(summary.per_experiment_cents, second)
    over = [str(one.number) for one in summary.new if (one.cents or 0) > limit]
    if over and total <= max(summary.unasked_cents or 0, raised_cents):
        yield f"a person, before the order of experiment {', '.join(over)}: over the cap per experiment"
    if any(one.by_quote for one in summary.new):
        yield (
            "nobody about a quote within the caps, which is accepted"
            if summary.accept_quotes
            else "a person, about each quote, before it is accepted"
        )


def warn_of_earlier(names: Collection[str], earlier: Sequence[EarlierPurchase]) -> str:
    """That designs of a loop's round were bought by other campaigns: each campaign name orders and pays its own."""
    known = {name for one in earlier for name in one.designs}.intersection(names)
    if not known:
        return ""
    campaigns = dict.fromkeys(one.campaign_id for one in earlier if known.intersection(one.designs))
    return (
        f"{len(known)} of {many(len(names), 'design')} to be ordered, which {listed([*campaigns], _NAMES_SHOWN)} ordered "
        f"before for the same assay and target. {PAID_AGAIN}"
    )


def find_warnings(plan: Plan) -> Iterator[str]:
    """What you should look at before you pay: controls, concentrations, doubtful designs."""
    without = [
        str(one.batch_index + 1)
        for one in plan.experiments
        if not any(value.control for value in one.spec.sequences.values())
    ]
    if without:
        where = "" if len(without) == len(plan.experiments) else f" in experiment {', '.join(without)}"
        yield f"no control{where}: nothing will show that the assay worked; `true` in a column `control`, or `control=true` in a FASTA header, marks one"
    yield from _list_unbracketed(plan)
    yield from plan.doubts


def _list_unbracketed(plan: Plan) -> Iterator[str]:
    """Expected K_D that the file states, outside of the concentrations (contract 8 has the default)."""
    assay = plan.assay
    default = ASSAY_TYPES[assay.experiment_type].concentrations_nM
    if not default:
        return
    concentrations = [one for one in assay.antigen_concentrations or default if one > 0]
    if not concentrations:
        return
    lowest, highest = min(concentrations), max(concentrations)
    source = "" if assay.antigen_concentrations else ", the service's default"
    for title, expected in _expected_kd_nm(plan).items():
        outside = {name: kd for name, kd in expected.items() if not lowest <= kd <= highest}
        if outside:
            examples = listed([f"{name} {kd:.3g} nM" for name, kd in outside.items()], _NAMES_SHOWN)
            yield (
                f"the concentrations, {lowest:g} to {highest:g} nM{source}, do not bracket the K_D that column "
                f"{title!r} gives for {many(len(outside), 'design')}: {examples}"
            )


def _expected_kd_nm(plan: Plan) -> dict[str, dict[str, float]]:
    """The K_D in nM that columns of the file give, by column and design; only where title or cell has a unit."""
    designs = {name: columns for name, columns in plan.attributes.items() if not plan.sequences[name].control}
    titles = dict.fromkeys(title for columns in designs.values() for title in columns)
    kds_nm: dict[str, dict[str, float]] = {}
    for title in titles:
        names = [name for name, columns in designs.items() if columns.get(title)]
        try:
            values, _ = read_affinities(
                [_EXPECTATION.sub("", title)], [[designs[name][title]] for name in names]
            )
        except UnclearAffinity:
            continue
        exact = {
            name: value.kd_M * _NANO
            for name, value in zip(names, values, strict=True)
            if value.kd_M is not None and value.qualifier is None
        }
        if exact:
            kds_nm[title] = exact
    return kds_nm
