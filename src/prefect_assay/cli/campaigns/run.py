"""`prefect-assay run`: checks the designs, then starts the campaign on a worker or in this process."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from rich.text import Text

from prefect_assay.cli.designs.sequences import check_locally, read_file, warnings_of
from prefect_assay.cli.failures import FAILED, refuse_ignored
from prefect_assay.cli.output import plain, print_json
from prefect_assay.cli.prefect_api import (
    api_errors,
    load_archive,
    load_block,
    require_api,
    run_url,
    start_temporary_server,
)
from prefect_assay.designs import is_pasted
from prefect_assay.errors import (
    AssayError,
    CampaignFailed,
    ConfigurationError,
    InputError,
    InvalidSpec,
    LoopFailed,
)
from prefect_assay.models.bounds import CAMPAIGN_ID, cut
from prefect_assay.models.options import ReadingOptions
from prefect_assay.models.report import CampaignReport
from prefect_assay.models.sequences import Sequences
from prefect_assay.models.spec import Assay
from prefect_assay.models.vocabulary import BINDING_TYPES, ExperimentType, Method, PaymentMethod
from prefect_assay.models.words import in_words, many

if TYPE_CHECKING:
    from prefect.blocks.core import Block
    from prefect.client.schemas.objects import FlowRun, State

    from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy
    from prefect_assay.cli.campaigns.purchase import Purchase

# Prefect refuses parameters beyond 512 KiB; of a larger file only the path is sent.
_TEXT_MAX: Final = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class AssayRequest:
    """The options that `run` and `loop` share: blocks, assay, payment."""

    credentials: str
    policy: str
    archive: str
    wallet: str | None
    webhook: str | None
    experiment_type: str
    target: str | None
    method: str | None
    replicates: int | None
    payment: str
    per_experiment: int
    deadline_days: int
    reading: ReadingOptions

    def assay(self) -> Assay:
        """The assay that the options describe."""
        return assay_of(self.experiment_type, self.target, self.method, self.replicates)

    def settings(self) -> dict[str, Any]:
        """The parameters of either flow that are no blocks."""
        return {
            "assay": self.assay(),
            "payment_method": PaymentMethod(self.payment),
            "sequences_per_experiment": self.per_experiment,
            "deadline_days": self.deadline_days,
            **self.reading.model_dump(),
        }


@dataclass(frozen=True, kw_only=True)
class CampaignRequest(AssayRequest):
    """The options of `run`."""

    designs: str
    campaign_id: str | None
    request_quote: bool = False
    reopen: bool = False
    yes: bool = False


def assay_of(experiment_type: str, target: str | None, method: str | None, replicates: int | None) -> Assay:
    """The assay that the words of a command line describe."""
    return Assay(
        experiment_type=ExperimentType(experiment_type),
        target=target,
        method=Method(method) if method else None,
        n_replicates=replicates,
    )


def run_campaign(request: CampaignRequest, *, here: bool, wait: bool, as_json: bool) -> None:
    """Start a campaign and print how to follow it.

    Raises:
        InputError: the designs or the assay are wrong, with every finding; nothing was started.
        SystemExit: with 1, if `wait` or `here` is set and the campaign ended without complete results.
    """
    assay = request.assay()
    check_campaign_id(request.campaign_id)
    sequences = read_file(request.designs, request.reading)
    check_target(assay)
    check_locally(sequences, assay, request.per_experiment)
    if not as_json:
        for line in warnings_of(sequences):
            plain(stderr=True).print(line, style="yellow")
    if here:
        start_temporary_server()
    else:
        require_api()
    with api_errors():
        blocks = load_blocks(request)
        purchase = _offer(sequences, request, blocks, here=here, as_json=as_json)
        campaign_id = purchase.plan.campaign_id
        archive = cast("Archive", blocks["archive"])
        if request.reopen:
            _reopen(archive, campaign_id)
        refuse_stopped(archive, campaign_id)
        settings = {
            **request.settings(),
            # Without an id the flow derives the same one, from the designs and the target that it has looked up.
            "campaign_id": request.campaign_id,
            "request_quote": request.request_quote,
        }
        if here:
            _run_here({"designs": request.designs, **settings, **blocks}, as_json=as_json)
            return
        name = f"{cut(campaign_id, 60)}, {many(len(sequences), 'design')}"
        run = start_deployed("campaign", {**_designs(request.designs), **settings, **blocks}, name=name)
    announce(run, {"campaign_id": campaign_id}, as_json=as_json and not wait)
    if wait:
        from prefect_assay.cli.campaigns.follow import follow

        follow(archive, campaign_id, run, as_json=as_json)


def _reopen(archive: "Archive", campaign_id: str) -> None:
    """Open a stopped or ended campaign again, as the person at this machine asks for."""
    from prefect_assay.campaigns.stop import reopen_campaign
    from prefect_assay.cli.asking import user_name

    reopen_campaign(archive, campaign_id, person=user_name())


def refuse_stopped(archive: "Archive", campaign_id: str) -> None:
    """Raise InputError for a campaign that a person has canceled: its run would end at once."""
    from prefect_assay.books.campaign_log import CampaignLog

    stopped = CampaignLog(archive.get_store(), archive.prefix, campaign_id).read().stopped
    if stopped is not None:
        raise InputError(
            f"campaign {campaign_id} was canceled by {stopped.person} on {stopped.at:%Y-%m-%d}; nothing was started. To go on "
            "with it, repeat the command with --reopen"
        )


def _offer(
    sequences: Sequences, request: CampaignRequest, blocks: dict[str, "Block"], *, here: bool, as_json: bool
) -> "Purchase":
    """Look up and show what is bought; at a terminal, a person confirms it."""
    from prefect_assay.cli.campaigns import purchase

    found = purchase.look_up(
        sequences,
        request.assay(),
        request.reading,
        campaign_id=request.campaign_id,
        per_experiment=request.per_experiment,
        credentials=cast("AssayCredentials", blocks["credentials"]),
        archive=cast("Archive", blocks["archive"]),
    )
    if as_json:
        return found
    policy = cast("SpendingPolicy", blocks["policy"])
    purchase.show(found, policy, PaymentMethod(request.payment), request.wallet, here=here)
    purchase.confirm(f"Order this, {found.total}?", yes=request.yes)
    return found


def check_campaign_id(campaign_id: str | None) -> None:
    """Raise InputError, in words, for an id that the flow would refuse."""
    if campaign_id is not None and not re.fullmatch(CAMPAIGN_ID, campaign_id):
        raise InputError(
            f"the campaign id {campaign_id!r} is not usable; use at most 60 letters, digits and '._-', beginning with a "
            "letter or a digit. Nothing was started"
        )


def check_target(assay: Assay) -> None:
    """Raise InvalidSpec for a missing target, or for one that the assay does not take."""
    needed = assay.experiment_type in BINDING_TYPES
    if needed and not assay.target:
        raise InvalidSpec(
            [f'target: {in_words(assay.experiment_type)} needs one; name a catalog target with --target "…"']
        )
    if assay.target and not needed:
        raise InvalidSpec([f"target: {in_words(assay.experiment_type)} takes no target; leave --target out"])


def load_blocks(request: AssayRequest) -> dict[str, "Block"]:
    """The saved blocks that the options name, checked for the way of payment."""
    from prefect_assay.blocks import (
        AssayCredentials,
        SharedPaymentTokens,
        SpendingPolicy,
        WebhookEndpoint,
        X402Wallet,
    )
    from prefect_assay.tasks.pay import require_rail

    method = PaymentMethod(request.payment)
    if method is PaymentMethod.ASYNC_INVOICE:
        refuse_ignored(
            {"--wallet": request.wallet},
            "a person pays the invoice; a wallet pays with --payment x402-exact or mpp-spt",
        )
    policy = load_block(SpendingPolicy, request.policy)
    kind: type[SharedPaymentTokens | X402Wallet]
    kind = SharedPaymentTokens if method is PaymentMethod.MPP_SPT else X402Wallet
    wallet = load_block(kind, request.wallet) if request.wallet else None
    require_rail(method, policy, wallet)
    blocks: dict[str, Block | None] = {
        "credentials": load_block(AssayCredentials, request.credentials),
        "policy": policy,
        "archive": load_archive(request.archive),
        "wallet": wallet,
        "webhook": load_block(WebhookEndpoint, request.webhook) if request.webhook else None,
    }
    return {name: block for name, block in blocks.items() if block is not None}


def _designs(source: str) -> dict[str, str]:
    """The parameters for the worker: the file's text and name, which need no shared folder, or else its address."""
    if "://" in source or is_pasted(source):
        return {"designs": source}
    path = Path(source).expanduser().absolute()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        return {"designs": str(path)}
    if is_pasted(text) and len(text.encode()) <= _TEXT_MAX:
        return {"designs": text, "designs_name": source}
    return {"designs": str(path)}


