"""What every store promises, checked on a folder, a stand-in S3 and a real S3 server."""

import errno
import hashlib
import os
import time
from pathlib import Path
from threading import Barrier

import pytest
from botocore.exceptions import ClientError

from prefect_assay.archive import LocalStore
from prefect_assay.archive import s3 as s3_module
from prefect_assay.errors import ArchiveError, ArchiveUnavailable
from support.archive.foreign_server import foreign_server
from support.archive.moto_s3 import moto_server
from support.archive.stores import bucket_store
from support.archive.swift_server import SECRET_KEY, s3_client


def test_the_first_write_stays(any_store):
    assert any_store.put_if_absent("lab/a.txt", b"first", "text/plain") is True
    assert any_store.put_if_absent("lab/a.txt", b"second", "text/plain") is False
    assert any_store.read("lab/a.txt") == b"first"
    assert any_store.stat("lab/a.txt").size == 5
    assert any_store.stat("lab/a.txt").sha256 in {None, hashlib.sha256(b"first").hexdigest()}


def test_an_empty_object_is_an_object(any_store):
    assert any_store.put_if_absent("empty", b"", "text/plain")
    assert (any_store.read("empty"), any_store.stat("empty").size) == (b"", 0)


def test_absent_objects(any_store):
    assert any_store.stat("lab/none.txt") is None
    with pytest.raises(ArchiveError, match=r"none\.txt: .*not in the archive"):
        any_store.read("lab/none.txt")
    with pytest.raises(ArchiveError, match="not in the archive"):
        list(any_store.stream("lab/none.txt"))


def test_keys_are_those_below_the_folder(any_store):
    for key in ("lab/c/a", "lab/c/b/a", "lab/c-2/a", "lab/.hidden", "other/a"):
        any_store.put_if_absent(key, b"", "text/plain")
    assert set(any_store.keys("lab/c")) == {"lab/c/a", "lab/c/b/a"}
    assert set(any_store.keys("")) == {"lab/c/a", "lab/c/b/a", "lab/c-2/a", "other/a"}
    assert list(any_store.keys("absent")) == []


def test_folders_are_those_directly_below(any_store):
    for key in ("lab/c/a", "lab/c/b/a", "lab/c-2/a", "lab/file", "lab/.hidden/a", "other/a"):
        any_store.put_if_absent(key, b"", "text/plain")
    assert sorted(any_store.folders("lab")) == ["c", "c-2"]
    assert sorted(any_store.folders("")) == ["lab", "other"]
    assert list(any_store.folders("absent")) == []


