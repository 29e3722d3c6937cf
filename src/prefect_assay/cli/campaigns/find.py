"""Which campaign or loop a command is about: by its id or by a flow run, in the archives of the saved blocks."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound

from prefect_assay.archive import Store
from prefect_assay.blocks import Archive, LocalArchive
from prefect_assay.campaigns.approval.terms import describe_account
from prefect_assay.campaigns.runs.queries import is_assay_run, newest_runs, read_run
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG, tag_values
from prefect_assay.campaigns.sweep.saved_blocks import saved_archives
from prefect_assay.cli.archives.archive import names_folder, open_archive
from prefect_assay.cli.failures import exit_code
from prefect_assay.cli.output import make_plain_console
from prefect_assay.cli.prefect_api import load_archive
from prefect_assay.errors import ArchiveError, AssayError, ConfigurationError, InputError, NotFound
from prefect_assay.orders.ledger import known_archive_id
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    StartedKind,
    Terms,
    list_all,
)

T = TypeVar("T")

CAMPAIGN: Final = "campaign"
LOOP: Final = "design-build-test"
PLAYED_FLOWS: Final = (CAMPAIGN, LOOP)
_NEWEST: Final = 50
_TAGS: Final = {StartedKind.CAMPAIGN: CAMPAIGN_TAG, StartedKind.LOOP: LOOP_TAG}


@dataclass(frozen=True)
class Place:
    """An archive that is looked into."""

    name: str
    block: Archive
    store: Store

    @property
    def prefix(self) -> str:
        """The archive's prefix in its store."""
        return self.block.prefix

    def require_reachable(self) -> str | None:
        """The archive's id; None if nothing was started in it.

        Raises:
            ArchiveUnavailable: it cannot be read now, which must not look like an empty archive.
        """
        self.block.require_present()
        return known_archive_id(self.store, self.prefix)


@dataclass
class Archives:
    """The archives of a command, each once, and why some of them could not be read."""

    places: list[Place]
    failures: dict[str, AssayError] = field(default_factory=dict)

    def collect(self, read: Callable[[Place], Iterable[T]]) -> list[T]:
        """What is read of every archive that can be read; the others are kept as failures."""
        collected: list[T] = []
        for place in self.places:
            if place.name in self.failures:
                continue
            try:
                collected += read(place)
            except (ArchiveError, ConfigurationError) as error:
                self.failures[place.name] = error
        return collected

    def logs_of(self, name: str, kinds: Iterable[StartedKind] = tuple(StartedKind)) -> list[CampaignLog]:
        """The logs of the campaign and the loop of an id, read."""
        kinds = tuple(kinds)
        return self.collect(lambda place: list(_read_begun_logs(place, name, kinds)))

    def logs_with_run(self, run_id: str) -> list[CampaignLog]:
        """The logs of what a flow run has carried, read; every log is read for that."""
        return self.collect(
            lambda place: [log for log in list_all(place.store, place.prefix) if run_id in log.state.runs]
        )

    def place_of(self, log: CampaignLog) -> Place:
        """The archive of a log that was found in one."""
        return next(place for place in self.places if place.store is log.store)

    def print_failures(self, meaning: str) -> None:
        """Print which archives could not be read; `meaning` completes the sentence."""
        for name, error in self.failures.items():
            make_plain_console(stderr=True).print(
                f"Error: archive {name} cannot be read, so {meaning}: {error.message}"
            )

    def failures_as_json(self) -> dict[str, dict[str, str]]:
        """The same for programs; empty if all were read."""
        failures = {name: error.message for name, error in self.failures.items()}
        return {"archives_not_read": failures} if failures else {}

    def exit_on_failure(self) -> None:
        """Exit with the code of what could not be read; return if all was read."""
        if self.failures:
            raise SystemExit(max(map(exit_code, self.failures.values())))

    def raise_first(self) -> None:
        """Raise why an archive could not be read, if one could not."""
        for error in self.failures.values():
            raise error


def _read_begun_logs(place: Place, name: str, kinds: tuple[StartedKind, ...]) -> Iterator[CampaignLog]:
    """Read the logs of this name in the archive, and yield those that have a start."""
    for kind in kinds:
        log = CampaignLog(place.store, place.prefix, name, kind)
        if log.read().started is not None:
            yield log


def name_account(terms: Terms | None) -> str:
    """What follows the name of a campaign: its account, and whether that is live or simulated."""
    return f", {describe_account(terms)}" if terms else ""


