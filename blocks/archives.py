"""`LocalArchive` and `S3Archive`: where results are kept. Both write the same layout."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from prefect.blocks.core import Block
from pydantic import Field, SecretStr

from prefect_assay.blocks.base import DOCUMENTATION, StrictFields, logo
from prefect_assay.errors import ConfigurationError

if TYPE_CHECKING:
    from prefect_assay.archive import Store


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

    root: str = Field(
        default="~/assay-archive",
        title="Folder",
        description="Where results are kept: an absolute path, or one below the home folder with ~. "
        "A deployed run refuses a relative path, because a worker runs it in a folder that goes away.",
    )
    prefix: str = Field(
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

    bucket: str = Field(title="Bucket", description="Name of the bucket. It must exist.")
    prefix: str = Field(default="", title="Prefix", description="Key prefix for everything written here.")
    endpoint_url: str | None = Field(
        default=None,
        title="Endpoint",
        description="Address of an S3 server other than AWS; empty for AWS.",
    )
    region: str | None = Field(default=None, title="Region", description="Region, for example eu-central-1.")
    access_key_id: str | None = Field(
        default=None,
        title="Access key id",
        description="Empty: the environment's own credentials (role, profile, variables).",
    )
    secret_access_key: SecretStr | None = Field(
        default=None, title="Secret access key", description="Belongs to the access key id."
    )
    encryption: Literal["AES256", "aws:kms"] | None = Field(
        default=None,
        title="Server-side encryption",
        description="Header to send; leave empty for the bucket's default, and for servers that refuse the header.",
    )

    def get_store(self) -> "Store":
        """The store this block describes.

        Raises:
            ConfigurationError: the endpoint or the region is not valid, or one of the two keys is absent.
        """
        import boto3  # noqa: PLC0415 - blocks load at Prefect's start-up
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        from prefect_assay.archive.s3 import S3Store, client_config  # noqa: PLC0415

        try:
            client = boto3.client(
                "s3",
                endpoint_url=self.endpoint_url,
                region_name=self.region,
                aws_access_key_id=self.access_key_id,
                aws_secret_access_key=self.secret_access_key.get_secret_value()
                if self.secret_access_key
                else None,
                config=client_config(self.endpoint_url),
            )
        except (ValueError, BotoCoreError) as error:
            raise ConfigurationError(
                f"the S3 archive of bucket {self.bucket!r} cannot be opened: {error}; correct endpoint_url, region and keys "
                "of its block, or the AWS_ variables"
            ) from None
        return S3Store(self.bucket, client, sse=self.encryption)


Archive = LocalArchive | S3Archive
