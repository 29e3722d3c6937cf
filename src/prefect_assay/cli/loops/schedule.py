"""The schedule of a loop at its deployment, with the loop's id as slug: `loop --cron` sets it, `cancel` ends it."""

import asyncio
import os
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.objects import DeploymentSchedule
from prefect.client.schemas.schedules import CronSchedule

from prefect_assay.blocks.block_references import as_parameter
from prefect_assay.blocks.deployment_runs import deployment_of, find_deployment
from prefect_assay.blocks.run_parameters import check_parameters
from prefect_assay.cli.campaigns.find import LOOP
from prefect_assay.errors import InputError

DEPLOYMENT: Final = deployment_of(LOOP)


def schedule_loop(loop_id: str, schedule: CronSchedule, parameters: dict[str, Any]) -> None:
    """Start the loop on a schedule, in place of an earlier schedule of the same loop, also of one that `cancel` ended."""
    kept = {name: as_parameter(value) for name, value in parameters.items()}
    check_parameters(kept)
    made = DeploymentScheduleCreate(schedule=schedule, slug=loop_id, parameters=kept)
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(DEPLOYMENT)
        for earlier in client.read_deployment_schedules(deployment.id):
            if earlier.slug == loop_id:
                values = made.model_dump(mode="json", include={"parameters"})
                client.update_deployment_schedule(
                    deployment.id, earlier.id, active=True, schedule=schedule, **values
                )
                return
        client.create_deployment_schedules(deployment.id, [made])


def active_schedule(client: SyncPrefectClient, loop_id: str) -> DeploymentSchedule | None:
    """The schedule that starts a loop; None if it has none, or only one that was ended."""
    deployment = find_deployment(client, DEPLOYMENT)
    if deployment is None:
        return None
    schedules = client.read_deployment_schedules(deployment.id)
    return next((one for one in schedules if one.slug == loop_id and one.active), None)


def end_schedule(client: SyncPrefectClient, schedule: DeploymentSchedule) -> None:
    """Deactivate a schedule; Prefect deletes the runs that it has made for later, but not one that is late."""
    client.update_deployment_schedule(cast("UUID", schedule.deployment_id), schedule.id, active=False)


def cron_schedule(cron: str, timezone: str | None) -> CronSchedule:
    """The schedule of `--cron` in the zone of `--timezone`, by default this machine's.

    Raises:
        InputError: there is no such zone, or the text is not a cron expression or never comes true.
    """
    if timezone is not None and timezone not in available_timezones():
        raise InputError(f"--timezone: {timezone!r} is not an IANA time zone such as Europe/Berlin or UTC")
    try:
        schedule = CronSchedule(cron=cron, timezone=timezone or local_timezone())
        next_start(schedule)
    except ValueError:
        raise InputError(f"--cron: {cron!r} is not a cron expression such as '0 6 * * 1-5'") from None
    return schedule


def local_timezone() -> str:
    """The IANA name of this machine's zone, from TZ or the link /etc/localtime; UTC where neither has one."""
    name = (
        os.environ.get("TZ", "").lstrip(":") or os.path.realpath("/etc/localtime").rpartition("zoneinfo/")[2]
    )
    return name if name in available_timezones() else "UTC"


def next_start(schedule: CronSchedule, after: datetime | None = None) -> datetime:
    """When the schedule starts the loop next, from now or a moment on, in its own zone."""
    # The server's own arithmetic: the client has none.
    from prefect.server.schemas.schedules import CronSchedule as ServersSchedule

    zone = schedule.timezone or "UTC"
    (following,) = asyncio.run(ServersSchedule(cron=schedule.cron, timezone=zone).get_dates(1, start=after))
    return following.astimezone(ZoneInfo(zone))
