"""Where a user's files come from: a path, or an object in S3-compatible storage, opened as a stream of bytes.

A folder and a bucket's prefix can be listed. Knows nothing of what is in the files.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

from prefect_assay.archive.s3_requests import (
    list_objects,
    make_s3_client,
    s3_cause,
    s3_errors,
    s3_later,
)
from prefect_assay.errors import AssayError, InputError, ServiceUnavailable

S3: Final = "s3://"
_MISSING: Final = frozenset({"NoSuchKey", "NoSuchBucket", "404", "NotFound"})


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


def list_files(source: str) -> list[Listed]:
    """The files of a folder, or of `s3://bucket/prefix/`, by name; not those of folders below it.

    Raises:
        UnreadableSource: there is no such folder, or it may not be read.
        ServiceUnavailable: the object storage did not answer; try again later.
    """
    if source.startswith(S3):
        return sorted(_list_objects(source), key=lambda file: file.name)
    if "://" in source:
        raise UnreadableSource(
            f"{source.partition('://')[0]}:// is not supported; give a folder or s3://bucket/prefix/"
        )
    files = []
    try:
        for path in Path(source).expanduser().iterdir():
            with suppress(FileNotFoundError):  # renamed or deleted meanwhile
                if path.is_file():
                    stat = path.stat()
                    files.append(Listed(path.name, str(path), stat.st_size, stat.st_mtime, atomic=False))
    except (FileNotFoundError, NotADirectoryError):
        raise UnreadableSource("no such folder; create it and put design files into it") from None
    except (ValueError, RuntimeError):  # a NUL in the path, or no such user behind the tilde
        raise UnreadableSource("not a valid path") from None
    except OSError as error:
        raise UnreadableSource(f"cannot be read: {error.strerror or type(error).__name__}") from None
    return sorted(files, key=lambda file: file.name)


def _list_objects(source: str) -> Iterator[Listed]:
    bucket, _, prefix = source.removeprefix(S3).partition("/")
    if not bucket:
        raise UnreadableSource("not a prefix; write s3://bucket/path/to/folder/")
    folder = prefix.strip("/") and f"{prefix.strip('/')}/"
    with s3_errors(partial(_explain_error, source)):
        for page in list_objects(make_s3_client(), bucket, folder, Delimiter="/"):
            for entry in page["Contents"]:
                # The answer has all of them; its type declares none as required.
                key, changed = entry.get("Key", ""), entry.get("LastModified")
                if changed:
                    address = f"{S3}{bucket}/{key}"
                    yield Listed(
                        key.removeprefix(folder),
                        address,
                        entry.get("Size", 0),
                        changed.timestamp(),
                        atomic=True,
                    )


@contextmanager
def open_source(source: str) -> Iterator[BinaryIO]:
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
        with _find_regular_file(source).open("rb") as stream:
            yield stream
    except PermissionError:
        raise UnreadableSource(
            "permission denied; make the file readable for the user that runs this"
        ) from None
    except OSError as error:
        raise UnreadableSource(f"cannot be read: {error.strerror or type(error).__name__}") from None


def _find_regular_file(source: str) -> Path:
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


class _S3Body(io.RawIOBase):
    """The content of an object; what fails while it is read is one of our errors."""

    def __init__(self, source: str, body: Any) -> None:
        self._source, self._body = source, body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with s3_errors(partial(_explain_error, self._source)):
            chunk = self._body.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._body.close()
        super().close()


@contextmanager
def _from_s3(source: str) -> Iterator[BinaryIO]:
    bucket, key = _split_address(source)
    with s3_errors(partial(_explain_error, source)):
        body = _S3Body(source, make_s3_client().get_object(Bucket=bucket, Key=key)["Body"])
    with io.BufferedReader(body) as stream:
        yield stream


def _explain_error(source: str, error: Exception) -> AssayError:
    """A failed request for a user's file as one of our errors."""
    from botocore.exceptions import (  # noqa: PLC0415 - half a second that only s3:// users pay
        ClientError,
        NoCredentialsError,
        PartialCredentialsError,
    )

    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return UnreadableSource(
            "no S3 credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile"
        )
    if isinstance(error, ClientError):
        return _describe_refusal(error, source)
    if step := s3_later(error):
        return ServiceUnavailable(f"{source}: the object storage did not answer ({s3_cause(error)}); {step}")
    return UnreadableSource(f"cannot be read from S3: {s3_cause(error)}")


def _split_address(source: str) -> tuple[str, str]:
    try:
        bucket = urlsplit(source).netloc
    except ValueError:
        bucket = ""
    key = source[len(S3) + len(bucket) + 1 :]  # as written: '?' and '#' are legal in keys
    if not bucket or not key or key.endswith("/"):
        raise UnreadableSource("not an object; write s3://bucket/path/to/file")
    return bucket, key


def _describe_refusal(error: Any, source: str) -> AssayError:
    code = str(error.response.get("Error", {}).get("Code", "unknown"))
    if step := s3_later(error):
        return ServiceUnavailable(f"{source}: the object storage answers {code}; {step}")
    if code in _MISSING:
        return UnreadableSource(f"no such object ({code}); check bucket and key")
    return UnreadableSource(f"may not be read ({code}); check the credentials and their rights on the bucket")
