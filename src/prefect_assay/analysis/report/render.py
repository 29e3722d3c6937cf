"""The report as one HTML file: no script, nothing from the network, every text of others escaped. Needs the extra `report`."""

import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from prefect_assay.analysis.kinetics.analysis import CONCENTRATION_ERROR, ReplicateKinetics
from prefect_assay.analysis.report import words
from prefect_assay.analysis.report.contents import CampaignContents
from prefect_assay.analysis.report.decision import Decision
from prefect_assay.analysis.report.details import details_table, encode_table, list_conditions
from prefect_assay.analysis.report.figures import SENSORGRAMS_MAX, CampaignFigures, CurveFigure
from prefect_assay.analysis.report.sequences import sequences_of
from prefect_assay.analysis.results.design import DesignSummary, find_main_quantity
from prefect_assay.analysis.results.formats import OUTCOME_WORDS, VERDICT_WORDS, format_quantity
from prefect_assay.analysis.results.hits import count_hits
from prefect_assay.analysis.results.ranked import (
    GROUPS,
    format_best,
    has_number,
    list_replicate_parts,
    list_verdict_parts,
    make_ranked_table,
)
from prefect_assay.analysis.selection import CALIBRATION, Calibration, calibrate_chances
from prefect_assay.archive.layout import safe_name
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.errors import ConfigurationError
from prefect_assay.orders.ledger.open_money import OpenKind
from prefect_assay.service.assays import ASSAY_TYPES, QuantityKind
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.billing import usd
from prefect_assay.service.words import describe_mode, describe_organisation, many

_PACKAGES: Final = ("prefect-assay", "numpy", "scipy")
_OPEN_MAX: Final = 1  # designs whose curves are open at first
_GROUPS_MAX: Final = 10  # designs whose curves are in the list at first
_NAMES_MAX: Final = 8  # of a failure that are listed at first


class DesignCurves(Model):
    """All replicates of one design."""

    name: str
    experiment_code: str
    summary: DesignSummary | None
    curves: tuple[CurveFigure, ...]

    @property
    def is_kinetics(self) -> bool:
        """Sensorgrams, not melting curves."""
        return isinstance(self.curves[0].fit, ReplicateKinetics)


def render_page(
    contents: CampaignContents,
    designs: tuple[DesignSummary, ...],
    figures: CampaignFigures,
    curves: tuple[CurveFigure, ...],
    notes: tuple[str, ...],
    decision: Decision,
) -> bytes:
    """The page, UTF-8. It depends on its arguments and on the versions of the libraries, and on nothing else.

    Raises:
        ConfigurationError: the extra `report` is not installed.
    """
    try:
        from prefect_assay.analysis.report.template import REPORT  # noqa: PLC0415  an optional extra
    except ImportError:
        raise ConfigurationError.missing_extra("report", "the HTML report") from None
    page = REPORT.render(
        campaign=contents,
        assay=words.assay_line(contents),
        attributions=sorted(
            {r.attribution for e in contents.experiments for r in e.results if r.attribution}
        ),
        citation=tuple(_cite_sources(contents)),
        designs=designs,
        table=make_ranked_table(designs, width=None),
        details=details_table(designs, tuple(figures.predicted)),
        decision=decision,
        simulated=words.simulated_line(designs),
        find_main_quantity=find_main_quantity,
        format_quantity=format_quantity,
        verdict_parts=list_verdict_parts,
        replicate_parts=list_replicate_parts,
        sequences=sequences_of(
            designs,
            {n: v.aa_string for n, v in contents.plan.sequences.items()} if contents.plan else {},
        ),
        conditions={
            experiment.code: list_conditions(experiment, curves) for experiment in contents.experiments
        },
        csv_name=f"{safe_name(contents.campaign_id)}.csv",
        csv_address=encode_table(designs),
        tiles=tuple(_make_tiles(contents, designs)),
        account=tuple(_account_rows(contents)),
        figures=figures,
        calibration=_calibrate_predictions(contents, designs),
        CALIBRATION=CALIBRATION,
        groups=tuple(_group_curves(curves, designs)),
        verdicts=_count_verdicts(curves),
        reviews=[curve for curve in curves if curve.needs_review],
        failures=tuple(words.group_failures(designs)),
        notes=notes,
        versions=_list_versions(),
        words=words,
        many=many,
        OUTCOME_WORDS=OUTCOME_WORDS,
        VERDICT_WORDS=VERDICT_WORDS,
        ASSAY_TYPES=ASSAY_TYPES,
        GROUPS=GROUPS,
        concentration_error=f"{CONCENTRATION_ERROR * 100:.0f} %",
        undrawn=sum(curve.svg is None for curve in curves),
        drawn_max=SENSORGRAMS_MAX,
        open_max=_OPEN_MAX,
        groups_max=_GROUPS_MAX,
        names_max=_NAMES_MAX,
    )
    return page.encode()


class Tile(Model):
    """A figure of the page's head, and what it is; `warns` if it is not to be overlooked."""

    value: str
    meaning: str
    warns: bool = False


def _make_tiles(contents: CampaignContents, ranked: tuple[DesignSummary, ...]) -> Iterator[Tile]:
    yield from _make_account_tiles(contents)
    money, is_owed = _make_money_tile(contents)
    if is_owed:
        yield money
    designs = [design for design in ranked if not design.control]
    ordered = sum(missing.designs for missing in contents.missing)
    if ordered and not designs:
        yield Tile(value=str(ordered), meaning="designs without results yet")
    if designs:
        counted = count_hits(designs)
        verb = "designs bind" if counted.binds else "designs with a measured value"
        yield Tile(value=counted.rate.words, meaning=", ".join([verb, *counted.others]))
    best = designs[0] if designs else None
    if best is not None and has_number(best):
        what = "tightest binder" if best.kd_M is not None else _name_best(find_main_quantity(best))
        yield Tile(value=format_best(best), meaning=f"{what}: {best.name}")
    if not is_owed:
        yield money


