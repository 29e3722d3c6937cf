"""The log of a loop: what is fixed stays fixed, whoever writes, and however often it is repeated."""

import threading
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.campaigns.loops.loop_log import (
    LoopLog,
    LoopState,
    PoolFile,
    RoundEnded,
    RoundFailed,
    RoundFixed,
    designs_address,
    of_designs_address,
)
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.selection import Choice
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError, InvalidSpec
from prefect_assay.orders.ledger import log
from support.archive.memory_store import MemoryStore

POOL = PoolFile(name="a.fasta", key="POOLS/a", sha256="0" * 64, size=1, designs=2)


def fixed(number, campaign=None, **changes):
    return RoundFixed(
        loop_id="loop",
        number=number,
        name=f"n{number}",
        campaign_id=campaign or f"loop-{number}",
        origin="file",
        pool=POOL,
        **changes,
    )


def ended(number):
    return RoundEnded(number=number, table=f"t{number}", rows=1)


def test_the_first_decision_on_a_round_counts():
    store = MemoryStore()
    first, second = (LoopLog(store, "p", "loop") for _ in range(2))
    one, other = fixed(1, "one"), fixed(1, "other")
    assert first.fix(one) == one
    assert second.fix(other) == one
    assert LoopLog(store, "p", "loop").read().campaigns == ("one",)
    assert first.end(ended(1)).table == "t1"
    assert second.end(ended(1)).id == first.read().rounds[0].ended.id


def test_why_a_round_has_failed_is_noted_once_per_reason_until_it_has_ended():
    store = MemoryStore()
    first, second = (LoopLog(store, "p", "loop") for _ in range(2))
    first.fix(fixed(1))
    for loop_log in (first, second):
        loop_log.fail(RoundFailed(number=1, problem="the laboratory refused"))
    assert (first.read().count, first.read().rounds[0].problem) == (2, "the laboratory refused")
    first.fail(RoundFailed(number=1, problem="overdue"))
    assert second.read().rounds[0].problem == "overdue"
    second.end(ended(1))
    first.fail(RoundFailed(number=1, problem="late"))
    (entry,) = LoopLog(store, "p", "loop").read().rounds
    assert (entry.problem, entry.failed.problem, first.read().count) == (None, "overdue", 4)


def test_a_round_that_has_failed_is_tried_again_by_the_next_start():
    loop_log = LoopLog(MemoryStore(), "p", "loop")
    loop_log.fix(fixed(1))
    first, second = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)
    loop_log.fail(RoundFailed(number=1, problem="refused", start=first))
    (entry,) = loop_log.read().rounds
    assert (entry.has_failed_under(first), entry.has_failed_under(second)) == (True, False)
    loop_log.fail(RoundFailed(number=1, problem="refused", start=second))
    (entry,) = loop_log.read().rounds
    assert entry.has_failed_under(second)
    loop_log.end(ended(1))
    assert not loop_log.read().rounds[0].has_failed_under(second)


def test_two_writers_at_the_same_moment_get_one_answer():
    store, barrier = MemoryStore(), threading.Barrier(2)
    store.before_put = lambda _: barrier.wait(10) if store.calls["put_if_absent"] <= 2 else None
    answers = {}

    def write(name):
        answers[name] = LoopLog(store, "", "loop").fix(fixed(1, name)).campaign_id

    threads = [threading.Thread(target=write, args=[name]) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(answers.values())) == 1


def test_a_lost_answer_is_no_second_round():
    store = MemoryStore()
    store.lose_answer()
    assert LoopLog(store, "", "loop").fix(fixed(1)).number == 1
    assert len(LoopLog(store, "", "loop").read().rounds) == 1


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4)), max_size=12))
def test_a_state_has_rounds_in_a_row_each_ended_at_most_once(actions):
    state = LoopState()
    for is_fix, number in actions:
        record = fixed(number) if is_fix else ended(number)
        try:
            state = state.next(record)
        except ArchiveError:
            continue
    assert [r.fixed.number for r in state.rounds] == list(range(1, len(state.rounds) + 1))
    assert len(set(state.campaigns)) == len(state.rounds)
    assert state.count == len(state.rounds) + sum(1 for r in state.rounds if r.ended)


@given(st.lists(st.sampled_from(["read", "kill", "fix", "end"]), max_size=20))
def test_a_loop_that_is_killed_anywhere_has_the_rounds_of_one_that_was_not(steps):
    """A process fixes the next round if all have ended, and ends it otherwise; the next one knows only the store."""
    store = MemoryStore()
    loop_log = LoopLog(store, "", "loop")
    for step in steps:
        if step == "kill":
            loop_log = LoopLog(store, "", "loop")
            continue
        state = loop_log.read()
        still_open = [r.fixed.number for r in state.rounds if r.ended is None]
        if step == "fix" and not still_open:
            loop_log.fix(fixed(len(state.rounds) + 1))
        elif step == "end" and still_open:
            loop_log.end(ended(still_open[0]))
    rounds = LoopLog(store, "", "loop").read().rounds
    assert [r.fixed.campaign_id for r in rounds] == [f"loop-{n + 1}" for n in range(len(rounds))]
    assert all(r.ended for r in rounds[:-1])


