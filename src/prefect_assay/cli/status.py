"""`prefect-assay status` and the live view of `prefect-assay run --wait`."""

import json
import time
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from rich.console import Console
from rich.live import Live

from prefect_assay.cli import progress
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.prefect_api import api_errors, load_block
from prefect_assay.errors import NotFound

_POLL_SECONDS: Final = 2.0


def show_status(which: str | None, *, credentials: str | None, limit: int, as_json: bool) -> None:
    """Print the runs of one campaign, of one flow run, or the newest campaigns.

    Raises:
        NotFound: there is no such campaign or run.
        ConfigurationError: the credentials block does not exist.
    """
    with api_errors():
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            lines = progress.named(client, which) if which else progress.recent(client, limit)
        if which and not lines:
            raise NotFound(
                f"the Prefect API knows neither a campaign nor a flow run {which!r}; "
                "`prefect-assay status` lists what there is"
            )
        if credentials:
            from prefect_assay.blocks import AssayCredentials

            with load_block(AssayCredentials, credentials).get_client() as service:
                lines = progress.with_service(lines, service)
    if as_json:
        _print_json(lines)
        return
    console = Console(highlight=False)
    if not lines:
        console.print("No campaigns yet. Start one: prefect-assay run --help")
        return
    console.print(progress.table(lines))
    if which:
        for line in lines:
            if line.url:
                console.print(f"{line.name}: {line.url}", markup=False, soft_wrap=True)


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
        _print_json(lines)
    elif lines:
        Console(highlight=False).print(f"{lines[0].state}: {lines[0].message}", markup=False, soft_wrap=True)
    if not lines or not lines[0].state.startswith("Completed"):
        raise SystemExit(FAILED)


def _print_json(lines: Sequence[progress.RunLine]) -> None:
    print(json.dumps({"runs": [line.as_json() for line in lines]}, indent=2))
