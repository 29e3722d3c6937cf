"""`prefect-assay adopt`: this Prefect home looks after all open campaigns of an archive, after another one was lost."""

from collections.abc import Iterator

from prefect.client.orchestration import get_client

from prefect_assay.archive.store import Store
from prefect_assay.campaigns.runs.variables import home_id
from prefect_assay.campaigns.sweep.saved_blocks import missing_account
from prefect_assay.cli.asking import require_consent, user_name
from prefect_assay.cli.campaigns.find import name_account, open_archives
from prefect_assay.cli.output import make_plain_console, print_json
from prefect_assay.cli.prefect_api import api_errors, require_api
from prefect_assay.orders.ledger.campaign_log import Adopted, CampaignLog, list_all


def adopt_campaigns(archive: str | None, *, by: str | None, yes: bool, as_json: bool) -> None:
    """Adopt every open campaign and loop of another Prefect home; the next sweep starts a run for each.

    Raises:
        InputError: there is no terminal to confirm it.
        SystemExit: with 1, if it is not confirmed.
    """
    require_api()
    person = by or user_name()
    with api_errors(), get_client(sync_client=True) as client:
        home = home_id(client)
        archives = open_archives(client, archive)
        archives.raise_first()
        logs = archives.collect(lambda place: list(_of_other_homes(place.store, place.prefix, home)))
        archives.raise_first()
        lacking = {log.name: missing_account(client, log.state) for log in logs}
        if logs and not yes:
            _ask_to_adopt(logs)
        for log in logs:
            log.open_index()
            log.append(Adopted(home=home, person=person))
    if as_json:
        adopted = [
            {"kind": str(log.what), "name": log.name, "missing_account": lacking[log.name]} for log in logs
        ]
        print_json({"home": home, "adopted": adopted})
        return
    _show_logs(logs, lacking)


def _of_other_homes(store: Store, prefix: str, home: str) -> Iterator[CampaignLog]:
    for log in list_all(store, prefix):
        state = log.state
        # One without a home was started outside of a deployment: no sweep starts it again.
        if state.needs_sweep and state.home is not None and state.home != home:
            yield log


def _ask_to_adopt(logs: list[CampaignLog]) -> None:
    for log in logs:
        make_plain_console().print(f"{log.what} {log.name}{name_account(log.state.terms)}")
    make_plain_console().print(
        "Adopt them only if their Prefect server is gone for good: otherwise two servers play them. Nothing is ordered or "
        "paid twice, but both start runs."
    )
    require_consent(f"Adopt {'these' if len(logs) > 1 else 'this'}?", nothing="adopted")


def _show_logs(logs: list[CampaignLog], lacking: dict[str, str | None]) -> None:
    console = make_plain_console()
    if not logs:
        console.print("No open campaign or loop belongs to another Prefect home.")
        return
    for log in logs:
        needs = f"; save the account {lacking[log.name]} first" if lacking[log.name] else ""
        console.print(f"adopted: {log.what} {log.name}{name_account(log.state.terms)}{needs}")
    console.print("The next sweep starts a run for each: prefect-assay status")
