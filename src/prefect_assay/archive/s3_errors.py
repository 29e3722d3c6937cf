"""What S3 and boto3 say, as one error of the archive: where, why, and what to do. Never a key or a token."""

from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from prefect_assay.errors import ArchiveError, ArchiveUnavailable

_NEXT_STEP: Final = {
    "NoSuchBucket": "the bucket does not exist; make it, or correct the block's bucket",
    "NoSuchKey": "this file is not in the archive; `prefect-assay archive verify` lists what is missing",
    "404": "there is no such object or bucket; check the block's bucket",
    "AccessDenied": "the credentials may not do this; they need to get, put and list below the prefix",
    "403": "the credentials may not do this; they need to get, put and list below the prefix",
    "InvalidAccessKeyId": "the server does not know this access key id; check the block's credentials",
    "SignatureDoesNotMatch": "the secret access key is wrong; check the block's credentials",
    "NotImplemented": "the server does not offer this; leave the block's encryption empty",
    "BadDigest": "the content was damaged on the way to the server; run again",
    "XAmzContentChecksumMismatch": "the content was damaged on the way to the server; run again",
}
_BUSY: Final = frozenset(
    {
        "SlowDown",
        "ServiceUnavailable",
        "InternalError",
        "RequestTimeout",
        "Throttling",
        "ConditionalRequestConflict",
        "OperationAborted",
    }
)
_CREDENTIALS: Final = frozenset({"NoCredentialsError", "PartialCredentialsError", "NoAuthTokenError"})
_SERVER_ERROR: Final = 500


def error_code(error: ClientError | BotoCoreError) -> str:
    """The server's code (`PreconditionFailed`, or the HTTP status of a HEAD), or boto3's class name."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return type(error).__name__


def archive_error(location: str, error: ClientError | BotoCoreError) -> ArchiveError:
    """The archive's error for a failed request; `ArchiveUnavailable` when trying again later may help."""
    code = error_code(error)
    if isinstance(error, BotoCoreError):
        if code in _CREDENTIALS:
            return ArchiveError(f"{location}: no S3 credentials; put them into the block or the environment")
        return ArchiveUnavailable(f"{location}: {error}; check the endpoint and the network, then run again")
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    cause = str(error.response.get("Error", {}).get("Message") or error)
    if code in _BUSY or (status >= _SERVER_ERROR and code != "NotImplemented"):
        return ArchiveUnavailable(f"{location}: the server answers {code}: {cause}; run again later")
    step = _NEXT_STEP.get(code, "check bucket, prefix and permissions")
    return ArchiveError(f"{location}: {code}: {cause}; {step}", status_code=status or None)
