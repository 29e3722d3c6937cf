"""Upload a large object to S3 in parts, several at a time. Knows neither keys nor conditions.

Parts are read from the file while they are sent, so that many of them are on the way in little memory. The object appears
when the caller completes the upload, with the parts returned here.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any, Final

from prefect_assay.archive.store import CHUNK_BYTES, Body, size_of

PART_BYTES: Final = 8 * CHUNK_BYTES  # S3 wants at least 5
PARTS_MAX: Final = 9_000  # S3 allows 10,000
REQUESTS_AT_ONCE: Final = 6  # by bench/bench_archive.py: fewer wait for a far server, more for this processor

_OF_PART: Final = ("ETag", "ChecksumCRC32", "ChecksumCRC64NVME", "ChecksumSHA256")  # what completion repeats

Part = dict[str, object]


def send_parts(
    send: "Callable[[int, Slice], Any]", data: Body, turn: AbstractContextManager[Any]
) -> tuple[list[Part], str]:
    """Send the content; return the parts for the completing request, and the SHA-256 (hex) of the whole.

    `send` sends the part of a number, from 1, and returns the server's answer; it is called within `turn`, which bounds
    the requests of a store. When a part fails, no more are begun, and those that are being sent are waited for.

    Raises:
        ClientError: the server refuses a part.
        BotoCoreError: no connection.
        EOFError: the file became shorter meanwhile.
    """
    size = size_of(data)
    part_bytes = max(PART_BYTES, -(-size // PARTS_MAX))

    def sent(number: int) -> Part:
        start = (number - 1) * part_bytes
        with turn, _opened(data) as source:
            answer = send(number, Slice(source, start, min(part_bytes, size - start)))
        return {"PartNumber": number, **{name: answer[name] for name in _OF_PART if name in answer}}

    with (
        ThreadPoolExecutor(1, "archive-digest") as beside,
        ThreadPoolExecutor(REQUESTS_AT_ONCE, "archive-part") as pool,
    ):
        whole = beside.submit(_sha256, data)
        sending = [pool.submit(sent, number) for number in range(1, -(-size // part_bytes) + 1)]
        wait(sending, return_when=FIRST_EXCEPTION)
        pool.shutdown(cancel_futures=True)  # cancels nothing unless one of them failed
        failed = [error for one in sending if not one.cancelled() and (error := one.exception())]
        if failed:
            raise failed[0]
        return [one.result() for one in sending], whole.result()


def _opened(data: Body) -> FileIO | BytesIO:
    return data.open("rb", buffering=0) if isinstance(data, Path) else BytesIO(data)


def _sha256(data: Body) -> str:
    # Not `hashlib.file_digest`: it takes the interpreter's lock for each quarter of a MiB, and so ends last.
    whole, view = hashlib.sha256(), memoryview(bytearray(4 * CHUNK_BYTES))
    with _opened(data) as source:
        while filled := source.readinto(view):
            whole.update(view[:filled])
    return whole.hexdigest()


class Slice:
    """A part of a file, as botocore reads it: to sign it, to send it, and again when it repeats the request."""

    def __init__(self, source: FileIO | BytesIO, start: int, size: int) -> None:
        self._source, self._start, self._size, self._at = source, start, size, 0
        self._view = memoryview(bytearray(CHUNK_BYTES // 4))
        source.seek(start)

    def __iter__(self) -> Iterator[memoryview]:
        """The whole part from its beginning, and back there."""
        self.seek(0)
        while block := self.read(self._size):
            yield block
        self.seek(0)

    def tell(self) -> int:
        """The position in the part."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position in the part, and return it."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._source.seek(self._start + self._at)
        return self._at

    def read(self, size: int) -> memoryview:  # noqa: ARG002  what is asked for, 16 KiB to send, is slow
        """The next bytes, up to 256 KiB whatever `size` is, valid until the next call: new memory for each is slow."""
        left = self._size - self._at
        filled = self._source.readinto(self._view[:left])
        if left and not filled:
            raise EOFError("the file became shorter while it was being sent")
        self._at += filled
        return self._view[:filled]