def open_archives(client: SyncPrefectClient | None, archive: str | None) -> Archives:
    """Open the archive that is named, a folder or a block; or those of all saved blocks, accounts included.

    Raises:
        ConfigurationError: there is no such block, or no archive block at all.
        ArchiveError: there is no such folder.
    """
    candidates: list[tuple[str, Archive]]
    if archive is not None and names_folder(archive):
        open_archive(Path(archive), None)
        candidates = [(archive, LocalArchive(root=archive))]
    elif archive is not None:
        candidates = [(archive, load_archive(archive))]
    elif client is not None:
        candidates = list(saved_archives(client))
    else:
        candidates = []
    if not candidates:
        raise ConfigurationError(
            "there is no archive to look into: save an archive block with `prefect-assay init`, or name a folder with "
            "--archive"
        )
    archives = Archives([])
    seen: set[str] = set()
    for name, block in candidates:
        try:
            place = Place(name, block, block.get_store())
            archive_id = place.require_reachable()
        except AssayError as error:
            archives.failures[name] = error
            continue
        if archive_id is not None and archive_id not in seen:
            seen.add(archive_id)
            archives.places.append(place)
    return archives


@dataclass(frozen=True)
class Named:
    """What an id names: logs that are read, and flow runs that have begun no log."""

    logs: tuple[CampaignLog, ...] = ()
    runs: tuple[FlowRun, ...] = ()


def find_named(client: SyncPrefectClient | None, archives: Archives, which: str) -> Named:
    """The campaign and the loop of an id, or what a flow run carries.

    Raises:
        NotFound: nothing has this id.
        InputError: several archives have it.
        ArchiveError: nothing was found, and an archive that may have it cannot be read.
    """
    try:
        run_id = UUID(which)
    except ValueError:
        named = Named(logs=tuple(archives.logs_of(which)))
        if not named.logs and client is not None:
            named = Named(runs=tuple(runs_named(client, which)))
    else:
        named = _of_run(client, archives, run_id)
    _refuse_several_archives(archives, which, named.logs)
    if named.logs or named.runs:
        return named
    archives.raise_first()
    raise NotFound(
        f"no archive has a campaign or a loop {which!r}, and no flow run of one is called so; `prefect-assay status` lists "
        "what there is"
    )


def _refuse_several_archives(archives: Archives, which: str, logs: Iterable[CampaignLog]) -> None:
    places = {place.name: place for place in map(archives.place_of, logs)}
    if len(places) > 1:
        listed = ", ".join(f"{name} ({place.store.location(place.prefix)})" for name, place in places.items())
        raise InputError(f"several archives have {which}: choose with --archive: {listed}; nothing was done")


def find_logs(client: SyncPrefectClient | None, which: str, archive: str | None = None) -> list[CampaignLog]:
    """The logs of the campaign and the loop of an id, or of what a flow run carries; read.

    Raises:
        NotFound: there is no such log.
        InputError: several archives have it.
        ArchiveError: an archive that may have it cannot be read.
    """
    archives = open_archives(client, archive)
    named = find_named(client, archives, which)
    if not named.logs:
        raise NotFound(f"flow run {named.runs[0].name} has not begun a campaign: nothing is ordered or asked")
    return list(named.logs)


def _of_run(client: SyncPrefectClient | None, archives: Archives, run_id: UUID) -> Named:
    run = None
    if client is not None:
        with contextlib.suppress(ObjectNotFound):
            run = read_run(client, run_id)
    if run is None:  # deleted: the logs still name it
        return Named(logs=tuple(archives.logs_with_run(str(run_id))))
    names = played_by(run)
    if not names:
        return Named(runs=(run,) if is_assay_run(run) else ())
    logs = [log for kind, name in names for log in archives.logs_of(name, [kind])]
    # Another archive may have the id too; the log that the run has begun names the run.
    logs = [log for log in logs if str(run_id) in log.state.runs] or logs
    if not logs:
        archives.raise_first()
        raise ArchiveError(
            f"flow run {run.name} carries {names[0][0]} {names[0][1]}, and no saved archive has its log: mount the archive, "
            "or name it with --archive"
        )
    return Named(logs=tuple(logs))


def played_by(run: FlowRun) -> list[tuple[StartedKind, str]]:
    """What a run says that it carries, by its tags."""
    names = ((kind, name) for kind, tag in _TAGS.items() for name in tag_values(run.tags, tag))
    return list(dict.fromkeys((kind, name.partition("@")[0]) for kind, name in names))


def runs_named(client: SyncPrefectClient, which: str) -> list[FlowRun]:
    """The newest runs with a name, or an id in their name or parameters, that have begun nothing yet."""
    return [
        run
        for flow in PLAYED_FLOWS
        for run in newest_runs(client, flow, _NEWEST)
        if not played_by(run)
        and which
        in {run.name, run.name.partition(",")[0], *map(run.parameters.get, ("campaign_id", "loop_id"))}
    ]
