"""The archive's records of one experiment: its versions, their files and their manifests."""

from datetime import datetime

from prefect_assay.archive.formats import MANIFEST_FORMAT
from prefect_assay.service.models.base import Model, StoredModel


class ArchivedFile(StoredModel):
    """One file: its path below the version's folder, its size in bytes and its SHA-256 (hex).

    `links` are the fields that hold a link that works without a token.
    """

    path: str
    size: int
    sha256: str
    content_type: str
    links: tuple[str, ...] = ()


class Manifest(StoredModel):
    """`manifest.json`, written last: a version with a manifest is complete."""

    manifest_schema: int = MANIFEST_FORMAT
    experiment_id: str
    experiment_code: str
    campaign_id: str
    version: int
    results_status: str
    created_at: datetime
    files: tuple[ArchivedFile, ...]


class RegisteredVersion(StoredModel):
    """A version's entry in the register, written after its manifest; `verify` finds missing versions by it."""

    experiment_id: str
    manifest_sha256: str


class ArchiveRecord(Model):
    """One archived version: an address that a person can open, and its manifest's SHA-256."""

    location: str
    experiment_code: str
    campaign_id: str
    version: int
    manifest_sha256: str
    files: int
    total_bytes: int
    unchanged: bool  # it was complete before, and nothing was written
