"""`prefect-assay status`: how campaigns and experiments stand."""

import json

from rich.console import Console

from prefect_assay.cli.prefect_api import api_errors, load_block
from prefect_assay.errors import NotFound


def show_status(which: str | None, *, credentials: str | None, limit: int, as_json: bool) -> None:
    """Print the runs of one campaign, of one flow run, or the newest campaigns.

    Raises:
        NotFound: there is no such campaign or run.
        ConfigurationError: the credentials block does not exist.
    """
    with api_errors():
        from prefect.client.orchestration import get_client

        from prefect_assay.cli import progress

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
        print(json.dumps({"runs": [line.as_json() for line in lines]}, indent=2))
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
