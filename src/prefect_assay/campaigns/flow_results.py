"""Results of the flows: small, without secrets, with references to everything else."""

from prefect_assay.orders.purchase import PurchaseSummary
from prefect_assay.service.models.base import Model


class CampaignExperiment(Model):
    """One line of a campaign's report; `problem` is the reason for missing results."""

    order_key: str
    batch_index: int
    experiment_id: str | None = None
    experiment_code: str | None = None
    location: str | None = None
    problem: str | None = None


class CampaignReport(Model):
    """The result of `campaign`. `table` is the archived CSV of all measured rows, `page` the archived report.

    `purchase` is what this start has bought, as it was shown before the first order.
    """

    campaign_id: str
    experiments: tuple[CampaignExperiment, ...]
    rows: int
    table: str | None
    page: str | None = None
    purchase: PurchaseSummary | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons for missing results, one line each."""
        return tuple(e.problem for e in self.experiments if e.problem)


class RoundReport(Model):
    """One round of a design-build-test loop. `best` is its best value with unit; `number` is None if nothing was fixed."""

    name: str
    campaign_id: str
    table: str | None
    best_kd_M: float | None  # noqa: N815 - M is the unit
    problem: str | None = None
    number: int | None = None
    designs: int | None = None
    best: str | None = None
    spent_cents: int | None = None


class LoopReport(Model):
    """The result of `design_build_test`: its rounds, the best value with unit, and why it stopped."""

    loop_id: str
    rounds: tuple[RoundReport, ...]
    stop_message: str
    stop_reason: str | None = None  # a word of `loops.Stop`
    best: str | None = None
    spent_cents: int = 0


class SweepReport(Model):
    """The result of `sweep`."""

    updates_seen: int  # rows of the updates feeds that were news
    open_campaigns: int  # campaigns and loops of this home that are open
    woken: tuple[str, ...] = ()  # ids of the runs that were resumed
    started: tuple[str, ...] = ()  # names of the runs that were started
    stopped: tuple[str, ...] = ()  # campaigns and loops whose cancellation was carried out or looked after
    problems: tuple[str, ...] = ()  # what the sweep itself could not do, one line each
    attention: tuple[str, ...] = ()  # open problems that need a person, one line each with the next step
