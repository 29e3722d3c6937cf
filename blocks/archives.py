"""`LocalArchive` and `S3Archive`: where results are kept. Both write the same layout."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from prefect.blocks.core import Block
from pydantic import AfterValidator, Field, SecretStr, model_validator

from prefect_assay.blocks.base import DOCUMENTATION, StrictFields, logo
from prefect_assay.errors import ArchiveError, ConfigurationError
from prefect_assay.models.bounds import SECRET_MAX, Line
from prefect_assay.network_variables import check_s3_variables
from prefect_assay.sources import s3_cause

if TYPE_CHECKING:
    from prefect_assay.archive import Store


# As botocore takes it: a bucket, or an access point.
_BUCKET: Final = re.compile(
    r"[A-Za-z0-9._-]{1,255}|arn:aws[\w-]*:s3[\w-]*:[\w-]*:\d*:[A-Za-z0-9/:._-]+", re.ASCII
)
_REGION: Final = re.compile(r"[A-Za-z0-9-]+")
_ONE_WORD: Final = re.compile(r"[!-~]+")


def _bucket(name: str) -> str:
    if not _BUCKET.fullmatch(name):
        raise ValueError(
            "give the bucket's name alone (letters, digits, '.', '-', '_'), without s3:// and without a path; what follows the "
            "name belongs into prefix"
        )
    return name


def _prefix(prefix: str) -> str:
    from prefect_assay.archive.layout import safe_prefix  # noqa: PLC0415 - blocks load at Prefect's start-up

    try:
        return safe_prefix(prefix)
    except ArchiveError as error:
        raise ValueError(str(error)) from None


def _folder(root: str) -> str:
    if not root.strip() or not root.isprintable():
        raise ValueError("give the path of a folder, on one line")
    return root


def _endpoint(address: str | None) -> str | None:
    if not address:
        return None
    try:
        url = urlsplit(address)
        sound = url.scheme in {"http", "https"} and url.hostname and (url.port or 1)
        plain = not (url.query or url.fragment or "@" in url.netloc)
    except ValueError:
        sound = plain = False
    if not sound or not plain or not _ONE_WORD.fullmatch(address):
        raise ValueError(
            "give the server's address with its scheme, such as https://s3.example.org:9000, without user, password or query"
        )
    return address


def _region(name: str | None) -> str | None:
    if name and not _REGION.fullmatch(name):
        raise ValueError("give the region's name, such as eu-central-1")
    return name or None


def _key_id(key: str | None) -> str | None:
    if key and not _ONE_WORD.fullmatch(key):
        raise ValueError(
            "the key id has a space, a line break or another character that none has; copy it again"
        )
    return key or None


def _secret(key: SecretStr | None) -> SecretStr | None:
    text = key.get_secret_value() if key else ""
    if text != text.strip() or not text.isprintable():
        raise ValueError("the key has a space at its end or a line break; copy it again")
    return key if text else None


_Prefix = Annotated[Line, AfterValidator(_prefix)]


class LocalArchive(StrictFields, Block):
    """A folder, for one machine; workers on several machines need a shared folder, or `S3Archive`.

    Example:
        ```python
        from prefect_assay.blocks import LocalArchive

        LocalArchive(root="~/assay-archive").save("BLOCK_NAME")
        archive = LocalArchive.load("BLOCK_NAME")
        store = archive.get_store()
        ```
    """

    _block_type_name = "Assay Local Archive"
    _block_type_slug = "assay-local-archive"
    _description = "Archive assay results in a folder."
    _documentation_url = DOCUMENTATION
    _logo_url = logo("filesystem")

    root: Annotated[Line, AfterValidator(_folder)] = Field(
        default="~/assay-archive",
        title="Folder",
        description="Where results are kept: an absolute path, or one below the home folder with ~. "
        "A deployed run refuses a relative path, because a worker runs it in a folder that goes away.",
    )
    prefix: _Prefix = Field(
        default="", title="Prefix", description="Folder below the root for everything written here."
    )

    def get_store(self) -> "Store":
        """The store this block describes."""
        from prefect_assay.archive import LocalStore  # noqa: PLC0415 - blocks load at Prefect's start-up

        return LocalStore(Path(self.root).expanduser())


class S3Archive(StrictFields, Block):
    """A bucket of any S3 server with conditional writes.

    Example:
        ```python
        from prefect_assay.blocks import S3Archive

        S3Archive(bucket="assay-results", region="eu-central-1").save("BLOCK_NAME")
        archive = S3Archive.load("BLOCK_NAME")
        store = archive.get_store()
        ```
    """

    _block_type_name = "Assay S3 Archive"
    _block_type_slug = "assay-s3-archive"
    _description = "Archive assay results in an S3 bucket."
    _documentation_url = DOCUMENTATION
    _logo_url = logo("filesystem")

    bucket: Annotated[Line, AfterValidator(_bucket)] = Field(
        title="Bucket", description="Name of the bucket. It must exist."
    )
    prefix: _Prefix = Field(default="", title="Prefix", description="Key prefix for everything written here.")
    endpoint_url: Annotated[Line | None, AfterValidator(_endpoint)] = Field(
        default=None,
        title="Endpoint",
        description="Address of an S3 server other than AWS; empty for AWS.",
    )
    region: Annotated[Line | None, AfterValidator(_region)] = Field(
        default=None, title="Region", description="Region, for example eu-central-1."
    )
    access_key_id: Annotated[Line | None, AfterValidator(_key_id)] = Field(
        default=None,
        title="Access key id",
        description="Empty: the environment's own credentials (role, profile, variables).",
    )
    secret_access_key: Annotated[SecretStr | None, AfterValidator(_secret)] = Field(
        default=None,
        max_length=SECRET_MAX,
        title="Secret access key",
        description="Belongs to the access key id.",
    )
    encryption: Literal["AES256", "aws:kms"] | None = Field(
        default=None,
        title="Server-side encryption",
        description="Header to send; leave empty for the bucket's default, and for servers that refuse the header.",
    )

    @model_validator(mode="after")
    def _both_keys(self) -> Self:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise ValueError("give access_key_id and secret_access_key, or neither of them")
        return self

    def get_store(self) -> "Store":
        """The store this block describes.

        Raises:
            ConfigurationError: no client can be made with these fields, the AWS_ variables, and those for proxies and
                certificates.
        """
        check_s3_variables()
        import boto3  # noqa: PLC0415 - blocks load at Prefect's start-up
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        from prefect_assay.archive.s3 import S3Store, client_config  # noqa: PLC0415

        secret = self.secret_access_key.get_secret_value() if self.secret_access_key else None
        hidden = [text for text in (self.access_key_id, secret) if text]
        try:
            client = boto3.client(
                "s3",
                endpoint_url=self.endpoint_url,
                region_name=self.region,
                aws_access_key_id=self.access_key_id,
                aws_secret_access_key=secret,
                config=client_config(self.endpoint_url),
            )
        except (ValueError, BotoCoreError) as error:
            raise ConfigurationError(
                f"the S3 archive of bucket {self.bucket!r} cannot be opened: {s3_cause(error, hidden)}; correct endpoint_url, region and keys "
                "of its block, or the AWS_ variables"
            ) from None
        return S3Store(self.bucket, client, sse=self.encryption, hidden=hidden)


Archive = LocalArchive | S3Archive
