"""Asking a person: a run that suspends with a form in the Prefect UI, and finds the answer when it runs again.

A question's name says what is asked and until when it may be answered: Prefect keeps it with the suspended run and
with the answer, so that the run, after any crash, and the sweep read the same. It must not know what is asked.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NoReturn
from uuid import UUID, uuid4

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.responses import SetStateStatus
from prefect.context import FlowRunContext
from prefect.input import Keyset, RunInput, keyset_from_base_key
from prefect.states import Failed
from pydantic import Field

from prefect_assay.errors import ApprovalExpired
from prefect_assay.runs.suspend import suspend, this_run
from prefect_assay.runs.tags import ASKS_TAG, add_tags

# Prefect's own time-out only backs up the sweep's: it ends a run without a word of what was asked.
_BACKUP: Final = timedelta(days=7)
_NAME: Final = re.compile(r"(?:suspended-)?(?P<question>.+)-until-(?P<until>\d+)-[0-9a-f]{32}(?:-response)?")
_UNANSWERED: Final = "Nobody has answered in time."
_PAGE: Final = 200


class Question(RunInput):
    """What every form has. A form adds `decision`, without a default: no answer is no decision."""

    note: str | None = Field(
        default=None,
        max_length=1000,
        title="Note",
        description="Kept with the decision, for whoever asks later.",
    )
    decided_by: str | None = Field(
        default=None,
        max_length=200,
        title="Your name",
        description="Recorded with the decision. Prefect does not know who has opened this form.",
    )


@dataclass(frozen=True)
class Answer:
    """What a person has said, or that nobody has in time."""

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
        """Who has decided, and in which run."""
        return f"{self.values.get('decided_by') or 'a person who gave no name'}, in flow run {self.run_id}"

    def take(self) -> None:
        """Remove it from the record, so that it counts for this execution only."""
        with get_client(sync_client=True) as client:
            client.delete_flow_run_input(self.run_id, self.key)


def ask(form: type[Question], *, question: str, description: str, hours: float) -> NoReturn:
    """Suspend this run with a form; it runs again from the top with the answer.

    Args:
        form: the form.
        question: names what is asked, in lower case, digits and dashes; `answers` finds it.
        description: markdown above the form.
        hours: how long it may be answered.
    """
    until = int((datetime.now(UTC) + timedelta(hours=hours)).timestamp())
    # A name of its own for each asking: Prefect lets a name that fired once pass, and stores a form once.
    key = f"{question}-until-{until}-{uuid4().hex}"
    run = this_run()
    add_tags(run.id, [ASKS_TAG])  # by which the sweep finds it when its time is over
    suspend(
        run,
        wait_for_input=_kept(form.with_initial_data(description=description), key),
        key=key,
        timeout=int(hours * 3600 + _BACKUP.total_seconds()),
    )
    raise RuntimeError(f"the suspension for {question} did not take effect")


def _kept(form: type[RunInput], key: str) -> type[RunInput]:
    """The form, stored already.

    Prefect stores it after the suspension: a run that is killed in between would wait for an answer nobody can give.
    """
    form.save(keyset_from_base_key(f"suspended-{key}"))

    class Kept(form):  # type: ignore[valid-type, misc]
        @classmethod
        def save(cls, keyset: Keyset, flow_run_id: UUID | None = None) -> None:
            """It is there."""

    return Kept


def answers(question: str) -> list[Answer]:
    """The answers to this question, or to those whose names begin with it, in this run; the newest first."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return []
    run_id = context.flow_run.id
    with get_client(sync_client=True) as client:
        # Prefect's own naming of what it stores for a suspended run.
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
            found.append(Answer(run_id, entry.key, given, values, late))
    return sorted(found, key=lambda answer: answer.given, reverse=True)


def answer_overdue(client: SyncPrefectClient, runs: list[FlowRun], now: datetime) -> list[str]:
    """Wake the suspended runs whose question nobody has answered in time; returns their ids.

    The answer says that there is none, and the run ends by itself: it alone knows what to say.
    """
    woken = []
    for run in runs:
        name = _NAME.fullmatch(str(run.state.state_details.pause_key)) if run.state else None
        if name is None or int(name["until"]) >= now.timestamp():
            continue
        no = "stop" if name["question"].startswith("doubt-") else "reject"
        if answer_for_nobody(client, run, {"decision": no, "note": _UNANSWERED}):
            woken.append(str(run.id))
    return woken


def answer_for_nobody(client: SyncPrefectClient, run: FlowRun, values: dict[str, Any]) -> bool:
    """Answer in nobody's place; False when somebody was faster."""
    return client.resume_flow_run(run.id, run_input=values).status == SetStateStatus.ACCEPT


def is_about(run: FlowRun, topic: str) -> bool:
    """Whether a suspended run asks a question whose name begins so."""
    name = _NAME.fullmatch(str(run.state.state_details.pause_key)) if run.state else None
    return name is not None and name["question"].startswith(topic)


def unanswered(error: ApprovalExpired) -> State[Any]:
    """The final state of a run that nobody has answered."""
    return Failed(name="ApprovalExpired", message=str(error), data=error)