def test_large_files_stream_and_stay(any_store, tmp_path):
    size = 9 << 20
    source = tmp_path / "large.bin"
    content = os.urandom(1 << 20) * (size // (1 << 20) + 1)
    source.write_bytes(content[:size])
    digest = hashlib.sha256(content[:size]).hexdigest()
    assert any_store.put_if_absent("large.bin", source, "application/zip", sha256=digest) is True
    assert any_store.put_if_absent("large.bin", source, "application/zip", sha256=digest) is False
    hasher = hashlib.sha256()
    largest = 0
    for chunk in any_store.stream("large.bin"):
        hasher.update(chunk)
        largest = max(largest, len(chunk))
    assert hasher.hexdigest() == digest
    assert largest <= 1 << 20


def test_content_that_is_not_what_was_announced_is_not_written(any_store):
    with pytest.raises(ArchiveError, match="content changed"):
        any_store.put_if_absent("a", b"x" * 10, "text/plain", sha256=hashlib.sha256(b"y").hexdigest())
    assert any_store.stat("a") is None
    assert list(any_store.keys("")) == []


def test_no_key_leads_outside(any_store):
    for key in ("../a", "a/../../b", "/etc/passwd", "a//b", "", ".", "a\\..\\b", "a\0b", "c:/x"):
        for call in (
            lambda key=key: any_store.put_if_absent(key, b"", "text/plain"),
            lambda key=key: any_store.read(key),
            lambda key=key: any_store.stat(key),
        ):
            with pytest.raises(ArchiveError, match="not a key of the archive"):
                call()


def test_a_sound_store_passes_the_probe_and_stays_empty(any_store):
    any_store.probe("lab")
    assert list(any_store.keys("")) == []


# --- the folder ---


def test_a_link_inside_the_archive_does_not_lead_outside(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    store = LocalStore(tmp_path / "archive")
    store.root.mkdir()
    (store.root / "lab").symlink_to(outside)
    with pytest.raises(ArchiveError, match="leads outside"):
        store.put_if_absent("lab/a", b"", "text/plain")
    assert list(outside.iterdir()) == []


def test_a_name_that_is_too_long_is_named(tmp_path):
    with pytest.raises(ArchiveError, match="too long"):
        LocalStore(tmp_path).put_if_absent("n" * 300, b"1", "text/plain")


@pytest.mark.parametrize("below", [".", "team"])
def test_a_root_that_is_or_lies_below_a_file_is_named(tmp_path, below):
    (tmp_path / "archive").write_text("")
    root = tmp_path / "archive" / below
    with pytest.raises(
        ArchiveError, match=f"the folder {root} cannot be made here .*choose an archive folder"
    ):
        LocalStore(root).probe()


def test_a_root_that_the_system_refuses_to_make_is_no_missing_file():
    with pytest.raises(ArchiveError, match="the folder /proc/assay cannot be made here"):
        LocalStore(Path("/proc/assay")).probe()


def test_a_file_system_that_replaces_is_refused(tmp_path, monkeypatch):
    def replace(source, target):
        Path(target).write_bytes(Path(source).read_bytes())

    monkeypatch.setattr(os, "link", replace)
    monkeypatch.setattr(Path, "exists", lambda path: False)
    with pytest.raises(ArchiveError, match="replace a file"):
        LocalStore(tmp_path).probe()


def test_a_file_system_without_links_is_named(tmp_path, monkeypatch):
    def refuse(source, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(ArchiveError, match="no hard links"):
        LocalStore(tmp_path).probe()
    assert list((tmp_path / ".partial").iterdir()) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_passes_when_somebody_frees_space(tmp_path, monkeypatch, code):
    store, sync = LocalStore(tmp_path), os.fsync
    store.put_if_absent("lab/earlier.txt", b"before", "text/plain")

    def full(_handle):
        raise OSError(code, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArchiveUnavailable, match="no space left; free some") as caught:
        store.put_if_absent("lab/a.txt", b"first", "text/plain")
    assert caught.value.retriable
    monkeypatch.setattr(os, "fsync", sync)
    assert store.stat("lab/a.txt") is None
    assert list((tmp_path / ".partial").iterdir()) == []
    assert store.put_if_absent("lab/a.txt", b"first", "text/plain")


# --- S3 ---


def test_a_server_that_overwrites_fails_the_probe():
    with moto_server(overwrites=True) as endpoint:
        client = s3_client(endpoint)
        client.create_bucket(Bucket="unsafe-archive")
        with pytest.raises(ArchiveError, match=r"overwrites objects .* use a server with conditional writes"):
            s3_module.S3Store("unsafe-archive", client).probe()
        assert "Contents" not in client.list_objects_v2(Bucket="unsafe-archive")


def test_a_server_that_looks_first_and_writes_then_fails_the_probe_each_time():
    with moto_server(looks_first=True) as endpoint:
        store = bucket_store(endpoint)
        for _ in range(5):
            with pytest.raises(ArchiveError, match=r"writers at the same moment that each was the first"):
                store.probe("lab")
        assert "Contents" not in store._client.list_objects_v2(Bucket=store.bucket)
        store.probe("lab", with_race=False)


def test_a_server_that_keeps_the_first_object_and_praises_both_writers_fails_the_probe(
    moto_endpoint, monkeypatch
):
    store = bucket_store(moto_endpoint)

    def praise_two(write):
        assert write(b"one", Barrier(1))
        return [b"one", b"two"]

    monkeypatch.setattr(s3_module, "race_writers", praise_two)
    with pytest.raises(ArchiveError, match="told 2 writers at the same moment that each was the first"):
        store.probe("lab")


def test_a_real_server_that_looks_first_fails_the_probe(bare_swift_endpoint):
    with pytest.raises(
        ArchiveError, match="order or pay the same thing twice; use a server with conditional"
    ):
        bucket_store(bare_swift_endpoint).probe("lab")


def test_a_race_whose_writers_fail_is_not_passed(moto_endpoint):
    store = bucket_store(moto_endpoint)
    calls = []

    def fail(**_):
        calls.append(1)
        if len(calls) > 5:
            raise OSError("no file handle is left")

    store._client.meta.events.register("before-call.s3.PutObject", fail)
    with pytest.raises(ArchiveUnavailable, match="no file handle"):
        store.probe("lab")


def test_a_folder_that_looks_first_and_writes_then_is_refused(tmp_path, monkeypatch):
    def look_first(source, target):
        if Path(target).exists():
            raise FileExistsError(17, "File exists")
        content = Path(source).read_bytes()
        time.sleep(0.001)
        Path(target).write_bytes(content)

    monkeypatch.setattr(os, "link", look_first)
    with pytest.raises(ArchiveError, match="replace a file"):
        LocalStore(tmp_path).probe()


def test_s3_errors_name_place_cause_and_next_step(swift_endpoint, swift_store):
    wrong = s3_module.S3Store(swift_store.bucket, s3_client(swift_endpoint, secret="wrong-secret"))
    with pytest.raises(ArchiveError, match=f"s3://{swift_store.bucket}/a: SignatureDoesNotMatch") as caught:
        wrong.put_if_absent("a", b"", "text/plain")
    assert "wrong-secret" not in str(caught.value)
    assert SECRET_KEY not in str(caught.value)
    with pytest.raises(ArchiveError, match="bucket does not exist; make it"):
        s3_module.S3Store("no-such-bucket", s3_client(swift_endpoint)).probe()
    encrypted = s3_module.S3Store(swift_store.bucket, s3_client(swift_endpoint), sse="AES256")
    with pytest.raises(ArchiveError, match="encryption empty"):
        encrypted.put_if_absent("a", b"", "text/plain")


def test_no_connection_is_worth_another_try():
    store = s3_module.S3Store("archive", s3_client("http://127.0.0.1:9"))
    with pytest.raises(ArchiveUnavailable, match="endpoint") as caught:
        store.put_if_absent("a", b"", "text/plain")
    assert caught.value.retriable


@pytest.mark.parametrize(
    ("status", "code", "kind", "step"),
    [
        (400, "ExpiredToken", ArchiveUnavailable, "renew them"),
        (403, "RequestTimeTooSkewed", ArchiveUnavailable, "set it by a time server"),
        (403, "AccessDenied", ArchiveError, "they need to get, put and list"),
    ],
)
def test_the_cause_of_a_refused_look_is_known_although_its_answer_has_none(status, code, kind, step):
    refusal = f"<Error><Code>{code}</Code><Message>m</Message></Error>".encode()
    with foreign_server(status, {"Content-Type": "application/xml"}, refusal) as endpoint:
        store = s3_module.S3Store("archive", s3_client(endpoint))
        with pytest.raises(ArchiveError, match=f"s3://archive/a: {code}: .*{step}") as caught:
            store.stat("a")
    assert type(caught.value) is kind


def test_the_encryption_header_is_sent_where_wanted(moto_endpoint):
    client = s3_client(moto_endpoint)
    client.create_bucket(Bucket="encrypted")
    store = s3_module.S3Store("encrypted", client, sse="AES256")
    store.put_if_absent("a", b"1", "text/plain")
    assert client.head_object(Bucket="encrypted", Key="a")["ServerSideEncryption"] == "AES256"


def test_the_server_refuses_content_damaged_on_the_way(swift_store):
    def damage(params, **_):
        params["body"] = b"X" * 10

    swift_store._client.meta.events.register("before-call.s3.PutObject", damage)
    with pytest.raises(ArchiveError, match="damaged on the way"):
        swift_store.put_if_absent("a", b"0123456789", "text/plain")
    assert swift_store.stat("a") is None


class Conflicting:
    """A client whose first answers to a put are 409, as AWS gives while another write is open."""

    def __init__(self, client, conflicts: int) -> None:
        self._client, self.left = client, conflicts

    def __getattr__(self, name):
        return getattr(self._client, name)

    def put_object(self, **arguments):
        if self.left:
            self.left -= 1
            raise ClientError({"Error": {"Code": "ConditionalRequestConflict"}}, "PutObject")
        return self._client.put_object(**arguments)


@pytest.mark.parametrize(("conflicts", "written"), [(2, True), (99, False)])
def test_a_conflict_is_tried_again_a_bounded_number_of_times(moto_store, monkeypatch, conflicts, written):
    monkeypatch.setattr(s3_module, "_CONFLICT_WAITS", (0.0, 0.0))
    store = s3_module.S3Store(moto_store.bucket, Conflicting(moto_store._client, conflicts))
    if written:
        assert store.put_if_absent("a", b"1", "text/plain") is True
    else:
        with pytest.raises(ArchiveError, match="ConditionalRequestConflict"):
            store.put_if_absent("a", b"1", "text/plain")
    assert (moto_store.stat("a") is not None) is written


HINTS = [
    "lab/LEDGERS/OPEN/campaign-c.json",
    "LEDGERS/OPEN/loop-x~1.json",
    "lab/LEDGERS/HOMES/h1/2026-11-27.json",
]


@pytest.mark.parametrize("key", HINTS)
def test_a_hint_is_deleted_and_may_be_written_again(any_store, key):
    assert any_store.put_if_absent(key, b"1", "application/json")
    assert any_store.delete(key)
    assert any_store.find(key) is None
    assert list(any_store.keys("")) == []
    assert any_store.delete(key), "an absent hint is deleted"
    assert any_store.put_if_absent(key, b"2", "application/json")
    assert any_store.read(key) == b"2"


@pytest.mark.parametrize(
    "key",
    [
        "lab/LEDGERS/ARCHIVE.json",
        "lab/LEDGERS/0123456789abcdef/c/k/000001.json",
        "lab/LEDGERS/CAMPAIGNS/c/000001.json",
        "lab/LEDGERS/LOOPS/c/000001.json",
        "lab/LEDGERS/VERSIONS/c/E-1/v001.json",
        "lab/LEDGERS/IDENTITY/000001.json",
        "lab/c/E-1/v001/manifest.json",
        "LEDGERS/HOMES/LEDGERS/ARCHIVE.json",
        "LEDGERS/OPEN/LEDGERS/ARCHIVE.json",
        "lab/LEDGERS/OPEN/../ARCHIVE.json",
        "lab/LEDGERS/OPEN/notes.txt",
        "lab/OPEN/campaign-c.json",
        "XLEDGERS/OPEN/campaign-c.json",
        "LEDGERS/OPEN/campaign-c.json/x",
    ],
)
def test_nothing_but_a_hint_is_deleted(any_store, key):
    if ".." not in key:
        any_store.put_if_absent(key, b"1", "application/json")
    with pytest.raises(ArchiveError, match=r"is part of the archive|is not a key"):
        any_store.delete(key)
    assert ".." in key or any_store.read(key) == b"1"


@pytest.mark.parametrize(
    "key",
    ["TABLES/designs/c.parquet", "lab/TABLES/results/c/E-1.parquet", "TABLES/candidates/l/000001.parquet"],
)
def test_a_table_is_replaced(any_store, key):
    any_store.replace(key, b"1", "application/vnd.apache.parquet")
    any_store.replace(key, b"22", "application/vnd.apache.parquet")
    assert (any_store.read(key), any_store.stat(key).size) == (b"22", 2)
    assert list(any_store.keys("")) == [key]


@pytest.mark.parametrize(
    "key",
    [
        "lab/c/E-1/v001/results.csv",
        "lab/LEDGERS/ARCHIVE.json",
        "TABLES/designs/c.csv",
        "TABLES/designs/../c.parquet",
        "TABLES/results/c.parquet",
        "TABLES/c/E-1/v001/packages/x.parquet",
        "XTABLES/designs/c.parquet",
    ],
)
def test_nothing_but_a_table_is_replaced(any_store, key):
    if ".." not in key:
        any_store.put_if_absent(key, b"1", "text/plain")
    with pytest.raises(ArchiveError, match=r"nothing replaces it|is not a key"):
        any_store.replace(key, b"2", "text/plain")
    assert ".." in key or any_store.read(key) == b"1"


def test_a_failed_replacement_leaves_the_table_that_is_there(tmp_path, monkeypatch):
    store = LocalStore(tmp_path / "archive")
    store.replace("TABLES/designs/c.parquet", b"1", "text/plain")

    def fail(*_):
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as full:
        full.setattr(Path, "replace", fail)
        with pytest.raises(ArchiveUnavailable, match="no space left"):
            store.replace("TABLES/designs/c.parquet", b"22", "text/plain")
    assert store.read("TABLES/designs/c.parquet") == b"1"
    assert [path.name for path in (tmp_path / "archive/.partial").iterdir()] == []


def test_a_hint_that_may_not_be_deleted_stays(tmp_path, monkeypatch):
    store = LocalStore(tmp_path / "archive")
    store.put_if_absent(HINTS[0], b"1", "application/json")
    for number in (errno.EACCES, errno.EROFS):

        def forbid(path, *, missing_ok=False, number=number):
            raise OSError(number, "no")

        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", forbid)
            assert store.delete(HINTS[0]) is False
    assert store.read(HINTS[0]) == b"1"


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.EACCES])
def test_a_folder_that_cannot_be_listed_is_not_empty(tmp_path, monkeypatch, number):
    store = LocalStore(tmp_path / "archive")
    store.put_if_absent("lab/c/a", b"1", "text/plain")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("/c"):
            raise OSError(number, os.strerror(number), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    for listing in (store.keys, store.strays):
        with pytest.raises(ArchiveError) as error:
            list(listing("lab"))
        assert isinstance(error.value, ArchiveUnavailable) == (number != errno.EACCES)
    with pytest.raises(ArchiveError):
        list(store.folders("lab/c"))
    assert list(store.folders("lab")) == ["c"]


def test_the_lost_and_found_of_a_file_system_is_no_part_of_an_archive(tmp_path):
    store = LocalStore(tmp_path)
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "lost+found" / "x").write_text("")
    assert (list(store.keys("")), list(store.folders("")), list(store.strays(""))) == ([], [], [])
