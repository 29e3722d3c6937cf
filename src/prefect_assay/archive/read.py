"""Read the archive: the versions of an experiment, and the files of the latest one."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from prefect_assay.archive.layout import (
    CLAIM_NAME,
    MANIFEST_NAME,
    experiment_folder,
    safe_path,
    version_folder,
    version_of,
)
from prefect_assay.archive.store import Store, join_key
from prefect_assay.errors import ArchiveError
from prefect_assay.models.archived import ArchivedFile, Manifest
from prefect_assay.models.base import Model


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
        """The content of one file, by the path it was archived under."""
        return self._store.read(self._key(path))

    def stream(self, path: str) -> Iterator[bytes]:
        """The content of one file in chunks."""
        return self._store.stream(self._key(path))

    @property
    def manifest_sha256(self) -> str:
        """The SHA-256 (hex) of the stored manifest, as in the `ArchiveRecord` of its version."""
        return hashlib.sha256(self._store.read(join_key(self._folder, MANIFEST_NAME))).hexdigest()

    def _key(self, path: str) -> str:
        name = path if path in self.files else safe_path(path)
        if name not in self.files:
            raise ArchiveError(f"{self.location} holds no {path}; it holds {', '.join(sorted(self.files))}")
        return join_key(self._folder, name)


def versions(store: Store, prefix: str, campaign_id: str, experiment_code: str) -> tuple[VersionState, ...]:
    """Every version of the experiment, oldest first, incomplete ones included."""
    return _versions(store, experiment_folder(prefix, campaign_id, experiment_code))


def latest(store: Store, prefix: str, campaign_id: str, experiment_code: str) -> ArchivedVersion | None:
    """The newest complete version of the experiment, or None."""
    return latest_in(store, experiment_folder(prefix, campaign_id, experiment_code))


def latest_in(store: Store, folder: str) -> ArchivedVersion | None:
    """The newest complete version in an experiment's folder, or None."""
    newest = latest_version(store, folder)
    if newest is None:
        return None
    place = version_folder(folder, newest)
    return ArchivedVersion(store, place, read_manifest(store, place)[0])


def latest_version(store: Store, folder: str) -> int | None:
    """The newest complete version's number, or None. S3 listings may lag: the numbers after them are read."""
    listed = _versions(store, folder)
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


def parse_manifest(body: bytes, location: str) -> Manifest:
    """The manifest in some bytes; ArchiveError when it cannot be read."""
    try:
        return Manifest.model_validate_json(body)
    except ValidationError as error:
        causes = "; ".join(_cause(item) for item in error.errors(include_url=False, include_input=False))
        raise ArchiveError(
            f"{location} is not a readable manifest ({causes}); "
            "restore it from a backup, or move this version's folder away and archive again"
        ) from None


def _cause(item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"])
    return f"{place}: {item['msg']}" if place else str(item["msg"])


def _versions(store: Store, folder: str) -> tuple[VersionState, ...]:
    found: dict[int, bool] = {}
    for key in store.keys(folder):
        name, _, rest = key.removeprefix(f"{folder}/").partition("/")
        version = version_of(name)
        if version is not None:
            found[version] = found.get(version, False) or rest == MANIFEST_NAME
    return tuple(VersionState(version=number, complete=found[number]) for number in sorted(found))
