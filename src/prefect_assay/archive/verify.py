"""Re-check an archive against its manifests, streaming every byte once."""

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from prefect_assay.archive.layout import BOOKS_FOLDER, CLAIM_NAME, MANIFEST_NAME, safe_prefix, version_of
from prefect_assay.archive.read import read_manifest
from prefect_assay.archive.store import Store, digest_of, join_key
from prefect_assay.errors import ArchiveError
from prefect_assay.models.archived import ArchivedFile
from prefect_assay.models.base import Model

Kind = Literal["missing", "changed", "extra", "unreadable", "incomplete", "foreign"]


class Finding(Model):
    """Something that does not agree. `incomplete` and `foreign` are remarks, the other kinds are damage.

    Kinds: `missing` file of a manifest; `changed` content; `extra` file that no manifest names; `unreadable`
    file or manifest; `incomplete` version, begun and not finished; `foreign` file outside any version.
    """

    kind: Kind
    key: str
    detail: str

    @property
    def is_damage(self) -> bool:
        """Whether the archive is not what its manifests say."""
        return self.kind not in {"incomplete", "foreign"}


class VerifyReport(Model):
    """What a check found. `checked` counts files read, `versions` complete versions, `bytes` their sizes."""

    location: str
    checked: int
    versions: int
    bytes: int
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """True when nothing is damaged; remarks may remain."""
        return not any(finding.is_damage for finding in self.findings)


def verify(store: Store, prefix: str = "") -> VerifyReport:
    """Check every version below the prefix: an archive, one campaign or one experiment.

    Memory is constant in the sizes of the files and in the number of versions.

    Raises:
        ArchiveError: the store cannot be listed.
    """
    root = safe_prefix(prefix)
    checked = size = complete = 0
    findings: list[Finding] = []
    for folder, keys in groupby(store.keys(root), key=lambda key: _version_folder(root, key)):
        if folder is None:
            books = f"{join_key(root, BOOKS_FOLDER)}/"
            findings.extend(
                Finding(kind="foreign", key=key, detail="not part of a version")
                for key in keys
                if not key.startswith(books)
            )
            continue
        present = {key.removeprefix(f"{folder}/") for key in keys}
        if MANIFEST_NAME not in present:
            detail = f"begun and not finished: {len(present)} files"
            findings.append(Finding(kind="incomplete", key=folder, detail=detail))
            continue
        try:
            files = read_manifest(store, folder)[0].files
        except ArchiveError as error:
            manifest = join_key(folder, MANIFEST_NAME)
            findings.append(Finding(kind="unreadable", key=manifest, detail=error.message))
            continue
        findings.extend(_check_version(store, folder, files, present))
        complete += 1
        read = [file.size for file in files if file.path in present]
        checked += len(read)
        size += sum(read)
    return VerifyReport(
        location=store.location(root),
        checked=checked,
        versions=complete,
        bytes=size,
        findings=tuple(findings),
    )


def _version_folder(root: str, key: str) -> str | None:
    """The version's folder that a key lies in: up to the first segment below the root that is a version."""
    segments = key.removeprefix(f"{root}/").split("/") if root else key.split("/")
    for depth, segment in enumerate(segments[:-1], start=1):
        if version_of(segment) is not None:
            return join_key(root, *segments[:depth])
    return None


def _check_version(
    store: Store, folder: str, files: tuple[ArchivedFile, ...], present: set[str]
) -> Iterator[Finding]:
    for file in files:
        finding = _check_file(store, join_key(folder, file.path), file, present)
        if finding is not None:
            yield finding
    for name in sorted(present - {file.path for file in files} - {MANIFEST_NAME, CLAIM_NAME}):
        yield Finding(kind="extra", key=join_key(folder, name), detail="in the store, not in the manifest")


def _check_file(store: Store, key: str, file: ArchivedFile, present: set[str]) -> Finding | None:
    if file.path not in present:
        return Finding(kind="missing", key=key, detail="named in the manifest, not in the store")
    try:
        found = digest_of(store.stream(key))
    except ArchiveError as error:
        return Finding(kind="unreadable", key=key, detail=error.message)
    if found.sha256 == file.sha256:
        return None
    return Finding(
        kind="changed",
        key=key,
        detail=f"{found.size} bytes, SHA-256 {found.sha256[:12]}…; the manifest says "
        f"{file.size} bytes, {file.sha256[:12]}…",
    )
