"""The archive in a bucket of any S3 server that honours conditional writes (`If-None-Match: *`).

Every upload is one request, which is read from the file while it is sent, and carries a checksum of its body, as Object
Lock demands. The caller gives the boto3 client; no error shows a key, a secret or a signature.
"""

import base64
import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from threading import Barrier, get_ident
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar
from uuid import uuid4

from botocore.config import Config
from botocore.exceptions import ClientError

from prefect_assay.archive.layout import require_hint, require_table
from prefect_assay.archive.s3_requests import (
    list_objects,
    refuse_foreign_answers,
    s3_cause,
    s3_errors,
    s3_later,
)
from prefect_assay.archive.store import (
    CHUNK_BYTES,
    RACE_ROUNDS,
    Body,
    ObjectInfo,
    Stray,
    check_key,
    join_key,
    opened_body,
    race_writers,
    wait_for_others,
    wrong_digest,
)
from prefect_assay.errors import ArchiveError, ArchiveUnavailable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

_EXISTS: Final = frozenset({"PreconditionFailed", "412"})
_CONFLICT: Final = frozenset({"ConditionalRequestConflict", "OperationAborted", "409"})
_ABSENT: Final = frozenset({"NoSuchKey", "NotFound", "404"})
_UNNAMED: Final = frozenset({"400", "403", "501"})
_REFUSING: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_IMPLEMENTED})
_FEW: Final = 10  # objects that show that a folder has one: its first ones may be markers
_SOUND_SERVERS: Final = (
    "use a server with conditional writes (AWS S3, current MinIO or Ceph), or a LocalArchive"
)
_CONFLICT_WAITS: Final = (0.1, 0.3, 1.0, 3.0)  # seconds before each further try


def client_config(endpoint_url: str | None) -> Config:
    """Settings of a boto3 client for a `S3Store`; None is AWS. Other settings also work, and are slower.

    Other servers are addressed by path, because bucket names in host names need DNS. `S3Store` itself adds and requests
    checksums, so that it can leave them out for servers that refuse their headers.
    """
    return Config(
        s3={"addressing_style": "path" if endpoint_url else "auto", "payload_signing_enabled": True},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )


def _compute_checksums(body: BinaryIO) -> tuple[str, Sequence[Mapping[str, str]]]:
    """The SHA-256 (hex) of a body, and the headers that AWS accepts for a locked bucket, the better first.

    The last one, none, is for servers that refuse both. All are made before the first try: what changes later is refused.
    """
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    while block := body.read(CHUNK_BYTES):
        sha256.update(block)
        md5.update(block)
    header = {"ChecksumSHA256": _encode_base64(sha256.digest())}
    return sha256.hexdigest(), (header, {"ContentMD5": _encode_base64(md5.digest())}, {})


def _encode_base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


