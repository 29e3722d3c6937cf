"""The logs of loops are read by `archive verify`: what is lost or changed there is damage."""

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.campaigns.loops.check import check_loops
from prefect_assay.campaigns.loops.loop_log import LoopLog
from support.archive.loops import LOOP, archive_measured_round, selected_round, whole_round
from support.command import command


@pytest.fixture
def store(tmp_path):
    """A measured round, and a second one that has ended: three records, two pools."""
    archive = LocalStore(tmp_path / "archive")
    archive_measured_round(archive, "", selected_round(archive, ""))
    whole_round(archive, "")
    return archive


def folder_of(store):
    return store.root / LoopLog(store, "", LOOP).folder


def pool_of_round(store, number):
    return folder_of(store) / LoopLog(store, "", LOOP).read().rounds[number - 1].fixed.pool.key


def flip(path):
    body = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(bytes([body[0] ^ 1]) + body[1:])


def test_an_intact_loop_is_no_finding_also_while_its_first_round_is_proposed(store):
    LoopLog(store, "", "other").save_candidates([], "f")
    assert list(check_loops(store, "")) == []
    done = command("archive", "verify", str(store.root))
    assert (done.code, "intact" in done.out) == (0, True), done.err


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lambda store: flip(pool_of_round(store, 1)), "changed"),
        (lambda store: pool_of_round(store, 2).unlink(), "missing"),
        (lambda store: flip(folder_of(store) / "000002.json"), "unreadable"),
        (lambda store: (folder_of(store) / "000002.json").unlink(), "missing"),
        (lambda store: (folder_of(store) / "000001.json").unlink(), "missing"),
        (lambda store: [(folder_of(store) / f"00000{n}.json").unlink() for n in (1, 2)], "missing"),
        (lambda store: folder_of(store).rename(folder_of(store).with_name("mine")), "misplaced"),
    ],
)
def test_damage_of_a_loop_is_named_and_is_exit_code_1(store, damage, kind):
    damage(store)
    assert {finding.kind for finding in check_loops(store, "")} == {kind}
    done = command("archive", "verify", str(store.root))
    assert done.code == 1
    assert f"{kind}: LOOPS/" in done.out


def test_a_record_that_names_another_digest_is_a_change(store):
    path = folder_of(store) / "000001.json"
    path.chmod(0o644)
    pool = LoopLog(store, "", LOOP).read().rounds[0].fixed.pool
    path.write_text(path.read_text().replace(f'"sha256":"{pool.sha256}"', f'"sha256":"{"0" * 64}"'))
    (finding,) = check_loops(store, "")
    assert (finding.kind, finding.detail) == ("changed", "round 1 names another SHA-256")
