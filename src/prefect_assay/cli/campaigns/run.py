"""`prefect-assay run`: checks the designs, then starts the campaign on a worker or in this process."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from rich.text import Text

from prefect_assay.campaigns.flow_results import CampaignReport
from prefect_assay.campaigns.runs.tags import APPROVED_TAG
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.cli.asking import is_at_terminal, parse_cents, require_consent, user_name
from prefect_assay.cli.campaigns.estimate import look_up
from prefect_assay.cli.campaigns.purchase import show_purchase
from prefect_assay.cli.designs.check import check_locally, read_file, warnings_of
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.output import make_plain_console, print_json
from prefect_assay.cli.prefect_api import (
    api_errors,
    load_account,
    require_api,
    run_url,
    start_temporary_server,
)
from prefect_assay.designs.options import CampaignOptions
from prefect_assay.designs.read import is_pasted
from prefect_assay.errors import (
    AssayError,
    CampaignFailed,
    ConfigurationError,
    InputError,
    InvalidSpec,
    LoopFailed,
)
from prefect_assay.orders.purchase import PurchaseSummary
from prefect_assay.service.assays import ASSAY_TYPES
from prefect_assay.service.bounds import CAMPAIGN_ID
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.words import in_words
from prefect_assay.tasks.pay import require_rail

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun, State

    from prefect_assay.blocks import Archive

# Prefect refuses parameters beyond 512 KiB; of a larger file only the path is sent.
_TEXT_MAX: Final = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class CampaignRequest:
    """The options of `run`; `max_usd` as it is written."""

    designs: str
    account: str
    assay: Assay
    options: CampaignOptions
    max_usd: str | None = None
    campaign_id: str | None = None
    reopen: bool = False
    yes: bool = False


def run_campaign(request: CampaignRequest, *, here: bool, wait: bool, as_json: bool) -> None:
    """Start a campaign and print how to follow it.

    Raises:
        InputError: the designs or the assay are wrong, with every finding, or nobody has named an amount where it is
            needed; nothing was started.
        SystemExit: with 1, if `wait` or `here` is set and the campaign ended without complete results.
    """
    assay, options = request.assay, request.options
    check_campaign_id(request.campaign_id)
    unasked_cents = read_amount(request.max_usd, "--max-usd", yes=request.yes)
    sequences = read_file(request.designs, options.reading)
    check_target(assay)
    check_locally(sequences, assay, options.reading.designs_per_experiment)
    if not as_json:
        for line in warnings_of(sequences):
            make_plain_console(stderr=True).print(line, style="yellow")
    if here:
        start_temporary_server()
    else:
        require_api()
    with api_errors():
        account = load_account(request.account)
        require_rail(
            options.spending.payment_method or account.payment_method, account.policy, account.wallet
        )
        options = _with_requester(options)
        purchase = look_up(
            CampaignSetup(account, options),
            sequences,
            assay,
            request.campaign_id,
            unasked_cents=unasked_cents,
            requester=options.spending.requester,
        )
        if not as_json:
            show_purchase(purchase)
        unasked_cents, tags = _approve_price(purchase, unasked_cents, asks=not (request.yes or as_json))
        asks = bool(purchase.new) and (unasked_cents or 0) < purchase.total_cents
        campaign_id = purchase.campaign_id
        if here and asks:
            _raise_over_limit(purchase.total_cents)
        if request.reopen:
            from prefect_assay.campaigns.stop import reopen_campaign
            from prefect_assay.orders.ledger.campaign_log import CampaignLog

            archive = account.archive
            log = CampaignLog(archive.get_store(), archive.prefix, campaign_id)
            reopen_campaign(log, person=user_name())
        refuse_stopped(account.archive, campaign_id)
        parameters = {
            "assay": assay,
            "account": account,
            "spend_up_to_usd": None if unasked_cents is None else unasked_cents / 100,
            # Without an id the flow derives the same one, from the designs and the target that it has looked up.
            "campaign_id": request.campaign_id,
            "options": options,
        }
        if here:
            _run_here({"designs": request.designs, **parameters}, as_json=as_json)
            return
        run = start_deployed(
            "campaign",
            {**parameters, **_read_parameters(request.designs, options)},
            name=campaign_id,
            tags=tags,
        )
    announce_run(run, {"campaign_id": campaign_id}, as_json=as_json and not wait)
    if asks:
        make_plain_console(stderr=True).print(
            f"Nothing is ordered yet: the run asks with the price first. Answer: prefect-assay approve {campaign_id}"
        )
    if wait:
        from prefect_assay.cli.campaigns.follow import follow

        follow(account.archive, campaign_id, run, as_json=as_json)


def _approve_price(
    purchase: PurchaseSummary, unasked_cents: int | None, *, asks: bool
) -> tuple[int | None, list[str]]:
    """What may be spent without asking, and the run's tag that says how; at a terminal a person says it."""
    if asks and purchase.new and is_at_terminal():
        require_consent(f"Order this, {purchase.due}?", nothing="ordered")
        # The person has seen exactly this.
        return purchase.total_cents, [f"{APPROVED_TAG}`y` at the terminal"]
    # Less than the price approves nothing: a person is asked, and the answer is the approval.
    covers = unasked_cents is not None and unasked_cents >= purchase.total_cents
    return unasked_cents, [f"{APPROVED_TAG}--max-usd"] if covers else []


