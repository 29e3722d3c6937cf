"""Suspend a run with a form in the Prefect UI, and find the answer when the run starts again.

A question's name holds what is asked and its deadline. Prefect keeps it with the suspended run and with the answer, so
that the run, after any crash, and the sweep read the same.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final, Literal, NoReturn
from uuid import UUID, uuid4

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
from prefect.exceptions import Pause
from prefect.input import RunInput, keyset_from_paused_state
from prefect.states import Failed, Suspended
from pydantic import ConfigDict, Field

from prefect_assay.errors import ApprovalExpired
from prefect_assay.events import EVENTS_LABEL, emit, emit_missing, kinds
from prefect_assay.models.form import form_of
from prefect_assay.runs.states import event_reference, reschedule, resume, suspension_key
from prefect_assay.runs.suspend import suspend, this_run
from prefect_assay.runs.tags import ASKS_TAG, add_tags, set_labels
from prefect_assay.waiting import WaitsFor

# Only a backup: Prefect's time-out says nothing about the question, and fires as soon as a server that was off starts.
_BACKUP: Final = timedelta(days=365)
# A run that lives has sent its own event, and written its label, by then.
_REPORTED_AFTER: Final = timedelta(minutes=1)
_NAME: Final = re.compile(r"(?:suspended-)?(?P<question>.+)-until-(?P<until>\d+)-[0-9a-f]{32}(?:-response)?")
_UNANSWERED: Final = "Nobody has answered in time."
_PAGE: Final = 200


class Question(RunInput):
    """Fields of every form. A form adds `decision`, without a default: no answer is no decision. It is shown first."""

    model_config = ConfigDict(json_schema_extra=form_of())

    note: str | None = Field(
        default=None,
        max_length=1000,
        title="Note",
        json_schema_extra={"position": 8},
    )
    decided_by: str | None = Field(
        default=None,
        max_length=200,
        title="Your name",
        json_schema_extra={"position": 9},
    )


@dataclass(frozen=True)
class FormAnswer:
    """A submitted form. A late one was submitted by the sweep, or after the deadline."""

    run_id: UUID
    key: str
    given: datetime
    values: dict[str, Any]
    late: bool

    @property
    def decision(self) -> str:
        """The form's decision."""
        return str(self.values["decision"])

    @property
    def given_by(self) -> str:
        """The person who decided, and the run."""
        return f"{self.values.get('decided_by') or 'a person who gave no name'}, in flow run {self.run_id}"

    @property
    def note(self) -> str:
        """The person's note in parentheses, for a message."""
        return f" ({self.values['note']})" if self.values.get("note") else ""

    def discard(self) -> None:
        """Delete the answer from the run's inputs, so that it applies to this execution only."""
        with get_client(sync_client=True) as client:
            client.delete_flow_run_input(self.run_id, self.key)


def topic_of(kind: WaitsFor, key: str) -> str:
    """The name of what is asked about `key`. Suspended runs and their answers are found by it."""
    return f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:20]}"


def form_text(lead: str, figures: Mapping[str, str], hours: float, *, unless: str = "") -> str:
    """The markdown of a form: what is asked, its figures as a list, and what ends the wait.

    No table: V1 leaves the text the height of some eight lines, and the fields follow.
    """
    rows = "\n".join(f"- {name}: {value}" for name, value in figures.items())
    return f"{lead}\n\n{rows}\n\nWithout an answer within {hours:g} hours, the run ends as ApprovalExpired{unless}."


def ask(form: type[Question], *, question: str, title: str, description: str, hours: float) -> NoReturn:
    """Suspend this run with a form; it starts again from the top with the answer.

    `question` identifies it, in lower case, digits and dashes; `answers` finds it. `title` is one line without links,
    for the event; `description` is markdown.
    """
    until = int((datetime.now(UTC) + timedelta(hours=hours)).timestamp())
    # Unique: Prefect lets a run pass a key that fired once, and stores a form once.
    key = f"{question}-until-{until}-{uuid4().hex}"
    run = this_run()
    add_tags(run.id, [ASKS_TAG])  # by which the sweep finds it after the deadline
    state: State[Any] = Suspended(
        timeout_seconds=int(hours * 3600 + _BACKUP.total_seconds()), pause_key=key, message=title
    )
    keyset = keyset_from_paused_state(state)
    state.state_details.run_input_keyset = {str(name): value for name, value in keyset.items()}
    try:
        suspend(run, state)
    except Pause:
        # Not before: Prefect deletes what is stored under the keys of a new suspension. `ask_again` makes up for a kill here.
        form.with_initial_data(description=description).save(keyset)
        emit(_requested(key, question, until, title))
        raise


