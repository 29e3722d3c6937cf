"""Where a user's files come from: a path, or an object in S3-compatible storage, opened as a stream of bytes.

A folder and a bucket's prefix can be listed. Knows nothing of what is in the files.
"""

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

from prefect_assay.errors import InputError, ServiceUnavailable
from prefect_assay.network_variables import check_s3_variables

S3: Final = "s3://"
_AGAIN: Final = "run again later"
_CREDENTIALS: Final = "renew them in the block or the environment (role, profile, variables), then run again"
_DAMAGED: Final = "the content was damaged on the way; run again"
# What passes, or what a person mends while runs wait: the same request succeeds later. botocore knows the codes of a server
# that is busy.
_LATER: Final = {
    **dict.fromkeys(
        (
            "ExpiredToken",
            "ExpiredTokenException",
            "InvalidToken",
            "RequestExpired",
            "TokenRefreshRequired",
        ),
        f"the credentials were temporary and have expired; {_CREDENTIALS}",
    ),
    "RequestTimeTooSkewed": "the clock of this machine is wrong; set it by a time server, then run again",
    "BadDigest": _DAMAGED,
    "XAmzContentChecksumMismatch": _DAMAGED,
    "XAmzContentSHA256Mismatch": _DAMAGED,
    **dict.fromkeys(
        (
            "ServiceUnavailable",
            "InternalError",
            "ConditionalRequestConflict",
            "OperationAborted",
        ),
        f"the server is busy; {_AGAIN}",
    ),
}
_LATER_STATUS: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})  # under any code
# Requests that botocore makes for credentials, at other services than S3.
_FOR_CREDENTIALS: Final = (
    "AssumeRole",
    "CreateOAuth2Token",
    "CreateToken",
    "GetRoleCredentials",
    "GetSessionToken",
)
# Parts of a signature in a text: the header, what is hashed for it, parameters of an address, key ids.
_SIGNED: Final = re.compile(
    r"""AWS4-.*|\bAWS\s+[^\s:]+:\S+
    |\b(?:X-Amz-)?(?:Credential|Signature|Security-Token|AWSAccessKeyId)\b["']?\s*[=:]\s*[^\s&,]+
    |\bA[KS]IA[A-Z0-9]{12,}|(?<=//)[^/@\s]*@""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_CAUSE_LENGTH: Final = 300
_MISSING: Final = frozenset({"NoSuchKey", "NoSuchBucket", "404", "NotFound"})


def s3_later(error: Exception) -> str | None:
    """The next step for an S3 request that may succeed later; None for one that is refused for good."""
    from botocore import exceptions  # noqa: PLC0415 - half a second that only s3:// users pay

    if isinstance(error, exceptions.ClientError):
        return _refused_for_now(error)
    if isinstance(error, exceptions.HTTPClientError) and _is_invalid(error):
        return None
    if isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError):
        return "check the endpoint and the network, then run again"
    if isinstance(error, exceptions.IncompleteReadError | exceptions.FlexibleChecksumError):
        return _DAMAGED
    if isinstance(
        error,
        exceptions.NoCredentialsError
        | exceptions.PartialCredentialsError
        | exceptions.CredentialRetrievalError
        | exceptions.RefreshWithMFAUnsupportedError
        | exceptions.MetadataRetrievalError
        | exceptions.NoAuthTokenError
        | exceptions.TokenRetrievalError
        | exceptions.SSOError
        | exceptions.LoginError,
    ):
        return f"there are no S3 credentials now; {_CREDENTIALS}"
    # Such as a certificate or the file of a web identity token that is not there.
    return "run again when this file can be read" if isinstance(error, OSError) else None


def _refused_for_now(error: Any) -> str | None:
    from botocore.retries import standard  # noqa: PLC0415 - likewise

    code = str(error.response.get("Error", {}).get("Code", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _LATER:
        return _LATER[code]
    if error.operation_name.startswith(_FOR_CREDENTIALS):
        return f"{error.operation_name} gave no S3 credentials; {_CREDENTIALS}"
    name = code.rpartition(".")[2].removesuffix("Exception")  # KMS.ThrottlingException, TooManyRequests
    for spelled in (name, f"{name}Exception"):
        context = standard.RetryContext(attempt_number=1, parsed_response={"Error": {"Code": spelled}})
        checkers = (standard.ThrottledRetryableChecker(), standard.TransientRetryableChecker())
        if any(checker.is_retryable(context) for checker in checkers):
            return f"the server is busy; {_AGAIN}"
    failed = status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.NOT_IMPLEMENTED
    return _AGAIN if failed or status in _LATER_STATUS else None


def _is_invalid(error: Any) -> bool:
    """Return True if no HTTP request can be made of it, as of a key id with a line break."""
    return isinstance(error.kwargs.get("error"), ValueError)


def s3_cause(error: Exception, hidden: Iterable[str] = ()) -> str:
    """What S3 or botocore says in one short line, without what signs a request and without the texts in `hidden`."""
    from botocore import exceptions  # noqa: PLC0415 - likewise

    if isinstance(error, exceptions.ClientError):
        found = error.response.get("Error", {})
        text = f"{found.get('Code', 'unknown')}: {found.get('Message') or error}"
    elif isinstance(error, exceptions.HTTPClientError) and _is_invalid(error):
        text = "no request can be made with a character of the key id, the endpoint or the region"
    elif type(error) is ValueError:  # its text says it all
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    for secret in sorted(filter(None, hidden), key=len, reverse=True):
        text = text.replace(secret, "***")
    return " ".join(_SIGNED.sub("***", text).split())[:_CAUSE_LENGTH].rstrip(". ")


def local_path(text: str | Path) -> Path:
    """The path that a user has typed, with the home folder for its tilde.

    Raises:
        InputError: no user of this name has a home folder here.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise InputError(f"{text}: there is no home folder of that user; write the path without ~") from None


class UnreadableSource(InputError):
    """The cause and the next step, without the source's name."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of a folder or of a bucket's prefix. `changed` is in seconds since 1970; `atomic`: it appears whole."""

    name: str
    address: str
    size: int
    changed: float
    atomic: bool


def listed(source: str) -> list[Listed]:
    """The files of a folder, or of `s3://bucket/prefix/`, by name; not those of folders below it.

    Raises:
        UnreadableSource: there is no such folder, or it may not be read.
        ServiceUnavailable: the object storage did not answer; try again later.
    """
    if source.startswith(S3):
        return sorted(_objects(source), key=lambda file: file.name)
    if "://" in source:
        raise UnreadableSource(
            f"{source.partition('://')[0]}:// is not supported; give a folder or s3://bucket/prefix/"
        )
    found = []
    try:
        for path in Path(source).expanduser().iterdir():
            with suppress(FileNotFoundError):  # renamed or deleted meanwhile
                if path.is_file():
                    stat = path.stat()
                    found.append(Listed(path.name, str(path), stat.st_size, stat.st_mtime, atomic=False))
    except (FileNotFoundError, NotADirectoryError):
        raise UnreadableSource("no such folder; create it and put design files into it") from None
    except (ValueError, RuntimeError):  # a NUL in the path, or no such user behind the tilde
        raise UnreadableSource("not a valid path") from None
    except OSError as error:
        raise UnreadableSource(f"cannot be read: {error.strerror or type(error).__name__}") from None
    return sorted(found, key=lambda file: file.name)


def _objects(source: str) -> Iterator[Listed]:
    bucket, _, prefix = source.removeprefix(S3).partition("/")
    if not bucket:
        raise UnreadableSource("not a prefix; write s3://bucket/path/to/folder/")
    folder = prefix.strip("/") and f"{prefix.strip('/')}/"
    with _s3_errors(source):
        pages = _s3().get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=bucket, Prefix=folder, Delimiter="/"):
            for entry in page.get("Contents", []):
                # The answer has all of them; its type declares none as required.
                key, changed = entry.get("Key", ""), entry.get("LastModified")
                if (name := key.removeprefix(folder)) and changed:
                    address = f"{S3}{bucket}/{key}"
                    yield Listed(name, address, entry.get("Size", 0), changed.timestamp(), atomic=True)


