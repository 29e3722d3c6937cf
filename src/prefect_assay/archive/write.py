"""Write one version of an experiment's files. Every step may run twice, on two machines, after any crash.

Order of writing, each step conditional on the name being free:

1. `claim.json`: the list of names and digests this version will hold. Whoever wrote it owns the number; a
   writer with the same content joins in, one with other content takes the next number.
2. The files.
3. `manifest.json`: its presence means that the version is complete.

A process that dies leaves a claim without a manifest. The next run with the same content finishes that
version; a run with other content leaves it behind and takes the next number.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from prefect_assay.archive.layout import (
    CLAIM_NAME,
    MANIFEST_NAME,
    experiment_folder,
    safe_path,
    version_folder,
)
from prefect_assay.archive.read import latest_version, read_manifest
from prefect_assay.archive.store import Body, Digest, Store, chunks_of, digest_of, join_key
from prefect_assay.errors import ArchiveError
from prefect_assay.models.archived import ArchivedFile, ArchiveRecord, Manifest
from prefect_assay.models.base import Model

_ATTEMPTS: Final = 1000
_JSON: Final = "application/json"


class Document(Model):
    """One file to archive: a path below the version's folder, its media type, its content or a file with it."""

    path: str
    content_type: str
    body: Body


class _Plan(Model):
    """What a version is to hold. `bodies` stands beside `files`, in the same order."""

    campaign_id: str
    experiment_id: str
    experiment_code: str
    results_status: str
    files: tuple[ArchivedFile, ...]
    bodies: tuple[Body, ...]

    def claim(self) -> bytes:
        """The same bytes for the same content, whoever writes them and when."""
        return _json_bytes(self.model_dump(mode="json", exclude={"bodies"}))

    def manifest(self, version: int, now: datetime) -> Manifest:
        return Manifest(
            experiment_id=self.experiment_id,
            experiment_code=self.experiment_code,
            campaign_id=self.campaign_id,
            version=version,
            results_status=self.results_status,
            created_at=now,
            files=self.files,
        )

    def agrees_with(self, manifest: Manifest) -> bool:
        """Same experiment, same results status, same names and content. Media types do not count."""
        return (
            self.experiment_id == manifest.experiment_id
            and self.results_status == manifest.results_status
            and {(f.path, f.sha256) for f in self.files} == {(f.path, f.sha256) for f in manifest.files}
        )


def archive_version(
    store: Store,
    prefix: str,
    *,
    campaign_id: str,
    experiment_id: str,
    experiment_code: str,
    results_status: str,
    documents: Iterable[Document],
    now: datetime,
) -> ArchiveRecord:
    """Archive the documents as a version of the experiment, unless the latest version holds just them.

    Which documents belong to a version is the caller's choice: what changes without new results (an updates
    feed) makes a new version each time it is given. Bodies given as bytes stay in memory until written; give
    large ones as files.

    Args:
        store: where to write.
        prefix: the archive's folder in the store.
        campaign_id: any text; the first folder below the prefix.
        experiment_id: the service's id, recorded in the manifest.
        experiment_code: any text; the second folder.
        results_status: `none`, `partial` or `all`; a change of it alone makes a new version.
        documents: the files; their paths are made safe with `safe_path`.
        now: the time recorded in a new manifest.

    Returns:
        The record of the version that holds the documents, `unchanged` when it was complete before.

    Raises:
        ArchiveError: two documents share a path, the store refuses, or a source file changed meanwhile.
    """
    plan = _plan(campaign_id, experiment_id, experiment_code, results_status, documents)
    folder = experiment_folder(prefix, campaign_id, experiment_code)
    newest = latest_version(store, folder)
    if newest is not None:
        manifest, body = read_manifest(store, version_folder(folder, newest))
        if plan.agrees_with(manifest) and _is_intact(store, version_folder(folder, newest), plan):
            return _record(store, folder, manifest, body, unchanged=True)
    for version in range((newest or 0) + 1, (newest or 0) + _ATTEMPTS):
        record = _try_version(store, folder, version, plan, now)
        if record is not None:
            return record
    raise ArchiveError(
        f"{store.location(folder)}: {_ATTEMPTS} versions after v{newest or 0:03d} were begun and none finished; "
        "look for a process that keeps dying here, then move the unfinished folders away"
    )


