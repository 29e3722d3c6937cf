"""Design files of a folder or a bucket: only complete ones are taken, each as it was at one moment."""

import os
import re
import string

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from prefect_assay.archive.sources import Listed
from prefect_assay.campaigns.loops.files import (
    FileChanged,
    campaign_of,
    copy_listed_file,
    design_files,
    without_rounds,
)
from prefect_assay.errors import InvalidSequences

OLD, NOW = 1e9, 1e9 + 3600


def put(folder, name, text=">a\nACD\n", modified=OLD):
    (folder / name).write_text(text)
    os.utime(folder / name, (modified, modified))


def test_only_complete_design_files_are_listed_in_the_order_of_their_names(tmp_path):
    for name in (
        "b.fasta",
        "a.CSV",
        ".hidden.fasta",
        "~lock.fasta",
        "c.csv.part",
        "d.fasta.tmp",
        "notes.txt",
    ):
        put(tmp_path, name)
    put(tmp_path, "empty.fasta", "")
    put(tmp_path, "fresh.fasta", modified=NOW - 5)
    (tmp_path / "folder.fasta").mkdir()
    files = design_files(str(tmp_path), now=NOW, settle=30)
    assert [f.name for f in files.complete] == ["a.CSV", "b.fasta"]
    assert [f.name for f in files.unfinished] == ["empty.fasta", "fresh.fasta"]
    assert files.settles_in(NOW, 30) == 0  # the empty one
    assert files.unfinished[1].changed == NOW - 5


def test_a_snapshot_is_the_file_as_it_was_listed(tmp_path):
    put(tmp_path, "a.fasta")
    (file,) = design_files(str(tmp_path), now=NOW, settle=30).complete
    with copy_listed_file(file) as copy:
        put(tmp_path, "a.fasta", ">b\nACE\n")
        assert copy.read_text() == ">a\nACD\n"
    put(tmp_path, "a.fasta", ">bb\nACE\n")
    with pytest.raises(FileChanged, match="changed while it was read"), copy_listed_file(file):
        pass


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InvalidSequences, match="absent: no such folder; create it"):
        design_files(str(tmp_path / "absent"), now=NOW, settle=0)


@given(st.text(string.printable, min_size=1, max_size=80))
def test_any_file_name_gives_a_campaign_id(name):
    campaign_id = campaign_of("loop", name)
    assert len(campaign_id) <= 60
    assert set(campaign_id) <= {*string.ascii_letters, *string.digits, *"._-"}


@given(
    st.text(string.ascii_letters + " ä", min_size=60, max_size=80),
    st.text(string.ascii_letters, min_size=1),
    st.text(string.ascii_letters, min_size=1),
)
def test_two_long_names_that_begin_alike_are_two_rounds(start, one, other):
    first, second = (campaign_of("loop", f"{start}{end}.fasta") for end in (one, other))
    assert (first == second) == (one == other)
    assert len(first) <= 60
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", first)


def test_two_files_of_one_round_are_refused_and_rounds_left_out(tmp_path):
    for name in ("a 1.fasta", "a-1.csv", "b.fasta"):
        put(tmp_path, name)
    files = design_files(str(tmp_path), now=NOW, settle=0)
    with pytest.raises(InvalidSequences, match="would be the same round"):
        without_rounds(files, "loop", ())
    (tmp_path / "a 1.fasta").unlink()
    files = design_files(str(tmp_path), now=NOW, settle=0)
    assert [f.name for f in without_rounds(files, "loop", {"loop-a-1"}).complete] == ["b.fasta"]


@pytest.fixture
def bucket(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="lab")
        yield client


def test_objects_of_a_prefix_are_complete_at_once(bucket):
    for key in ("designs/b.fasta", "designs/a.csv", "designs/deeper/c.fasta", "designs/", "other/d.fasta"):
        bucket.put_object(Bucket="lab", Key=key, Body=b"name,sequence\nx,ACD\n")
    files = design_files("s3://lab/designs", now=OLD, settle=3600)
    assert [f.address for f in files.complete] == ["s3://lab/designs/a.csv", "s3://lab/designs/b.fasta"]
    with copy_listed_file(files.complete[0]) as copy:
        assert copy.suffix == ".csv"
        assert copy.read_bytes() == b"name,sequence\nx,ACD\n"
    with pytest.raises(InvalidSequences, match="no such"):
        design_files("s3://absent-bucket/designs", now=OLD, settle=0)


@pytest.mark.parametrize("source", ["~nosuchuser/designs", "nul\0"])
def test_what_is_no_path_is_an_error_of_the_source(source):
    with pytest.raises(InvalidSequences, match="not a valid path"):
        design_files(source, now=OLD, settle=0)


def test_a_malformed_endpoint_of_s3_is_an_error_of_the_source(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "no address")
    with pytest.raises(InvalidSequences, match="cannot be read from S3: Invalid endpoint"):
        design_files("s3://lab/designs", now=OLD, settle=0)


def test_a_file_that_is_gone_is_named(tmp_path):
    file = Listed("a.csv", str(tmp_path / "a.csv"), 1, OLD, atomic=False)
    with pytest.raises(InvalidSequences, match="no such file"), copy_listed_file(file):
        pass
