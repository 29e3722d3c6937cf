"""`Store`, the write-once storage of the archive: keys and bytes. Knows neither experiments nor versions."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any, BinaryIO, Final, Literal, Protocol

from prefect_assay.errors import ArchiveError, AssayError
from prefect_assay.service.models.base import Model

CHUNK_BYTES: Final = 1 << 20
# As many as a client of botocore has connections. OpenStack Swift, which looks first, passes one such round in three.
RACE_WRITERS: Final = 10
RACE_ROUNDS: Final = 8
_RACE_SECONDS: Final = 10.0

Body = bytes | Path
Stray = Literal["hidden", "link"]

_UNSAFE: Final = re.compile(r'[\x00-\x1f\x7f\\:"<>|*?]')


class ObjectInfo(Model):
    """Size in bytes of a stored object, and its SHA-256 (hex) if the store keeps one."""

    size: int
    sha256: str | None = None


class Digest(Model):
    """Size in bytes and SHA-256 (hex)."""

    size: int
    sha256: str


class Store(Protocol):
    """A write-once key-value store, except for tables, which can be made again. Keys are relative, `/`-separated, without `.` or `..` segments."""

    def put_if_absent(self, key: str, data: Body, content_type: str, *, sha256: str | None = None) -> bool:
        """Write the object unless the key exists; all of it or nothing, also when the process is killed.

        True when this call wrote it; ArchiveError when the content does not have the digest `sha256` (hex).
        """
        ...

    def replace(self, key: str, data: Body, content_type: str) -> None:
        """Write a table (`layout.require_table`), over the one that is there: readers see the old or the new one, whole.

        ArchiveError for every other key: the archive replaces nothing else.
        """
        ...

    def read(self, key: str) -> bytes:
        """The whole object, for small ones; ArchiveError when absent."""
        ...

    def find(self, key: str) -> bytes | None:
        """The whole object, or None."""
        ...

    def stream(self, key: str) -> Iterator[bytes]:
        """The object in chunks; ArchiveError when absent."""
        ...

    def stat(self, key: str) -> ObjectInfo | None:
        """Size and, if known, digest; None when absent."""
        ...

    def delete(self, key: str) -> bool:
        """Delete a hint (`layout.require_hint`); False where the store does not allow it, so that the hint stays.

        True also when it was absent. ArchiveError for every other key: the archive deletes nothing else.
        """
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys below the folder `prefix` ("" is everything); the keys of one folder come together."""
        ...

    def folders(self, prefix: str) -> Iterator[str]:
        """The names of the folders directly below the folder `prefix`, whatever lies in them."""
        ...

    def strays(self, prefix: str) -> Iterator[tuple[str, Stray]]:
        """Hidden files and symbolic links below the folder `prefix`: the archive writes neither."""
        ...

    def location(self, key: str) -> str:
        """An address of the key that a person can open."""
        ...

    def probe(self, prefix: str = "", *, with_race: bool = True) -> None:
        """Raise ArchiveError, with what to do, unless the store is writable below `prefix` and never overwrites.

        With the race, also unless of several writers at the same moment one alone is told that it was first.
        """
        ...


def race_writers(write: Callable[[bytes, Barrier], bool]) -> list[bytes]:
    """Let several threads write different contents under one fresh key at once; the contents that were told to be first.

    Each is given a barrier to wait at just before it sends. A store that looks first and writes then tells it to several.

    Raises:
        AssayError: a writer failed, and no two were told to be first.
    """
    start = Barrier(RACE_WRITERS)
    failures: list[AssayError] = []

    def run(number: int) -> bytes | None:
        body = f"writer {number}".encode()
        try:
            return body if write(body, start) else None
        except AssayError as error:
            start.abort()  # the others go on
            failures.append(error)
            return None

    with ThreadPoolExecutor(RACE_WRITERS, thread_name_prefix="assay-probe") as pool:
        first = [body for body in pool.map(run, range(RACE_WRITERS)) if body is not None]
    if failures and len(first) < 2:  # noqa: PLR2004 - two winners are one too many
        raise failures[0]
    return first


def wait_for_others(start: Barrier) -> None:
    """Wait until every writer is ready, or not at all where one of them failed."""
    with suppress(BrokenBarrierError):
        start.wait(_RACE_SECONDS)


def join_key(*parts: str) -> str:
    """Join key parts with `/`, leaving empty ones out."""
    return "/".join(part.strip("/") for part in parts if part.strip("/"))


def check_key(key: str) -> str:
    """Return the key; ArchiveError if it leads outside the store."""
    for segment in key.split("/"):
        if segment in {"", ".", ".."} or _UNSAFE.search(segment):
            raise ArchiveError(
                f"{key!r} is not a key of the archive: use names without empty, '.' or '..' segments; "
                "prefect_assay.archive.layout.safe_path makes a safe path of any text"
            )
    return key


def opened_body(data: Body) -> BinaryIO:
    """The content as a file."""
    return data.open("rb") if isinstance(data, Path) else BytesIO(data)


def chunks_of(data: Body) -> Iterator[bytes]:
    """The content in chunks, the last one shorter."""
    with opened_body(data) as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def digest_of(chunks: Iterator[bytes]) -> Digest:
    """Size and SHA-256 of chunks."""
    total, digest = 0, hashlib.sha256()
    for chunk in chunks:
        total += len(chunk)
        digest.update(chunk)
    return Digest(size=total, sha256=digest.hexdigest())


def save_chunks(chunks: Iterable[bytes], path: Path) -> Digest:
    """Write chunks into a file, and return size and SHA-256 of them."""
    with path.open("wb") as file:
        return digest_of(_write_through(file, chunks))


def _write_through(file: BinaryIO, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks, each one written to the file."""
    for chunk in chunks:
        file.write(chunk)
        yield chunk


def json_bytes(value: Any) -> bytes:
    """A JSON value as the archive writes it: indented, keys sorted, a newline at its end."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def wrong_digest(location: str) -> ArchiveError:
    """The error for content without the announced digest."""
    return ArchiveError(
        f"{location}: the content changed while it was being archived; nothing was written under this name. "
        "Let whatever still writes the source file finish, then archive again"
    )
