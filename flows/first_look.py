"""The first look of a woken run: with nothing to do it suspends again, before any task.

Most updates of the laboratory change nothing for the run that waits, and a delivery does not say which (contract 6). The
receiver has no token to look with, so it wakes the run. In any doubt the flow goes on from the top.
"""

from datetime import UTC, datetime
from typing import Final

from prefect.client.orchestration import get_client
from prefect.logging import get_run_logger
from prefect.runtime import flow_run as current_run

from prefect_assay.client import AssayClient
from prefect_assay.client.http.dates import time_at
from prefect_assay.errors import AssayError
from prefect_assay.flows.experiment_billing import on_named_rail, show_payment
from prefect_assay.flows.experiment_steps import show_progress_of
from prefect_assay.flows.run_options import ExperimentRun
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.job import Order
from prefect_assay.models.vocabulary import MACHINE_RAILS
from prefect_assay.reporting import facts
from prefect_assay.runs import can_suspend, wait_until
from prefect_assay.runs.states import last_wait
from prefect_assay.runs.tags import (
    ARCHIVE_TAG,
    EXPERIMENT_TAG,
    INVOICE_LABEL,
    PRICE_LABEL,
    RETRY_TAG,
    own_label,
    own_tags,
    tag_values,
)
from prefect_assay.tasks.pay import record_hosted
from prefect_assay.waiting import WaitsFor, is_worth_waking, waits_for

# With another reason to wait, any wake-up may be the one that counts.
_LOOKED_AT: Final = frozenset({WaitsFor.RESULTS, WaitsFor.MORE_RESULTS})


def look_first(run: ExperimentRun) -> None:
    """Suspend this run again, with its old time-out, if its experiment gives it nothing to do.

    It reads the experiment, and its hosted invoice until that is recorded as paid; both once more after suspending.
    It returns if the flow has to go on: in the first execution, after a crash, with news, or after an error that the
    flow meets where it may end the run.
    """
    tags = own_tags()
    experiments = tag_values(tags, EXPERIMENT_TAG)
    if not can_suspend() or len(experiments) != 1 or tag_values(tags, RETRY_TAG):
        return
    with get_client(sync_client=True) as prefect:
        wait = last_wait(prefect.read_flow_run_states(current_run.id))
    kind = waits_for(wait.state_details.pause_key) if wait else None
    if wait is None or kind not in _LOOKED_AT:
        return
    end = wait.state_details.pause_timeout
    if end is None:
        return
    seen: Experiment | None = None

    def ready() -> Experiment | None:
        nonlocal seen
        with run.options.credentials.get_client() as service:
            seen = service.experiment(experiments[0])
            now = time_at(service)
            _record_payment(run, service, seen)
        facts.stage(seen, news=True)
        go_on = is_worth_waking(kind, seen, patience=run.options.patience, now=now, news=True)
        return seen if go_on else None

    try:
        if tag_values(tags, ARCHIVE_TAG) != [run.book.books.archive_id]:
            return  # the flow says what is wrong with the archive
        wait_until(
            ready,
            key=f"{kind}-{run.key}",
            timeout=end - datetime.now(UTC),
            describe=lambda: show_progress_of(run, seen),
        )
    except AssayError as error:
        get_run_logger().warning("The first look failed, and the run goes on from the top: %s", error)


def _record_payment(run: ExperimentRun, service: AssayClient, found: Experiment) -> None:
    """Record and show that a person has paid the hosted invoice, or that it has another page."""
    shown = own_label(INVOICE_LABEL)
    if on_named_rail(run).options.payment_method in MACHINE_RAILS or (own_label(PRICE_LABEL) and not shown):
        return  # nothing to pay by hand, or recorded already
    order = Order(
        order_key=run.key,
        experiment_id=found.id,
        experiment_code=found.code,
        status=found.status,
        adopted=True,
    )
    payment = record_hosted(service, order, book=run.book, shown=str(shown) if shown else None)
    if payment is not None:
        show_payment(run, order, payment)
