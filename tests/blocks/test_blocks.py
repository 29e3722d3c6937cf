"""What blocks build, and what they never show."""

import httpx
import pytest
from pydantic import ValidationError

from prefect_assay.archive import Document, archive_version, verify_versions
from prefect_assay.blocks import (
    AssayCredentials,
    LocalArchive,
    S3Archive,
    SharedPaymentTokens,
    SpendingPolicy,
    WebhookEndpoint,
    X402Wallet,
)
from prefect_assay.errors import ArchiveError, ConfigurationError, UnexpectedAnswer
from prefect_assay.service.client import AssayClient
from prefect_assay.service.webhook_signature import derive_secret
from prefect_assay.tasks.archive import check_archive
from support.archive.moto_s3 import moto_server
from support.archive.stores import bucket_store
from support.archive.swift_server import ACCESS_KEY, SECRET_KEY, s3_client

CANARY = "canary-canary-canary-canary-canary-canary"
KEY = "0123456789abcdef0123"


def s3_archive(endpoint, bucket="results", **changes):
    return S3Archive(
        bucket=bucket,
        prefix="team/one",
        endpoint_url=endpoint,
        region="us-east-1",
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
        **changes,
    )


def write_and_verify(archive):
    from datetime import UTC, datetime

    record = archive_version(
        archive.get_store(),
        archive.prefix,
        campaign_id="c",
        experiment_id="e-1",
        experiment_code="LAB-001-001",
        results_status="all",
        documents=[Document(path="raw/results.json", content_type="application/json", body=b"{}")],
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert record.location.endswith("team/one/c/LAB-001-001/v001")
    return verify_versions(archive.get_store(), archive.prefix)


def test_an_s3_archive_keeps_results_on_a_real_server(swift_endpoint):
    archive = s3_archive(swift_endpoint, bucket_store(swift_endpoint).bucket)
    check_archive(archive)
    assert write_and_verify(archive).ok


def test_an_s3_server_that_overwrites_is_refused_before_anything_is_ordered():
    with moto_server(overwrites="always") as endpoint:
        s3_client(endpoint).create_bucket(Bucket="results")
        with pytest.raises(ArchiveError, match="overwrit"):
            check_archive(s3_archive(endpoint))


def test_a_missing_bucket_is_named(moto_endpoint):
    with pytest.raises(ArchiveError, match="nowhere"):
        check_archive(s3_archive(moto_endpoint, bucket="nowhere"))


def test_a_local_archive_keeps_results(tmp_path):
    archive = LocalArchive(root=str(tmp_path), prefix="team/one")
    check_archive(archive)
    assert write_and_verify(archive).ok


def test_credentials_build_a_client_and_refuse_plain_http_elsewhere():
    credentials = AssayCredentials(base_url="https://lab.example", token=CANARY)
    with credentials.get_client() as client:
        assert isinstance(client, AssayClient)
    with pytest.raises(ConfigurationError, match="https"):
        AssayCredentials(base_url="http://lab.example", token=CANARY).get_client()


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        *(
            ({"bucket": name}, "give the bucket's name alone")
            for name in ("bkt/team", "s3://bkt", "b t", "b\n", "")
        ),
        *(
            ({"prefix": prefix}, "prefix .* is not usable")
            for prefix in ("../up", "a/../b", "a//b", "a b", "./a")
        ),
        *(
            ({"endpoint_url": url}, "give the server's address with its scheme")
            for url in (
                "minio:9000",
                "ftp://h",
                "http://",
                "http://h:port",
                "http://u:p@h",
                "http://h\n",
                "h.example",
            )
        ),
        *(({"region": name}, "give the region's name") for name in ("no region!", "eu\n")),
        *(({"access_key_id": key}, "copy it again") for key in ("A\nB", "A B", " A", "A\r")),
        *(({"secret_access_key": key}, "copy it again") for key in ("A\nB", " A", "A\n")),
        ({"access_key_id": None}, "or neither"),
        ({"secret_access_key": None}, "or neither"),
        ({"session_token": "A\nB"}, "copy it again"),
        (
            {"access_key_id": None, "secret_access_key": None, "session_token": "temporary"},
            "give all three",
        ),
        ({"profile": "lab"}, "one of them"),
        ({"aws_credentials": "lab"}, "one of them"),
        ({"aws_credentials": "aws-credentials/lab"}, "under which the AwsCredentials block is saved"),
    ],
)
def test_an_s3_archive_that_is_wrong_for_good_cannot_be_saved(changes, cause):
    fields = {"bucket": "results", "access_key_id": "id", "secret_access_key": CANARY} | changes
    with pytest.raises(ValidationError, match=cause) as caught:
        S3Archive(**fields)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"bucket": "Results_2026.eu"},
        {"bucket": "arn:aws:s3:eu-central-1:123456789012:accesspoint/assay"},
        {"bucket": "b", "prefix": "/team/assay/"},
        {"bucket": "b", "endpoint_url": "", "region": "", "access_key_id": ""},  # of the form, left empty
        {"bucket": "b", "endpoint_url": "https://[::1]:9000/s3", "region": "us-east-1"},
        {"bucket": "b", "access_key_id": "lab:archivist", "secret_access_key": "a secret of two words+/="},
    ],
)
def test_an_s3_archive_that_servers_take_can_be_saved(fields):
    assert S3Archive(**fields).get_store()


