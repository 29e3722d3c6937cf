"""S3 servers in trouble: what passes is retriable, what is lost is found, and no error shows what signs a request."""

import os
from types import SimpleNamespace
from uuid import uuid4

import boto3
import pytest
from botocore import exceptions
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.retries.standard import ThrottledRetryableChecker, TransientRetryableChecker

from prefect_assay.archive import sources
from prefect_assay.archive.s3 import S3Store, archive_error, client_config
from prefect_assay.errors import ArchiveError, ArchiveUnavailable
from support.archive.metadata_service import metadata_service
from support.archive.s3_proxy import LOST, Refused, s3_proxy
from support.archive.swift_server import ACCESS_KEY, SECRET_KEY, s3_client

LARGE = 9 << 20
LOCKED = Refused(
    400,
    "InvalidRequest",
    "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters",
)


@pytest.fixture(params=["moto", "swift"])
def proxy(request):
    """A proxy in front of a server, and a bucket on it."""
    upstream = request.getfixturevalue(f"{request.param}_endpoint")
    with s3_proxy(upstream) as proxy:
        yield proxy


@pytest.fixture
def store(proxy):
    return new_store(proxy.address)


def new_store(endpoint, bucket=None, **options):
    """A store as the block makes it."""
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=client_config(endpoint).merge(Config(retries={"total_max_attempts": 2})),
    )
    if bucket is None:
        bucket = f"archive-{uuid4().hex[:12]}"
        s3_client(endpoint).create_bucket(Bucket=bucket)
    return S3Store(bucket, client, **options)


# --- answers that are lost ---


@pytest.mark.parametrize("size", [10, LARGE])
def test_an_upload_whose_answers_are_lost_is_found_by_the_next_try(proxy, store, size):
    body = os.urandom(size)
    proxy.times(99, LOST, lambda request: request.uploads)
    with pytest.raises(ArchiveUnavailable):
        store.put_if_absent("a", body, "a/b")
    proxy.decide = lambda _request: None
    assert store.put_if_absent("a", body, "a/b") is False
    assert store.read("a") == body


# --- hints ---

HINT = "lab/LEDGERS/OPEN/campaign-c.json"


@pytest.mark.parametrize(
    "refusal",
    [Refused(403, "AccessDenied"), Refused(405, "MethodNotAllowed"), Refused(501, "NotImplemented")],
)
def test_a_server_that_deletes_nothing_keeps_the_hint(proxy, store, refusal):
    assert store.put_if_absent(HINT, b"1", "application/json")
    proxy.times(99, refusal, lambda request: request.method == "DELETE")
    assert store.delete(HINT) is False
    assert store.read(HINT) == b"1"


@pytest.mark.parametrize("trouble", [Refused(503, "SlowDown"), Refused(500, "InternalError"), LOST])
def test_a_server_that_is_busy_is_asked_again_later_and_the_hint_is_deleted_then(proxy, store, trouble):
    assert store.put_if_absent(HINT, b"1", "application/json")
    proxy.times(99, trouble, lambda request: request.method == "DELETE")
    with pytest.raises(ArchiveUnavailable):
        store.delete(HINT)
    proxy.decide = lambda _request: None
    assert store.delete(HINT)
    assert store.find(HINT) is None


# --- checksums ---


def demands_checksum(request):
    """What a bucket with Object Lock refuses."""
    named = request.headers.keys()
    return (
        request.uploads
        and "content-md5" not in named
        and not any(n.startswith("x-amz-checksum-") for n in named)
    )


def test_a_locked_bucket_takes_probe_and_files(proxy, store):
    proxy.decide = lambda request: LOCKED if demands_checksum(request) else None
    store.probe("team")
    assert store.put_if_absent("small", b"1", "a/b")
    assert store.put_if_absent("large", b"1" * LARGE, "a/b")
    assert not any(request.method == "PUT" and demands_checksum(request) for request in proxy.seen[1:])


@pytest.mark.parametrize("endpoint", ["https://127.0.0.1:9", "http://127.0.0.1:9", None])
@pytest.mark.parametrize("size", [3, LARGE])
def test_each_upload_has_a_checksum_over_any_transport(endpoint, size):
    store = S3Store(
        "b",
        boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="eu-central-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=client_config(endpoint),
        ),
    )
    sent = []

    def answer(request, **_):
        sent.append({name.lower() for name in request.headers} | {request.method})
        body = b"" if request.method == "HEAD" else b"<r><UploadId>u</UploadId></r>"
        raw = SimpleNamespace(stream=lambda **_: iter((body,)))
        status = 404 if request.method == "HEAD" else 200
        return AWSResponse(request.url, status, {"ETag": '"1"'}, raw)

    store._client.meta.events.register("before-send.s3", answer)
    assert store.put_if_absent("a", b"x" * size, "a/b")
    puts = [names for names in sent if "PUT" in names]
    assert puts
    assert all(names & {"content-md5", "x-amz-checksum-sha256"} for names in puts)


