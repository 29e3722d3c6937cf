"""Answers that are not from S3, and libraries that fail in their own ways: each is one of our errors, with its next step."""

import os
import sys

import boto3
import pytest

from prefect_assay.archive import sources
from prefect_assay.archive.s3 import S3Store
from prefect_assay.archive.verify import verify_versions
from prefect_assay.blocks import S3Archive
from prefect_assay.errors import ArchiveUnavailable, AssayError, ServiceUnavailable
from prefect_assay.orders.ledger import Ledgers
from support.archive.foreign_server import foreign_server
from support.archive.stores import bucket_store
from support.archive.swift_server import ACCESS_KEY, SECRET_KEY, s3_client

PAGE = b"<!doctype html><html><body>Sign in</body></html>"
CALLS = {
    "put": lambda store: store.put_if_absent("a", b"1", "text/plain"),
    "find": lambda store: store.find("a"),
    "read": lambda store: store.read("a"),
    "stream": lambda store: list(store.stream("a")),
    "stat": lambda store: store.stat("a"),
    "keys": lambda store: list(store.keys("lab")),
    "folders": lambda store: list(store.folders("lab")),
    "strays": lambda store: list(store.strays("lab")),
    "probe": lambda store: store.probe("lab"),
}


def store_at(endpoint):
    """A store as its block makes it."""
    return S3Archive(
        bucket="archive",
        endpoint_url=endpoint,
        region="us-east-1",
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
    ).get_store()


@pytest.fixture
def from_environment(monkeypatch):
    """Let `s3://` addresses of users go to a server."""

    def use(endpoint):
        for name, value in (
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)

    return use


def read_source(address):
    with sources.open_source(address) as stream:
        return stream.read()


# --- redirects ---


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("call", CALLS)
def test_a_redirecting_server_names_the_address_to_write(status, call):
    with (
        foreign_server(status, {"Location": "https://s3.example.org:9000{path}?x=1"}) as endpoint,
        pytest.raises(ArchiveUnavailable) as caught,
    ):
        CALLS[call](store_at(endpoint))
    assert f"redirect ({status}) to https://s3.example.org:9000" in caught.value.message
    assert "write https://s3.example.org:9000 as the endpoint" in caught.value.message


def test_a_redirect_to_a_sign_in_page_is_not_an_address_to_write():
    with (
        foreign_server(302, {"Location": "https://user:pw@login.example.org/?next={path}"}) as endpoint,
        pytest.raises(ArchiveUnavailable, match=r"\(302\) to https://login\.example\.org;") as caught,
    ):
        store_at(endpoint).read("a")
    assert "write" not in caught.value.message
    assert "pw@" not in caught.value.message


def test_a_path_of_the_endpoint_is_kept_and_a_redirect_without_an_address_is_named():
    with (
        foreign_server(301, {"Location": "https://gate.example.org{path}"}) as endpoint,
        pytest.raises(ArchiveUnavailable, match=r"write https://gate\.example\.org/s3 as the endpoint"),
    ):
        store_at(f"{endpoint}/s3").read("a")
    with foreign_server(307, {}) as endpoint, pytest.raises(ArchiveUnavailable, match="without an address"):
        store_at(endpoint).read("a")


@pytest.mark.parametrize(
    "read", [lambda: read_source("s3://designs/d.fasta"), lambda: sources.list_files("s3://designs/in/")]
)
def test_a_users_file_behind_a_redirect_is_named(read, from_environment):
    with foreign_server(301, {"Location": "https://s3.example.org{path}"}) as endpoint:
        from_environment(endpoint)
        with pytest.raises(ServiceUnavailable, match=r"write https://s3\.example\.org as the endpoint"):
            read()


# --- 200 of another program ---


