"""The open problems, as the sweep saves them, and the events that report each of them once.

One Prefect variable per problem: a variable holds 5,000 characters. An event is sent when a problem begins, and one when
it is over.
"""

import hashlib
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import VariableCreate, VariableUpdate
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from pydantic import ValidationError

from prefect_assay.events import kinds, send
from prefect_assay.models.problem import Problem, SavedState
from prefect_assay.models.sweep import SweepMemory
from prefect_assay.runs.queries import read_variables

PER_KIND_MAX: Final = (
    50  # a campaign of a thousand experiments must not send a thousand messages at its deadline
)
_NAME: Final = "assay_problem_"
_SWEEP: Final = "assay_sweep"
_LENGTH_MAX: Final = 5_000  # of a Prefect variable


def read_saved(client: SyncPrefectClient) -> SavedState:
    """Read the open problems, the oldest first, and when the last complete sweep began."""
    swept = next((value for name, value in read_variables(client, _SWEEP) if name == _SWEEP), None)
    memory = _parsed(SweepMemory, swept)
    return SavedState(problems=tuple(_read(client).values()), swept=memory.swept if memory else None)


def settle(
    client: SyncPrefectClient,
    found: Iterable[Problem],
    looked: Collection[str],
    now: datetime,
    *,
    unclear: Collection[tuple[str, str]] = (),
) -> tuple[Problem, ...]:
    """Save new problems and forget those that are over, and send an event for each; returns the open ones.

    Only kinds in `looked` can be over: the others were not looked at, or not everywhere. Of them the problems in
    `unclear`, by kind and subject, stay as they are.
    """
    before = _read(client)
    after = {problem.identity: problem for problem in found}
    counts: dict[str, int] = {}
    for problem in before.values():
        counts[problem.kind] = counts.get(problem.kind, 0) + 1
    for identity, problem in after.items():
        known = before.get(identity)
        if known is None:
            counts[problem.kind] = counts.get(problem.kind, 0) + 1
            if counts[problem.kind] > PER_KIND_MAX:
                continue
            opened(problem)
        current = problem if known is None else problem.model_copy(update={"since": known.since})
        if current != known:
            _write(client, current)
        before[identity] = current
    stay = {*after, *unclear}
    for identity in [i for i, problem in before.items() if problem.kind in looked and i not in stay]:
        over = before.pop(identity)
        solved(over, now)
        with suppress(ObjectNotFound):
            client.delete_variable_by_name(_variable(over))
    return tuple(before.values())


def opened(problem: Problem) -> None:
    """Send the event of a new problem."""
    send(kinds.ProblemOpened(**problem.model_dump()))


def solved(problem: Problem, now: datetime) -> None:
    """Send the event of a problem that is over."""
    send(kinds.ProblemSolved(kind=problem.kind, subject=problem.subject, since=problem.since, until=now))


def _read(client: SyncPrefectClient) -> dict[tuple[str, str], Problem]:
    read = (_parsed(Problem, value) for _, value in read_variables(client, _NAME))
    known = sorted((problem for problem in read if problem), key=lambda p: (p.since, p.identity))
    return {problem.identity: problem for problem in known}


def _write(client: SyncPrefectClient, problem: Problem) -> None:
    name, value = _variable(problem), problem.model_dump_json(exclude_defaults=True)
    if len(value) > _LENGTH_MAX:
        value = problem.model_copy(update={"text": problem.text[:1000], "runs": ()}).model_dump_json()
    try:
        client.create_variable(VariableCreate(name=name, value=value))
    except ObjectAlreadyExists:
        client.update_variable(VariableUpdate(name=name, value=value))


def _variable(problem: Problem) -> str:
    return _NAME + hashlib.sha256("\n".join(problem.identity).encode()).hexdigest()[:20]


def _parsed(kind: type[Any], value: Any) -> Any:
    try:
        return kind.model_validate_json(value) if isinstance(value, str) else kind.model_validate(value)
    except ValidationError:
        return None  # written by another version