REFUSED_HEADERS = {
    "x-amz-checksum-": [
        Refused(400, "InvalidArgument", "Unsupported header"),
        Refused(501, "NotImplemented"),
    ],
    "both": [Refused(400, "InvalidRequest"), Refused(501, "NotImplemented")],
}


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [(headers, refusal) for headers in REFUSED_HEADERS for refusal in REFUSED_HEADERS[headers]],
)
def test_a_server_that_refuses_checksums_is_served_without(proxy, store, headers, refusal):
    prefixes = ("x-amz-checksum-", "content-md5") if headers == "both" else (headers,)
    proxy.decide = lambda request: refusal if any(n.startswith(prefixes) for n in request.headers) else None
    store.probe("team")
    body = os.urandom(LARGE)
    assert store.put_if_absent("large", body, "a/b")
    before = len(proxy.seen)
    assert store.put_if_absent("small", b"1", "a/b")
    assert len(proxy.seen) == before + 1  # what the server takes is known by then
    reader = S3Store(store.bucket, store._client)
    assert (reader.stat("small").size, reader.read("large")) == (1, body)
    assert reader.stat("none") is None


def test_what_is_refused_without_a_checksum_too_is_the_first_refusal(proxy, store):
    refusals = iter(
        [Refused(400, "InvalidRequest", "the first"), *[Refused(400, "InvalidRequest", "later")] * 9]
    )
    proxy.decide = lambda _request: next(refusals)
    with pytest.raises(ArchiveError, match="the first"):
        store.put_if_absent("a", b"1", "a/b")


def test_content_that_arrives_damaged_is_never_sent_without_its_checksum(proxy, store):
    proxy.decide = lambda request: Refused(400, "BadDigest") if request.uploads else None
    with pytest.raises(ArchiveUnavailable, match="damaged"):
        store.put_if_absent("a", b"1", "a/b")
    assert not any(demands_checksum(request) for request in proxy.seen if request.uploads)


# --- what passes ---


def refusal(code, status=400, operation="PutObject", message="m"):
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, operation)


BUSY = sorted(
    {
        *ThrottledRetryableChecker._THROTTLED_ERROR_CODES,
        *TransientRetryableChecker._TRANSIENT_ERROR_CODES,
        "KMS.ThrottlingException",
        "TooManyRequests",
        "ServiceUnavailable",
        "InternalError",
    }
)


AWAY = [
    exceptions.EndpointConnectionError(endpoint_url="http://h"),
    exceptions.ProxyConnectionError(proxy_url="http://p", error="e"),
    exceptions.SSLError(endpoint_url="https://h", error="CERTIFICATE_VERIFY_FAILED"),
    exceptions.ReadTimeoutError(endpoint_url="http://h"),
    exceptions.HTTPClientError(error=FileNotFoundError(2, "No such file", "/etc/ca.pem")),
    exceptions.ResponseStreamingError(error="e"),
    exceptions.IncompleteReadError(actual_bytes=1, expected_bytes=2),
    FileNotFoundError(2, "No such file", "/var/run/secrets/token"),
]
CREDENTIALS = [
    exceptions.NoCredentialsError(),
    exceptions.PartialCredentialsError(provider="p", cred_var="v"),
    exceptions.CredentialRetrievalError(provider="p", error_msg="e"),
    exceptions.TokenRetrievalError(provider="p", error_msg="e"),
    exceptions.MetadataRetrievalError(error_msg="e"),
    exceptions.NoAuthTokenError(),
    exceptions.SSOTokenLoadError(error_msg="e"),
    exceptions.UnauthorizedSSOTokenError(),
    exceptions.RefreshWithMFAUnsupportedError(),
    exceptions.LoginRefreshRequired(),
    refusal("AccessDenied", 403, "AssumeRole"),
    refusal("InvalidIdentityToken", 400, "AssumeRoleWithWebIdentity"),
    refusal("ForbiddenException", 403, "GetRoleCredentials"),
    refusal("InvalidGrantException", 400, "CreateToken"),
]
WRONG_FOR_GOOD = [
    exceptions.ParamValidationError(report="Invalid bucket name"),
    exceptions.InvalidRegionError(region_name="r"),
    exceptions.UnsupportedS3AccesspointConfigurationError(msg="m"),
    exceptions.HTTPClientError(error=ValueError("Invalid header value b'AWS4-HMAC-SHA256 Credential=AK'")),
]
EXPIRED = ("TokenRefreshRequired", "RequestExpired", "ExpiredTokenException", "InvalidToken")
PASSES = [
    *((refusal(code), "busy") for code in BUSY),
    *((refusal(code), "have expired") for code in EXPIRED),
    *((error, "S3 credentials") for error in CREDENTIALS),
    *((error, "") for error in AWAY),
    (refusal("SlowDown", 503), "run again later"),
    (refusal("TooManyRequests", 429), "run again later"),
    (refusal("429", 429), "run again later"),
    (refusal("RequestTimeoutException", 408), "run again later"),
    (refusal("ExpiredToken"), "renew them"),
    (refusal("RequestTimeTooSkewed", 403), "set it by a time server"),
    (refusal("BadDigest"), "damaged on the way"),
    (refusal("XAmzContentChecksumMismatch"), "damaged on the way"),
    (refusal("QuotaExceeded", 403), "raise the quota"),
    (refusal("XMinioAdminBucketQuotaExceeded", 403), "raise the quota"),
    (refusal("AccountProblem", 403), "account is suspended"),
    (refusal("UserSuspended", 403), "account is suspended"),
    (refusal("InvalidObjectState", 403), "restore it there"),
]
LASTS = [
    *((error, "correct bucket, endpoint, region and keys") for error in WRONG_FOR_GOOD),
    (refusal("PermanentRedirect", 301), "correct region and endpoint"),
]


