"""What the archive needs of a place to keep files: put once, read, list. Never overwrite.

A store knows keys and bytes. It must not know experiments, versions or manifests; `write.py` does.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, Protocol

from prefect_assay.errors import ArchiveError
from prefect_assay.models.base import Model

CHUNK_BYTES: Final = 1 << 20

Body = bytes | Path
Stray = Literal["hidden", "link"]

_UNSAFE: Final = re.compile(r'[\x00-\x1f\x7f\\:"<>|*?]')


class ObjectInfo(Model):
    """Size in bytes of a stored object, and its SHA-256 (hex) where the store knows it without reading."""

    size: int
    sha256: str | None = None


class Digest(Model):
    """Size in bytes and SHA-256 (hex) of some content."""

    size: int
    sha256: str


class Store(Protocol):
    """A write-once key-value store. Keys are relative, `/`-separated, without `.` or `..` segments."""

    def put_if_absent(self, key: str, data: Body, content_type: str, *, sha256: str | None = None) -> bool:
        """Write the object unless the key exists; all of it or nothing, also when the process is killed.

        Args:
            key: where to write.
            data: the content, or a file that holds it (streamed).
            content_type: the media type, kept where the store can.
            sha256: hex digest the content must have, when the caller knows it.

        Returns:
            True when this call wrote the object, False when the key existed before.

        Raises:
            ArchiveError: the store refuses, or the content does not have the given digest.
        """
        ...

    def read(self, key: str) -> bytes:
        """The whole object, for small ones. Raises ArchiveError when it is not there."""
        ...

    def find(self, key: str) -> bytes | None:
        """The whole object, or None when there is no such object."""
        ...

    def stream(self, key: str) -> Iterator[bytes]:
        """The object in chunks. Raises ArchiveError when it is not there."""
        ...

    def stat(self, key: str) -> ObjectInfo | None:
        """Size and, where known, digest; None when there is no such object."""
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys below the folder `prefix` ("" is everything); the keys of one folder come together."""
        ...

    def strays(self, prefix: str) -> Iterator[tuple[str, Stray]]:
        """What the archive never writes below the folder `prefix`: hidden files of others, and symbolic links."""
        ...

    def location(self, key: str) -> str:
        """An address of the key that a person can open."""
        ...

    def probe(self, prefix: str = "") -> None:
        """Raise ArchiveError, with what to do, unless the store is writable below `prefix` and never overwrites."""
        ...


def join_key(*parts: str) -> str:
    """Join key parts with `/`, leaving empty ones out."""
    return "/".join(part.strip("/") for part in parts if part.strip("/"))


def check_key(key: str) -> str:
    """Return the key, or raise: no store may be led outside its root by a key.

    Raises:
        ArchiveError: a segment is empty, `.` or `..`, or holds a backslash, a colon or a control character.
    """
    for segment in key.split("/"):
        if segment in {"", ".", ".."} or _UNSAFE.search(segment):
            raise ArchiveError(
                f"{key!r} is not a key of the archive: use names without empty, '.' or '..' segments; "
                "prefect_assay.archive.layout.safe_path makes a safe path of any text"
            )
    return key


def chunks_of(data: Body, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The content in chunks of `size` bytes, the last one shorter, from memory or from a file."""
    if isinstance(data, bytes):
        for start in range(0, len(data), size):
            yield data[start : start + size]
        return
    with data.open("rb") as file:
        while chunk := file.read(size):
            yield chunk


def digest_of(chunks: Iterator[bytes]) -> Digest:
    """Size and SHA-256 of content given in chunks, in constant memory."""
    total, digest = 0, hashlib.sha256()
    for chunk in chunks:
        total += len(chunk)
        digest.update(chunk)
    return Digest(size=total, sha256=digest.hexdigest())


def wrong_digest(location: str) -> ArchiveError:
    """The error for content that is not what the caller announced."""
    return ArchiveError(
        f"{location}: the content changed while it was being archived; nothing was written under this name. "
        "Let whatever still writes the source file finish, then archive again"
    )
