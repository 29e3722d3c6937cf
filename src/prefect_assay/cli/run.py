"""`prefect-assay run`: checks the designs, then starts the campaign on a worker or in this process."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from rich.console import Console

from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.prefect_api import (
    api_errors,
    load_archive,
    load_block,
    require_api,
    run_url,
    start_temporary_server,
)
from prefect_assay.cli.sequences import check_locally, read_file, warnings_of
from prefect_assay.designs import Reading, is_pasted
from prefect_assay.errors import AssayError, CampaignFailed, ConfigurationError, InvalidSpec
from prefect_assay.models.report import CampaignReport
from prefect_assay.models.spec import Assay
from prefect_assay.models.vocabulary import BINDING_TYPES, ExperimentType, Method, PaymentMethod

if TYPE_CHECKING:
    from prefect.blocks.core import Block
    from prefect.client.schemas.objects import FlowRun

    from prefect_assay.blocks import Archive

DEPLOYMENT: Final = "campaign/prefect-assay"
# Prefect refuses parameters beyond 512 KiB; of a larger file only the path is sent.
_TEXT_MAX: Final = 256 * 1024


@dataclass(frozen=True)
class CampaignRequest:
    """The options of the command."""

    designs: str
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
    campaign_id: str | None
    per_experiment: int
    deadline_days: int
    reading: Reading

    def assay(self) -> Assay:
        """The assay that the options describe."""
        return Assay(
            experiment_type=ExperimentType(self.experiment_type),
            target=self.target,
            method=Method(self.method) if self.method else None,
            n_replicates=self.replicates,
        )


def run_campaign(request: CampaignRequest, *, here: bool, wait: bool, as_json: bool) -> None:
    """Start a campaign and print how to follow it.

    Raises:
        InputError: the designs or the assay are wrong, with every finding; nothing was started.
        SystemExit: with 1, if `wait` or `here` is set and the campaign ended without results.
    """
    assay = request.assay()
    sequences = read_file(request.designs, request.reading)
    _check_target(assay)
    experiments = check_locally(sequences, assay, request.per_experiment)
    # Without an id the flow derives one, from the designs and the target that it has looked up.
    campaign_id = request.campaign_id
    if not as_json:
        named = f", campaign {campaign_id}" if campaign_id else ""
        Console(stderr=True).print(
            f"{len(sequences)} designs, {experiments} experiments{named}", highlight=False
        )
        for line in warnings_of(sequences):
            Console(stderr=True).print(line, style="yellow", markup=False, highlight=False, soft_wrap=True)
    if here:
        start_temporary_server()
    else:
        require_api()
    with api_errors():
        blocks = _load_blocks(request)
        settings = {
            "assay": assay,
            "campaign_id": campaign_id,
            "payment_method": PaymentMethod(request.payment),
            "sequences_per_experiment": request.per_experiment,
            "deadline_days": request.deadline_days,
            "name_column": request.reading.name_column,
            "sequence_column": request.reading.sequence_column,
            "keep_native": request.reading.keep_native,
        }
        if here:
            _run_here({"designs": request.designs, **settings, **blocks}, as_json=as_json)
            return
        from prefect_assay.runs.children import start_run
        from prefect_assay.tasks.archive import refuse_relative

        refuse_relative(cast("Archive", blocks["archive"]))
        run = start_run(DEPLOYMENT, {**_designs(request.designs), **settings, **blocks})
    _announce(run, campaign_id, as_json=as_json and not wait)
    if wait:
        from prefect_assay.cli.status import follow

        follow(run.id, as_json=as_json)


def _check_target(assay: Assay) -> None:
    needed = assay.experiment_type in BINDING_TYPES
    if needed and not assay.target:
        raise InvalidSpec(
            [f'target: {assay.experiment_type} needs one; name a catalog target with --target "…"']
        )
    if assay.target and not needed:
        raise InvalidSpec([f"target: {assay.experiment_type} takes no target; leave --target out"])


def _load_blocks(request: CampaignRequest) -> dict[str, "Block"]:
    from prefect_assay.blocks import (
        AssayCredentials,
        SharedPaymentTokens,
        SpendingPolicy,
        WebhookEndpoint,
        X402Wallet,
    )
    from prefect_assay.tasks.pay import require_rail

    policy = load_block(SpendingPolicy, request.policy)
    method = PaymentMethod(request.payment)
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


def _announce(run: "FlowRun", campaign_id: str | None, *, as_json: bool) -> None:
    url = run_url(run.id)
    if as_json:
        print(json.dumps({"campaign_id": campaign_id, "flow_run_id": str(run.id), "url": url}, indent=2))
        return
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(f"Started flow run [bold]{run.name}[/bold] {run.id}")
    if url:
        console.print(f"Watch it: {url}")
    console.print(f"Next: prefect-assay status {campaign_id or run.id}")


def _run_here(parameters: dict[str, Any], *, as_json: bool) -> None:
    """Order, pay and poll in this process, without a deployment, until the results are archived."""
    from prefect_assay.flows import campaign

    state = campaign(**parameters, return_state=True)
    report: CampaignReport | BaseException = cast("Any", state.result(raise_on_failure=False))
    if isinstance(report, CampaignFailed):
        report = cast("CampaignReport", report.report)
    elif isinstance(report, AssayError):
        raise report
    if isinstance(report, BaseException):
        raise ConfigurationError(f"the campaign failed: {report}") from report
    if as_json:
        print(json.dumps({"state": state.name, **report.model_dump(mode="json")}, indent=2))
    else:
        Console().print(f"{state.name}: {state.message}", markup=False, highlight=False, soft_wrap=True)
        Console().print(f"Table: {report.table or 'none'}", markup=False, highlight=False, soft_wrap=True)
    if not state.is_completed():
        raise SystemExit(FAILED)
