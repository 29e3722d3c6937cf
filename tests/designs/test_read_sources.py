"""Where designs come from: files, object storage, pasted text; and everything that can be wrong with the place."""

import gzip
import os
import socket
import time
import tracemalloc

import boto3
import pytest
from moto import mock_aws

from prefect_assay.archive.sources import list_files
from prefect_assay.designs import read
from prefect_assay.designs.read import read_sequences
from prefect_assay.errors import InvalidSequences, ServiceUnavailable
from support.archive.foreign_server import foreign_server

FASTA = ">a\nACD\n>b\nEFG\n"


def finding(source: str, **arguments) -> str:
    with pytest.raises(InvalidSequences) as caught:
        read_sequences(source, **arguments)
    assert len(caught.value.findings) == 1
    return caught.value.findings[0]


@pytest.fixture
def bucket(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="designs")
        yield client


def test_text_and_data_are_named_by_the_source():
    assert read_sequences("upload", text=FASTA).source == "upload"
    assert read_sequences("upload", data=FASTA.encode()).items == read_sequences(FASTA).items
    assert read_sequences(FASTA).source == "pasted text"


def test_text_and_data_together_are_a_mistake():
    with pytest.raises(TypeError, match="not both"):
        read_sequences("x", text=FASTA, data=b"")


def test_a_pasted_header_alone_is_not_taken_for_a_path():
    assert finding(">a") == "pasted text, line 1, sequence 'a': no residues"


def test_home_folder_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "d.fasta").write_text(FASTA)
    assert len(read_sequences("~/d.fasta")) == 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "no source; give a path"),
        ("/nowhere/designs.fasta", "/nowhere/designs.fasta: no such file"),
        ("https://example.org/d.fasta", "https:// is not supported"),
        ("a\0b", "'a\\x00b': no such file"),
        ("~nobody-of-that-name/d.fasta", "not a valid path"),
        ("d" * 5000, "cannot be read: File name too long"),
        ("s3://bucket", "not an object"),
        ("s3:///key", "not an object"),
        ("s3://bucket/folder/", "not an object"),
    ],
)
def test_places_that_cannot_be_read(source, message):
    assert message in finding(source)


def test_folders_and_pipes_are_refused(tmp_path):
    assert "is a folder" in finding(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in finding(str(tmp_path / "pipe"))


def test_permission_denied(tmp_path):
    file = tmp_path / "secret.fasta"
    file.write_text(FASTA)
    file.chmod(0)
    root = os.geteuid() == 0
    if root:  # root may read everything, so the test goes without
        os.seteuid(65534)
    try:
        assert "permission denied" in finding(str(file))
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "d: empty"),
        (gzip.compress(FASTA.encode())[:-9], "the gzip data are damaged or incomplete"),
        (b"PK\x03\x04rest", "the zip data are damaged or incomplete"),
        (b">a\nAC\0D\n", "d, line 2: the file is binary"),
        (b">\xc3\xa9\nACD\n>b\xe9\nEFG", "d, line 3: not UTF-8: byte 0xe9 at character 3"),
        (b">a\nACD\n>b\xed\xa0\x80\nEFG", "d, line 3: not UTF-8"),
    ],
    ids=["empty", "gzip", "zip", "binary", "mixed", "surrogate"],
)
def test_bytes_that_are_no_text(data, message):
    assert message in finding("d", data=data)


def test_text_that_is_no_unicode():
    assert "line 1: not UTF-8" in finding("d", text=">\ud800\nACD")


def test_a_ten_megabyte_line_ends_at_once_and_in_little_memory(tmp_path):
    file = tmp_path / "endless.fasta"
    file.write_bytes(b">a\n" + b"A" * 10_000_000)
    tracemalloc.start()
    began = time.process_time()
    try:
        assert f"{file}, line 2: the line is longer than 1,048,576 characters" in finding(str(file))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 2
    assert peak < 8_000_000


def test_total_size_and_number_are_bounded(monkeypatch):
    monkeypatch.setattr(read, "MAX_CHARACTERS", 20)
    assert "line 4: the source is larger than 20 characters" in finding("d", text=">abc\nACD\n>efgh\nKKKKKK")
    monkeypatch.undo()
    monkeypatch.setattr(read, "MAX_SEQUENCES", 2)
    assert "line 5: more than 2 sequences" in finding("d", text=">a\nACD\n>b\nEFG\n>c\nKLM")


def test_s3_object(bucket):
    bucket.put_object(Bucket="designs", Key="round 1/d?.fasta", Body=FASTA.encode())
    sequences = read_sequences("s3://designs/round 1/d?.fasta")
    assert [s.name for s in sequences.items] == ["a", "b"]
    assert sequences.source == "s3://designs/round 1/d?.fasta"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("s3://designs/none", "no such object (NoSuchKey)"),
        ("s3://nowhere/none", "no such object (NoSuchBucket)"),
        ("s3://Not_A_Bucket!/none", "s3://Not_A_Bucket!/none: cannot be read from S3"),
    ],
)
def test_s3_places_that_do_not_exist(bucket, source, message):
    assert message in finding(source)


def test_s3_without_credentials(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    assert "no S3 credentials found" in finding("s3://designs/d.fasta")


def test_s3_that_does_not_answer_may_be_tried_again(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with pytest.raises(ServiceUnavailable, match="did not answer") as caught:
        read_sequences("s3://designs/d.fasta")
    assert caught.value.retriable


@pytest.mark.parametrize(
    ("status", "code", "step"),
    [
        (429, "TooManyRequests", "run again later"),
        (408, "RequestTimeoutException", "run again later"),
        (400, "RequestTimeout", "run again later"),
        (400, "ExpiredToken", "renew them"),
        (403, "RequestTimeTooSkewed", "set it by a time server"),
    ],
)
def test_s3_that_refuses_for_a_while_may_be_tried_again(monkeypatch, status, code, step):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    refusal = f"<Error><Code>{code}</Code><Message>m</Message></Error>".encode()
    with foreign_server(status, {"Content-Type": "application/xml"}, refusal) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        for read_it in (read_sequences, list_files):
            with pytest.raises(ServiceUnavailable, match=f"answers {code}; .*{step}"):
                read_it("s3://designs/d.fasta")


@pytest.mark.parametrize(
    "line",
    [
        "[default]",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG",
        "root:x:0:0:root:/root:wJalrXUtnFEMI",
        '{"user": "me", "password": "wJalrXUtnFEMI"}',
        "AKIAIOSFODNN7EXAMPLE,wJalrXUtnFEMI",
        "me\twJalrXUtnFEMI\t;|",
        "-----BEGIN PRIVATE wJalrXUtnFEMI-----",
        "db.example:5432:*:me:wJalrXUtnFEMI",
    ],
)
def test_a_file_that_is_no_design_file_is_not_quoted(tmp_path, line):
    file = tmp_path / "credentials"
    file.write_text(f"{line}\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI\n")
    with pytest.raises(
        InvalidSequences, match=r"credentials(, line 1: neither FASTA|: looks like JSON and does not)"
    ) as caught:
        read_sequences(str(file))
    for word in ("wJalr", "AKIA"):
        assert word not in str(caught.value)


def test_the_columns_of_a_table_that_lacks_one_are_named(tmp_path):
    file = tmp_path / "designs.csv"
    file.write_text("Name,Score\na,1\n")
    with pytest.raises(InvalidSequences, match=r"no sequence column in \[Name, Score\]"):
        read_sequences(str(file))


def test_a_git_lfs_pointer_is_named_as_such():
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n"
    assert "Git LFS pointer, not the file itself; run 'git lfs pull'" in finding("d", data=pointer.encode())