def test_a_record_that_contradicts_the_log_is_never_written():
    loop_log = LoopLog(MemoryStore(), "", "loop")
    loop_log.fix(fixed(1, "same"))
    with pytest.raises(ArchiveError, match="contradicts"):
        loop_log.fix(fixed(2, "same"))
    with pytest.raises(ArchiveError, match="contradicts"):
        loop_log.fix(fixed(3))
    assert len(loop_log.store.objects) == 1


def test_the_store_being_away_is_no_decision(monkeypatch):
    monkeypatch.setattr(log.time, "sleep", lambda _: None)
    store = MemoryStore()
    store.fail_before_writing(times=9)
    with pytest.raises(ArchiveUnavailable):
        LoopLog(store, "", "loop").fix(fixed(1))
    assert LoopLog(store, "", "loop").read().rounds == ()


def test_designs_are_read_as_they_were_proposed(tmp_path):
    store = MemoryStore()
    loop_log = LoopLog(store, "p", "My loop")
    path = tmp_path / "designs.fasta"
    path.write_text(">a score=1\nACD\n>b\nACE\n")
    pool = loop_log.keep_file(path, "designs.fasta", 2)
    loop_log.fix(fixed(1).model_copy(update={"pool": pool}))
    path.write_text(">other\nAAA\n")
    whole = loop_log.designs(1, ReadingOptions())
    assert [(s.name, s.aa_string, s.attributes) for s in whole.items] == [
        ("a", "ACD", {"score": "1"}),
        ("b", "ACE", {}),
    ]
    assert [c.columns for c in loop_log.read_candidates(pool)] == [{"score": "1"}, {}]
    with pytest.raises(ConfigurationError, match="no round 2"):
        loop_log.designs(2, ReadingOptions())


def test_chosen_designs_keep_everything_that_is_ordered():
    loop_log = LoopLog(MemoryStore(), "p", "loop")
    candidate = Candidate(
        name="x",
        sequence="ACD",
        parents=("p",),
        columns={"method": "m"},
        control=True,
        metadata={"type": "FAB"},
    )
    pool = loop_log.save_candidates([candidate], "module:function")
    loop_log.fix(
        fixed(1, choices=(Choice(candidate=candidate, rank=1, reason="best"),)).model_copy(
            update={"pool": pool}
        )
    )
    (design,) = loop_log.designs(1, ReadingOptions()).items
    assert (design.control, design.metadata) == (True, {"type": "FAB"})
    assert design.attributes == {"method": "m", "parents": "p", "selection_reason": "best"}
    assert list(loop_log.read_candidates(pool)) == [candidate]


@pytest.mark.parametrize(
    ("reading", "is_refused"),
    [
        ({"name_column": "n"}, True),
        ({"sequence_column": "s"}, True),
        ({"chain": "2"}, True),
        ({"as_protein": True}, True),
        ({"keep_native": True}, True),
        ({"as_is": True, "target_sequence": "ACD", "designs_per_experiment": 4}, False),
    ],
)
def test_designs_that_were_chosen_from_a_file_are_not_those_of_another_reading(tmp_path, reading, is_refused):
    path = tmp_path / "a.csv"
    path.write_text("name,sequence\nx,ACD\n")
    loop_log = LoopLog(MemoryStore(), "", "loop")
    chosen = (Choice(candidate=Candidate(name="x", sequence="ACD"), rank=1, reason="best"),)
    for number, pool in enumerate(
        (
            loop_log.keep_file(path, "a.csv", 1),
            loop_log.save_candidates([chosen[0].candidate], "module:function"),
        ),
        1,
    ):
        loop_log.fix(fixed(number, choices=chosen).model_copy(update={"pool": pool}))
    assert len(loop_log.designs(2, ReadingOptions(**reading)).items) == 1, (
        "a function's designs have one reading"
    )
    if is_refused:
        with pytest.raises(InvalidSpec, match=rf"another {next(iter(reading))} than .* another loop id"):
            loop_log.designs(1, ReadingOptions(**reading))
    else:
        assert len(loop_log.designs(1, ReadingOptions(**reading)).items) == 1


def test_a_damaged_pool_is_not_measured(tmp_path):
    store = MemoryStore()
    loop_log = LoopLog(store, "", "loop")
    path = tmp_path / "a.fasta"
    path.write_text(">a\nACD\n")
    pool = loop_log.keep_file(path, "a.fasta", 1)
    loop_log.fix(fixed(1).model_copy(update={"pool": pool}))
    (key,) = [key for key in store.objects if "POOLS" in key]
    store.objects[key] = b">a\nACE\n"
    with pytest.raises(ArchiveError, match="has changed"):
        loop_log.designs(1, ReadingOptions())


def test_addresses_of_designs():
    assert of_designs_address(designs_address("a.b-1", 12)) == ("a.b-1", 12)
    assert of_designs_address("loop.fasta") is None
    assert of_designs_address("/loop:a/1") is None
