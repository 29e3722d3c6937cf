"""One sweep in the test's own process, without its flow run."""

from datetime import UTC, datetime, timedelta

from prefect.client.orchestration import get_client
from prefect.logging import disable_run_logger

from prefect_assay.flows.sweep import _Sweep
from prefect_assay.models.problem import AlertLimits
from prefect_assay.models.report import SweepReport
from prefect_assay.sweeping.watermarks import SweepState


def swept(after: timedelta = timedelta(), minutes: int = 0, limits: AlertLimits | None = None) -> SweepReport:
    """A sweep so much later, with a full check every so many minutes; time must not go back between two of them."""
    with get_client(sync_client=True) as client, disable_run_logger():
        now = datetime.now(UTC) + after
        return _Sweep(client, SweepState.read(client), now, minutes, limits or AlertLimits()).run()