@pytest.mark.parametrize(
    ("error", "kind", "step"),
    [
        *((error, ArchiveUnavailable, step) for error, step in PASSES),
        *((error, ArchiveError, step) for error, step in LASTS),
    ],
)
def test_every_failure_is_one_of_ours_names_the_next_step_and_passes_if_it_may(error, kind, step):
    made = archive_error("s3://b/k", error)
    assert type(made) is kind
    assert made.retriable is (kind is ArchiveUnavailable)
    assert step in str(made)


def test_a_certificate_file_or_a_token_file_that_is_away_passes(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "none.pem"))
    with pytest.raises(ArchiveUnavailable):
        new_store("https://127.0.0.1:9", "b").read("a")
    monkeypatch.delenv("AWS_CA_BUNDLE")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
    client = boto3.session.Session().client("s3", endpoint_url="http://127.0.0.1:9", region_name="r")
    with pytest.raises(ArchiveUnavailable, match=r"token|none"):
        S3Store("b", client).put_if_absent("a", b"", "a/b")


def test_a_metadata_service_in_trouble_passes(moto_endpoint, monkeypatch):
    with metadata_service(monkeypatch) as service:

        def store():
            client = boto3.session.Session().client("s3", endpoint_url=moto_endpoint, region_name="us-east-1")
            return S3Store("metadata", client)

        service.failing = 4
        with pytest.raises(ArchiveUnavailable, match="no S3 credentials now"):
            store().stat("a")
        service.failing = 0
        s3_client(moto_endpoint).create_bucket(Bucket="metadata")
        assert store().stat("a") is None


# --- what no error shows ---

SIGNED = "Invalid header value b'AWS4-HMAC-SHA256 Credential=AK\\nIA/20261126/us-east-1/s3/aws4_request, Signature=deadbeef'"


@pytest.mark.parametrize(
    "error",
    [
        exceptions.HTTPClientError(error=ValueError(SIGNED)),
        exceptions.HTTPClientError(error=OSError(SIGNED)),
        refusal("AuthorizationHeaderMalformed", message=SIGNED),
        refusal("SignatureDoesNotMatch", 403, message="StringToSign AWS4-HMAC-SHA256\n20261126T\ndeadbeef"),
        refusal(
            "AccessDenied",
            403,
            message="http://h/b?X-Amz-Credential=AKIAIOSFODNN7EXAMPLE&X-Amz-Signature=deadbeef",
        ),
        refusal("InvalidRequest", message="Authorization: AWS AKIAIOSFODNN7EXAMPLE:deadbeef="),
        refusal("InvalidAccessKeyId", 403, message="The key id AKIAIOSFODNN7EXAMPLE does not exist"),
        refusal("InvalidAccessKeyId", 403, message="The key id lab:AKIAarchivist with s3cr3t does not exist"),
        exceptions.EndpointConnectionError(endpoint_url="http://user:s3cr3t@host/"),
    ],
)
def test_no_error_shows_what_signs_a_request(error):
    for text in (
        str(archive_error("s3://b/k", error, hidden=["lab:AKIAarchivist", "s3cr3t"])),
        sources.s3_cause(error, hidden=["lab:AKIAarchivist", "s3cr3t"]),
    ):
        assert not any(secret in text for secret in ("deadbeef", "AKIA", "s3cr3t", "AK\\nIA"))
        assert "\n" not in text


def test_a_key_id_with_a_line_break_is_named_without_the_signature():
    client = boto3.client(
        "s3",
        endpoint_url="http://127.0.0.1:9",
        region_name="r",
        aws_access_key_id="AK\nIA",
        aws_secret_access_key="s",
    )
    with pytest.raises(ArchiveError, match="character of the key id") as caught:
        S3Store("b", client).read("a")
    assert not caught.value.retriable
    assert "Signature" not in str(caught.value)
