"""Requests to S3: clients that believe no other server and never prompt, and each failure as one line with its next step.

Knows neither the archive nor a user's files, which make their own errors of these lines.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, Final, NoReturn
from urllib.parse import urljoin, urlsplit

from prefect_assay.errors import AssayError
from prefect_assay.service.network_variables import check_s3_variables

_AGAIN: Final = "run again later"
_CREDENTIALS: Final = "renew them in the block or the environment (role, profile, variables), then run again"
_DAMAGED: Final = "the content was damaged on the way; run again"
_ACCOUNT: Final = "the storage account is suspended; settle it with whoever runs the storage, then run again: what is stored stays"
_FULL: Final = (
    "the storage quota is used up; free space or raise the quota, then run again: what is stored stays"
)
# What passes, or what a person corrects while runs wait: the same request succeeds later. botocore knows the codes of a server
# that is busy.
_LATER: Final = {
    **dict.fromkeys(
        (
            "ExpiredToken",
            "ExpiredTokenException",
            "InvalidToken",
            "RequestExpired",
            "TokenRefreshRequired",
        ),
        f"the credentials were temporary and have expired; {_CREDENTIALS}",
    ),
    "RequestTimeTooSkewed": "the clock of this machine is wrong; set it by a time server, then run again",
    "BadDigest": _DAMAGED,
    "XAmzContentChecksumMismatch": _DAMAGED,
    "XAmzContentSHA256Mismatch": _DAMAGED,
    **dict.fromkeys(
        (
            "ServiceUnavailable",
            "InternalError",
            "ConditionalRequestConflict",
            "OperationAborted",
        ),
        f"the server is busy; {_AGAIN}",
    ),
    # AWS, Ceph, MinIO.
    **dict.fromkeys(("AccountProblem", "UserSuspended", "AllAccessDisabled", "NotSignedUp"), _ACCOUNT),
    **dict.fromkeys(("QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "XMinioStorageFull"), _FULL),
    "InvalidObjectState": "the object was moved to a cold storage class; restore it there, exclude the archive's prefix from "
    "the bucket's lifecycle rules, then run again",
}
_LATER_STATUS: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})  # under any code
# Requests that botocore makes for credentials, at other services than S3.
_FOR_CREDENTIALS: Final = (
    "AssumeRole",
    "CreateOAuth2Token",
    "CreateToken",
    "GetRoleCredentials",
    "GetSessionToken",
)
# Parts of a signature in a text: the header, what is hashed for it, parameters of an address, key ids.
_SIGNED: Final = re.compile(
    r"""AWS4-.*|\bAWS\s+[^\s:]+:\S+
    |\b(?:X-Amz-)?(?:Credential|Signature|Security-Token|AWSAccessKeyId)\b["']?\s*[=:]\s*[^\s&,]+
    |\bA[KS]IA[A-Z0-9]{12,}|(?<=//)[^/@\s]*@""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_CAUSE_LENGTH: Final = 300
_REDIRECTS: Final = frozenset({301, 302, 307, 308})
_WITH_ETAG: Final = frozenset({"PutObject", "GetObject", "HeadObject"})
_XML_ROOT: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*)*<(?:\w+:)?(\w+)", re.DOTALL
)
_NOT_S3: Final = (
    "another program answers at this address: a sign-in page, a proxy or the server's console; check the endpoint (some "
    "servers have one port for S3 and one for the console) and the network, then run again"
)

_UNEXPECTED: Final = "the S3 library failed in an unexpected way; check the endpoint, then run again, and report it if it remains"


class S3Failure(Exception):
    """What botocore has no error for, such as an answer from another program, with the next step. It may pass."""

    def __init__(self, text: str, step: str = _NOT_S3) -> None:
        super().__init__(text)
        self.step = step


def make_s3_client(session: Any = None, **options: Any) -> Any:
    """A boto3 client of the session, by default boto3's own, which keeps the credentials that it has read.

    It raises S3Failure for answers without the marks of S3, follows no redirect to another address, and never prompts.
    Making one may raise whatever botocore or a credentials helper raises: use it within `s3_errors`.
    """
    import boto3  # noqa: PLC0415 - half a second that only s3:// users pay

    check_s3_variables()
    if session is None:
        if boto3.DEFAULT_SESSION is None:
            boto3.setup_default_session()
        session = boto3.DEFAULT_SESSION
    _refuse_prompts(session)
    return refuse_foreign_answers(session.client("s3", **options))


