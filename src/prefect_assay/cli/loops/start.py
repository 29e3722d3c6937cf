"""`prefect-assay loop`: checks what can be checked here, then starts the loop on a worker or in this process."""

import getpass
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from prefect_assay.books.campaign_log import CampaignLog, StartedKind
from prefect_assay.cli.campaigns import purchase
from prefect_assay.cli.campaigns.find import LOOP
from prefect_assay.cli.campaigns.run import (
    AssayRequest,
    announce,
    check_target,
    load_blocks,
    report_of,
    start_deployed,
)
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.loops.schedule import cron_schedule, next_start, schedule_loop
from prefect_assay.cli.output import plain, print_json
from prefect_assay.cli.prefect_api import api_errors, require_api, start_temporary_server
from prefect_assay.errors import ArchiveError, AssayError, InputError, LoopFailed
from prefect_assay.looping import LoopBook, objective_of
from prefect_assay.looping.loop import LOOP_ID
from prefect_assay.models.billing import usd
from prefect_assay.models.report import LoopReport
from prefect_assay.models.selection import Objective, SelectionPolicy, SelectionSettings
from prefect_assay.models.vocabulary import ExperimentType, PaymentMethod
from prefect_assay.ordering import resolve_target
from prefect_assay.sources import local_path

if TYPE_CHECKING:
    from prefect.blocks.core import Block
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.schedules import CronSchedule

    from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy


@dataclass(frozen=True, kw_only=True)
class LoopRequest(AssayRequest):
    """The options of `loop`; `own` are parameters of the flow that it does not share with a campaign."""

    loop_id: str
    source: str | None
    select: str | None
    seed: int
    score_column: str | None
    higher_is_better: bool | None
    own: dict[str, Any]
    reopen: bool = False
    yes: bool = False
    cron: str | None = None
    timezone: str | None = None

    def selection(self) -> SelectionSettings | None:
        """How a round's designs are chosen."""
        if self.select is None:
            return None
        return SelectionSettings(
            policy=SelectionPolicy(self.select),
            seed=self.seed,
            score_column=self.score_column,
            higher_is_better=self.higher_is_better,
            objective=objective_of(ExperimentType(self.experiment_type)) or Objective.AFFINITY,
        )


def run_loop(request: LoopRequest, *, here: bool, as_json: bool) -> None:
    """Start the loop, and print how to follow it or, with `here`, how it ended.

    Raises:
        InputError: the loop's id, its designs or the assay are wrong, or a person has canceled the loop; nothing was started.
    """
    _check(request)
    if here and request.cron is not None:
        raise InputError(
            "--here runs the loop in this process, which no schedule starts again; leave out --cron"
        )
    schedule = cron_schedule(request.cron, request.timezone) if request.cron is not None else None
    if here:
        start_temporary_server()
    else:
        require_api()
    with api_errors():
        blocks = load_blocks(request)
        archive = cast("Archive", blocks["archive"])
        if not request.reopen:
            _refuse_canceled(archive, request.loop_id)
        offer(request, blocks, as_json=as_json)
        if request.reopen:
            _reopen(archive, request.loop_id)
        parameters = {
            "loop_id": request.loop_id,
            "source": _address(request.source),
            "selection": request.selection(),
            **request.own,
            **request.settings(),
            **blocks,
        }
        if here:
            _run_here(parameters, as_json=as_json)
            return
        # First: a schedule of parameters that Prefect refuses would fail at each of its starts.
        run = start_deployed(LOOP, parameters, name=f"loop {request.loop_id}")
    if schedule is not None:
        _schedule(request.loop_id, schedule, parameters, run)
    named: dict[str, str | None] = {"loop_id": request.loop_id}
    if schedule is None:
        announce(run, named, as_json=as_json)
        return
    following = next_start(schedule)
    announce(
        run,
        {**named, "timezone": schedule.timezone, "next_start": following.isoformat()},
        as_json=as_json,
    )
    if not as_json:
        when = f"{following:%Y-%m-%d %H:%M} in the time zone {schedule.timezone}"
        plain(stderr=True).print(
            f"Scheduled: next start {when}. End it: prefect-assay cancel {request.loop_id}"
        )


