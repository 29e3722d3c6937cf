"""Opens the place where designs lie: a file, or an object in S3-compatible storage.

boto3 is imported only for an s3:// address. Every failure says what to do next; no message carries a credential.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

from prefect_assay.designs.findings import Findings
from prefect_assay.errors import ServiceUnavailable

S3: Final = "s3://"
_MISSING: Final = frozenset({"NoSuchKey", "NoSuchBucket", "404", "NotFound"})
_SERVER_ERROR: Final = 500


@contextmanager
def opened(source: str, findings: Findings) -> Iterator[BinaryIO]:
    """A readable binary stream of the source.

    Raises:
        InvalidSequences: the place does not exist, is no file, or may not be read.
        ServiceUnavailable: the object storage did not answer.
    """
    if source.startswith(S3):
        with _from_s3(source, findings) as stream:
            yield stream
        return
    if "://" in source:
        raise findings.stop(
            f"{source.partition('://')[0]}:// is not supported; give a path, an s3:// address or the text itself"
        )
    try:
        with _file(source, findings).open("rb") as stream:
            yield stream
    except PermissionError:
        raise findings.stop("permission denied; make the file readable for the user that runs this") from None
    except OSError as error:
        raise findings.stop(f"cannot be read: {error.strerror or type(error).__name__}") from None


def _file(source: str, findings: Findings) -> Path:
    """The path, when it is a regular file; a pipe or a device could block for ever."""
    if not source.strip():
        raise findings.stop("no source; give a path, an s3:// address or FASTA text")
    try:
        path = Path(source).expanduser()
        is_file, is_folder, exists = path.is_file(), path.is_dir(), path.exists()
    except (ValueError, RuntimeError):  # a NUL in the path, or no such user behind the tilde
        raise findings.stop("not a valid path") from None
    if is_folder:
        raise findings.stop("is a folder; name one FASTA or CSV file in it")
    if exists and not is_file:
        raise findings.stop("is not a regular file")
    if not exists:
        raise findings.stop(f"no such file (looked in {Path.cwd()} for a relative path); check the spelling")
    return path


@contextmanager
def _from_s3(source: str, findings: Findings) -> Iterator[BinaryIO]:
    import boto3  # noqa: PLC0415 - half a second that only s3:// users pay
    from botocore.exceptions import (  # noqa: PLC0415 - likewise
        BotoCoreError,
        ClientError,
        ConnectionError,  # noqa: A004 - botocore's own
        HTTPClientError,
        IncompleteReadError,
        NoCredentialsError,
        PartialCredentialsError,
    )

    bucket, key = _address(source, findings)
    try:
        body = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"]
        with io.BufferedReader(body) as stream:  # type: ignore[type-var]  # StreamingBody is a readable raw stream
            yield stream
    except (NoCredentialsError, PartialCredentialsError):
        raise findings.stop(
            "no S3 credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile"
        ) from None
    except ClientError as error:
        raise _refused(error.response, source, findings) from None
    except (ConnectionError, HTTPClientError, IncompleteReadError) as error:
        raise ServiceUnavailable(
            f"{source}: the object storage did not answer ({type(error).__name__}); try again later"
        ) from None
    except BotoCoreError as error:
        raise findings.stop(f"cannot be read from S3: {error}") from None


def _address(source: str, findings: Findings) -> tuple[str, str]:
    try:
        bucket = urlsplit(source).netloc
    except ValueError:
        bucket = ""
    key = source[len(S3) + len(bucket) + 1 :]  # as written: '?' and '#' are legal in keys
    if not bucket or not key or key.endswith("/"):
        raise findings.stop("not an object; write s3://bucket/path/to/designs.fasta")
    return bucket, key


def _refused(response: Any, source: str, findings: Findings) -> Exception:
    code = str(response.get("Error", {}).get("Code", "unknown"))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status >= _SERVER_ERROR:
        return ServiceUnavailable(f"{source}: the object storage failed ({code}); try again later")
    if code in _MISSING:
        return findings.stop(f"no such object ({code}); check bucket and key")
    return findings.stop(f"may not be read ({code}); check the credentials and their rights on the bucket")
