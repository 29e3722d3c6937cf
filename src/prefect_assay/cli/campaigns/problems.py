"""`prefect-assay status --problems`: what needs an operator, each with the next step (docs/alerts.md)."""

from datetime import UTC, datetime

from prefect.client.orchestration import get_client

from prefect_assay.alerts.find import cannot_start, receiver_away, sweep_silence
from prefect_assay.alerts.saved import read_saved
from prefect_assay.cli.open_money import as_json as money_as_json
from prefect_assay.cli.open_money import find_open_money, show_open_money
from prefect_assay.cli.output import plain, print_json
from prefect_assay.cli.prefect_api import api_errors, require_api
from prefect_assay.cli.services.check import silent_receivers
from prefect_assay.models.problem import Problem
from prefect_assay.runs.starting import find_obstacles, own_deployments


def show_problems(*, as_json: bool) -> None:
    """Print the open problems that the sweep has saved, whether the sweep itself runs, and what stops it or the receiver."""
    require_api()
    now = datetime.now(UTC)
    with api_errors(), get_client(sync_client=True) as client:
        saved = read_saved(client)
        obstacles = find_obstacles(client, own_deployments(client), now)
        silent = list(silent_receivers(client))
        money = find_open_money(client)
    never = datetime.min.replace(tzinfo=UTC)
    problems = [
        *sweep_silence(saved.swept, now, watched_since=never),
        *(cannot_start(found.subject, found.text, found.next_step, now) for found in obstacles),
        *(receiver_away(name, f"the receiver of {name} does not answer: {why}", now) for name, why in silent),
        *saved.problems,
    ]
    if as_json:
        shown = {
            "problems": [problem.model_dump(mode="json") for problem in problems],
            "swept": saved.swept.isoformat() if saved.swept else None,
            "open_money": money_as_json(money),
        }
        print_json(shown)
        return
    console = plain()
    if not problems:
        console.print("No problems.")
    for problem in problems:
        console.print(_lines(problem, now))
    show_open_money(money, nothing="No money is open.")


def _lines(problem: Problem, now: datetime) -> str:
    age = now - problem.since
    since = f", since {problem.since:%Y-%m-%d %H:%M} UTC" if age.days < 365 else ""  # noqa: PLR2004 - never swept
    runs = f"\n  runs: {', '.join(problem.runs)}" if problem.runs else ""
    return f"{problem.kind}{since}\n  {problem.text}.\n  {problem.next_step}.{runs}"
