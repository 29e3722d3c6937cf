"""`read_sequences`: open a file, an object in S3-compatible storage or pasted text, and check its designs."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

from prefect_assay.designs.formats import HEADER, lines, records
from prefect_assay.designs.records import SourceErrors, checked
from prefect_assay.errors import ServiceUnavailable
from prefect_assay.models.sequences import Sequences

PASTED: Final = "pasted text"


def read_sequences(source: str, *, text: str | None = None, data: bytes | None = None) -> Sequences:
    """Read and check the designs of one source, in its order: names unique, residues upper case.

    A design with the residues and tag location of an earlier one is set aside in `duplicates` (contract 2.3).

    Args:
        source: a path, an `s3://bucket/key` address, or the text itself (it starts with `>` or has a newline).
        text: the content; `source` then only names it in messages.
        data: the content as bytes, likewise.

    Raises:
        InvalidSequences: every error with file, line and sequence.
        ServiceUnavailable: the object storage did not answer; try again later.
    """
    if text is not None and data is not None:
        raise TypeError("read_sequences takes text or data, not both")
    if text is not None:
        return _read(io.BytesIO(text.encode("utf-8", "surrogatepass")), source or PASTED)
    if data is not None:
        return _read(io.BytesIO(data), source or "given bytes")
    if is_pasted(source):
        return _read(io.BytesIO(source.encode("utf-8", "surrogatepass")), PASTED)
    with opened(source, SourceErrors(source)) as stream:
        return _read(stream, source)


def is_pasted(source: str) -> bool:
    """Return True if the source is the designs themselves and not their location."""
    return source.lstrip("\ufeff \t").startswith(HEADER) or "\n" in source or "\r" in source


def _read(stream: BinaryIO, source: str) -> Sequences:
    errors = SourceErrors(source)
    return checked(records(lines(stream, errors), errors), source, errors)


S3: Final = "s3://"
_MISSING: Final = frozenset({"NoSuchKey", "NoSuchBucket", "404", "NotFound"})


@contextmanager
def opened(source: str, errors: SourceErrors) -> Iterator[BinaryIO]:
    """A readable binary stream of the source; the errors are those of `read_sequences`."""
    if source.startswith(S3):
        with _from_s3(source, errors) as stream:
            yield stream
        return
    if "://" in source:
        raise errors.stop(
            f"{source.partition('://')[0]}:// is not supported; give a path, an s3:// address or the text itself"
        )
    try:
        with _file(source, errors).open("rb") as stream:
            yield stream
    except PermissionError:
        raise errors.stop("permission denied; make the file readable for the user that runs this") from None
    except OSError as error:
        raise errors.stop(f"cannot be read: {error.strerror or type(error).__name__}") from None


def _file(source: str, errors: SourceErrors) -> Path:
    """The path of a regular file; a pipe or a device could block for ever."""
    if not source.strip():
        raise errors.stop("no source; give a path, an s3:// address or FASTA text")
    try:
        path = Path(source).expanduser()
        is_file, is_folder, exists = path.is_file(), path.is_dir(), path.exists()
    except (ValueError, RuntimeError):  # a NUL in the path, or no such user behind the tilde
        raise errors.stop("not a valid path") from None
    if is_folder:
        raise errors.stop("is a folder; name one FASTA or CSV file in it")
    if exists and not is_file:
        raise errors.stop("is not a regular file")
    if not exists:
        raise errors.stop(f"no such file (looked in {Path.cwd()} for a relative path); check the spelling")
    return path


@contextmanager
def _from_s3(source: str, errors: SourceErrors) -> Iterator[BinaryIO]:
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

    bucket, key = _address(source, errors)
    try:
        body = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"]
        with io.BufferedReader(body) as stream:  # type: ignore[type-var]  # StreamingBody is a readable raw stream
            yield stream
    except (NoCredentialsError, PartialCredentialsError):
        raise errors.stop(
            "no S3 credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile"
        ) from None
    except ClientError as error:
        raise _refused(error.response, source, errors) from None
    except (ConnectionError, HTTPClientError, IncompleteReadError) as error:
        raise ServiceUnavailable(
            f"{source}: the object storage did not answer ({type(error).__name__}); try again later"
        ) from None
    except BotoCoreError as error:
        raise errors.stop(f"cannot be read from S3: {error}") from None


def _address(source: str, errors: SourceErrors) -> tuple[str, str]:
    try:
        bucket = urlsplit(source).netloc
    except ValueError:
        bucket = ""
    key = source[len(S3) + len(bucket) + 1 :]  # as written: '?' and '#' are legal in keys
    if not bucket or not key or key.endswith("/"):
        raise errors.stop("not an object; write s3://bucket/path/to/designs.fasta")
    return bucket, key


def _refused(response: Any, source: str, errors: SourceErrors) -> Exception:
    code = str(response.get("Error", {}).get("Code", "unknown"))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ServiceUnavailable(f"{source}: the object storage failed ({code}); try again later")
    if code in _MISSING:
        return errors.stop(f"no such object ({code}); check bucket and key")
    return errors.stop(f"may not be read ({code}); check the credentials and their rights on the bucket")
