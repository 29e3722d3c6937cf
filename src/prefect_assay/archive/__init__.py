"""The archive: versions of an experiment's files in a folder or in S3, each sealed by a manifest. Knows no Prefect.

Import `S3Store` from `prefect_assay.archive.s3`: it needs boto3.
"""

from prefect_assay.archive.layout import safe_code, safe_name, safe_path
from prefect_assay.archive.local import LocalStore
from prefect_assay.archive.read import ArchivedVersion, VersionState, list_versions, read_latest
from prefect_assay.archive.ro_crate import Measurement, campaign_crate, ro_crate
from prefect_assay.archive.store import ObjectInfo, Store
from prefect_assay.archive.verify import Finding, VerifyReport, verify_versions
from prefect_assay.archive.write import Document, archive_version

__all__ = [
    "ArchivedVersion",
    "Document",
    "Finding",
    "LocalStore",
    "Measurement",
    "ObjectInfo",
    "Store",
    "VerifyReport",
    "VersionState",
    "archive_version",
    "campaign_crate",
    "list_versions",
    "read_latest",
    "ro_crate",
    "safe_code",
    "safe_name",
    "safe_path",
    "verify_versions",
]