def _refuse_canceled(archive: "Archive", loop_id: str) -> None:
    """Refuse a loop that a person has canceled; an archive that this machine cannot read is left to the run."""
    from prefect_assay.campaigns.starts import describe_stop

    stopped = None
    with suppress(ArchiveError):
        stopped = CampaignLog(archive.get_store(), archive.prefix, loop_id, StartedKind.LOOP).read().stopped
    if stopped is not None:
        raise InputError(describe_stop(f"loop {loop_id}", stopped))


def _reopen(archive: "Archive", loop_id: str) -> None:
    """Open a canceled loop and its canceled rounds again, as the person at this machine asks for."""
    from prefect_assay.campaigns.stop import reopen_campaign

    store, person = archive.get_store(), getpass.getuser()
    logs = [CampaignLog(store, archive.prefix, loop_id, StartedKind.LOOP)]
    rounds = LoopBook(store, archive.prefix, loop_id).read().campaigns
    logs += [CampaignLog(store, archive.prefix, name) for name in rounds]
    for log in logs:
        if log.read().stopped is not None:
            reopen_campaign(archive, log.name, person=person)


def offer(request: LoopRequest, blocks: "dict[str, Block]", *, as_json: bool) -> None:
    """Look up the target, and show what each round buys; at a terminal, a person confirms it.

    Raises:
        InvalidSpec: the target is wrong; nothing was started.
    """
    with cast("AssayCredentials", blocks["credentials"]).get_client() as service:
        target = resolve_target(service, request.assay())
    if as_json:
        return
    own = request.own
    limit = (
        f"at most {own['designs_per_round']} designs" if own["designs_per_round"] else "all designs of a file"
    )
    budget = own["budget_cents"]
    spends = f"{usd(budget)} for all rounds" if budget is not None else "no budget: each round up to the caps"
    asked = (
        "a person, before each round"
        if own["ask_each_round"]
        else "a person, over a cap; else rounds are ordered at once"
    )
    rows = {
        "designs": f"{own['designer'] or request.source}: {limit} a round, at most {own['max_rounds']} rounds",
        "assay": purchase.assay_line(request.assay(), target),
        "price": f"estimated before each round; {spends}",
        "caps": purchase.caps_line(cast("SpendingPolicy", blocks["policy"])),
        "paid": purchase.paid_line(PaymentMethod(request.payment), request.wallet),
        "asked": asked,
        "schedule": f"{request.cron}; it ends with prefect-assay cancel {request.loop_id}"
        if request.cron
        else "",
    }
    purchase.show_rows(f"To be bought by the loop {request.loop_id}", rows)
    purchase.confirm("Start it?", yes=request.yes)


def _schedule(loop_id: str, schedule: "CronSchedule", parameters: dict[str, Any], run: "FlowRun") -> None:
    try:
        with api_errors():
            schedule_loop(loop_id, schedule, parameters)
    except AssayError as error:
        error.message += (
            f". The loop {loop_id} was started (flow run {run.id}), but not scheduled. Repeat the command: another start "
            "of the same loop only looks for new designs"
        )
        raise


def _check(request: LoopRequest) -> None:
    if not re.fullmatch(LOOP_ID, request.loop_id):
        raise InputError(
            f"the loop's id {request.loop_id!r} is not usable; use at most 30 letters, digits and '._-', beginning with "
            "a letter or a digit"
        )
    if request.source is None and request.own["designer"] is None:
        raise InputError("a loop needs designs: name a folder or an s3:// prefix, or give --designer")
    selection = request.selection()
    if selection is not None and (problem := selection.find_direction_problem()):
        raise InputError(f"--score-column: {problem}")
    check_target(request.assay())


def _address(source: str | None) -> str | None:
    """A folder as an absolute path: a worker runs the flow in another folder."""
    if source is None or "://" in source:
        return source
    return str(local_path(source).absolute())


def _run_here(parameters: dict[str, Any], *, as_json: bool) -> None:
    from prefect_assay.flows import design_build_test

    state = cast("Any", design_build_test(**parameters, return_state=True))
    report: LoopReport = report_of(state, LoopFailed, "loop")
    if as_json:
        print_json({"state": state.name, **report.model_dump(mode="json")})
    else:
        console = plain()
        for line in report.rounds:
            console.print(f"{line.name}: {line.problem or line.best}, table {line.table or 'none'}")
        console.print(f"{state.name}: {report.stopped}. Best: {report.best}")
    if not state.is_completed():
        raise SystemExit(FAILED)
