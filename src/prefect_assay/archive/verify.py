"""Re-check an archive, streaming every byte once: files against manifests, manifests against claims and the register."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from typing import Final, Literal, Self

from prefect_assay.archive.archived import ArchivedFile, Manifest, RegisteredVersion
from prefect_assay.archive.formats import refuse_newer
from prefect_assay.archive.layout import (
    CLAIM_NAME,
    LEDGERS_FOLDER,
    LOOPS_FOLDER,
    MANIFEST_NAME,
    VERSIONS_FOLDER,
    is_table,
    registered_place,
    registered_version_key,
    safe_code,
    safe_name,
    version_folder,
    version_of,
)
from prefect_assay.archive.read import parse_manifest
from prefect_assay.archive.store import Store, check_key, digest_of, join_key
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, AssayError, NewerFormat
from prefect_assay.service.models.base import Model
from prefect_assay.service.words import many

Kind = Literal[
    "missing",
    "changed",
    "extra",
    "unreadable",
    "misplaced",
    "link",
    "unavailable",
    "newer",
    "incomplete",
    "foreign",
    "outdated",
    "repaired",
]
_REMARKS: Final = frozenset({"incomplete", "foreign", "outdated", "repaired"})


_GAPS_NAMED: Final = 10
_UNAVAILABLE_MAX: Final = 3  # in a row: an unreachable store costs a time-out for each


class Finding(Model):
    """A discrepancy, of a kind in docs/results.md.

    `incomplete`, `foreign`, `outdated` and `repaired` are remarks, `unavailable` and `newer` are not known, the others are damage.
    """

    kind: Kind
    key: str
    detail: str

    @property
    def is_damage(self) -> bool:
        """The archive is not what it was."""
        return self.kind not in _REMARKS and self.is_known

    @property
    def is_known(self) -> bool:
        """What the store holds could be read and understood."""
        return self.kind not in {"unavailable", "newer"}

    @classmethod
    def describe_unreadable(cls, key: str, error: AssayError) -> Self:
        """What an error of reading means: damage, or a format that a later version wrote."""
        kind: Kind = "newer" if isinstance(error, NewerFormat) else "unreadable"
        return cls(kind=kind, key=key, detail=error.message)


class VerifyReport(Model):
    """The result of a check: `checked` files read, complete `versions`, `bytes` in all."""

    location: str
    checked: int
    versions: int
    bytes: int
    findings: tuple[Finding, ...] = ()

    @property
    def damaged(self) -> bool:
        """Something is damaged, whatever could not be read."""
        return any(finding.is_damage for finding in self.findings)

    @property
    def ok(self) -> bool:
        """Everything was read, and nothing is damaged; there may be remarks."""
        return not self.damaged and all(finding.is_known for finding in self.findings)


def verify_versions(store: Store, prefix: str = "") -> VerifyReport:
    """Check every version below the prefix: an archive, one campaign or one experiment. It may be in use.

    Memory is constant in the sizes of the files and in the number of versions. What the store does not answer for is a
    finding; after a few in a row the rest is not checked, which also is one.

    Raises:
        ArchiveUnavailable: the store is busy or does not answer from the beginning, which is not damage.
    """
    root = prefix.strip("/")
    if root:
        check_key(root)
    check = _Check(store, root)
    try:
        check.check_strays()
        for folder, keys in groupby(_list_keys(store, root), key=lambda key: _version_folder(root, key)):
            if folder is None:
                for key in keys:
                    check.check_file_outside_versions(key)
            else:
                check.check_version(folder, {key.removeprefix(f"{folder}/") for key in keys})
        check.check_gaps()
    except ArchiveUnavailable as error:
        if not (check.findings or check.checked):
            raise
        detail = f"the rest was not checked: {error.message}"
        check.findings.append(Finding(kind="unavailable", key=root or ".", detail=detail))
    return VerifyReport(
        location=store.location(root),
        checked=check.checked,
        versions=check.versions,
        bytes=check.bytes,
        findings=tuple(check.findings),
    )


def _list_keys(store: Store, root: str) -> Iterator[str]:
    """All keys below the root, and the register's entries of a root that is a campaign or an experiment."""
    yield from store.keys(root)
    parts = root.split("/") if root else []
    for depth in range(1, min(len(parts), 2) + 1):
        yield from store.keys(join_key(*parts[:-depth], LEDGERS_FOLDER, VERSIONS_FOLDER, *parts[-depth:]))


