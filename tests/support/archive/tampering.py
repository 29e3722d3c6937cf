"""Ways to change an archive behind its back, in a folder or in a bucket, and the archive they are tried on.

Each way is a function of the archive's `Hands`. `WAYS` fit both places, `FOLDER_WAYS` need a file system.
"""

import json
import shutil
from datetime import UTC, datetime
from typing import Final

from prefect_assay.archive import Document, LocalStore, archive_version

E1: Final = "lab/c/E-1"
E2: Final = "lab/c/E-2"
_WHEN: Final = datetime(2026, 1, 1, tzinfo=UTC)


def fill(store, prefix="lab"):
    """A campaign with a plan, a table, and two experiments; the first has three versions."""
    for code, versions in (("PLAN", 1), ("E-1", 3), ("E-2", 1), ("TABLE", 1)):
        for version in range(versions):
            body = f"experiment_code\nE-1 {code} {version}\n".encode()
            archive_version(
                store,
                prefix,
                campaign_id="c",
                experiment_id=f"id-{code}",
                experiment_code=code,
                results_status="all" if version == versions - 1 else "partial",
                documents=[
                    Document(path="results.csv", content_type="text/csv", body=body),
                    Document(path="raw/experiment.json", content_type="application/json", body=b"{}"),
                ],
                now=_WHEN,
            )
    return store


class Hands:
    """What whoever can write to the place can do there, without the archive's rules."""

    def __init__(self, store):
        self.store = store

    @property
    def is_folder(self):
        return isinstance(self.store, LocalStore)

    def read(self, key):
        return self.store.read(key)

    def write(self, key, body):
        if self.is_folder:
            path = self.store.root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        else:
            self.store._client.put_object(Bucket=self.store.bucket, Key=key, Body=body)

    def remove(self, key):
        """A file, or a folder with all that is in it."""
        if self.is_folder:
            path = self.store.root / key
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        else:
            for name in [key, *self.store.keys(key)]:
                self.store._client.delete_object(Bucket=self.store.bucket, Key=name)

    def copy(self, folder, to):
        for key in list(self.store.keys(folder)):
            self.write(to + key.removeprefix(folder), self.read(key))

    def move(self, folder, to):
        self.copy(folder, to)
        self.remove(folder)

    def link(self, key):
        """A link takes the place of the file or folder, whose content is whole elsewhere."""
        path = self.store.root / key
        elsewhere = self.store.root.parent / "elsewhere"
        path.rename(elsewhere)
        path.symlink_to(elsewhere)

    def edit(self, key, **changes):
        self.write(key, json.dumps({**json.loads(self.read(key)), **changes}).encode())

    def edit_files(self, key, change):
        """Change the list of files in a manifest or a claim."""
        fields = json.loads(self.read(key))
        self.edit(key, files=[file for file in map(change, fields["files"]) if file])


def _edits(**changes):
    return lambda hands: hands.edit(f"{E1}/v003/manifest.json", **changes)


def _size(hands):
    hands.edit_files(f"{E1}/v003/manifest.json", lambda file: {**file, "size": file["size"] + 1})


def _swapped(hands):
    one, other = (f"{E1}/v{number:03d}/manifest.json" for number in (1, 2))
    first = hands.read(one)
    hands.write(one, hands.read(other))
    hands.write(other, first)


def _file_and_line(hands, lists=("manifest.json",)):
    hands.remove(f"{E1}/v003/results.csv")
    for name in lists:
        hands.edit_files(f"{E1}/v003/{name}", lambda file: file["path"] != "results.csv" and file)


def _another_file_and_line(hands):
    path = {"path": "more.csv", "size": 0, "content_type": "text/csv"}
    path["sha256"] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    hands.write(f"{E1}/v003/more.csv", b"")
    manifest = f"{E1}/v003/manifest.json"
    hands.edit(manifest, files=[*json.loads(hands.read(manifest))["files"], path])


