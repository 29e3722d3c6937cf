"""Wake-ups that change nothing: such a run is suspended again before its flow starts.

Most updates of the laboratory change nothing for the run that waits, and a delivery does not say which (contract 6). The
receiver has no token to look with, so it wakes the run. The process that is made for the run looks first: it decides
as the sweep does, records that a person has paid the invoice, and starts the flow in any doubt.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import SyncClientContext
from prefect.settings import PREFECT_API_URL
from prefect.states import Suspended

from prefect_assay.blocks.of_runs import credentials_of
from prefect_assay.client import AssayClient
from prefect_assay.models.experiment import Experiment
from prefect_assay.reporting import facts
from prefect_assay.reporting.artifacts import payment_labels
from prefect_assay.reporting.progress import show_progress
from prefect_assay.runs.block_references import block_reference
from prefect_assay.runs.queries import is_assay_run
from prefect_assay.runs.states import is_own_wait, resume, set_state, suspension_key
from prefect_assay.runs.tags import RETRY_TAG, set_labels, tag_values
from prefect_assay.sweeping.hosted_payments import payment_reader
from prefect_assay.sweeping.updates_feed import WaitingRun, waiting_run
from prefect_assay.waiting import DEADLINE_DAYS, WaitsFor, is_worth_waking

_logger = logging.getLogger(__name__)

# What may lie between a suspension and the start that its wake-up leads to.
_WOKEN: Final = frozenset({"Resuming", "Late", "Pending", "Submitting", "InfrastructurePending"})
# With another reason to wait, any wake-up may be the one that counts.
_LOOKED_AT: Final = frozenset({WaitsFor.RESULTS, WaitsFor.MORE_RESULTS})
# The suspension must outlast the run's deadline, which the sweep wakes it for.
_LEFT: Final = timedelta(hours=2)


def suspended_again(run_id: str | None) -> bool:
    """Suspend a woken run again if its experiment gives it nothing to do; True if the flow need not start. Never raises."""
    if not PREFECT_API_URL.value():  # Prefect would start a server without any runs
        return False
    try:
        known = UUID(run_id or "")
        # One client for all that follows: every new one asks for the version and for a token first.
        with SyncClientContext.get_or_create() as context:
            woken = _woken(context.client, known)
            return woken is not None and _look(context.client, woken)
    except Exception:
        _logger.warning("Could not look before the start of run %s; its flow starts", run_id, exc_info=True)
        return False


@dataclass(frozen=True)
class _Woken:
    run: FlowRun
    wait: State[Any]  # the suspension that it was woken from
    waiting: WaitingRun


def _woken(prefect: SyncPrefectClient, run_id: UUID) -> _Woken | None:
    """Return what is needed to look; None for the first execution, another reason to wait, or a run that tries again."""
    run = prefect.read_flow_run(run_id)
    if not run.run_count or not is_assay_run(run) or tag_values(run.tags, RETRY_TAG):
        return None
    wait = last_wait(prefect.read_flow_run_states(run_id))
    if wait is None or block_reference(run, "credentials") is None:
        return None
    waiting = waiting_run(run.model_copy(update={"state": wait}), DEADLINE_DAYS)
    if waiting is None or waiting.kind not in _LOOKED_AT or len(waiting.experiment_ids) != 1:
        return None
    return _Woken(run, wait, waiting)


def last_wait(states: Iterable[State[Any]]) -> State[Any] | None:
    """Return the suspension that a run was woken from; None if anything but the wake-up has happened since."""
    for state in sorted(states, key=lambda state: state.timestamp, reverse=True):
        if state.is_paused():
            end = state.state_details.pause_timeout
            lasts = end is not None and end > datetime.now(UTC) + _LEFT
            return state if is_own_wait(state) and lasts else None
        if state.name not in _WOKEN:
            return None
    return None


def _look(prefect: SyncPrefectClient, woken: _Woken) -> bool:
    credentials = credentials_of(woken.run)
    with credentials.get_client() as service:
        found = _idle(service, woken.waiting)
        if found is None:
            return False
        read_payment = payment_reader(service, credentials, woken.run, found)
        payment = read_payment()
        updates = service.experiment_updates(found.id)
        message = show_progress(prefect, woken.run, found, updates, before=woken.wait.message)
        state = prefect.read_flow_run(woken.run.id).state
        if state is None or state.name not in _WOKEN:
            return False  # canceled since, or another process has it: Prefect decides what the flow may do
        try:
            _suspend(prefect, woken, message)
            facts.of_waiting([(woken.waiting.reference, found, payment)])
            if payment is not None:
                set_labels(woken.run.id, payment_labels(payment))
            # A delivery in the meantime found no suspended run, and woke none.
            again = _idle(service, woken.waiting) is None or (payment is None and read_payment() is not None)
        except Exception:
            # If the run is suspended, also by a request whose answer was lost, its flow may not start any more.
            if not _is_asleep(prefect, woken):
                raise
            again = True
        if again:
            resume(prefect, woken.run.id)
    return True


def _idle(service: AssayClient, waiting: WaitingRun) -> Experiment | None:
    found = service.experiment(waiting.experiment_ids[0])
    now = datetime.now(UTC)
    wake = is_worth_waking(waiting.kind, found, patience=waiting.patience, now=now, news=True)
    return None if wake else found


def _is_asleep(prefect: SyncPrefectClient, woken: _Woken) -> bool:
    return suspension_key(prefect.read_flow_run(woken.run.id)) == woken.wait.state_details.pause_key


def _suspend(prefect: SyncPrefectClient, woken: _Woken, message: str | None) -> None:
    details = woken.wait.state_details
    state: State[Any] = Suspended(
        pause_key=details.pause_key, pause_expiration_time=details.pause_timeout, message=message
    )
    # Forced, because Prefect suspends running runs only.
    if not set_state(prefect, woken.run.id, state, force=True):
        raise RuntimeError("Prefect refused the suspension")
