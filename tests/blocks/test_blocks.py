"""What blocks build, and what they never show."""

import httpx
import pytest
from pydantic import ValidationError

from prefect_assay.archive import Document, archive_version, verify
from prefect_assay.blocks import (
    AssayCredentials,
    LocalArchive,
    S3Archive,
    SharedPaymentTokens,
    SpendingPolicy,
    WebhookEndpoint,
    X402Wallet,
)
from prefect_assay.client import AssayClient, AsyncAssayClient
from prefect_assay.errors import ArchiveError, ConfigurationError, UnexpectedAnswer
from prefect_assay.tasks.archive import check_archive, refuse_relative
from prefect_assay.webhooks.signature import derive_secret
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
    return verify(archive.get_store(), archive.prefix)


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


def test_credentials_build_both_clients_and_refuse_plain_http_elsewhere():
    credentials = AssayCredentials(base_url="https://lab.example", token=CANARY)
    with credentials.get_client() as client:
        assert isinstance(client, AssayClient)
    assert isinstance(credentials.get_async_client(), AsyncAssayClient)
    with pytest.raises(ConfigurationError, match="https"):
        AssayCredentials(base_url="http://lab.example", token=CANARY).get_client()


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"endpoint_url": "minio:9000"}, "Invalid endpoint: minio:9000"),
        ({"region": "no region!"}, "region"),
        ({"access_key_id": "alone"}, "Partial credentials"),
    ],
)
def test_an_s3_archive_that_cannot_be_opened_is_an_error_with_its_cause(changes, cause):
    with pytest.raises(ConfigurationError, match=f"'results' cannot be opened: .*{cause}"):
        S3Archive(bucket="results", **changes).get_store()


def test_a_webhook_endpoint_gives_every_order_a_secret_of_its_own():
    endpoint = WebhookEndpoint(url="https://hooks.example/assay/", signing_key=CANARY)
    url, secret = endpoint.for_order(KEY)
    assert url == f"https://hooks.example/assay/{KEY}"
    assert secret.get_secret_value() == derive_secret(CANARY, KEY)
    assert endpoint.for_order("f" * 20)[1] != secret


def test_machine_payments_need_a_rolling_cap():
    with pytest.raises(ValidationError, match="rolling_cents"):
        SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1, machine_payments=True)
    assert not SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1).machine_payments


@pytest.mark.parametrize(
    "block",
    [
        AssayCredentials(base_url="https://lab.example", token=CANARY),
        X402Wallet(private_key=CANARY, networks=[], assets=[], pay_to=[]),
        SharedPaymentTokens(issuer_url="https://issuer.example", issuer_key=CANARY),
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
        refuse_relative(LocalArchive(root="results"))
    refuse_relative(LocalArchive(root="~/results"))
    refuse_relative(S3Archive(bucket="b"))


def test_credentials_carry_the_limit_of_a_data_package_to_both_clients():
    credentials = AssayCredentials(base_url="https://lab.example", token=CANARY, max_package_gb=1e-6)
    with credentials.get_client() as client:
        client._http._transport = httpx.MockTransport(lambda _: httpx.Response(200, content=bytes(1001)))
        with pytest.raises(UnexpectedAnswer, match="1,000 bytes"):
            list(client.download("/package.zip"))
    assert credentials.get_async_client()._max_download == 1000