def refuse_foreign_answers(client: Any) -> Any:
    """Let a client raise S3Failure for redirects and for pages that are not S3's; return it."""
    events = client.meta.events

    def check_before_retry(request_dict: Any, response: Any, **_: Any) -> None:
        if response is not None:
            _refuse_page(response[0])
            _refuse_redirect(client.meta.endpoint_url, request_dict["url"], *response)

    # Before botocore's own handler, which asks a redirecting server for the bucket's region, and is redirected again.
    events.register_first("needs-retry.s3", check_before_retry, unique_id="assay-retry")
    events.register("before-parse.s3", _check_answer, unique_id="assay-answer")
    return client


def _refuse_prompts(session: Any) -> None:
    """Replace botocore's question for an MFA code: a worker has no one to ask, and a terminal would wait for ever."""
    from botocore.exceptions import UnknownCredentialError  # noqa: PLC0415 - likewise

    with suppress(UnknownCredentialError):
        providers = session._session.get_component("credential_provider")  # noqa: SLF001 - botocore has no option for it
        providers.get_provider("assume-role")._prompter = _refuse_prompt  # noqa: SLF001


def _refuse_prompt(*_: object) -> NoReturn:
    raise S3Failure(
        "the role asks for an MFA code (mfa_serial in the AWS config file), which nobody can enter here",
        "use a profile or role without MFA, or export temporary keys of a session that you have opened with it",
    )


def _refuse_page(answer: Any) -> None:
    """Raise S3Failure for a success without XML, which botocore has made a 500 of."""
    was_success = getattr(answer.raw, "status", None) == HTTPStatus.OK
    if (
        answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
        and was_success
        and _root_of(answer.content) != b"Error"
    ):
        raise S3Failure("the answer (200) is not from S3")


def _refuse_redirect(endpoint: str, sent: str, answer: Any, parsed: Any) -> None:
    """Raise S3Failure for a redirect, except to another region of AWS, which botocore follows by itself."""
    if answer.status_code not in _REDIRECTS:
        return
    if "x-amz-bucket-region" in answer.headers or parsed.get("Error", {}).get("Region"):
        return
    location = answer.headers.get("location")
    problem = f"the server answers with a redirect ({answer.status_code})"
    if not location:
        raise S3Failure(f"{problem} without an address")
    target, request, base = urlsplit(urljoin(sent, location)), urlsplit(sent), urlsplit(endpoint)
    host = target.netloc.rpartition("@")[2]
    if target.path.rstrip("/") != request.path.rstrip("/"):
        raise S3Failure(f"{problem} to {target.scheme}://{host}")
    bucket = request.netloc.removesuffix(base.netloc)  # where the host's name begins with the bucket's
    address = f"{target.scheme}://{host.removeprefix(bucket)}{base.path}".rstrip("/")
    raise S3Failure(
        f"{problem} to {address}, which S3 clients do not follow",
        f"write {address} as the endpoint (endpoint_url of the archive's block, or AWS_ENDPOINT_URL), then run again",
    )


def _check_answer(operation_model: Any, response_dict: Any, **_: Any) -> None:
    """Raise S3Failure unless the answer has what S3 answers to this operation."""
    name, status, headers = operation_model.name, response_dict["status_code"], response_dict["headers"]
    root = _root_of(response_dict["body"])
    is_success = HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES and root != b"Error"
    if name == "ListObjectsV2" and is_success and root != b"ListBucketResult":
        raise S3Failure(f"the answer ({status}) is not a listing of S3")
    if name == "GetObject" and status == HTTPStatus.NOT_FOUND and root != b"Error":
        raise S3Failure("the answer (404) is not from S3: it has no error document")
    if name in _WITH_ETAG and is_success:
        etag = headers.get("etag", "")
        if not etag or etag.startswith("W/"):  # a weak one is a page's
            raise S3Failure(f"the answer ({status}) is not from S3: it has no ETag")
        if name == "HeadObject" and "content-length" not in headers:
            raise S3Failure(
                f"the answer ({status}) to HEAD has no Content-Length",
                "let the proxy in front of the server pass this header on, then run again",
            )


def _root_of(body: Any) -> bytes | None:
    root = _XML_ROOT.match(body) if isinstance(body, bytes) else None
    return root and root[1]


def list_objects(client: Any, bucket: str, folder: str, **options: Any) -> Iterator[Any]:
    """The pages of a listing, without directory markers: keys that end with `/`, which consoles and tools make.

    `folder` is "" or ends with `/`; `options` are further ones of `list_objects_v2`.
    """
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=folder, **options):
        if page.get("IsTruncated") and not page.get("NextContinuationToken"):
            raise S3Failure(
                "the listing is cut off without a continuation token",
                "use a server with version 2 of S3's listings (list-type=2)",
            )
        objects = [entry for entry in page.get("Contents", ()) if not entry["Key"].endswith("/")]
        yield {**page, "Contents": objects}


