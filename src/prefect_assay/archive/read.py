"""Read the archive: the versions of an experiment, and the files of the latest one."""

import csv
import hashlib
import io
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from prefect_assay.archive.archived import ArchivedFile, Manifest
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.formats import refuse_newer
from prefect_assay.archive.layout import (
    CAMPAIGN_CODES,
    CLAIM_NAME,
    MANIFEST_NAME,
    PLAN_PATH,
    chosen_key,
    experiment_folder,
    safe_name,
    safe_path,
    safe_prefix,
    version_folder,
    version_of,
)
from prefect_assay.archive.store import Store, join_key
from prefect_assay.errors import ArchiveError, ArchiveUnavailable
from prefect_assay.service.models.base import Model

_CSV_FIELD_LIMIT: Final = 2**31 - 1


class VersionState(Model):
    """A version's number; it is complete when its manifest exists."""

    version: int
    complete: bool


class ArchivedVersion:
    """One complete version: its manifest, and its files by path, read on demand."""

    def __init__(self, store: Store, folder: str, manifest: Manifest) -> None:
        self._store = store
        self._folder = folder
        self.manifest = manifest
        self.files: Mapping[str, ArchivedFile] = {file.path: file for file in manifest.files}
        self.location = store.location(folder)

    def read(self, path: str) -> bytes:
        """The content of one file, by the path it was archived under.

        Raises:
            ArchiveError: it is not what was archived.
        """
        return b"".join(self.stream(path))

    def stream(self, path: str) -> Iterator[bytes]:
        """The content of one file in chunks; the error of `read` comes after the last one."""
        name = self._resolve_name(path)
        digest = hashlib.sha256()
        for chunk in self._store.stream(join_key(self._folder, name)):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != self.files[name].sha256:
            raise ArchiveError(
                f"{self.location}/{name} has changed since it was archived, so nothing is made of it. "
                "`prefect-assay archive verify` lists what is damaged; restore it from a backup"
            )

    @property
    def manifest_sha256(self) -> str:
        """The SHA-256 (hex) of the stored manifest, as in the `ArchiveRecord` of its version."""
        return hashlib.sha256(self._store.read(join_key(self._folder, MANIFEST_NAME))).hexdigest()

    def _resolve_name(self, path: str) -> str:
        name = path if path in self.files else safe_path(path)
        if name not in self.files:
            raise ArchiveError(f"{self.location} holds no {path}; it holds {', '.join(sorted(self.files))}")
        return name


def list_versions(
    store: Store, prefix: str, campaign_id: str, experiment_code: str
) -> tuple[VersionState, ...]:
    """Every version of the experiment, oldest first, incomplete ones included."""
    return _list_folder_versions(store, experiment_folder(prefix, campaign_id, experiment_code))


def read_latest(store: Store, prefix: str, campaign_id: str, experiment_code: str) -> ArchivedVersion | None:
    """The newest complete version of the experiment, or None."""
    return read_newest_version(store, experiment_folder(prefix, campaign_id, experiment_code))


def chosen_version(store: Store, folder: str) -> ArchivedVersion | None:
    """The version that counts in the folder of a document that is fixed once: the chosen, else the only complete one.

    Raises:
        ArchiveError: several are complete and none was chosen, because two runs at once ended before that; or unreadable.
    """
    key = chosen_key(folder)
    body = store.find(key)
    if body is not None:
        place = version_folder(folder, _chosen_number(body, store.location(key)))
        return ArchivedVersion(store, place, read_manifest(store, place)[0])
    complete = [state.version for state in _list_folder_versions(store, folder) if state.complete]
    if len(complete) > 1:
        raise ArchiveError(
            f"{store.location(folder)} has {len(complete)} complete versions of what is fixed once, by two runs at the same "
            "time; nothing new was ordered. Move the folder of the one that was not ordered away, and run it again"
        )
    return read_newest_version(store, folder)


def choose_version(store: Store, folder: str) -> None:
    """Choose the oldest complete version for good. Of two choices at once the first one stays."""
    body = json.dumps({"version": _oldest_complete(store, folder)}).encode()
    store.put_if_absent(chosen_key(folder), body, "application/json")