@pytest.mark.parametrize("fields", [{"prefix": "../up"}, {"root": " "}, {"root": "/a\nb"}, {"root": "/a\0"}])
def test_a_folder_that_is_no_folder_cannot_be_saved(fields):
    with pytest.raises(ValidationError):
        LocalArchive(**fields)


def test_an_s3_archive_that_cannot_be_opened_is_an_error_with_its_cause(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    with pytest.raises(ConfigurationError, match=r"'results' cannot be opened: .*no-such-profile"):
        S3Archive(bucket="results").get_store()


def test_a_webhook_endpoint_gives_every_order_a_secret_of_its_own():
    endpoint = WebhookEndpoint(url="https://hooks.example/assay/", signing_key=CANARY)
    url, secret = endpoint.derive_for_order(KEY)
    assert url == f"https://hooks.example/assay/{KEY}"
    assert secret.get_secret_value() == derive_secret(CANARY, KEY)
    assert endpoint.derive_for_order("f" * 20)[1] != secret


def test_machine_payments_need_a_rolling_cap():
    with pytest.raises(ValidationError, match="rolling_usd"):
        SpendingPolicy(per_experiment_usd=0.01, per_campaign_usd=0.01, machine_payments=True)
    policy = SpendingPolicy(per_experiment_usd=0.01, per_campaign_usd=0.01)
    assert (policy.machine_payments, policy.accept_quotes) == (False, False)
    assert policy.answer_ceiling_cents == 10_000_000


@pytest.mark.parametrize("ceiling", [-1, 10**14, 1.005, None])
def test_the_ceiling_of_answers_is_an_amount_and_always_there(ceiling):
    with pytest.raises(ValidationError, match="answer_ceiling_usd"):
        SpendingPolicy(per_experiment_usd=0.01, per_campaign_usd=0.01, answer_ceiling_usd=ceiling)


@pytest.mark.parametrize(
    "block",
    [
        AssayCredentials(base_url="https://lab.example", token=CANARY),
        X402Wallet(private_key=CANARY, networks=[], assets=[], pay_to=[]),
        SharedPaymentTokens(
            issuer_url="https://issuer.example", issuer_key=CANARY, network_ids=["profile_1"]
        ),
        WebhookEndpoint(url="https://hooks.example", signing_key=CANARY),
        S3Archive(bucket="b", access_key_id="id", secret_access_key=CANARY),
    ],
    ids=lambda b: type(b).__name__,
)
def test_no_block_shows_its_secret(block):
    assert CANARY not in repr(block)
    assert CANARY not in str(block)
    assert CANARY not in block.model_dump_json()


def test_a_relative_folder_is_refused_for_deployed_runs():
    with pytest.raises(ArchiveError, match="absolute path"):
        LocalArchive(root="results").require_lasting()
    LocalArchive(root="~/results").require_lasting()
    S3Archive(bucket="b").require_lasting()


def test_credentials_carry_the_limit_of_a_data_package_to_the_client():
    credentials = AssayCredentials(base_url="https://lab.example", token=CANARY, max_package_gb=1e-6)
    with credentials.get_client() as client:
        client._http._transport = httpx.MockTransport(lambda _: httpx.Response(200, content=bytes(1001)))
        with pytest.raises(UnexpectedAnswer, match="1,000 bytes"):
            list(client.documents.download("/package.zip"))