def _plan(
    campaign_id: str,
    experiment_id: str,
    experiment_code: str,
    results_status: str,
    documents: Iterable[Document],
) -> _Plan:
    found: dict[str, tuple[ArchivedFile, Body]] = {}
    for document in documents:
        path = safe_path(document.path)
        if path in found or path in {MANIFEST_NAME, CLAIM_NAME}:
            raise ArchiveError(f"two files of experiment {experiment_code} want the name {path}: rename one")
        digest = _source_digest(document)
        file = ArchivedFile(
            path=path, size=digest.size, sha256=digest.sha256, content_type=document.content_type
        )
        found[path] = (file, document.body)
    _check_no_file_is_a_folder(found, experiment_code)
    ordered = [found[path] for path in sorted(found)]
    return _Plan(
        campaign_id=campaign_id,
        experiment_id=experiment_id,
        experiment_code=experiment_code,
        results_status=results_status,
        files=tuple(file for file, _ in ordered),
        bodies=tuple(body for _, body in ordered),
    )


def _source_digest(document: Document) -> Digest:
    try:
        return digest_of(chunks_of(document.body))
    except OSError as error:
        raise ArchiveError(
            f"{document.body!s} was to be archived as {document.path} and cannot be read: {error.strerror}"
        ) from error


def _check_no_file_is_a_folder(paths: Iterable[str], experiment_code: str) -> None:
    paths = set(paths)
    for path in paths:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            if (parent := "/".join(parts[:depth])) in paths | {MANIFEST_NAME, CLAIM_NAME}:
                raise ArchiveError(
                    f"experiment {experiment_code}: {parent} is both a file and the folder of {path}: rename one"
                )


def _try_version(store: Store, folder: str, version: int, plan: _Plan, now: datetime) -> ArchiveRecord | None:
    """Claim the number and complete the version; None when the number belongs to other content."""
    place = version_folder(folder, version)
    claim = plan.claim()
    claim_key = join_key(place, CLAIM_NAME)
    store.put_if_absent(claim_key, claim, _JSON)
    if store.read(claim_key) != claim:
        return None
    for file, body in zip(plan.files, plan.bodies, strict=True):
        key = join_key(place, file.path)
        written = store.put_if_absent(key, body, file.content_type, sha256=file.sha256)
        if not written and not _holds(store, key, file):
            return None  # a damaged leftover: never overwritten, its number is spent
    # Some servers look for the name before the upload and not again at its end: then two writers may both be
    # told that they made the claim. The claim that stayed decides.
    if store.read(claim_key) != claim:
        return None
    manifest = plan.manifest(version, now)
    manifest_key = join_key(place, MANIFEST_NAME)
    body = _json_bytes(manifest.model_dump(mode="json"))
    if store.put_if_absent(manifest_key, body, _JSON):
        return _record(store, folder, manifest, body, unchanged=False)
    theirs, body = read_manifest(store, place)
    return _record(store, folder, theirs, body, unchanged=True) if plan.agrees_with(theirs) else None


def _is_intact(store: Store, place: str, plan: _Plan) -> bool:
    """Whether every file is still there with its size: a re-run heals a version that lost files."""
    infos = ((file, store.stat(join_key(place, file.path))) for file in plan.files)
    return all(info is not None and info.size == file.size for file, info in infos)


def _holds(store: Store, key: str, file: ArchivedFile) -> bool:
    info = store.stat(key)
    if info is None or info.size != file.size:
        return False
    # Reading decides: what a server says of an object written in parts is not always the digest of the whole.
    return info.sha256 == file.sha256 or digest_of(store.stream(key)).sha256 == file.sha256


def _record(store: Store, folder: str, manifest: Manifest, body: bytes, *, unchanged: bool) -> ArchiveRecord:
    return ArchiveRecord(
        location=store.location(version_folder(folder, manifest.version)),
        experiment_code=manifest.experiment_code,
        campaign_id=manifest.campaign_id,
        version=manifest.version,
        manifest_sha256=hashlib.sha256(body).hexdigest(),
        files=len(manifest.files),
        total_bytes=sum(file.size for file in manifest.files),
        unchanged=unchanged,
    )


def _json_bytes(value: object) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
