"""The open problems, as the sweep saves them, and the events that report each of them once.

One Prefect variable per problem, since each holds 5,000 characters. An event is sent when a problem begins, and one when
it is over.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from prefect.client.orchestration import SyncPrefectClient

from prefect_assay.campaigns.events import kinds, send_event
from prefect_assay.campaigns.problems.problem import Problem, SavedState
from prefect_assay.campaigns.runs.variables import (
    LENGTH_MAX,
    delete_variable,
    parse_variable,
    read_variables,
    variable_name,
    write_variable,
)
from prefect_assay.campaigns.sweep.watermarks import SweepMemory

# A campaign of a thousand experiments must not send a thousand messages at its deadline.
PER_KIND_MAX: Final = 50
_NAME: Final = "assay_problem_"
_SWEEP: Final = "assay_sweep"


def read_saved(client: SyncPrefectClient) -> SavedState:
    """Read the open problems, the oldest first, and when the last complete sweep began."""
    memory = parse_variable(SweepMemory, dict(read_variables(client, _SWEEP)).get(_SWEEP))
    return SavedState(
        problems=tuple(_read_problems(client).values()),
        swept=memory.swept if memory else None,
        open_money=memory.open_money if memory else None,
    )


def save_problems(
    client: SyncPrefectClient,
    problems: Iterable[Problem],
    looked: Collection[str],
    now: datetime,
    *,
    unclear: Collection[tuple[str, str]] = (),
) -> tuple[Problem, ...]:
    """Save new problems and forget those that are over, and send an event for each; returns the open ones.

    Only kinds in `looked` can be over: the others were not looked at, or not everywhere. Of them the problems in
    `unclear`, by kind and subject, stay as they are.
    """
    before = _read_problems(client)
    after = {problem.identity: problem for problem in problems}
    counts: dict[str, int] = {}
    for problem in before.values():
        counts[problem.kind] = counts.get(problem.kind, 0) + 1
    for identity, problem in after.items():
        known = before.get(identity)
        if known is None:
            counts[problem.kind] = counts.get(problem.kind, 0) + 1
            if counts[problem.kind] > PER_KIND_MAX:
                continue
            report_opened(problem)
        current = problem if known is None else problem.model_copy(update={"since": known.since})
        if current != known:
            write_variable(client, _name_variable(current), _format_problem(current), known=known is not None)
        before[identity] = current
    stay = {*after, *unclear}
    for identity in [i for i, problem in before.items() if problem.kind in looked and i not in stay]:
        over = before.pop(identity)
        report_resolved(over, now)
        delete_variable(client, _name_variable(over))
    return tuple(before.values())


def report_opened(problem: Problem) -> None:
    """Send the event of a new problem."""
    send_event(kinds.ProblemOpened(**problem.model_dump()))


def report_resolved(problem: Problem, now: datetime) -> None:
    """Send the event of a problem that is over."""
    send_event(
        kinds.ProblemResolved(kind=problem.kind, subject=problem.subject, since=problem.since, until=now)
    )


def _read_problems(client: SyncPrefectClient) -> dict[tuple[str, str], Problem]:
    read = (parse_variable(Problem, text) for _, text in read_variables(client, _NAME))
    known = sorted((problem for problem in read if problem), key=lambda p: (p.since, p.identity))
    return {problem.identity: problem for problem in known}


def _format_problem(problem: Problem) -> str:
    text = problem.model_dump_json(exclude_defaults=True)
    if len(text) > LENGTH_MAX:
        text = problem.model_copy(update={"text": problem.text[:1000], "runs": ()}).model_dump_json()
    return text


def _name_variable(problem: Problem) -> str:
    return variable_name(_NAME, "\n".join(problem.identity))