def _raise_over_limit(total_cents: int) -> NoReturn:
    raise InputError(
        f"nothing was ordered: it costs {usd(total_cents)} without VAT, and with --here nobody can be asked later. To order "
        f"it, repeat the command with --max-usd {total_cents / 100:.2f} --yes"
    )


def read_amount(text: str | None, option: str, *, yes: bool) -> int | None:
    """The US cents of an option that approves an amount; needed where nobody is asked."""
    if text is not None:
        return parse_cents(text, option)
    if yes:
        raise InputError(
            f"--yes needs {option}: name what may be spent without asking, in USD; nothing was started"
        )
    return None


def refuse_stopped(archive: "Archive", campaign_id: str) -> None:
    """Raise InputError for a campaign that a person has canceled: its run would end at once."""
    from prefect_assay.orders.ledger.campaign_log import CampaignLog

    stopped = CampaignLog(archive.get_store(), archive.prefix, campaign_id).read().stopped
    if stopped is not None:
        raise InputError(
            f"campaign {campaign_id} was canceled by {stopped.person} on {stopped.at:%Y-%m-%d}; nothing was started. To go on "
            "with it, repeat the command with --reopen"
        )


def _with_requester(options: CampaignOptions) -> CampaignOptions:
    """The options with the name of who asks: this machine's user, unless one is given or there is none."""
    if options.spending.requester is not None:
        return options
    with suppress(InputError):
        spending = options.spending.model_copy(update={"requester": user_name()})
        return options.model_copy(update={"spending": spending})
    return options


def check_campaign_id(campaign_id: str | None) -> None:
    """Raise InputError, in words, for an id that the flow would refuse."""
    if campaign_id is not None and not re.fullmatch(CAMPAIGN_ID, campaign_id):
        raise InputError(
            f"the campaign id {campaign_id!r} is not usable; use at most 60 letters, digits and '._-', beginning with a "
            "letter or a digit. Nothing was started"
        )


def check_target(assay: Assay) -> None:
    """Raise InvalidSpec for a missing target, or for one that the assay does not take."""
    needed = ASSAY_TYPES[assay.experiment_type].takes_target
    if needed and not assay.target:
        raise InvalidSpec(
            [f'target: {in_words(assay.experiment_type)} needs one; name a catalog target with --target "…"']
        )
    if assay.target and not needed:
        raise InvalidSpec([f"target: {in_words(assay.experiment_type)} takes no target; leave --target out"])


def _read_parameters(source: str, options: CampaignOptions) -> dict[str, Any]:
    """The parameters for the worker: the file's text and name, which need no shared folder, or else its address."""
    if "://" in source or is_pasted(source):
        return {"designs": source}
    path = Path(source).expanduser().absolute()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        return {"designs": str(path)}
    if is_pasted(text) and len(text.encode()) <= _TEXT_MAX:
        reading = options.reading.model_copy(update={"designs_name": options.reading.designs_name or source})
        return {"designs": text, "options": options.model_copy(update={"reading": reading})}
    return {"designs": str(path)}


def start_deployed(
    flow: str, parameters: dict[str, Any], *, name: str, tags: Sequence[str] = ()
) -> "FlowRun":
    """Start the deployment of a flow, whose worker runs it in another folder."""
    from prefect_assay.blocks.deployment_runs import deployment_of, start_run

    parameters["account"].archive.require_lasting()
    return start_run(deployment_of(flow), parameters, name=name, tags=tags)


def announce_run(run: "FlowRun", named: dict[str, str | None], *, as_json: bool) -> None:
    """Print what was started and how to follow it, by its own id if it has one."""
    url = run_url(run.id)
    if as_json:
        print_json({**named, "flow_run_id": str(run.id), "url": url})
        return
    console = make_plain_console(stderr=True)
    console.print("Started flow run", Text(run.name, "bold"), str(run.id))
    if url:
        console.print(f"Watch it: {url}")
    own_id = next(iter(named.values()), None)
    console.print(f"Next: prefect-assay status {own_id or run.id}")


def report_of(state: "State[Any]", failed: type[CampaignFailed] | type[LoopFailed], what: str) -> Any:
    """The report of a flow that ran in this process, also of one that failed with it; any other error is raised."""
    result = state.result(raise_on_failure=False)
    report = result.report or result if isinstance(result, failed) else result
    if isinstance(report, AssayError):
        raise report
    if isinstance(report, BaseException):
        raise ConfigurationError(f"the {what} failed: {report}") from report
    return report


def _run_here(parameters: dict[str, Any], *, as_json: bool) -> None:
    """Order, pay and poll in this process, without a deployment, until the results are archived."""
    from prefect_assay.flows import campaign

    state = cast("Any", campaign(**parameters, return_state=True))
    report: CampaignReport = report_of(state, CampaignFailed, "campaign")
    if as_json:
        print_json({"state": state.name, **report.model_dump(mode="json")})
    else:
        make_plain_console().print(f"{state.name}: {state.message}")
        make_plain_console().print(f"Table: {report.table or 'none'}")
    if not state.is_completed():
        raise SystemExit(FAILED)
