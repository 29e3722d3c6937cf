"""`prefect-assay loop`: checks what can be checked here, then starts the loop on a worker or in this process."""

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.sources import local_path
from prefect_assay.blocks.campaign_plan import split_into_experiments
from prefect_assay.campaigns.approval.purchase import describe_payment, find_earlier, warn_of_earlier
from prefect_assay.campaigns.flow_results import LoopReport
from prefect_assay.campaigns.loops.files import campaign_of, design_files, without_rounds
from prefect_assay.campaigns.loops.loop import LOOP_ID
from prefect_assay.campaigns.loops.loop_log import LoopLog
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.cli.asking import is_at_terminal, require_consent, user_name
from prefect_assay.cli.campaigns.find import LOOP
from prefect_assay.cli.campaigns.purchase import show_rows
from prefect_assay.cli.campaigns.run import (
    announce_run,
    check_target,
    read_amount,
    report_of,
    start_deployed,
)
from prefect_assay.cli.designs.check import read_file
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.loops.schedule import cron_schedule, next_start, schedule_loop
from prefect_assay.cli.model_options import option_name
from prefect_assay.cli.output import make_plain_console, print_json
from prefect_assay.cli.prefect_api import api_errors, load_account, require_api, start_temporary_server
from prefect_assay.cli.service import describe_service
from prefect_assay.designs.options import CampaignOptions, LoopOptions
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.errors import ArchiveError, AssayError, InputError, LoopFailed
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import CampaignLog, StartedKind
from prefect_assay.orders.payments.interfaces import normalize_address
from prefect_assay.orders.purchase import describe_assay, describe_caps
from prefect_assay.orders.targets import resolve_target
from prefect_assay.service.assays import ASSAY_TYPES, Objective
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.spec import Assay, Target
from prefect_assay.service.words import many
from prefect_assay.tasks.pay import require_rail

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.schedules import CronSchedule

    from prefect_assay.blocks import Archive, AssayAccount


_FILES_COMPARED: Final = 5  # with other campaigns, before the loop starts
_ROUNDS_MAX: Final = 1000  # the flow's own limit
_WAIT_DAYS: Final = 30.0  # for the next file of a loop that no schedule starts again


@dataclass(frozen=True, kw_only=True)
class LoopRequest:
    """The options of `loop`; `budget_usd` as it is written."""

    loop_id: str
    source: str | None
    account: str
    designer: str | None
    assay: Assay
    budget_usd: str | None
    rounds: LoopOptions
    options: CampaignOptions
    cron: str | None = None
    timezone: str | None = None
    reopen: bool = False
    yes: bool = False

    def complete_rounds(self) -> LoopOptions:
        """The options of the rounds, with what follows from the other options where nothing was typed.

        Raises:
            InputError: an option that was typed has no effect.
        """
        typed, changes = self.rounds.model_fields_set, dict[str, Any]()
        if self.designer is not None and "wait_days" in typed:
            raise InputError(
                "--wait-days would be ignored: it belongs to loops without --designer; nothing was done"
            )
        if "max_rounds" not in typed and self.cron and not self.designer:
            # A schedule of files ends with `cancel`, and each of its runs when the files are measured. A designer never
            # runs out of designs.
            changes["max_rounds"] = _ROUNDS_MAX
        if "wait_days" not in typed and not self.cron:
            changes["wait_days"] = _WAIT_DAYS
        if self.rounds.selection is not None:
            changes["selection"] = self._complete_selection(self.rounds.selection)
        return self.rounds.model_copy(update=changes)

    def _complete_selection(self, selection: SelectionSettings) -> SelectionSettings:
        if "policy" not in selection.model_fields_set:
            options = ", ".join(option_name(SelectionSettings, name) for name in selection.model_fields_set)
            raise InputError(f"{options} would be ignored: choose designs with --policy; nothing was done")
        if problem := selection.find_direction_problem():
            raise InputError(f"--score-column: {problem}")
        if "objective" in selection.model_fields_set:
            return selection
        objective = ASSAY_TYPES[self.assay.experiment_type].objective or Objective.AFFINITY
        return selection.model_copy(update={"objective": objective})