def start_deployed(flow: str, parameters: dict[str, Any], *, name: str) -> "FlowRun":
    """Start the deployment of a flow, whose worker runs it in another folder."""
    from prefect_assay.runs.deployments import deployment_of, start_run
    from prefect_assay.tasks.archive import refuse_relative

    refuse_relative(cast("Archive", parameters["archive"]))
    return start_run(deployment_of(flow), parameters, name=name)


def announce(run: "FlowRun", named: dict[str, str | None], *, as_json: bool) -> None:
    """Print what was started and how to follow it, by its own id if it has one."""
    url = run_url(run.id)
    if as_json:
        print_json({**named, "flow_run_id": str(run.id), "url": url})
        return
    console = plain(stderr=True)
    console.print("Started flow run", Text(run.name, "bold"), str(run.id))
    if url:
        console.print(f"Watch it: {url}")
    own_id = next(iter(named.values()), None)
    console.print(f"Next: prefect-assay status {own_id or run.id}")


def report_of(state: "State[Any]", failed: type[CampaignFailed] | type[LoopFailed], what: str) -> Any:
    """The report of a flow that ran in this process, also of one that failed with it; any other error is raised."""
    found = state.result(raise_on_failure=False)
    report = found.report or found if isinstance(found, failed) else found
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
        plain().print(f"{state.name}: {state.message}")
        plain().print(f"Table: {report.table or 'none'}")
    if not state.is_completed():
        raise SystemExit(FAILED)
