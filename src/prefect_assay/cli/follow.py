"""`prefect-assay run --wait`: a live view of a campaign until it ends."""

import json
import time
from typing import Final
from uuid import UUID

from rich.console import Console
from rich.live import Live

from prefect_assay.cli import progress
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.prefect_api import api_errors

_POLL_SECONDS: Final = 2.0


def follow(run_id: UUID, *, as_json: bool) -> None:
    """Show the campaign's runs until it ends. Ctrl-C leaves the campaign running.

    Raises:
        SystemExit: with 1, when the campaign did not complete.
    """
    from prefect.client.orchestration import get_client

    console = Console(stderr=True, highlight=False)
    with api_errors(), get_client(sync_client=True) as client, Live(console=console) as live:
        while True:
            lines = progress.named(client, str(run_id))
            live.update(progress.table(lines))
            if not lines or lines[0].ended:
                break
            time.sleep(_POLL_SECONDS)
    if as_json:
        print(json.dumps({"runs": [line.as_json() for line in lines]}, indent=2))
    elif lines:
        Console(highlight=False).print(f"{lines[0].state}: {lines[0].message}", markup=False, soft_wrap=True)
    if not lines or not lines[0].state.startswith("Completed"):
        raise SystemExit(FAILED)
