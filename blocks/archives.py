"""Where results are kept, a block for each kind of archive: `LocalArchive`, `S3Archive`. All write the same layout."""

import re
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, get_args
from urllib.parse import quote, urlsplit

from prefect.blocks.core import Block, UnknownBlockType
from pydantic import AfterValidator, Field, SecretStr, model_validator

from prefect_assay.archive.s3_requests import (
    make_s3_client,
    s3_cause,
    s3_errors,
    s3_later,
)
from prefect_assay.blocks.base import DOCUMENTATION, StrictFields, link_logo
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, AssayError, ConfigurationError, InputError
from prefect_assay.service.bounds import SECRET_MAX, Line

if TYPE_CHECKING:
    from prefect_assay.archive import Store


# As botocore takes it: a bucket, or an access point.
_BUCKET: Final = re.compile(
    r"[A-Za-z0-9._-]{1,255}|arn:aws[\w-]*:s3[\w-]*:[\w-]*:\d*:[A-Za-z0-9/:._-]+", re.ASCII
)
_REGION: Final = re.compile(r"[A-Za-z0-9-]+")
_BLOCK_NAME: Final = re.compile(r"[a-z0-9-]+")
_SECRETS: Final = ("access_key_id", "secret_access_key", "session_token")
_ONE_WORD: Final = re.compile(r"[!-~]+")


def _check_bucket(name: str) -> str:
    if not _BUCKET.fullmatch(name):
        raise ValueError(
            "give the bucket's name alone (letters, digits, '.', '-', '_'), without s3:// and without a path; what follows the "
            "name belongs into prefix"
        )
    return name


def _check_prefix(prefix: str) -> str:
    from prefect_assay.archive.layout import safe_prefix  # noqa: PLC0415 - blocks load at Prefect's start-up

    try:
        return safe_prefix(prefix)
    except ArchiveError as error:
        raise ValueError(str(error)) from None


def _check_folder(root: str) -> str:
    if not root.strip() or not root.isprintable():
        raise ValueError("give the path of a folder, on one line")
    return root


def _check_endpoint(address: str | None) -> str | None:
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


def _check_region(name: str | None) -> str | None:
    if name and not _REGION.fullmatch(name):
        raise ValueError("give the region's name, such as eu-central-1")
    return name or None


def _check_key_id(key: str | None) -> str | None:
    if key and not _ONE_WORD.fullmatch(key):
        raise ValueError(
            "the key id has a space, a line break or another character that none has; copy it again"
        )
    return key or None


def _check_secret(key: SecretStr | None) -> SecretStr | None:
    text = key.get_secret_value() if key else ""
    if text != text.strip() or not text.isprintable():
        raise ValueError("the key has a space at its end or a line break; copy it again")
    return key if text else None


def _check_profile(name: str | None) -> str | None:
    if name and (name != name.strip() or not name.isprintable()):
        raise ValueError("give the profile's name as it stands in the AWS config file")
    return name or None


def _block_name(name: str | None) -> str | None:
    if name and not _BLOCK_NAME.fullmatch(name):
        raise ValueError("give the name under which the AwsCredentials block is saved, such as my-account")
    return name or None


_Prefix = Annotated[Line, AfterValidator(_check_prefix)]


class ArchiveBlock(StrictFields, Block, ABC):
    """What every archive answers; `ARCHIVES` lists the kinds."""

    scheme: ClassVar[str]  # the beginning of an address of this kind; empty for a path
    address_form: ClassVar[str]  # what a person writes for an address
    if TYPE_CHECKING:
        prefix: str  # each kind has this field, where its form shows it

    @classmethod
    @abstractmethod
    def parse_address(cls, address: str) -> dict[str, object]:
        """The fields that an address of this kind gives; InputError if it is incomplete."""

    @abstractmethod
    def get_store(self) -> "Store":
        """The store this block describes.

        Raises:
            ConfigurationError: no store can be opened with these fields.
            ArchiveUnavailable: what opening it needs is not there now.
        """

    def require_lasting(self) -> None:
        """Raise ArchiveError, before an order, if what a worker writes would not stay."""

    def require_present(self) -> None:
        """Raise ArchiveUnavailable if the place is missing here, which must not look like an empty archive."""

    def browser_url(self, location: str) -> str | None:  # noqa: ARG002 - for kinds that have pages
        """A page for a location in this archive, for people; None where there is none."""
        return None