@pytest.mark.parametrize(
    "page", [PAGE, b"", b"<html xmlns='h'><body/></html>"], ids=["HTML", "empty", "XHTML"]
)
@pytest.mark.parametrize(
    "headers", [{}, {"Content-Type": "text/html", "ETag": 'W/"5e-1"'}], ids=["without ETag", "weak ETag"]
)
@pytest.mark.parametrize("call", CALLS)
def test_a_page_is_never_believed(call, headers, page):
    with (
        foreign_server(200, headers, page) as endpoint,
        pytest.raises(ArchiveUnavailable, match=r"not (from|a listing of) S3.*sign-in page"),
    ):
        CALLS[call](store_at(endpoint))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>",
        b'<?xml version="1.0"?><ListVersionsResult><IsTruncated>false</IsTruncated></ListVersionsResult>',
        b"{}",
    ],
)
def test_a_listing_has_the_root_of_one(body, from_environment):
    not_listing = r"is not (from|a listing of) S3"
    with foreign_server(200, {"ETag": '"1"'}, body) as endpoint:
        from_environment(endpoint)
        store = store_at(endpoint)
        with pytest.raises(ArchiveUnavailable, match=not_listing):
            list(store.keys(""))
        with pytest.raises(ServiceUnavailable, match=not_listing):
            sources.list_files("s3://designs/in/")


@pytest.mark.parametrize(
    "root",
    [
        b'<?xml version="1.0" encoding="UTF-8"?>\n<!-- s -->\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
        b"\xef\xbb\xbf<ListBucketResult>",
    ],
)
def test_listings_in_other_spellings_are_listings(root):
    body = root + b"<Contents><Key>lab/a</Key></Contents><IsTruncated>false</IsTruncated></ListBucketResult>"
    with foreign_server(200, {}, body) as endpoint:
        assert list(store_at(endpoint).keys("lab")) == ["lab/a"]


def test_a_listing_that_is_cut_off_is_no_listing():
    body = b"<ListBucketResult><Contents><Key>lab/a</Key></Contents><IsTruncated>true</IsTruncated></ListBucketResult>"
    with foreign_server(200, {}, body) as endpoint, pytest.raises(ArchiveUnavailable, match="cut off"):
        list(store_at(endpoint).keys("lab"))


@pytest.mark.parametrize("call", ["find", "stat", "read"])
def test_a_404_that_is_not_from_s3_does_not_say_that_an_object_is_absent(call):
    with foreign_server(404, {}, PAGE) as endpoint, pytest.raises(ArchiveUnavailable, match="404"):
        CALLS[call](store_at(endpoint))


def test_a_head_without_a_length_is_named():
    with (
        foreign_server(200, {"ETag": '"1"'}, b"1", head_length=False) as endpoint,
        pytest.raises(ArchiveUnavailable, match="no Content-Length; let the proxy"),
    ):
        store_at(endpoint).stat("a")


# --- whatever a library raises ---


@pytest.mark.parametrize(
    "error", [RecursionError("maximum recursion depth exceeded"), KeyError("ContentLength"), EOFError()]
)
@pytest.mark.parametrize("call", CALLS)
def test_any_exception_is_one_of_ours_and_stays_visible_as_its_cause(moto_endpoint, call, error):
    store = bucket_store(moto_endpoint)

    def fail(**_):
        raise error

    store._client.meta.events.register("before-call.s3", fail)
    with pytest.raises(
        ArchiveUnavailable, match=f"^s3://{store.bucket}/.*{type(error).__name__}.*report it"
    ) as caught:
        CALLS[call](store)
    assert caught.value.__cause__ is error


def test_an_object_that_ends_early_is_not_a_file(moto_endpoint, from_environment, monkeypatch):
    client = s3_client(moto_endpoint)
    client.create_bucket(Bucket="cut-off")
    client.put_object(Bucket="cut-off", Key="d", Body=b"x" * 100)
    from_environment(moto_endpoint)
    from botocore.response import StreamingBody

    def fail(self, amt=None):
        raise RecursionError

    monkeypatch.setattr(StreamingBody, "read", fail)
    with pytest.raises(ServiceUnavailable, match="RecursionError"):
        read_source("s3://cut-off/d")


def test_what_the_reader_of_a_file_raises_is_its_own(moto_endpoint, from_environment):
    client = s3_client(moto_endpoint)
    client.create_bucket(Bucket="of-reader")
    client.put_object(Bucket="of-reader", Key="d", Body=b"x")
    from_environment(moto_endpoint)
    with pytest.raises(KeyError), sources.open_source("s3://of-reader/d"):
        raise KeyError


