"""`prefect-assay approve` and `reject`: show the question of a suspended run, and answer it in a person's name."""

import getpass
import re
import sys
from dataclasses import dataclass
from typing import Any

import typer
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from rich.markdown import Markdown

from prefect_assay.approvals.answering import OpenQuestion, read_question, submit_answer
from prefect_assay.approvals.spending import asked_cents
from prefect_assay.cli.campaigns.find import with_children
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.output import TerminalConsole, plain, print_json
from prefect_assay.cli.prefect_api import api_errors, require_api, run_url
from prefect_assay.errors import Conflict, InputError
from prefect_assay.models.billing import usd
from prefect_assay.runs.states import waits_for_input

_LINK = re.compile(r"\[([^\]]+)\]\((https?://[^)\s]+)\)")  # of a description in Markdown
_REFUSALS = ("reject", "stop")  # of spending and rounds, and of a payment in doubt


@dataclass(frozen=True, kw_only=True)
class GivenAnswer:
    """What the options say. Without a `decision` it is a refusal in the form's own word."""

    decision: str | None
    cap_cents: int | None = None
    by: str | None
    note: str | None
    question: str | None
    yes: bool

    def values(self, decision: str) -> dict[str, Any]:
        """The values of the form."""
        given = {
            "decision": decision,
            "cap_cents": self.cap_cents,
            "note": self.note,
            "decided_by": self.by or _user(),
        }
        return {name: value for name, value in given.items() if value is not None}


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        raise InputError("this user has no name here; say who decides with --by") from None


def answer(which: str, given: GivenAnswer, *, as_json: bool) -> None:
    """Show the question of a run, and submit the answer when it is confirmed.

    Raises:
        NotFound: there is no such run.
        InputError: it asks nothing, several of its runs ask, the form does not have the decision, the decision and the
            cap do not belong together, or the cap is less than the price.
        Conflict: the question is not the one that was named, or it was answered meanwhile.
        SystemExit: with 1, if the answer is not confirmed.
    """
    if (given.decision == "change_cap") != (given.cap_cents is not None):
        raise InputError(
            "nothing was answered: a cap belongs to the decision change_cap, and no other decision reads it; give "
            "--cap-cents alone, or another decision without it"
        )
    require_api()
    with api_errors():
        with get_client(sync_client=True) as client:
            question = read_question(client, _asking(client, which))
        if given.question is not None and given.question != question.key:
            raise Conflict(
                f"run {question.run_name} asks another question by now ({question.key}). Nothing was answered: look at it "
                "again without --question"
            )
        if as_json and not given.yes:
            print_json({"question": _as_json(question), "answer": None})
            return
        if not as_json:
            _show(question)
        values = given.values(_decision(question, given))
        _refuse_low_cap(question, given.cap_cents)
        if not given.yes:
            _confirm(question, values)
        submit_answer(question, values)
    if as_json:
        print_json({"question": _as_json(question), "answer": values})
        return
    console = plain()
    console.print(
        f"Answered {values['decision']}, as {values['decided_by']}. The run goes on when a worker takes it."
    )
    console.print(f"Next: prefect-assay status {question.run_id}")


def _asking(client: SyncPrefectClient, which: str) -> FlowRun:
    """The one run that asks, of those that the word names; the run itself if none does."""
    found = with_children(client, which)
    asking = [run for run in found if run.state and run.state.is_paused() and waits_for_input(run)]
    if len(asking) > 1:
        listed = "\n".join(f"  {run.id}  {run.name}" for run in asking)
        raise InputError(f"{len(asking)} runs of {which} ask a person; name one of them:\n{listed}")
    return asking[0] if asking else found[0]


def _decision(question: OpenQuestion, given: GivenAnswer) -> str:
    if given.decision is None:
        decision = next((word for word in _REFUSALS if word in question.decisions), _REFUSALS[0])
    else:
        decision = given.decision
    if decision not in question.decisions:
        raise InputError(
            f"the question of run {question.run_name} does not take {decision!r}; its decisions are "
            f"{', '.join(question.decisions) or 'none'}. Choose one with --decision"
        )
    return decision


def _refuse_low_cap(question: OpenQuestion, cap_cents: int | None) -> None:
    """The form takes such a cap as a rejection; on a command line it is more likely an amount in dollars."""
    price = asked_cents(question.key)
    if cap_cents is not None and price is not None and cap_cents < price:
        raise InputError(
            f"nothing was answered: the cap, {usd(cap_cents)}, is less than the price, {usd(price)}. --cap-cents takes US "
            f"cents: give {price} or more, or decline with prefect-assay reject"
        )


def _confirm(question: OpenQuestion, values: dict[str, Any]) -> None:
    if not sys.stdin.isatty():
        raise InputError(
            "nothing was answered: there is no terminal to confirm it. Read the question, then repeat the command with "
            f"--yes --question {question.key}"
        )
    cap = f" with a cap of {usd(values['cap_cents'])}" if "cap_cents" in values else ""
    if not typer.confirm(f"Answer {values['decision']}{cap}, as {values['decided_by']}?"):
        TerminalConsole(stderr=True).print("Nothing was answered.")
        raise SystemExit(FAILED)


def _show(question: OpenQuestion) -> None:
    console = TerminalConsole(highlight=False)
    console.print(f"{question.run_name}  {question.run_id}", style="bold", markup=False)
    console.print(Markdown(question.description))
    for text, address in _LINK.findall(question.description):
        plain().print(f"{text}: {address}")
    if question.until is not None:
        console.print(f"To be answered until {question.until:%Y-%m-%d %H:%M} UTC.\n", markup=False)


def _as_json(question: OpenQuestion) -> dict[str, Any]:
    return {
        "key": question.key,
        "flow_run_id": str(question.run_id),
        "run": question.run_name,
        "description": question.description,
        "decisions": list(question.decisions),
        "until": question.until.isoformat() if question.until else None,
        "url": run_url(question.run_id),
    }
