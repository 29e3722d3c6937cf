"""Follows a campaign by its log until it is over, also if another flow run goes on with it."""

import time
from typing import Final

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from rich.live import Live

from prefect_assay.blocks import Archive
from prefect_assay.campaigns.status import CampaignView, Progress, view_of
from prefect_assay.cli.campaigns.find import played_by
from prefect_assay.cli.campaigns.status import StatusView, campaigns_table, whole_lines
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.output import TerminalConsole, make_plain_console, print_json
from prefect_assay.cli.prefect_api import api_errors
from prefect_assay.errors import ArchiveUnavailable, CampaignFailed, ServiceUnavailable
from prefect_assay.orders.ledger.campaign_log import CampaignLog, StartedKind

_POLL_SECONDS: Final = 2.0


def follow(archive: Archive, campaign_id: str, run: FlowRun, *, as_json: bool) -> None:
    """Show the campaign that a run was started for until its log says that it is over. Ctrl-C leaves it running.

    An archive or a server that does not answer for a while is asked again.

    Raises:
        CampaignFailed: the run ended, or was deleted, before it began the campaign.
        SystemExit: with 1, when the campaign is over without complete results, or was canceled.
    """
    console = TerminalConsole(stderr=True, highlight=False)
    with Live(console=console) as live:
        while True:
            view = _look(archive, campaign_id, run)
            if view is not None:
                live.update(campaigns_table(StatusView([view])))
                if view.is_over:
                    break
            time.sleep(_POLL_SECONDS)
    known = StatusView([view])
    if as_json:
        print_json(known.as_json())
    else:
        make_plain_console().print(f"{view.progress.capitalize()}: {view.outcome or 'canceled'}")
        for line in whole_lines(known):
            make_plain_console().print(line)
    if view.progress is not Progress.COMPLETE:
        raise SystemExit(FAILED)


def _look(archive: Archive, campaign_id: str, run: FlowRun) -> CampaignView | None:
    try:
        log = CampaignLog(archive.get_store(), archive.prefix, campaign_id)
        if str(run.id) in log.read().runs:
            return view_of(log)
        with api_errors(), get_client(sync_client=True) as client:
            named = begun_campaign(client, run)
        if named in {None, campaign_id}:
            return None
        log = CampaignLog(archive.get_store(), archive.prefix, str(named))
        return view_of(log) if log.read().started else None
    except (ArchiveUnavailable, ServiceUnavailable):
        return None


def begun_campaign(client: SyncPrefectClient, run: FlowRun) -> str | None:
    """The campaign that a run has begun, by its tag; None if it has not begun one yet.

    Raises:
        CampaignFailed: it has ended without beginning one, so that nothing was ordered by it.
    """
    try:
        now = client.read_flow_run(run.id)
    except ObjectNotFound:
        raise CampaignFailed(
            f"the flow run {run.name} was deleted before it began its campaign; nothing was ordered by it"
        ) from None
    names = [name for kind, name in played_by(now) if kind is StartedKind.CAMPAIGN]
    if not names and now.state is not None and now.state.is_final():
        raise CampaignFailed(
            f"the flow run {now.name} is {now.state.name} and began no campaign, so nothing was ordered by it: "
            f"{now.state.message or 'no reason'}"
        )
    return names[0] if names else None
