"""Collects what a report says from a campaign's archive alone: plan, specifications, raw answers and the orders' log.

Nothing here depends on when or where it is collected: the same archive gives the same contents, in another folder as
well. Each file that is read is compared with its manifest, so no value comes from a file that has changed.
"""

from collections.abc import Iterator
from datetime import datetime

from prefect_assay.analysis.report.answers import ReportedExperiment, reported_experiment
from prefect_assay.analysis.report.orders import OrderFacts, orders_of
from prefect_assay.analysis.results.row import ResultRow, collate_rows
from prefect_assay.archive.archived import Manifest
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.layout import (
    CAMPAIGN_CODES,
    PLAN_CODE,
    safe_name,
    safe_prefix,
    version_of,
)
from prefect_assay.archive.read import chosen_version, read_newest_version, read_plan
from prefect_assay.archive.store import Store, join_key
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError
from prefect_assay.orders.ledger.campaign_log import CampaignLog, Started, Terms
from prefect_assay.orders.ledger.open_money import OpenMoney
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.vocabulary import ResultsStatus


class MissingExperiment(Model):
    """A planned experiment without archived results. `batch_index` counts from 0."""

    order_key: str
    batch_index: int
    designs: int
    order: OrderFacts | None


class CampaignContents(Model):
    """One campaign. `as_of` is when its newest archived version was begun; `notes` names what could not be read."""

    campaign_id: str
    as_of: datetime
    plan: Plan | None
    plan_manifest: Manifest | None
    experiments: tuple[ReportedExperiment, ...]
    missing: tuple[MissingExperiment, ...]
    money: OpenMoney
    started: Started | None = None  # its last start, by the campaign's log: the account, and who asked for it
    notes: tuple[str, ...] = ()

    @property
    def terms(self) -> Terms | None:
        """The terms that it was started under; None without a log."""
        return self.started.terms if self.started else None

    @property
    def is_simulated(self) -> bool:
        """A local lab has answered in place of the service, and no money has moved."""
        return self.terms is not None and self.terms.simulated

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """The manifests of everything that the report is made of."""
        plan = (self.plan_manifest,) if self.plan_manifest else ()
        return (*plan, *(experiment.manifest for experiment in self.experiments))

    @property
    def preliminary(self) -> tuple[str, ...]:
        """The experiments whose results are not complete."""
        return tuple(e.code for e in self.experiments if e.manifest.results_status != ResultsStatus.ALL)

    @property
    def paid_cents(self) -> int | None:
        """What was paid, by the logs, in US cents without VAT; None if no log says so. It may lack what `all_logged` lacks."""
        return sum(self.money.paid.values()) if self.all_logged or self.money.paid else None

    @property
    def all_logged(self) -> bool:
        """Every experiment has a log of its order that can be read, so that the sums are whole."""
        return self.money.complete and all(experiment.order for experiment in self.experiments)

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        """One tidy table of all experiments."""
        return collate_rows(experiment.rows for experiment in self.experiments)


def collect_contents(store: Store, prefix: str, campaign_id: str) -> CampaignContents:
    """Read a campaign from its archive. Experiments that ran without a campaign have no plan.

    Raises:
        ArchiveError: the archive has nothing of this campaign, or a file of it is unreadable or has changed.
    """
    orders, money = orders_of(store, prefix, campaign_id)
    started, unread = _read_start(store, prefix, campaign_id)
    folder = join_key(safe_prefix(prefix), safe_name(campaign_id))
    plan_version = chosen_version(store, join_key(folder, PLAN_CODE))
    plan = read_plan(plan_version) if plan_version else None
    indices = {planned.order_key: planned.batch_index for planned in plan.experiments} if plan else {}
    reported = []
    for code in _list_codes(store, folder):
        version = read_newest_version(store, join_key(folder, code))
        if version is not None:
            reported.append(reported_experiment(version, orders, indices))
    if not reported and plan is None:
        raise ArchiveError(
            f"{store.location(safe_prefix(prefix))} has nothing of campaign {campaign_id}; name a campaign of this "
            "archive, as `prefect-assay spending` lists them"
        )
    experiments = sorted(reported, key=_sort_key)
    done = {experiment.order.order_key for experiment in experiments if experiment.order}
    dates = [experiment.manifest.created_at for experiment in experiments]
    if plan_version is not None:
        dates.append(plan_version.manifest.created_at)
    return CampaignContents(
        campaign_id=plan.campaign_id if plan else experiments[0].manifest.campaign_id,
        as_of=max(dates),
        plan=plan,
        plan_manifest=plan_version.manifest if plan_version else None,
        experiments=tuple(experiments),
        missing=tuple(_list_missing(plan, orders, done)) if plan else (),
        money=money,
        started=started,
        notes=(*money.notes, *unread, *(note for experiment in experiments for note in experiment.notes)),
    )


def _read_start(store: Store, prefix: str, campaign_id: str) -> tuple[Started | None, tuple[str, ...]]:
    """The campaign's last start, and a note if its log cannot be read."""
    try:
        return CampaignLog(store, prefix, campaign_id).read().started, ()
    except ArchiveUnavailable:
        raise
    except (ArchiveError, ConfigurationError):
        note = (
            "the campaign's log cannot be read, so its account, and whether its service is simulated, is not known: "
            "prefect-assay archive verify says what is damaged"
        )
        return None, (note,)


def _list_codes(store: Store, folder: str) -> list[str]:
    """The experiments of a campaign's folder that have a version, as their folders are named."""
    codes = set()
    for key in store.keys(folder):
        code, version, *rest = [*key.removeprefix(f"{folder}/").split("/"), "", ""]
        if any(rest) and version_of(version) is not None:
            codes.add(code)
    return sorted(codes - CAMPAIGN_CODES)


def _sort_key(experiment: ReportedExperiment) -> tuple[float, str]:
    index = experiment.batch_index
    return (float("inf") if index is None else index, experiment.code)


def _list_missing(
    plan: Plan, orders: dict[str, OrderFacts], done: set[str | None]
) -> Iterator[MissingExperiment]:
    for planned in plan.experiments:
        if planned.order_key not in done:
            yield MissingExperiment(
                order_key=planned.order_key,
                batch_index=planned.batch_index,
                designs=len(planned.spec.sequences),
                order=orders.get(planned.order_key),
            )