def _name_best(quantity: QuantityKind | None) -> str:
    if quantity is None:
        return "best"
    return f"{'lowest' if quantity.lower_is_better else 'highest'} {quantity.description}"


def _make_account_tiles(contents: CampaignContents) -> Iterator[Tile]:
    """Whether the service is a simulation, and whose account it is; nothing without the campaign's log."""
    terms = contents.terms
    if terms is None:
        return
    account = f"account {terms.account_name or 'without a name'}"
    if terms.simulated:
        meaning = f"{account}: a local lab has answered in place of the service, and no money has moved"
        yield Tile(value="Simulated", meaning=meaning, warns=True)
    else:
        yield Tile(value="Live", meaning=f"{account}, {terms.service}")


def _account_rows(contents: CampaignContents) -> Iterator[tuple[str, str]]:
    """The account and who has asked for the campaign, by its log."""
    started, terms = contents.started, contents.terms
    if started is None or terms is None:
        return
    kind = describe_mode(is_simulated=terms.simulated)
    where = f"{terms.service}, {describe_organisation(terms.organisation, terms.organisation_name)}"
    yield "Account", f"{terms.account_name or 'without a name'} ({kind}), {where}"
    asked_by = ": ".join(filter(None, (started.requester, started.requester_known_by)))
    optional = {
        "Owner": terms.owner,
        "Purchase order": terms.purchase_order,
        "Cost center": terms.cost_centre,
        "Asked for by": asked_by,
        "Without asking": f"up to {usd(terms.per_campaign_cents)}: {started.approved_by}"
        if started.approved_by
        else "",
    }
    yield from ((title, text) for title, text in optional.items() if text)


def _make_money_tile(contents: CampaignContents) -> tuple[Tile, bool]:
    """What is owed if anything is, else what was paid, by the logs. Without a log the sum is not known, which is not zero."""
    if contents.paid_cents is None:
        meaning = "what was paid: no order log in this archive that can be read"
        return Tile(value="not known", meaning=meaning), False
    money, paid = contents.money, usd(contents.paid_cents)
    without_vat = "simulated, without VAT" if contents.is_simulated else "without VAT"
    also = "" if contents.all_logged else "not all orders have a log that can be read"
    owed = [item for item in money.items if item.kind is OpenKind.TO_PAY]
    if not owed:
        meaning = "; ".join(filter(None, (f"paid, {without_vat}", money.line, also)))
        return Tile(value=paid, meaning=meaning), False
    is_known = all(item.amount_cents is not None for item in owed)
    others = money.model_copy(update={"items": tuple(item for item in money.items if item not in owed)})
    more = "" if is_known else "some invoices without an amount"
    parts = (f"still to be paid, {without_vat}", more, f"{paid} paid", others.line, also)
    value = (
        usd(money.sum_cents(OpenKind.TO_PAY))
        if is_known or money.sum_cents(OpenKind.TO_PAY)
        else "not known yet"
    )
    return Tile(value=value, meaning="; ".join(filter(None, parts)), warns=True), True


def _calibrate_predictions(
    contents: CampaignContents, designs: tuple[DesignSummary, ...]
) -> tuple[Calibration, ...]:
    """Chances to hit that selection predicted, compared with what was found; empty for assays that selection does not know."""
    kinds = {experiment.spec.experiment_type for experiment in contents.experiments if experiment.spec}
    objective = ASSAY_TYPES[kinds.pop()].objective if len(kinds) == 1 else None
    return calibrate_chances(designs, SelectionSettings(objective=objective)) if objective else ()


def _cite_sources(contents: CampaignContents) -> Iterator[str]:
    codes = ", ".join(experiment.code for experiment in contents.experiments)
    yield f"Campaign {contents.campaign_id}: {words.assay_line(contents)}."
    yield (
        f"Experiments {codes}; archived {words.format_day(contents.as_of)}."
        if codes
        else "No results archived."
    )
    for experiment in contents.experiments:
        yield f"{experiment.code} version {experiment.manifest.version}, manifest SHA-256 {experiment.manifest_sha256}."
    yield f"Report by prefect-assay {_list_versions()['prefect-assay']}."


def _group_curves(curves: Iterable[CurveFigure], ranked: Iterable[DesignSummary]) -> Iterator[DesignCurves]:
    """The curves by design, in the order of the ranking; names without a result come last."""
    by_design: dict[tuple[str, str], list[CurveFigure]] = {}
    for curve in curves:
        by_design.setdefault((curve.experiment_code, curve.fit.name), []).append(curve)
    known = {(design.experiment_code, design.name): design for design in ranked}
    for place in (*known, *sorted(by_design.keys() - known.keys())):
        if place in by_design:
            yield DesignCurves(
                experiment_code=place[0],
                name=place[1],
                summary=known.get(place),
                curves=tuple(sorted(by_design[place], key=_read_replicate)),
            )


def _read_replicate(curve: CurveFigure) -> tuple[str, int]:
    return curve.result_id, curve.fit.replicate or 0


def _count_verdicts(curves: Iterable[CurveFigure]) -> dict[str, int]:
    """How many replicates have each word of a verdict; one with two words counts with both."""
    counted = Counter(word for curve in curves for word in list_replicate_parts(curve.fit))
    return {word: counted[word] for word in words.VERDICT_MEANINGS if counted[word]}


def _list_versions() -> dict[str, str]:
    versions = {"Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