def _requested(key: str, question: str, until: int, title: str) -> kinds.ApprovalRequested:
    limit = datetime.fromtimestamp(until, UTC)
    return kinds.ApprovalRequested(approval=key, about=_about(question), question=title, until=limit)


def report_questions(runs: Iterable[FlowRun], now: datetime) -> None:
    """Send the event of each open question whose run was killed between its suspension and the event.

    The event has the id that the run would have given it, so that a repeat is no second one.
    """
    asked = []
    for run in runs:
        name = _question_of(run)
        if name is None or run.state is None or now - run.state.timestamp < _REPORTED_AFTER:
            continue
        reference = event_reference(run)
        title = run.state.message or f"{run.name} asks for a decision"
        fact = _requested(suspension_key(run), name["question"], int(name["until"]), title)
        concerns = {"campaign_id": reference.campaign_id, "order_key": reference.order_key}
        asked.append((fact.model_copy(update=concerns), reference))
    emit_missing(asked, lambda run_id, sent: set_labels(run_id, {EVENTS_LABEL: sent}))


def ask_again(client: SyncPrefectClient, runs: Iterable[FlowRun], now: datetime) -> list[UUID]:
    """Start each run again that was killed before its form was stored, and return their ids."""
    again = []
    for run in runs:
        if _question_of(run) is None or run.state is None or now - run.state.timestamp < _REPORTED_AFTER:
            continue
        keyset = run.state.state_details.run_input_keyset or {}
        # The description is stored last.
        if all(_is_stored(client, run.id, keyset[word]) for word in ("schema", "description")):
            continue
        if reschedule(client, run.id, "Its form was not stored: it asks again"):
            again.append(run.id)
    return again


def _is_stored(client: SyncPrefectClient, run_id: UUID, key: str) -> bool:
    try:
        client.read_flow_run_input(run_id, key)
    except httpx.HTTPStatusError as error:
        if error.response.status_code != HTTPStatus.NOT_FOUND:
            raise
        return False
    return True


def answers(question: str) -> list[FormAnswer]:
    """The answers in this run to questions whose name starts with `question`, newest first."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return []
    run_id = context.flow_run.id
    with get_client(sync_client=True) as client:
        # Prefect's own prefix of a suspended run's inputs.
        stored = client.filter_flow_run_input(
            flow_run_id=run_id, key_prefix=f"suspended-{question}-", limit=_PAGE, exclude_keys=set()
        )
    found = []
    for entry in stored:
        name = _NAME.fullmatch(entry.key)
        if name and entry.key.endswith("-response"):
            given = entry.created or datetime.min.replace(tzinfo=UTC)
            values = json.loads(entry.value)
            late = values.get("note") == _UNANSWERED or given.timestamp() > int(name["until"])
            found.append(FormAnswer(run_id, entry.key, given, values, late))
    for answer in found:
        _report(answer)
    return sorted(found, key=lambda answer: answer.given, reverse=True)


def _report(answer: FormAnswer) -> None:
    approval = answer.key.removeprefix("suspended-").removesuffix("-response")
    about = _about(approval)
    if answer.late:
        emit(kinds.ApprovalExpired(approval=approval, about=about))
    else:
        emit(kinds.ApprovalAnswered(approval=approval, about=about, decision=answer.decision))


def _about(question: str) -> Literal["spending", "payment"]:
    return "payment" if question.startswith(f"{WaitsFor.PAYMENT_ANSWER}-") else "spending"


def answer_expired(client: SyncPrefectClient, runs: list[FlowRun], now: datetime) -> list[UUID]:
    """Submit a late refusal for each suspended run whose question has expired; returns the ids of the woken runs.

    The run itself then fails with its own message.
    """
    woken = []
    for run in runs:
        name = _question_of(run)
        if name is None or int(name["until"]) >= now.timestamp():
            continue
        refusal = "stop" if _about(name["question"]) == "payment" else "reject"
        if resume(client, run.id, {"decision": refusal, "note": _UNANSWERED}):
            woken.append(run.id)
    return woken


def deadline_of(run: FlowRun) -> datetime | None:
    """Return when a suspended run's question expires; None for a form that is no question of this package."""
    name = _question_of(run)
    return datetime.fromtimestamp(int(name["until"]), UTC) if name else None


def is_about(run: FlowRun, topic: str) -> bool:
    """Return True if a suspended run's question starts with `topic`."""
    name = _question_of(run)
    return name is not None and name["question"].startswith(topic)


def unanswered(error: ApprovalExpired) -> State[Any]:
    """The final state of a run whose question expired."""
    return Failed(name="ApprovalExpired", message=str(error), data=error)


def _question_of(run: FlowRun) -> re.Match[str] | None:
    return _NAME.fullmatch(suspension_key(run))
