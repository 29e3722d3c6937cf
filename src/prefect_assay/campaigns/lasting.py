"""What ends a campaign's run, and what makes it wait: only a failure before anything is ordered ends it for certain."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from prefect.context import FlowRunContext
from prefect.logging import get_run_logger

from prefect_assay.campaigns.events import EVENTS_LABEL, record_facts
from prefect_assay.campaigns.runs.looks import Look
from prefect_assay.campaigns.runs.tags import (
    EXPERIMENT_TAG,
    own_campaign,
    own_label,
    own_tags,
    set_labels,
    tag_values,
)
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.campaigns.suspension import failures_before, suspend_until_news, utc_now
from prefect_assay.errors import AssayError, CampaignFailed, short_messages, shortened
from prefect_assay.service.transient_failures import is_temporary
from prefect_assay.tasks.collate import kept_plan
from prefect_assay.tasks.current_run import can_suspend, this_run


@dataclass
class Execution:
    """One execution of a campaign's run; `campaign_id` is known once the plan is."""

    setup: CampaignSetup
    campaign_id: str | None = None

    def has_begun(self) -> bool:
        """Whether another execution may have begun the campaign; an archive that cannot be read counts as begun."""
        if own_campaign() is not None:
            return True  # also where the archive block leads to another archive by now
        if self.campaign_id is None:
            return False
        with suppress(AssayError, OSError):
            return self.setup.log(self.campaign_id).read().started is not None
        return False

    def has_ordered(self) -> bool:
        """Whether an order of the campaign is placed, or may be; what cannot be read counts as ordered."""
        if tag_values(own_tags(), EXPERIMENT_TAG):
            return True
        if self.campaign_id is None:
            return False
        try:
            plan = kept_plan(self.setup.archive, self.campaign_id)
            ledgers = self.setup.ledgers
            return any(
                ledgers.open_order(self.campaign_id, planned.order_key).read().placed
                for planned in (plan.experiments if plan else ())
            )
        except (AssayError, OSError):
            return True

    def finish(self, error: Exception) -> None:
        """Record that the campaign ended before anything was ordered: the sweep must not start it again."""
        if self.campaign_id is not None and self.has_begun():
            with suppress(AssayError, OSError):
                words = shortened(f"ended before anything was ordered: {error}")
                self.setup.log(self.campaign_id).finish(words, complete=False)


@contextmanager
def outlast_failures(setup: CampaignSetup) -> Iterator[Execution]:
    """Nothing that may come back ends the run of a campaign that has begun: it looks again, later and later.

    What fails for certain before the first order ends the campaign.
    """
    execution = Execution(setup)
    with short_messages(), recording_events():
        try:
            yield execution
        except CampaignFailed:
            raise
        except (AssayError, OSError) as error:
            may_pass = isinstance(error, OSError) or (isinstance(error, AssayError) and is_temporary(error))
            if can_suspend() and execution.has_begun() and (may_pass or execution.has_ordered()):
                get_run_logger().warning("Could not go on, will look again: %s", error)
                look = Look.after_failure(utc_now(), failures_before() + 1)
                message = f"will look again, because of: {shortened(str(error), 600)}"
                suspend_until_news(message, look=look, has_news=lambda: False)
            if not may_pass and not execution.has_ordered():
                execution.finish(error)
            raise


@contextmanager
def recording_events() -> Iterator[None]:
    """Send the event of each fact once per run, however often it starts again."""
    if FlowRunContext.get() is None:
        yield
        return
    run = this_run()
    with record_facts(
        own_label(EVENTS_LABEL),
        began=run.created,
        keep=lambda sent: set_labels(run.id, {EVENTS_LABEL: sent}),
    ):
        yield