def run_loop(request: LoopRequest, *, here: bool, as_json: bool) -> None:
    """Start the loop, and print how to follow it or, with `here`, how it ended.

    Raises:
        InputError: the loop's id, its designs, its options or the assay are wrong, nobody has named an amount where it is
            needed, or a person has canceled the loop; nothing was started.
    """
    rounds = request.complete_rounds()
    budget_cents = read_amount(request.budget_usd, "--budget-usd", yes=request.yes)
    _check_request(request)
    if here and request.cron is not None:
        raise InputError(
            "--here runs the loop in this process, which no schedule starts again; leave out --cron"
        )
    if here and budget_cents is None:
        raise InputError(
            "with --here nobody can be asked before a round is ordered: name with --budget-usd what all rounds may cost; "
            "nothing was started"
        )
    schedule = cron_schedule(request.cron, request.timezone) if request.cron is not None else None
    if here:
        start_temporary_server()
    else:
        require_api()
    with api_errors():
        account = load_account(request.account)
        require_rail(
            request.options.spending.payment_method or account.payment_method, account.policy, account.wallet
        )
        if not request.reopen:
            _refuse_canceled(account.archive, request.loop_id)
        show_rounds_and_confirm(request, rounds, account, budget_cents, as_json=as_json)
        if request.reopen:
            _reopen_loop(account.archive, request.loop_id)
        parameters = {
            "loop_id": request.loop_id,
            "source": _make_absolute(request.source),
            "designer": request.designer,
            "assay": request.assay,
            "account": account,
            "budget_usd": None if budget_cents is None else budget_cents / 100,
            "rounds": rounds,
            "options": request.options,
        }
        if here:
            _run_here(parameters, as_json=as_json)
            return
        # First: a schedule of parameters that Prefect refuses would fail at each of its starts.
        run = start_deployed(LOOP, parameters, name=f"loop {request.loop_id}")
    if schedule is not None:
        _add_schedule(request.loop_id, schedule, parameters, run)
    named: dict[str, str | None] = {"loop_id": request.loop_id}
    if schedule is None:
        announce_run(run, named, as_json=as_json)
        return
    following = next_start(schedule)
    announce_run(
        run,
        {**named, "timezone": schedule.timezone, "next_start": following.isoformat()},
        as_json=as_json,
    )
    if not as_json:
        when = f"{following:%Y-%m-%d %H:%M} in the time zone {schedule.timezone}"
        make_plain_console(stderr=True).print(
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


def _reopen_loop(archive: "Archive", loop_id: str) -> None:
    """Open a canceled loop and its canceled rounds again, as the person at this machine asks for."""
    from prefect_assay.campaigns.stop import reopen_campaign

    store, person = archive.get_store(), user_name()
    logs = [CampaignLog(store, archive.prefix, loop_id, StartedKind.LOOP)]
    rounds = LoopLog(store, archive.prefix, loop_id).read().campaigns
    logs += [CampaignLog(store, archive.prefix, name) for name in rounds]
    for log in logs:
        if log.read().stopped is not None:
            reopen_campaign(log, person=person)


def show_rounds_and_confirm(
    request: LoopRequest,
    rounds: LoopOptions,
    account: "AssayAccount",
    budget_cents: int | None,
    *,
    as_json: bool,
) -> None:
    """Look up the target, and show what each round buys; at a terminal, a person confirms it.

    Raises:
        InvalidSpec: the target is wrong; nothing was started.
    """
    with account.credentials.get_client() as service:
        target = resolve_target(service, request.assay)
        if not request.assay.target:
            service.targets.list(limit=1)  # an answer says whether the service is simulated
        account_line = describe_service(service, account.name)
    if as_json:
        return
    limit = (
        f"at most {many(rounds.designs_per_round, 'design')}"
        if rounds.designs_per_round
        else "all designs of a file"
    )
    within = f"{usd(budget_cents)} for all rounds" if budget_cents is not None else "no budget"
    asked = (
        "a person, before each round"
        if budget_cents is None
        else "a person, over a cap; else rounds are ordered at once until the budget is spent. An order cannot be withdrawn"
    )
    rows = {
        "account": account_line,
        "designs": f"{request.designer or request.source}: {limit} a round, at most {many(rounds.max_rounds, 'round')}",
        "assay": describe_assay(request.assay, (target.name or target.id) if target else None),
        "price": f"estimated before each round; {within}",
        "caps": describe_caps(
            account.policy.per_experiment_cents,
            account.policy.per_campaign_cents,
            account.policy.second_person_above_cents,
        ),
        "paid": describe_payment(request.options.spending.payment_method or account.payment_method),
        "asked": asked,
        **_rows_before(request, account, target),
        "schedule": f"{request.cron}; it ends with prefect-assay cancel {request.loop_id}"
        if request.cron
        else "",
    }
    show_rows(f"To be bought by the loop {request.loop_id}", rows)
    if not request.yes and is_at_terminal():
        require_consent(
            f"Start it{'' if budget_cents is None else f', for at most {usd(budget_cents)}'}?",
            nothing="started",
        )


def _rows_before(request: LoopRequest, account: "AssayAccount", target: "Target | None") -> dict[str, str]:
    """Which designs of the first files other campaigns have ordered; what is read later, each round's summary says."""
    if request.source is None:
        return {"before": "not known: each round shows which of its designs other campaigns have ordered"}
    setup = CampaignSetup(account, request.options)
    plans: list[Plan] = []
    try:
        store, prefix = account.archive.get_store(), account.archive.prefix
        ledgers = Ledgers.find_recorded(store, prefix, normalize_address(account.credentials.base_url))
        taken = LoopLog(store, prefix, request.loop_id).read().campaigns
        files = without_rounds(
            design_files(request.source, now=time.time(), settle=0.0), request.loop_id, taken
        ).complete
        for file in files[:_FILES_COMPARED] if ledgers else ():
            plan = split_into_experiments(
                read_file(file.address, request.options.reading),
                request.assay,
                target,
                campaign_id=campaign_of(request.loop_id, file.name),
                per_experiment=request.options.reading.designs_per_experiment,
                reading=request.options.reading,
            )
            named = {f"{name} of {file.name}": value for name, value in plan.sequences.items()}
            plans.append(plan.model_copy(update={"sequences": named}))
        earlier = find_earlier(setup, plans, ledgers, taken)
    except (AssayError, OSError) as error:
        return {"before": f"not compared with other campaigns here: {error}; each round shows it"}
    more = len(files) - _FILES_COMPARED
    names = [name for plan in plans for name, value in plan.sequences.items() if not value.control]
    return {
        "before": f"compared: the first {_FILES_COMPARED} of {len(files)} files; each round shows its own"
        if more > 0
        else "",
        "bought again": warn_of_earlier(names, earlier.purchases),
    }


def _add_schedule(loop_id: str, schedule: "CronSchedule", parameters: dict[str, Any], run: "FlowRun") -> None:
    try:
        with api_errors():
            schedule_loop(loop_id, schedule, parameters)
    except AssayError as error:
        error.message += (
            f". The loop {loop_id} was started (flow run {run.id}), but not scheduled. Repeat the command: another start "
            "of the same loop only looks for new designs"
        )
        raise


def _check_request(request: LoopRequest) -> None:
    if not re.fullmatch(LOOP_ID, request.loop_id):
        raise InputError(
            f"the loop's id {request.loop_id!r} is not usable; use at most 30 letters, digits and '._-', beginning with "
            "a letter or a digit"
        )
    if request.source is None and request.designer is None:
        raise InputError("a loop needs designs: name a folder or an s3:// prefix, or give --designer")
    check_target(request.assay)


def _make_absolute(source: str | None) -> str | None:
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
        console = make_plain_console()
        for line in report.rounds:
            console.print(f"{line.name}: {line.problem or line.best}, table {line.table or 'none'}")
        console.print(f"{state.name}: {report.stop_message}. Best: {report.best}")
    if not state.is_completed():
        raise SystemExit(FAILED)
