"""Write one version of an experiment's files. Every step may run twice, on two machines, after any crash.

Files are written in this order, each only if its name is free:

1. `claim.json` lists the names and digests. Its writer owns the version number; other content takes the next one.
2. The files.
3. `manifest.json`: the version is complete. Its bytes follow from the claim, so any writer of the content may write it.
4. The version's entry in the register, `LEDGERS/VERSIONS/`, so that `verify` notices a version that is gone.

A process that dies leaves a claim without a manifest: a run with the same content finishes that version.
"""

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from prefect_assay.archive.archived import (
    ArchivedFile,
    ArchiveRecord,
    Manifest,
    RegisteredVersion,
)
from prefect_assay.archive.formats import MANIFEST_FORMAT
from prefect_assay.archive.layout import (
    CLAIM_NAME,
    CRATE_NAME,
    MANIFEST_NAME,
    experiment_folder,
    registered_version_key,
    safe_path,
    version_folder,
)
from prefect_assay.archive.read import latest_version, read_manifest
from prefect_assay.archive.store import Body, Digest, Store, chunks_of, digest_of, join_key, json_bytes
from prefect_assay.errors import ArchiveError
from prefect_assay.service.models.base import Model

_ATTEMPTS: Final = 1000
_CRATE_TYPE: Final = "application/ld+json"
_JSON: Final = "application/json"
_RESERVED: Final = frozenset({MANIFEST_NAME, CLAIM_NAME, CRATE_NAME})

# The version's description (`ro_crate`), made from the manifest without it: the same input gives the same bytes.
Crate = Callable[[Manifest], bytes]


class Document(Model):
    """One file to archive; `links` names the fields with a link that works without a token.

    With its `digest`, computed while the file was received, the body is read only once, for its upload. A body that
    differs from the digest is refused there.
    """

    path: str
    content_type: str
    body: Body
    links: tuple[str, ...] = ()
    digest: Digest | None = None


class _Claim(Model):
    """The content of a version. Writers may differ in `created_at` only, the time it was begun."""

    manifest_schema: int = MANIFEST_FORMAT
    campaign_id: str
    experiment_id: str
    experiment_code: str
    results_status: str
    files: tuple[ArchivedFile, ...]
    created_at: datetime

    def same_as(self, other: "_Claim | None") -> bool:
        return other is not None and self.describe_content() == other.describe_content()

    def describe_content(self) -> dict[str, Any]:
        """What writers must agree on: all but the time, and the description that names it."""
        return self.without_crate().model_dump(exclude={"created_at"})

    def without_crate(self) -> "_Claim":
        return self.model_copy(update={"files": tuple(f for f in self.files if f.path != CRATE_NAME)})

    def with_crate(self, version: int, crate: Crate | None) -> tuple["_Claim", tuple[bytes, ...]]:
        """The claim with its description as the last file, and the description's bytes."""
        if crate is None:
            return self, ()
        body = crate(self.make_manifest(version))
        digest = hashlib.sha256(body).hexdigest()
        file = ArchivedFile(path=CRATE_NAME, size=len(body), sha256=digest, content_type=_CRATE_TYPE)
        return self.model_copy(update={"files": (*self.files, file)}), (body,)

    def make_manifest(self, version: int) -> Manifest:
        return Manifest(version=version, **dict(self))

    def agrees_with(self, manifest: Manifest) -> bool:
        return (
            self.experiment_id == manifest.experiment_id
            and self.results_status == manifest.results_status
            and {(f.path, f.sha256) for f in self.files}
            == {(f.path, f.sha256) for f in manifest.files if f.path != CRATE_NAME}
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
    crate: Crate | None = None,
) -> ArchiveRecord:
    """Archive the documents as a version of the experiment, unless the latest version holds exactly these.

    A document that changes without new results (an updates feed) makes a new version each time it is given. Bodies given
    as bytes stay in memory until written; give large ones as files. A change of `results_status` alone (`none`, `partial`
    or `all`) makes a new version, begun at `now`. The record is `unchanged` when the version was complete before. `crate`
    makes the description of a new version; a version with another one is not written again for it.

    Raises:
        ArchiveError: two documents share a path, the store refuses, or a source file changed meanwhile.
    """
    files, bodies = _prepare_files(experiment_code, documents)
    claim = _Claim(
        campaign_id=campaign_id,
        experiment_id=experiment_id,
        experiment_code=experiment_code,
        results_status=results_status,
        files=files,
        created_at=now,
    )
    folder = experiment_folder(prefix, campaign_id, experiment_code)
    newest = latest_version(store, folder)
    if newest is not None:
        manifest, body = read_manifest(store, version_folder(folder, newest))
        if claim.agrees_with(manifest) and _is_intact(store, version_folder(folder, newest), manifest.files):
            return _register_version(store, folder, manifest, body, unchanged=True)
    for version in range((newest or 0) + 1, (newest or 0) + _ATTEMPTS):
        if _was_moved_away(store, version_folder(folder, version)):
            continue
        record = _try_version(store, folder, version, claim, bodies, crate)
        if record is not None:
            return record
    raise ArchiveError(
        f"{store.location(folder)}: {_ATTEMPTS} versions after v{newest or 0:03d} were begun and none finished; "
        "look for a process that keeps dying here, then move the unfinished folders away"
    )