def _oldest_complete(store: Store, folder: str) -> int:
    """The number of the oldest complete version. S3 listings may lag: each number from 1 on is read."""
    begun = 0
    for number in itertools.count(1):
        place = version_folder(folder, number)
        if store.stat(join_key(place, MANIFEST_NAME)) is not None:
            return number
        if store.stat(join_key(place, CLAIM_NAME)) is None:  # moved away, or after the last one
            begun = begun or max((state.version for state in _list_folder_versions(store, folder)), default=0)
            if number >= begun:
                break
    raise ArchiveUnavailable(f"{store.location(folder)} lists no complete version yet; run again later")


def _chosen_number(body: bytes, location: str) -> int:
    try:
        return int(json.loads(body)["version"])
    except (ValueError, KeyError, TypeError):
        raise ArchiveError(f"{location} names no version; restore it from a backup") from None


def read_newest_version(store: Store, folder: str) -> ArchivedVersion | None:
    """The newest complete version in an experiment's folder, or None."""
    newest = latest_version(store, folder)
    if newest is None:
        return None
    place = version_folder(folder, newest)
    return ArchivedVersion(store, place, read_manifest(store, place)[0])


def latest_by_experiment(store: Store, prefix: str, campaign_id: str) -> dict[str, ArchivedVersion]:
    """The newest complete version of each of a campaign's experiments, by the experiment's id, as the archive lists them."""
    campaign = join_key(safe_prefix(prefix), safe_name(campaign_id))
    folders = (name for name in store.folders(campaign) if name not in CAMPAIGN_CODES)
    versions = (read_newest_version(store, join_key(campaign, name)) for name in sorted(folders))
    return {version.manifest.experiment_id: version for version in versions if version is not None}


def latest_version(store: Store, folder: str) -> int | None:
    """The newest complete version's number, or None. S3 listings may lag: the numbers after them are read."""
    listed = _list_folder_versions(store, folder)
    newest = max((state.version for state in listed if state.complete), default=None)
    after = max((state.version for state in listed), default=0) + 1
    while store.stat(join_key(version_folder(folder, after), CLAIM_NAME)) is not None:
        if store.stat(join_key(version_folder(folder, after), MANIFEST_NAME)) is not None:
            newest = after
        after += 1
    return newest


def read_manifest(store: Store, folder: str) -> tuple[Manifest, bytes]:
    """The manifest of a version's folder, and its bytes; ArchiveError when absent or unreadable."""
    key = join_key(folder, MANIFEST_NAME)
    body = store.read(key)
    return parse_manifest(body, store.location(key)), body


def read_plan(version: ArchivedVersion) -> Plan:
    """The plan in a version of a campaign's `PLAN`; ArchiveError when it cannot be read."""
    body, location = version.read(PLAN_PATH), f"{version.location}/{PLAN_PATH}"
    refuse_newer(body, location)
    try:
        return Plan.model_validate_json(body)
    except ValidationError as error:
        raise ArchiveError(
            f"{location} is not a readable plan ({error.error_count()} errors); nothing new was ordered. Restore it from a backup "
            "of the archive"
        ) from None


def parse_manifest(body: bytes, location: str) -> Manifest:
    """The manifest in some bytes; ArchiveError when it cannot be read."""
    refuse_newer(body, location)
    try:
        return Manifest.model_validate_json(body)
    except ValidationError as error:
        causes = "; ".join(
            _describe_cause(item) for item in error.errors(include_url=False, include_input=False)
        )
        raise ArchiveError(
            f"{location} is not a readable manifest ({causes}); "
            "restore it from a backup, or move this version's folder away and archive again"
        ) from None


def _describe_cause(item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"])
    return f"{place}: {item['msg']}" if place else str(item["msg"])


def _list_folder_versions(store: Store, folder: str) -> tuple[VersionState, ...]:
    has_manifest: dict[int, bool] = {}
    for key in store.keys(folder):
        name, _, rest = key.removeprefix(f"{folder}/").partition("/")
        version = version_of(name)
        if version is not None:
            has_manifest[version] = has_manifest.get(version, False) or rest == MANIFEST_NAME
    return tuple(
        VersionState(version=number, complete=has_manifest[number]) for number in sorted(has_manifest)
    )


def csv_lines(data: bytes) -> list[list[str]]:
    """The cells of a table's lines.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
        csv.Error: it is not such a table.
    """
    csv.field_size_limit(_CSV_FIELD_LIMIT)  # `extra` may hold more than the module's 128 KiB
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