class LocalArchive(ArchiveBlock):
    """A folder, for one machine; workers on several machines need a shared folder, or `S3Archive`.

    Example:
        ```python
        from prefect_assay.blocks import LocalArchive

        LocalArchive(root="~/assay-archive").save("BLOCK_NAME")
        archive = LocalArchive.load("BLOCK_NAME")
        store = archive.get_store()
        ```
    """

    scheme = ""
    address_form = "a folder"
    _block_type_name = "Assay Local Archive"
    _block_type_slug = "assay-local-archive"
    _description = "Archive assay results in a folder."
    _documentation_url = DOCUMENTATION
    _logo_url = link_logo("filesystem")

    root: Annotated[Line, AfterValidator(_check_folder)] = Field(
        default="~/assay-archive",
        title="Folder",
        description="Where results are kept: an absolute path, or one below the home folder with ~. "
        "A deployed run refuses a relative path, because a worker runs it in a temporary folder.",
    )
    prefix: _Prefix = Field(
        default="", title="Prefix", description="Folder below the root for everything written here."
    )

    @classmethod
    def parse_address(cls, address: str) -> dict[str, object]:
        """The folder; a relative one is below the present folder, and a path below the home folder stays as it is."""
        return {"root": address if address.startswith("~") else str(Path(address).absolute())}

    def get_store(self) -> "Store":
        """The store this block describes."""
        from prefect_assay.archive import LocalStore  # noqa: PLC0415 - blocks load at Prefect's start-up

        return LocalStore(Path(self.root).expanduser())

    def require_lasting(self) -> None:
        """Raise ArchiveError for a relative folder: a worker runs each flow in a folder that is deleted afterwards."""
        if not Path(self.root).expanduser().is_absolute():
            raise ArchiveError(
                f"the archive folder {self.root} is relative, and a worker deletes its folder after the run; "
                "nothing was ordered. Give the LocalArchive block an absolute path, or one that starts with ~"
            )

    def require_present(self) -> None:
        """Raise ArchiveUnavailable for a folder that does not exist here."""
        folder = Path(self.root).expanduser()
        if not folder.is_dir():
            raise ArchiveUnavailable(
                f"the folder {folder} does not exist here: mount it, or run this on the machine that has it"
            )