@contextmanager
def opened(source: str) -> Iterator[BinaryIO]:
    """A readable stream of a path or of an `s3://bucket/key` address.

    Raises:
        UnreadableSource: there is no such file or object, or it may not be read.
        ServiceUnavailable: the object storage did not answer; try again later.
    """
    if source.startswith(S3):
        with _from_s3(source) as stream:
            yield stream
        return
    if "://" in source:
        raise UnreadableSource(
            f"{source.partition('://')[0]}:// is not supported; give a path, an s3:// address or the text itself"
        )
    try:
        with _file(source).open("rb") as stream:
            yield stream
    except PermissionError:
        raise UnreadableSource(
            "permission denied; make the file readable for the user that runs this"
        ) from None
    except OSError as error:
        raise UnreadableSource(f"cannot be read: {error.strerror or type(error).__name__}") from None


def _file(source: str) -> Path:
    """The path of a regular file; a pipe or a device could block for ever."""
    if not source.strip():
        raise UnreadableSource("no source; give a path, an s3:// address or the text itself")
    try:
        path = Path(source).expanduser()
        is_file, is_folder, exists = path.is_file(), path.is_dir(), path.exists()
    except (ValueError, RuntimeError):  # a NUL in the path, or no such user behind the tilde
        raise UnreadableSource("not a valid path") from None
    if is_folder:
        raise UnreadableSource("is a folder; name one file in it")
    if exists and not is_file:
        raise UnreadableSource("is not a regular file")
    if not exists:
        raise UnreadableSource(
            f"no such file (looked in {Path.cwd()} for a relative path); check the spelling"
        )
    return path