@contextmanager
def s3_errors(explain: Callable[[Exception], AssayError]) -> Iterator[None]:
    """Turn whatever a call of boto3 raises into one of our errors.

    What botocore and the operating system raise on purpose is explained by its text alone, because its traceback may show
    what signs a request. Anything else stays visible as the cause.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - likewise

    try:
        yield
    except AssayError:
        raise
    except (BotoCoreError, ClientError, OSError, S3Failure) as error:
        raise explain(error) from None
    except Exception as error:
        raise explain(error) from error


def s3_later(error: Exception) -> str | None:
    """The next step for an S3 request that may succeed later; None for one that is refused for good."""
    from botocore import exceptions  # noqa: PLC0415 - likewise
    from botocore.parsers import ResponseParserError  # noqa: PLC0415 - likewise

    if isinstance(error, S3Failure):
        return error.step
    if isinstance(error, exceptions.ClientError):
        return _find_later_advice(error)
    if isinstance(error, exceptions.HTTPClientError) and _is_invalid(error):
        return None
    steps: tuple[tuple[Any, str | None], ...] = (  # the first kind that fits
        (
            exceptions.ConnectionError | exceptions.HTTPClientError,
            "check the endpoint and the network, then run again",
        ),
        (exceptions.IncompleteReadError | exceptions.FlexibleChecksumError, _DAMAGED),
        (
            exceptions.NoCredentialsError
            | exceptions.PartialCredentialsError
            | exceptions.CredentialRetrievalError
            | exceptions.RefreshWithMFAUnsupportedError
            | exceptions.MetadataRetrievalError
            | exceptions.NoAuthTokenError
            | exceptions.TokenRetrievalError
            | exceptions.SSOError
            | exceptions.LoginError,
            f"there are no S3 credentials now; {_CREDENTIALS}",
        ),
        (ResponseParserError, _NOT_S3),
        # Such as a certificate, the file of a web identity token or the program of a credential_process.
        (OSError, "run again when this file can be read"),
        (exceptions.BotoCoreError | ValueError, None),
        (Exception, _UNEXPECTED),
    )
    return next(step for kinds, step in steps if isinstance(error, kinds))


def _find_later_advice(error: Any) -> str | None:
    """What to do where a later try may help; None where it will not."""
    from botocore.retries import standard  # noqa: PLC0415 - likewise

    code = str(error.response.get("Error", {}).get("Code", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _LATER:
        return _LATER[code]
    if error.operation_name.startswith(_FOR_CREDENTIALS):
        return f"{error.operation_name} gave no S3 credentials; {_CREDENTIALS}"
    name = code.rpartition(".")[2].removesuffix("Exception")  # KMS.ThrottlingException, TooManyRequests
    for spelled in (name, f"{name}Exception"):
        context = standard.RetryContext(attempt_number=1, parsed_response={"Error": {"Code": spelled}})
        checkers = (standard.ThrottledRetryableChecker(), standard.TransientRetryableChecker())
        if any(checker.is_retryable(context) for checker in checkers):
            return f"the server is busy; {_AGAIN}"
    failed = status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.NOT_IMPLEMENTED
    return _AGAIN if failed or status in _LATER_STATUS else None


def _is_invalid(error: Any) -> bool:
    """Return True if no HTTP request can be made of it, as of a key id with a line break."""
    return isinstance(error.kwargs.get("error"), ValueError)


def s3_cause(error: Exception, hidden: Iterable[str] = ()) -> str:
    """What S3 or botocore says in one short line, without what signs a request and without the texts in `hidden`."""
    from botocore import exceptions  # noqa: PLC0415 - likewise

    if isinstance(error, exceptions.ClientError):
        answer = error.response.get("Error", {})
        text = f"{answer.get('Code', 'unknown')}: {answer.get('Message') or error}"
    elif isinstance(error, exceptions.HTTPClientError) and _is_invalid(error):
        text = "no request can be made with a character of the key id, the endpoint or the region"
    elif type(error) in {ValueError, S3Failure}:  # its text says it all
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    for secret in sorted(filter(None, hidden), key=len, reverse=True):
        text = text.replace(secret, "***")
    return " ".join(_SIGNED.sub("***", text).split())[:_CAUSE_LENGTH].rstrip(". ")