class S3Store:
    """A `Store` in an existing bucket; `sse` is sent as the encryption header, which some servers refuse.

    No error shows the texts in `hidden`. A server that refuses the header of a checksum is served with the next kind.
    """

    def __init__(
        self, bucket: str, client: "S3Client", *, sse: str | None = None, hidden: Iterable[str] = ()
    ) -> None:
        self.bucket = bucket
        self._client: Any = refuse_foreign_answers(client)
        self._encryption: dict[str, str] = {"ServerSideEncryption": sse} if sse else {}
        self._hidden = tuple(hidden)
        self._checksum = 0  # which of `_checksums` the server takes, as far as is known

    def put_if_absent(self, key: str, data: Body, content_type: str, *, sha256: str | None = None) -> bool:
        """See `Store`.

        Of two writers at once one may get 409 instead of 412 while the outcome is open: the request is repeated. When boto3
        itself repeats a request, it finds its own object: the result is False, and the caller compares.
        """
        put = self._prepare_put(check_key(key), content_type, IfNoneMatch="*")
        with self._translate_errors(key), opened_body(data) as body:
            digest, checksums = _compute_checksums(body)
            if sha256 not in {None, digest}:
                raise wrong_digest(self.location(key))
            return self._was_absent(lambda: self._with_checksum(put, body, checksums))

    def replace(self, key: str, data: Body, content_type: str) -> None:
        """See `Store`."""
        put = self._prepare_put(require_table(key), content_type)
        with self._translate_errors(key), opened_body(data) as body:
            self._with_checksum(put, body, _compute_checksums(body)[1])

    def _prepare_put(self, key: str, content_type: str, **conditions: str) -> Callable[..., object]:
        address = {"Bucket": self.bucket, "Key": key, "ContentType": content_type}
        return partial(self._client.put_object, **address, **self._encryption, **conditions)

    def _was_absent(self, put: Callable[[], object]) -> bool:
        for wait in (*_CONFLICT_WAITS, None):
            try:
                put()
            except ClientError as error:
                code = error_code(error)
                if code in _EXISTS:
                    return False
                if code not in _CONFLICT or wait is None:
                    raise
                time.sleep(wait)
            else:
                return True
        return False

    def _with_checksum(
        self,
        send: Callable[..., object],
        body: BinaryIO,
        checksums: Sequence[Mapping[str, str]],
        kind: int = 0,
    ) -> None:
        """Send a body with a checksum; where the server refuses its header, with the next kind.

        Raises:
            ClientError: the first refusal, if the request is refused without a checksum as well.
        """
        kind = max(kind, self._checksum)
        body.seek(0)
        try:
            send(Body=body, **checksums[kind])
        except ClientError as error:
            if kind + 1 == len(checksums) or not _may_refuse_header(error):
                raise
            try:
                self._with_checksum(send, body, checksums, kind + 1)
            except ClientError as again:
                raise error if _may_refuse_header(again) else again from None
            self._checksum = max(self._checksum, kind + 1)

    def _get_object(self, key: str) -> Any:
        return self._request_with_checksum(
            partial(self._client.get_object, Bucket=self.bucket, Key=check_key(key))
        )

    def _request_with_checksum(self, ask: Callable[..., T]) -> T:
        """Request the object's checksum with it, which botocore compares; not where the server refuses this header."""
        if self._checksum == 0:
            try:
                return ask(ChecksumMode="ENABLED")
            except ClientError as error:
                if not _may_refuse_header(error):
                    raise
            answer = ask()
            self._checksum = max(self._checksum, 1)
            return answer
        return ask()

    def read(self, key: str) -> bytes:
        """See `Store`."""
        return b"".join(self.stream(key))

    def find(self, key: str) -> bytes | None:
        """See `Store`."""
        with self._translate_errors(key):
            try:
                body = self._get_object(key)["Body"]
            except ClientError as error:
                if error_code(error) in _ABSENT:
                    return None
                raise
            with contextlib.closing(body):
                return bytes(body.read())

    def stream(self, key: str) -> Iterator[bytes]:
        """See `Store`."""
        with self._translate_errors(key):
            body = self._get_object(key)["Body"]
            with contextlib.closing(body):
                yield from body.iter_chunks(CHUNK_BYTES)

    def stat(self, key: str) -> ObjectInfo | None:
        """The size, and the server's SHA-256 of objects that were not written in parts."""
        with self._translate_errors(key):
            try:
                head = self._head_object(check_key(key))
            except ClientError as error:
                if error_code(error) in _ABSENT:
                    return None
                raise
            checksum = head.get("ChecksumSHA256", "")
            in_parts = "-" in checksum or head.get("ChecksumType", "FULL_OBJECT") != "FULL_OBJECT"
            sha256 = base64.b64decode(checksum).hex() if checksum and not in_parts else None
            return ObjectInfo(size=head["ContentLength"], sha256=sha256)

    def _head_object(self, key: str) -> Any:
        try:
            return self._request_with_checksum(partial(self._client.head_object, Bucket=self.bucket, Key=key))
        except ClientError as error:
            # The answer to a HEAD has no body that names the cause, or shows that S3 gave it. A GET has one.
            if error_code(error) in _UNNAMED or not _is_marked(error):
                self._get_object(key)["Body"].close()
            raise

    def delete(self, key: str) -> bool:
        """See `Store`; the keys of many archives may not delete, which is fine."""
        with self._translate_errors(key):
            try:
                self._client.delete_object(Bucket=self.bucket, Key=require_hint(key))
            except ClientError as error:
                if s3_later(error):
                    raise
                return error_code(error) in _ABSENT
        return True

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys below the folder `prefix`, in the order of their bytes, without hidden ones."""
        return (key for key in self._list_keys(prefix) if not _is_hidden(key))

    def folders(self, prefix: str) -> Iterator[str]:
        """See `Store`; one request for each thousand, and one for each folder, which may hold directory markers alone."""
        for page in self._iterate_pages(prefix, Delimiter="/"):
            for item in page.get("CommonPrefixes", ()):
                folder = item["Prefix"].removesuffix("/")
                name = folder.rpartition("/")[2]
                if name and not _is_hidden(name) and self._has_objects(folder):
                    yield name

    def _has_objects(self, folder: str) -> bool:
        return any(
            page["Contents"] for page in self._iterate_pages(folder, PaginationConfig={"PageSize": _FEW})
        )

    def strays(self, prefix: str) -> Iterator[tuple[str, Stray]]:
        """Hidden names; a bucket has no links."""
        return ((key, "hidden") for key in self._list_keys(prefix) if _is_hidden(key))

    def _list_keys(self, prefix: str) -> Iterator[str]:
        for page in self._iterate_pages(prefix):
            for item in page["Contents"]:
                yield item["Key"]

    def _iterate_pages(self, prefix: str, **options: Any) -> Iterator[Any]:
        folder = f"{check_key(prefix)}/" if prefix else ""
        with self._translate_errors(prefix):
            yield from list_objects(self._client, self.bucket, folder, **options)

    def location(self, key: str) -> str:
        """`s3://bucket/key`."""
        return f"s3://{self.bucket}/{key}"

    def probe(self, prefix: str = "", *, with_race: bool = True) -> None:
        """See `Store`."""
        with self._probe_key(prefix) as key:
            is_sound = self.put_if_absent(key, b"1", "text/plain")
            is_sound = not self.put_if_absent(key, b"2", "text/plain") and is_sound and self.read(key) == b"1"
        if not is_sound:
            raise ArchiveError(
                f"s3://{self.bucket}: this server overwrites objects although asked not to (If-None-Match: *), so "
                f"two runs could destroy each other's versions; {_SOUND_SERVERS}"
            )
        for _ in range(RACE_ROUNDS if with_race else 0):
            with self._probe_key(prefix) as key:
                first = race_writers(partial(self._write_in_race, key))
                # None may be first: a repeated request finds its own object.
                if len(first) > 1 or (first and self.read(key) != first[0]):
                    raise ArchiveError(
                        f"s3://{self.bucket}: this server told {len(first)} writers at the same moment that each was the first "
                        "(If-None-Match: *), so two runs could order or pay the same thing twice; "
                        f"{_SOUND_SERVERS}"
                    )

    @contextlib.contextmanager
    def _probe_key(self, prefix: str) -> Iterator[str]:
        key = join_key(prefix, f".probe-{uuid4().hex}")
        try:
            yield key
        finally:
            # A bucket that forbids deletion is a fine archive; the probe remains, hidden from listings.
            with contextlib.suppress(Exception):
                self._client.delete_object(Bucket=self.bucket, Key=key)

    def _write_in_race(self, key: str, body: bytes, start: Barrier) -> bool:
        """Write with the others: the request is signed, and sent when theirs are."""
        thread, is_waiting = get_ident(), True

        def wait(**_: object) -> None:
            nonlocal is_waiting
            if is_waiting and get_ident() == thread:
                is_waiting = False
                wait_for_others(start)

        name, events = f"assay-race-{thread}", self._client.meta.events
        events.register("before-send.s3.PutObject", wait, unique_id=name)
        try:
            return self.put_if_absent(key, body, "text/plain")
        finally:
            events.unregister("before-send.s3.PutObject", wait, unique_id=name)

    def _translate_errors(self, key: str) -> contextlib.AbstractContextManager[None]:
        return s3_errors(lambda error: archive_error(self.location(key), error, self._hidden))


def _is_hidden(key: str) -> bool:
    return any(part.startswith(".") for part in key.split("/"))


_NEXT_STEP: Final = {
    "NoSuchBucket": "the bucket does not exist; make it, or correct the block's bucket",
    "NoSuchKey": "this file is not in the archive; `prefect-assay archive verify` lists what is missing",
    "404": "there is no such object or bucket; check the block's bucket",
    "AccessDenied": "the credentials may not do this; they need to get, put and list below the prefix",
    "403": "the credentials may not do this; they need to get, put and list below the prefix",
    "InvalidAccessKeyId": "the server does not know this access key id; check the block's credentials",
    "SignatureDoesNotMatch": "the secret access key is wrong; check the block's credentials",
    **dict.fromkeys(
        ("PermanentRedirect", "IllegalLocationConstraintException", "AuthorizationHeaderMalformed"),
        "the bucket is in another region or at another address; correct region and endpoint of the block",
    ),
    "NotImplemented": "the server does not offer this; leave the block's encryption empty",
}


def _may_refuse_header(error: ClientError) -> bool:
    """Return True for a refusal that may be one of a header: servers have no common code for it."""
    status = _read_status(error)
    return status in _REFUSING and not s3_later(error)


def _read_status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _is_marked(error: ClientError) -> bool:
    """Return True if the answer carries S3's own headers, as every answer of the known servers does."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return any(name.lower().startswith("x-amz") for name in headers)


def error_code(error: ClientError) -> str:
    """The server's code, such as `PreconditionFailed`, or the HTTP status of a HEAD."""
    return str(error.response.get("Error", {}).get("Code", ""))


def archive_error(location: str, error: Exception, hidden: Iterable[str] = ()) -> ArchiveError:
    """A failed request as an error with its next step; `ArchiveUnavailable` when a later retry may help."""
    cause = s3_cause(error, hidden)
    if step := s3_later(error):
        return ArchiveUnavailable(f"{location}: {cause}; {step}")
    if not isinstance(error, ClientError):
        return ArchiveError(f"{location}: {cause}; correct bucket, endpoint, region and keys of the block")
    step = _NEXT_STEP.get(error_code(error), "check bucket, prefix and permissions")
    return ArchiveError(f"{location}: {cause}; {step}", status_code=_read_status(error) or None)