def _prepare_files(
    experiment_code: str, documents: Iterable[Document]
) -> tuple[tuple[ArchivedFile, ...], tuple[Body, ...]]:
    """Name and digest each document, sorted by path; ArchiveError for names that clash."""
    entries: dict[str, tuple[ArchivedFile, Body]] = {}
    for document in documents:
        path = safe_path(document.path)
        if path in entries or path in _RESERVED:
            raise ArchiveError(f"two files of experiment {experiment_code} want the name {path}: rename one")
        digest = document.digest or _source_digest(document)
        file = ArchivedFile(
            path=path,
            size=digest.size,
            sha256=digest.sha256,
            content_type=document.content_type,
            links=document.links,
        )
        entries[path] = (file, document.body)
    _check_no_file_is_a_folder(entries, experiment_code)
    ordered = [entries[path] for path in sorted(entries)]
    return tuple(file for file, _ in ordered), tuple(body for _, body in ordered)


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
            if (parent := "/".join(parts[:depth])) in paths | _RESERVED:
                raise ArchiveError(
                    f"experiment {experiment_code}: {parent} is both a file and the folder of {path}: rename one"
                )


def _try_version(
    store: Store, folder: str, version: int, claim: _Claim, bodies: tuple[Body, ...], crate: Crate | None
) -> ArchiveRecord | None:
    """Claim the number and complete the version; None when the number belongs to other content."""
    place = version_folder(folder, version)
    begun, description = _begin_version(store, place, version, claim, crate)
    if begun is None or not _put_files(store, place, begun.files, (*bodies, *description)):
        return None  # a damaged leftover is never overwritten; its number is spent
    # Some servers look for the name before the upload and not again at its end, and confirm the claim to two writers.
    # The claim that stayed decides.
    stayed = _read_claim(store, place)
    if stayed is None or stayed.files != begun.files or not claim.same_as(stayed):
        return None
    manifest = stayed.make_manifest(version)
    manifest_body = json_bytes(manifest.model_dump(mode="json"))
    if store.put_if_absent(join_key(place, MANIFEST_NAME), manifest_body, _JSON):
        return _register_version(store, folder, manifest, manifest_body, unchanged=False)
    theirs, manifest_body = read_manifest(store, place)
    if not claim.agrees_with(theirs):
        return None
    return _register_version(store, folder, theirs, manifest_body, unchanged=True)


def _begin_version(
    store: Store, place: str, version: int, claim: _Claim, crate: Crate | None
) -> tuple[_Claim | None, tuple[bytes, ...]]:
    """The claim of the number, and the description that it names; None when the number belongs to other content."""
    begun, description = claim.with_crate(version, crate)
    store.put_if_absent(join_key(place, CLAIM_NAME), json_bytes(begun.model_dump(mode="json")), _JSON)
    stored = _read_claim(store, place)
    if stored is None or not claim.same_as(stored):
        return None, ()
    if stored == begun:
        return begun, description
    # Another run began it, at its own time, which the description names.
    again, description = stored.without_crate().with_crate(version, crate)
    return (stored, description) if again == stored else (None, ())


def _put_files(store: Store, place: str, files: tuple[ArchivedFile, ...], bodies: tuple[Body, ...]) -> bool:
    """Write the files; False if one of the names is taken by other content. None is written after a failure."""
    for file, body in zip(files, bodies, strict=True):
        key = join_key(place, file.path)
        written = store.put_if_absent(key, body, file.content_type, sha256=file.sha256)
        if not (written or _holds_file(store, key, file)):
            return False
    return True


def _was_moved_away(store: Store, place: str) -> bool:
    """The version was complete once and is gone. The entry is read first: the claim is older."""
    key = registered_version_key(place)
    registered = key is not None and store.stat(key) is not None
    return registered and store.stat(join_key(place, CLAIM_NAME)) is None


def _read_claim(store: Store, place: str) -> _Claim | None:
    """The stored claim; None when it is unreadable to this release: the number is taken."""
    try:
        return _Claim.model_validate_json(store.read(join_key(place, CLAIM_NAME)))
    except ValidationError:
        return None


def _is_intact(store: Store, place: str, files: tuple[ArchivedFile, ...]) -> bool:
    """Every file still exists with its size; a re-run heals a version that lost files."""
    infos = ((file, store.stat(join_key(place, file.path))) for file in files)
    return all(info is not None and info.size == file.size for file, info in infos)


def _holds_file(store: Store, key: str, file: ArchivedFile) -> bool:
    info = store.stat(key)
    if info is None or info.size != file.size:
        return False
    # Reading decides: a server's digest of an object written in parts is not always that of the whole.
    return info.sha256 == file.sha256 or digest_of(store.stream(key)).sha256 == file.sha256


def _register_version(
    store: Store, folder: str, manifest: Manifest, body: bytes, *, unchanged: bool
) -> ArchiveRecord:
    """Register the version, and describe it."""
    place = version_folder(folder, manifest.version)
    digest = hashlib.sha256(body).hexdigest()
    if key := registered_version_key(place):
        entry = RegisteredVersion(experiment_id=manifest.experiment_id, manifest_sha256=digest)
        store.put_if_absent(key, json_bytes(entry.model_dump(mode="json")), _JSON)
    return ArchiveRecord(
        location=store.location(place),
        experiment_code=manifest.experiment_code,
        campaign_id=manifest.campaign_id,
        version=manifest.version,
        manifest_sha256=digest,
        files=len(manifest.files),
        total_bytes=sum(file.size for file in manifest.files),
        unchanged=unchanged,
    )
