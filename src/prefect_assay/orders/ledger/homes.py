"""Which Prefect homes sweep an archive, and when each last did: one small file a day in `<prefix>/LEDGERS/HOMES/<home>/`.

The files are hints for `status --problems`; nothing else depends on them.
"""

from datetime import UTC, date, datetime

from prefect_assay.archive.layout import HOMES_FOLDER, LEDGERS_FOLDER, safe_name, safe_prefix
from prefect_assay.archive.store import Store, join_key
from prefect_assay.service.models.base import StoredModel


class _Sweep(StoredModel):
    """What the file says to people; its name alone is read."""

    home: str
    swept: datetime


def note_sweep(store: Store, prefix: str, home: str, now: datetime) -> None:
    """Note that a home has swept; the first sweep of a day (UTC) writes the file and deletes those of earlier days."""
    folder = join_key(_build_folder(prefix), safe_name(home))
    today = f"{now.astimezone(UTC).date().isoformat()}.json"
    body = _Sweep(home=home, swept=now).model_dump_json().encode()
    if not store.put_if_absent(join_key(folder, today), body, "application/json"):
        return
    for key in list(store.keys(folder)):
        name = key.removeprefix(f"{folder}/")
        if name < today and _parse_date(name) is not None:
            store.delete(key)


def last_sweeps(store: Store, prefix: str) -> dict[str, date]:
    """The day (UTC) of each home's last sweep, by the id of the home. One listing."""
    folder = _build_folder(prefix)
    last: dict[str, date] = {}
    for key in store.keys(folder):
        home, _, name = key.removeprefix(f"{folder}/").partition("/")
        swept = _parse_date(name)
        if swept is not None:
            last[home] = max(swept, last.get(home, swept))
    return last


def _build_folder(prefix: str) -> str:
    return join_key(safe_prefix(prefix), LEDGERS_FOLDER, HOMES_FOLDER)


def _parse_date(name: str) -> date | None:
    try:
        return date.fromisoformat(name.removesuffix(".json")) if name.endswith(".json") else None
    except ValueError:
        return None
