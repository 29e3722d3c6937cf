"""Read the question of a suspended run, and submit its form as the Prefect UI does.

Prefect checks the values by the form's own schema, and its resume answers whatever question is open. So the question is
read again right before each attempt: an answer is never given to a question that its author has not seen.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.responses import SetStateStatus
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from prefect_assay.approvals.questions import deadline_of
from prefect_assay.errors import ApprovalExpired, Conflict, InputError, InvalidRequest, OutcomeUnknown
from prefect_assay.runs.states import suspension_key, waits_for_input
from prefect_assay.runs.transient_failures import is_away

_ATTEMPTS: Final = 6
_PAUSE_SECONDS: Final = 1.0


@dataclass(frozen=True)
class OpenQuestion:
    """A form that a run waits with: `key` identifies the question, `until` is its deadline."""

    run_id: UUID
    run_name: str
    key: str
    answer_key: str
    description: str
    decisions: tuple[str, ...]
    until: datetime | None


def read_question(client: SyncPrefectClient, run: FlowRun) -> OpenQuestion:
    """The open question of a run.

    Raises:
        InputError: the run asks nothing.
    """
    if run.state is None or not run.state.is_paused() or not waits_for_input(run):
        state = run.state.name if run.state else "without a state"
        raise InputError(f"run {run.name} ({run.id}) asks nothing; it is {state}. Nothing was answered")
    keys = run.state.state_details.run_input_keyset or {}
    schema = json.loads(client.read_flow_run_input(run.id, keys["schema"]))
    description = json.loads(client.read_flow_run_input(run.id, keys["description"]))
    decision = schema.get("properties", {}).get("decision", {})
    return OpenQuestion(
        run_id=run.id,
        run_name=run.name,
        key=suspension_key(run),
        answer_key=keys["response"],
        description=str(description),
        decisions=tuple(decision.get("enum", ())),
        until=deadline_of(run),
    )


def submit_answer(
    question: OpenQuestion, values: dict[str, Any], *, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Submit the form of this question, once.

    Raises:
        Conflict: the question is not open any more, or another answer was first; this one was not given.
        ApprovalExpired: its time is over; it is answered by the sweep.
        InvalidRequest: the form does not take the values.
        OutcomeUnknown: the answer may have been given, and the run has gone on.
    """
    lost = False  # an attempt may have arrived
    # Without the client's own retries, which would not read the question again.
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}), get_client(sync_client=True) as client:
        for attempt in range(1, _ATTEMPTS + 1):
            sent = False
            try:
                sent = _is_open(client, question)
                if not (sent and _resume(client, question, values)):
                    _explain(client, question, values, lost=lost)
            except (httpx.TransportError, httpx.HTTPStatusError) as error:
                lost = lost or (sent and _may_have_arrived(error))
                # Of two answers at the same moment, the later one gets a 500 of the database.
                again = is_away(error) or (sent and _may_have_arrived(error))
                if not again or attempt == _ATTEMPTS:
                    if lost:
                        raise OutcomeUnknown(_unknown(question)) from error
                    raise
            else:
                return
            sleep(_PAUSE_SECONDS * attempt)


def _is_open(client: SyncPrefectClient, question: OpenQuestion) -> bool:
    run = client.read_flow_run(question.run_id)
    if suspension_key(run) != question.key:
        return False
    if question.until is not None and datetime.now(UTC) > question.until:
        raise ApprovalExpired(
            f"the question of run {run.name} expired at {question.until:%Y-%m-%d %H:%M} UTC; the sweep ends the run, and "
            "a retry of the run asks again"
        )
    return True


def _resume(client: SyncPrefectClient, question: OpenQuestion, values: dict[str, Any]) -> bool:
    """False if the run was not suspended any more."""
    result = client.resume_flow_run(question.run_id, run_input=values)
    if result.status == SetStateStatus.REJECT and _is_open(client, question):
        reason = getattr(result.details, "reason", None) or "no reason given"
        raise InvalidRequest([f"the form of run {question.run_name}: {reason}"])
    return result.status == SetStateStatus.ACCEPT


def _explain(
    client: SyncPrefectClient, question: OpenQuestion, values: dict[str, Any], *, lost: bool
) -> None:
    """Return if a lost attempt's answer is the one that closed the question; raise what happened instead."""
    stored = client.filter_flow_run_input(
        flow_run_id=question.run_id, key_prefix=question.answer_key, limit=1, exclude_keys=set()
    )
    given = json.loads(stored[0].value) if stored else None
    if lost and given == values:
        return
    if lost and given is None:  # a refusal is discarded by the run that reads it
        raise OutcomeUnknown(_unknown(question))
    by = (
        f": {given['decision']}, by {given.get('decided_by') or 'a person who gave no name'}" if given else ""
    )
    raise Conflict(
        f"the question of run {question.run_name} is no longer open{by}. This answer was not given; look at the run again: "
        f"prefect-assay status {question.run_id}"
    )


def _may_have_arrived(error: httpx.TransportError | httpx.HTTPStatusError) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.is_server_error
    return not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)


def _unknown(question: OpenQuestion) -> str:
    return (
        f"the answer to run {question.run_name} may have been given; look at the run before anything else: "
        f"prefect-assay status {question.run_id}"
    )