@contextmanager
def _from_s3(source: str) -> Iterator[BinaryIO]:
    bucket, key = _address(source)
    with _s3_errors(source):
        body = _s3().get_object(Bucket=bucket, Key=key)["Body"]
        with io.BufferedReader(body) as stream:
            yield stream


def _s3() -> Any:
    import boto3  # noqa: PLC0415 - likewise

    check_s3_variables()
    try:
        return boto3.client("s3")
    except ValueError as error:  # a malformed AWS_ENDPOINT_URL
        raise UnreadableSource(f"cannot be read from S3: {s3_cause(error)}") from None


@contextmanager
def _s3_errors(source: str) -> Iterator[None]:
    from botocore.exceptions import (  # noqa: PLC0415 - likewise
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        PartialCredentialsError,
    )

    try:
        yield
    except (NoCredentialsError, PartialCredentialsError):
        raise UnreadableSource(
            "no S3 credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile"
        ) from None
    except ClientError as error:
        raise _refused(error, source) from None
    except BotoCoreError as error:
        if step := s3_later(error):
            raise ServiceUnavailable(
                f"{source}: the object storage did not answer ({s3_cause(error)}); {step}"
            ) from None
        raise UnreadableSource(f"cannot be read from S3: {s3_cause(error)}") from None


def _address(source: str) -> tuple[str, str]:
    try:
        bucket = urlsplit(source).netloc
    except ValueError:
        bucket = ""
    key = source[len(S3) + len(bucket) + 1 :]  # as written: '?' and '#' are legal in keys
    if not bucket or not key or key.endswith("/"):
        raise UnreadableSource("not an object; write s3://bucket/path/to/file")
    return bucket, key


def _refused(error: Any, source: str) -> Exception:
    code = str(error.response.get("Error", {}).get("Code", "unknown"))
    if step := s3_later(error):
        return ServiceUnavailable(f"{source}: the object storage answers {code}; {step}")
    if code in _MISSING:
        return UnreadableSource(f"no such object ({code}); check bucket and key")
    return UnreadableSource(f"may not be read ({code}); check the credentials and their rights on the bucket")