def _version_folder(root: str, key: str) -> str | None:
    if registered_place(key):
        return None
    segments = key.removeprefix(f"{root}/").split("/") if root else key.split("/")
    for depth, segment in enumerate(segments[:-1], start=1):
        if version_of(segment) is not None:
            return join_key(root, *segments[:depth])
    return None


class _Check:
    """One verification. A run may be writing meanwhile: an object is missing only if a read by name does not find it."""

    def __init__(self, store: Store, root: str) -> None:
        self.findings: list[Finding] = []
        self.checked = self.versions = self.bytes = 0
        self._store = store
        self._root = root
        self._experiment = ""
        self._numbers: set[int] = set()  # the versions of this experiment
        self._unavailable = 0  # keys in a row

    def check_strays(self) -> None:
        """Links, and hidden files in versions; other hidden files are the user's."""
        for key, what in self._store.strays(self._root):
            if what == "link":
                self._add_finding("link", key, "a symbolic link; what it leads to is not archived")
            elif _version_folder(self._root, key):
                self._add_finding("extra", key, "hidden, and not in the manifest")

    def check_file_outside_versions(self, key: str) -> None:
        """A file that belongs to no version: of the register, of the ledgers, a table, or a finding."""
        below = key.removeprefix(f"{self._root}/").split("/")
        if place := registered_place(key):
            self._check_register(place)
        elif below[-1] in {MANIFEST_NAME, CLAIM_NAME} and len(below) > 1:
            self._add_finding("misplaced", key, "its folder is not named like a version, so no run finds it")
        elif not ({LEDGERS_FOLDER, LOOPS_FOLDER} & set(below[:-1]) or is_table(key)):
            self._add_finding("foreign", key, "not part of a version")

    def check_version(self, folder: str, present: set[str]) -> None:
        experiment, _, name = folder.rpartition("/")
        if experiment != self._experiment:
            self.check_gaps()
            self._experiment = experiment
        number = version_of(name) or 0
        self._numbers.add(number)
        entry = self._read_entry(folder)
        claim = self._read_claim(folder, number)
        manifest_key = join_key(folder, MANIFEST_NAME)
        body = manifest = None
        with self._note_unreadable(manifest_key):
            body = self._store.find(manifest_key)
            if body is not None:
                manifest = parse_manifest(body, self._store.location(manifest_key))
            elif claim and not entry:  # `_check_register` reports a manifest that is gone
                self._add_finding(
                    "incomplete", folder, f"begun and not finished: {many(len(present), 'file')}"
                )
        if body is None or manifest is None:
            return
        self._compare_claims(folder, manifest, claim, entry, hashlib.sha256(body).hexdigest())
        self._check_files(folder, manifest.files, present)
        self.versions += 1

    def check_gaps(self) -> None:
        """Missing numbers of this experiment: each is taken in turn and never given back."""
        highest = max(self._numbers, default=0)
        absent = (number for number in range(1, highest) if number not in self._numbers)
        for number in islice(absent, _GAPS_NAMED):
            place = version_folder(self._experiment, number)
            key = registered_version_key(place)
            with self._note_unreadable(place):
                registered = key is not None and self._store.stat(key) is not None
                if not registered and self._store.stat(join_key(place, CLAIM_NAME)) is None:
                    self._add_finding("missing", place, f"not there, although v{highest:03d} is")
        self._numbers = set()

    @contextmanager
    def _note_unreadable(self, key: str, unreadable: str | None = None) -> Iterator[None]:
        """Note why a key cannot be read, with `unreadable` also if its content is not valid.

        Raises:
            ArchiveUnavailable: the store has not answered for a few keys in a row.
        """
        try:
            yield
        except ArchiveUnavailable as error:
            self._add_finding("unavailable", key, error.message)
            self._unavailable += 1
            if self._unavailable >= _UNAVAILABLE_MAX:
                raise
        except NewerFormat as error:
            self.findings.append(Finding.describe_unreadable(key, error))
        except ArchiveError as error:
            self._add_finding("unreadable", key, unreadable or error.message)
        except (ValueError, TypeError):
            if unreadable is None:
                raise
            self._add_finding("unreadable", key, unreadable)
        else:
            self._unavailable = 0

    def _add_finding(self, kind: Kind, key: str, detail: str) -> None:
        self.findings.append(Finding(kind=kind, key=key, detail=detail))

    def _check_register(self, place: str) -> None:
        key = join_key(place, MANIFEST_NAME)
        with self._note_unreadable(key):
            if self._store.stat(key) is None:
                begun = self._store.stat(join_key(place, CLAIM_NAME)) is not None
                self._add_finding(
                    "missing", key if begun else place, "the register says that it was complete"
                )

    def _read_entry(self, folder: str) -> RegisteredVersion | None:
        key = registered_version_key(folder)
        with self._note_unreadable(
            key or folder, "not a readable entry of the register; restore it from a backup"
        ):
            body = self._store.find(key) if key else None
            return None if body is None else RegisteredVersion.model_validate_json(body)
        return None

    def _read_claim(self, folder: str, number: int) -> Manifest | None:
        key = join_key(folder, CLAIM_NAME)
        with self._note_unreadable(key, "not a readable claim; restore it from a backup"):
            body = self._store.find(key)
            if body is not None:
                refuse_newer(body, self._store.location(key))
                return Manifest.model_validate({**json.loads(body), "version": number})
            self._add_finding("missing", key, "every version begins with its claim")
        return None

    def _compare_claims(
        self,
        folder: str,
        manifest: Manifest,
        claim: Manifest | None,
        entry: RegisteredVersion | None,
        digest: str,
    ) -> None:
        key = join_key(folder, MANIFEST_NAME)
        if claim and (differing := _list_differences(manifest, claim)):
            self._add_finding("changed", key, f"differs from {CLAIM_NAME} in {', '.join(differing)}")
        elif entry and entry.manifest_sha256 != digest:
            detail = f"SHA-256 {digest[:12]}…; the register says {entry.manifest_sha256[:12]}…"
            self._add_finding("changed", key, detail)
        campaign, code, version = ["", "", *folder.split("/")][-3:]
        named = (safe_name(manifest.campaign_id), safe_code(manifest.experiment_code), manifest.version)
        if named != (campaign or named[0], code or named[1], version_of(version)):
            detail = f"its manifest is that of {named[0]}/{named[1]}/v{named[2]:03d}"
            self._add_finding("misplaced", folder, detail)

    def _check_files(self, folder: str, files: tuple[ArchivedFile, ...], present: set[str]) -> None:
        for file in files:
            key = join_key(folder, file.path)
            with self._note_unreadable(key):
                if file.path not in present and self._store.stat(key) is None:
                    self._add_finding("missing", key, "named in the manifest, not in the store")
                    continue
                digest = digest_of(self._store.stream(key))
                self.checked += 1
                self.bytes += digest.size
                if (digest.size, digest.sha256) != (file.size, file.sha256):
                    detail = f"{digest.size} bytes, SHA-256 {digest.sha256[:12]}…; the manifest says "
                    self._add_finding("changed", key, f"{detail}{file.size} bytes, {file.sha256[:12]}…")
        for name in sorted(present - {file.path for file in files} - {MANIFEST_NAME, CLAIM_NAME}):
            self._add_finding("extra", join_key(folder, name), "in the store, not in the manifest")


def _list_differences(manifest: Manifest, claim: Manifest) -> list[str]:
    fields = ("campaign_id", "experiment_id", "experiment_code", "results_status", "created_at")
    differing = [name for name in fields if getattr(manifest, name) != getattr(claim, name)]
    ours, theirs = ({file.path: file for file in one.files} for one in (manifest, claim))
    return differing + sorted(
        path for path in ours.keys() | theirs.keys() if ours.get(path) != theirs.get(path)
    )
