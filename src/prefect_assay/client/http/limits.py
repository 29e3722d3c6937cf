"""How much the client takes in: bytes of one answer, counted as they are unpacked, and requests of one walk.

A megabyte of gzip can hold a gigabyte, and a list need not end. These limits are far above what a service sends.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from prefect_assay.client.http.request import Operation, T
from prefect_assay.errors import UnexpectedAnswer

if TYPE_CHECKING:
    from prefect_assay.client.http.pagination import Walk

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
DOWNLOAD_BYTES_MAX: Final = 10_000_000_000
DOWNLOAD_ADVICE: Final = "If the file is what it should be, raise max_package_gb of the AssayCredentials block, or max_download of the client"
REQUESTS_MAX: Final = 10_000
# What httpx unpacks with the standard library. One coding only: a second one multiplies the size of what a single
# piece of the connection, at most 64 KiB, unpacks to.
ENCODINGS: Final = ("gzip", "deflate")


class TooLarge(Exception):
    """An answer, or a file, over its limit."""


class Meter:
    """Counts the unpacked bytes of one answer, and stops at the limit.

    Raises:
        TooLarge: with the cause; also for a packing that was not asked for.
    """

    def __init__(self, headers: Mapping[str, str], limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        coding = headers.get("content-encoding", "").strip().lower()
        if coding not in {"", "identity", *ENCODINGS}:
            raise TooLarge(f"packed as {coding[:40]!a}, which was not asked for")
        announced = headers.get("content-length", "")
        if announced.isdecimal():
            self._check(int(announced[:20]))

    def count(self, piece: bytes) -> bytes:
        """The piece, when all up to its end is within the limit."""
        self._bytes += len(piece)
        self._check(self._bytes)
        return piece

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLarge(f"larger than {self._limit:,} bytes")


def operations(walk: "Walk[T, Any]") -> Iterator[Operation[T]]:
    """The requests of a walk that is fed between them.

    Raises:
        UnexpectedAnswer: it does not end.
    """
    asked = 0
    while (operation := walk.operation()) is not None:
        asked += 1
        if asked > REQUESTS_MAX:
            raise UnexpectedAnswer(
                f"{operation.request}: the list has not ended after {REQUESTS_MAX:,} pages. Narrow it with a filter; "
                "if it cannot be that long, tell the laboratory"
            )
        yield operation