# --- credentials ---


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """Write a profile `lab` of the AWS config file."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)

    def write(text):
        (tmp_path / "config").write_text(f"[profile lab]\nregion = us-east-1\n{text}")

    return write


def put_by_profile(endpoint):
    archive = S3Archive(bucket="b", endpoint_url=endpoint, region="us-east-1", profile="lab")
    return archive.get_store().put_if_absent("a", b"1", "text/plain")


def test_a_credential_process_that_is_gone_is_named(profile, moto_endpoint, monkeypatch):
    profile("credential_process = /nowhere/give-keys --now\n")
    with pytest.raises(ArchiveUnavailable, match="/nowhere/give-keys"):
        put_by_profile(moto_endpoint)
    monkeypatch.setenv("AWS_PROFILE", "lab")
    with pytest.raises(ServiceUnavailable, match="/nowhere/give-keys"):
        read_source("s3://b/a")


@pytest.mark.parametrize("text", ["not JSON", '{"Version": 1}'])
def test_a_credential_process_that_answers_nonsense_is_one_of_our_errors(
    profile, moto_endpoint, tmp_path, text
):
    program = tmp_path / "keys.py"
    program.write_text(f"print({text!r})")
    profile(f"credential_process = {sys.executable} {program}\n")
    with pytest.raises(AssayError, match="archive of bucket"):
        put_by_profile(moto_endpoint)


def test_a_container_token_file_that_is_gone_is_named(profile, tmp_path, monkeypatch):
    profile("")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/credentials")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "gone"))
    archive = S3Archive(bucket="b", region="us-east-1")
    with pytest.raises(ArchiveUnavailable, match="gone"):
        archive.get_store().find("a")
    with pytest.raises(ServiceUnavailable, match="gone"):
        read_source("s3://b/a")


def test_a_role_with_mfa_is_refused_without_a_question(profile, moto_endpoint, monkeypatch):
    profile(
        "role_arn = arn:aws:iam::123456789012:role/r\nmfa_serial = arn:aws:iam::123456789012:mfa/u\nsource_profile = base\n"
        "[profile base]\naws_access_key_id = a\naws_secret_access_key = b\n"
    )
    asked = []
    monkeypatch.setattr(os, "open", lambda *_, **__: asked.append("terminal"))  # as getpass opens /dev/tty
    with pytest.raises(ArchiveUnavailable, match="asks for an MFA code"):
        put_by_profile(moto_endpoint)
    assert asked == []


# --- directory markers ---


def test_directory_markers_are_no_files(moto_endpoint, from_environment):
    store = bucket_store(moto_endpoint)
    for key in ("", "lab/", "lab/c/", "lab/c/a/", "lab/empty/", "lab/.hidden/", "lab//"):
        store._client.put_object(Bucket=store.bucket, Key=key or "/", Body=b"")
    store.put_if_absent("lab/c/a/file", b"1", "text/plain")
    assert list(store.keys("")) == ["lab/c/a/file"]
    assert list(store.keys("lab")) == ["lab/c/a/file"]
    assert list(store.folders("lab")) == ["c"]
    assert list(store.folders("")) == ["lab"]
    assert list(store.strays("")) == []
    assert verify_versions(store, "lab").damaged is False
    from_environment(moto_endpoint)
    assert [file.name for file in sources.list_files(f"s3://{store.bucket}/lab/c/a/")] == ["file"]


def test_a_marker_below_the_ledger_is_no_ledger(moto_endpoint):
    store = bucket_store(moto_endpoint)
    ledger = Ledgers.open(store, "other", "https://lab.example", "org-1")
    folder = ledger.folder.replace("other/", "lab/").rpartition("/")[0]
    for key in (f"{folder}/", f"{folder}/0123456789abcdef/", f"{folder}/0123456789abcdef/c/k/"):
        store._client.put_object(Bucket=store.bucket, Key=key, Body=b"")
    assert Ledgers.list_all(store, "lab") == []
    assert list(Ledgers.open(store, "lab", "https://lab.example", "org-1").list_orders()) == []


def test_a_client_of_another_is_watched_too():
    with foreign_server(200, {}, PAGE) as endpoint, pytest.raises(ArchiveUnavailable, match="not from S3"):
        S3Store("b", s3_client(endpoint)).put_if_absent("a", b"1", "text/plain")