def _rewritten(hands, lists=("manifest.json",)):
    import hashlib

    body = b"experiment_code\nforged\n"
    fresh = {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    hands.write(f"{E1}/v003/results.csv", body)
    for name in lists:
        hands.edit_files(
            f"{E1}/v003/{name}", lambda file: {**file, **fresh} if file["path"] == "results.csv" else file
        )


_BOTH: Final = ("manifest.json", "claim.json")

# In each: what it does, what `verify` names, and whether an archive without a register shows it as well.
WAYS: Final = {
    "newest manifest deleted": (
        lambda h: h.remove(f"{E1}/v003/manifest.json"),
        f"{E1}/v003/manifest.json",
        False,
    ),
    "older manifest deleted": (
        lambda h: h.remove(f"{E1}/v001/manifest.json"),
        f"{E1}/v001/manifest.json",
        False,
    ),
    "results_status altered": (_edits(results_status="none"), f"{E1}/v003/manifest.json", True),
    "experiment_id altered": (_edits(experiment_id="other"), f"{E1}/v003/manifest.json", True),
    "experiment_code altered": (_edits(experiment_code="E-2"), f"{E1}/v003/manifest.json", True),
    "campaign_id altered": (_edits(campaign_id="d"), f"{E1}/v003/manifest.json", True),
    "created_at altered": (_edits(created_at="2020-01-01T00:00:00Z"), f"{E1}/v003/manifest.json", True),
    "version altered": (_edits(version=2), f"{E1}/v003", True),
    "field added": (_edits(checked_by="somebody"), f"{E1}/v003/manifest.json", False),
    "size altered": (_size, f"{E1}/v003/manifest.json", True),
    "manifests exchanged": (_swapped, f"{E1}/v001/manifest.json", True),
    "claim emptied": (lambda h: h.write(f"{E1}/v003/claim.json", b""), f"{E1}/v003/claim.json", True),
    "claim without fields": (
        lambda h: h.write(f"{E1}/v003/claim.json", b"{}"),
        f"{E1}/v003/claim.json",
        True,
    ),
    "claim is a list": (lambda h: h.write(f"{E1}/v003/claim.json", b"[]"), f"{E1}/v003/claim.json", True),
    "claim deleted": (lambda h: h.remove(f"{E1}/v003/claim.json"), f"{E1}/v003/claim.json", True),
    "newest version deleted": (lambda h: h.remove(f"{E1}/v003"), f"{E1}/v003", False),
    "older version deleted": (lambda h: h.remove(f"{E1}/v002"), f"{E1}/v002", True),
    "only version deleted": (lambda h: h.remove(f"{E2}/v001"), f"{E2}/v001", False),
    "experiment deleted": (lambda h: h.remove(E1), f"{E1}/v001", False),
    "plan deleted": (lambda h: h.remove("lab/c/PLAN"), "lab/c/PLAN/v001", False),
    "campaign deleted": (lambda h: h.remove("lab/c"), f"{E2}/v001", False),
    "version renumbered": (lambda h: h.move(f"{E1}/v003", f"{E1}/v005"), f"{E1}/v005", True),
    "version renamed": (
        lambda h: h.move(f"{E1}/v003", f"{E1}/v003-old"),
        f"{E1}/v003-old/manifest.json",
        True,
    ),
    "experiment renamed": (lambda h: h.move(E2, "lab/c/E-9"), "lab/c/E-9/v001", True),
    "experiment copied": (lambda h: h.copy(E2, "lab/c/E-9"), "lab/c/E-9/v001", True),
    "campaign renamed": (lambda h: h.move("lab/c", "lab/d"), "lab/d/E-2/v001", True),
    "file removed with its line": (_file_and_line, f"{E1}/v003/manifest.json", True),
    "file removed with both lines": (lambda h: _file_and_line(h, _BOTH), f"{E1}/v003/manifest.json", False),
    "file added with its line": (_another_file_and_line, f"{E1}/v003/manifest.json", True),
    "file and manifest rewritten": (_rewritten, f"{E1}/v003/manifest.json", True),
    "file, manifest and claim rewritten": (lambda h: _rewritten(h, _BOTH), f"{E1}/v003/manifest.json", False),
    "hidden file": (lambda h: h.write(f"{E1}/v003/.notes", b"1"), f"{E1}/v003/.notes", True),
    "hidden folder": (lambda h: h.write(f"{E1}/v003/.git/config", b"1"), f"{E1}/v003/.git/config", True),
    "register altered": (
        lambda h: h.edit("lab/LEDGERS/VERSIONS/c/E-1/v003.json", manifest_sha256="0" * 64),
        f"{E1}/v003/manifest.json",
        None,
    ),
    "register emptied": (
        lambda h: h.write("lab/LEDGERS/VERSIONS/c/E-1/v003.json", b""),
        "lab/LEDGERS/VERSIONS/c/E-1/v003.json",
        None,
    ),
}

FOLDER_WAYS: Final = {
    "file is a link": (lambda h: h.link(f"{E1}/v003/results.csv"), f"{E1}/v003/results.csv", True),
    "raw folder is a link": (lambda h: h.link(f"{E1}/v003/raw"), f"{E1}/v003/raw", True),
    "version is a link": (lambda h: h.link(f"{E1}/v003"), f"{E1}/v003", True),
    "experiment is a link": (lambda h: h.link(E2), E2, True),
    "campaign is a link": (lambda h: h.link("lab/c"), "lab/c", True),
    "ledgers are a link": (lambda h: h.link("lab/LEDGERS"), "lab/LEDGERS", None),
}
