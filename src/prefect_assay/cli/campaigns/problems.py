"""`prefect-assay status --problems`: what needs an operator, each with the next step (docs/operating.md)."""

from datetime import UTC, datetime

from prefect.client.orchestration import get_client

from prefect_assay.campaigns.problems.find import report_receiver_unreachable
from prefect_assay.campaigns.problems.problem import Problem
from prefect_assay.campaigns.problems.saved import read_saved
from prefect_assay.campaigns.sweep.open_money import read_open_money
from prefect_assay.campaigns.sweep.problems import list_problems
from prefect_assay.cli.open_money import as_json as money_as_json
from prefect_assay.cli.open_money import show_open_money
from prefect_assay.cli.output import make_plain_console, print_json
from prefect_assay.cli.prefect_api import api_errors, require_api
from prefect_assay.cli.services.check import silent_receivers


def show_problems(*, as_json: bool) -> None:
    """Print all open problems, with those of the receivers at this moment, and the open money."""
    require_api()
    now = datetime.now(UTC)
    with api_errors(), get_client(sync_client=True) as client:
        swept = read_saved(client).swept
        unreachable = [
            report_receiver_unreachable(name, f"the receiver of {name} does not answer: {why}", now)
            for name, why in silent_receivers(client)
        ]
        problems = [*unreachable, *list_problems(client, now)]
        money = read_open_money(client)
    if as_json:
        shown = {
            "problems": [problem.model_dump(mode="json") for problem in problems],
            "swept": swept.isoformat() if swept else None,
            "open_money": money_as_json(money),
        }
        print_json(shown)
        return
    console = make_plain_console()
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
