"""Upload a large object to S3 in parts, several at a time, in bounded memory. Knows neither keys nor conditions.

Parts are read once and in order, because the SHA-256 of the whole is computed on the way; a few threads send them. The
object appears when the caller completes the upload, with the parts returned here.
"""

import hashlib
import io
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import LifoQueue
from typing import Any, Final

from prefect_assay.archive.store import CHUNK_BYTES, Body, size_of

PART_BYTES: Final = 8 * CHUNK_BYTES  # S3 wants at least 5
PARTS_MAX: Final = 9_000  # S3 allows 10,000
BODIES_AT_ONCE: Final = 4

_OF_PART: Final = ("ETag", "ChecksumCRC32", "ChecksumCRC64NVME", "ChecksumSHA256")  # what completion repeats

Part = dict[str, object]


class BodyBuffers:
    """Memory for `BODIES_AT_ONCE` request bodies. All uploads of a store share it: more of them take no more memory."""

    def __init__(self) -> None:
        self._free: LifoQueue[bytearray] = LifoQueue()
        for _ in range(BODIES_AT_ONCE):
            self._free.put(bytearray())

    def take(self, size: int) -> bytearray:
        """A buffer of `size` bytes, its content undefined; waits until one of the others is given back."""
        buffer = self._free.get()
        # Used again, because the page faults of new memory were a tenth of an upload's processor time.
        return buffer if len(buffer) == size else bytearray(size)

    def give_back(self, buffer: bytearray) -> None:
        """Return a buffer that `take` gave, in any size."""
        self._free.put(buffer)


def send_parts(
    client: Any, upload: dict[str, str], data: Body, buffers: BodyBuffers
) -> tuple[list[Part], str]:
    """Send the content; return the parts for the completing request, and the SHA-256 (hex) of the whole.

    `upload` holds bucket, key and upload id. botocore signs the SHA-256 of each part, so the server refuses one that was
    damaged on the way. When a part fails, no more are read, and those that are being sent are waited for.

    Raises:
        ClientError: the server refuses a part.
        BotoCoreError: no connection.
    """
    part_bytes = max(PART_BYTES, -(-size_of(data) // PARTS_MAX))
    whole = hashlib.sha256()
    sent: list[Part] = []
    sending: deque[Future[Part]] = deque()
    with (
        ThreadPoolExecutor(1, "archive-digest") as in_order,
        ThreadPoolExecutor(BODIES_AT_ONCE, "archive-part") as pool,
    ):
        for number, part in enumerate(_parts(data, part_bytes, buffers), start=1):
            hashed = in_order.submit(whole.update, part)
            sending.append(pool.submit(_send, client, upload, number, part, hashed, buffers))
            while sending and sending[0].done():
                sent.append(sending.popleft().result())
        sent.extend(one.result() for one in sending)
    return sent, whole.hexdigest()


def _parts(data: Body, size: int, buffers: BodyBuffers) -> Iterator[bytearray]:
    """The content in buffers of `size` bytes, the last one shorter; the consumer gives them back."""
    with io.BytesIO(data) if isinstance(data, bytes) else data.open("rb") as source:
        while True:
            buffer, filled = buffers.take(size), 0
            try:
                filled = source.readinto(buffer)
            finally:
                if not filled:
                    buffers.give_back(buffer)
            if not filled:
                return
            del buffer[filled:]
            yield buffer


def _send(
    client: Any,
    upload: dict[str, str],
    number: int,
    part: bytearray,
    hashed: Future[None],
    buffers: BodyBuffers,
) -> Part:
    try:
        answer = client.upload_part(**upload, PartNumber=number, Body=part)
    finally:
        hashed.result()  # another upload may write to the buffer once it is given back
        buffers.give_back(part)
    return {"PartNumber": number, **{name: answer[name] for name in _OF_PART if name in answer}}