class S3Archive(ArchiveBlock):
    """A bucket of any S3 server with conditional writes.

    Example:
        ```python
        from prefect_assay.blocks import S3Archive

        S3Archive(bucket="assay-results", region="eu-central-1").save("BLOCK_NAME")
        archive = S3Archive.load("BLOCK_NAME")
        store = archive.get_store()
        ```
    """

    scheme = "s3://"
    address_form = "s3://bucket/prefix"
    _block_type_name = "Assay S3 Archive"
    _block_type_slug = "assay-s3-archive"
    _description = "Archive assay results in an S3 bucket."
    _documentation_url = DOCUMENTATION
    _logo_url = link_logo("filesystem")

    bucket: Annotated[Line, AfterValidator(_check_bucket)] = Field(
        title="Bucket", description="Name of the bucket. It must exist."
    )
    prefix: _Prefix = Field(default="", title="Prefix", description="Key prefix for everything written here.")
    endpoint_url: Annotated[Line | None, AfterValidator(_check_endpoint)] = Field(
        default=None,
        title="Endpoint",
        description="Address of an S3 server other than AWS; empty for AWS.",
    )
    region: Annotated[Line | None, AfterValidator(_check_region)] = Field(
        default=None, title="Region", description="Region, for example eu-central-1."
    )
    access_key_id: Annotated[Line | None, AfterValidator(_check_key_id)] = Field(
        default=None,
        title="Access key id",
        description="Empty: the environment's own credentials (role, profile, variables).",
    )
    secret_access_key: Annotated[SecretStr | None, AfterValidator(_check_secret)] = Field(
        default=None,
        max_length=SECRET_MAX,
        title="Secret access key",
        description="Belongs to the access key id.",
    )
    session_token: Annotated[SecretStr | None, AfterValidator(_check_secret)] = Field(
        default=None,
        max_length=SECRET_MAX,
        title="Session token",
        description="Belongs to temporary keys, and expires with them. For runs that wait, a profile or a role is better.",
    )
    profile: Annotated[Line | None, AfterValidator(_check_profile)] = Field(
        default=None,
        title="Profile",
        description="Profile of the worker's AWS config file, in place of keys. It may name a role to assume.",
    )
    aws_credentials: Annotated[Line | None, AfterValidator(_block_name)] = Field(
        default=None,
        title="AwsCredentials block",
        description="Name of a saved AwsCredentials block, in place of keys; of it the account counts, not the endpoint. "
        "prefect-aws has to be installed.",
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
        if self.session_token and not self.access_key_id:
            raise ValueError("session_token belongs to access_key_id and secret_access_key; give all three")
        if sum(map(bool, (self.access_key_id, self.profile, self.aws_credentials))) > 1:
            raise ValueError("give keys, profile or aws_credentials: one of them, or none")
        return self

    @classmethod
    def parse_address(cls, address: str) -> dict[str, object]:
        """The bucket and the prefix of `s3://bucket/prefix`."""
        bucket, _, prefix = address.removeprefix(cls.scheme).partition("/")
        if not bucket:
            raise InputError(f"{address!r} names no bucket; write {cls.address_form}")
        return {"bucket": bucket, "prefix": prefix.strip("/")}

    def get_store(self) -> "Store":
        """The store this block describes.

        Raises:
            ConfigurationError: no client can be made with these fields, the AWS_ variables, and those for proxies and
                certificates.
            ArchiveUnavailable: what gives the credentials, such as a file or a program, is not there now.
        """
        from prefect_assay.archive.s3 import S3Store, client_config  # noqa: PLC0415 - blocks load at Prefect's start-up

        aws_block = _load_aws_credentials(self.aws_credentials) if self.aws_credentials else None
        hidden = self._list_secret_values(aws_block)
        with s3_errors(partial(self._explain, hidden)):
            client = make_s3_client(
                self._make_boto3_session(aws_block),
                **self._keys(aws_block),
                endpoint_url=self.endpoint_url,
                region_name=self.region,
                config=client_config(self.endpoint_url),
            )
        return S3Store(self.bucket, client, sse=self.encryption, hidden=hidden)

    def browser_url(self, location: str) -> str | None:
        """The page of AWS's console for an `s3://` location, which asks for a sign-in; None for another server."""
        if self.endpoint_url or self.bucket.startswith("arn:"):
            return None
        key = quote(location.removeprefix(f"s3://{self.bucket}/"), safe="")
        region = f"region={self.region}&" if self.region else ""
        return f"https://s3.console.aws.amazon.com/s3/object/{self.bucket}?{region}prefix={key}"

    def _explain(self, hidden: list[str], error: Exception) -> AssayError:
        place = f"the S3 archive of bucket {self.bucket!r} cannot be opened: {s3_cause(error, hidden)}"
        if step := s3_later(error):
            return ArchiveUnavailable(f"{place}; {step}")
        return ConfigurationError(
            f"{place}; correct endpoint_url, region and keys or profile of its block, or the AWS_ variables"
        )

    def _make_boto3_session(self, aws_block: Any) -> Any:
        """A session of its own for another account or profile; None is boto3's, which keeps what it has read."""
        import boto3  # noqa: PLC0415 - blocks load at Prefect's start-up

        if aws_block:
            return aws_block.get_boto3_session()
        return boto3.Session(profile_name=self.profile) if self.profile else None

    def _keys(self, aws_block: Any) -> dict[str, str | None]:
        if aws_block or self.profile:
            return {}
        secret, token = self.secret_access_key, self.session_token
        return {
            "aws_access_key_id": self.access_key_id,
            "aws_secret_access_key": secret.get_secret_value() if secret else None,
            "aws_session_token": token.get_secret_value() if token else None,
        }

    def _list_secret_values(self, aws_block: Any) -> list[str]:
        """Every secret value in use, so that messages can hide them."""
        secrets = [getattr(self, name) for name in _SECRETS]
        secrets += [getattr(aws_block, f"aws_{name}", None) for name in _SECRETS]
        return [
            value.get_secret_value() if isinstance(value, SecretStr) else value for value in secrets if value
        ]


def _load_aws_credentials(name: str) -> Any:
    """The saved `AwsCredentials` block of prefect-aws, which is not a dependency.

    Raises:
        ConfigurationError: prefect-aws is not installed here, or no such block is saved.
    """
    load: Any = Block.load
    try:
        return load(f"aws-credentials/{name}", _sync=True)  # also where an event loop runs
    except ValueError:
        advice = f"save an AwsCredentials block named {name!r}, or correct aws_credentials of the S3 archive's block"
    except UnknownBlockType:
        advice = "install prefect-aws where this runs, or give keys or a profile"
    raise ConfigurationError(f"the block aws-credentials/{name} cannot be loaded; {advice}")


# Where an archive kind is registered: everything else asks `ARCHIVES`.
Archive = LocalArchive | S3Archive
ARCHIVES: Final[tuple[type[Archive], ...]] = get_args(Archive)


def get_archive_kind(address: str) -> type[Archive]:
    """The kind of archive that an address names.

    Raises:
        InputError: the address begins with a scheme of no kind.
    """
    scheme, mark, _ = address.partition("://")
    for kind in ARCHIVES:
        if kind.scheme == (f"{scheme}{mark}" if mark else ""):
            return kind
    raise InputError(f"there is no kind of archive for {address!r}; write {describe_archive_addresses()}")


def describe_archive_addresses() -> str:
    """The forms of addresses, for people."""
    return ", or ".join(kind.address_form for kind in ARCHIVES)
