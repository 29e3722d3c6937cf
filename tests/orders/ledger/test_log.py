"""The log: one writer for each number, whatever becomes of requests and answers."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
from pydantic import TypeAdapter

from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError, NewerFormat
from prefect_assay.orders.ledger.log import Approved, Log, OrderRecord
from support.archive.memory_store import MemoryStore

ADAPTER = TypeAdapter(OrderRecord)


def a_log(store):
    return Log(store, "log", ADAPTER)


def record(cents=1):
    return Approved(amount_cents=cents, approver="test")


def ids(log, first=1):
    return [r.id for r in log.read(first)]


def key(number):
    return f"log/{number:06d}.json"


@pytest.fixture
def store():
    return MemoryStore()


def test_records_are_read_in_order_as_they_were_written(any_store):
    log, written = a_log(any_store), [record(n) for n in range(3)]
    for number, entry in enumerate(written, start=1):
        assert log.append(number, entry)
    assert list(a_log(any_store).read()) == written
    assert ids(log, 3) == [written[2].id]
    assert ids(log, 4) == []
    assert (log.exists(3), log.exists(4)) == (True, False)


def test_a_number_belongs_to_the_first_writer(any_store):
    log, first = a_log(any_store), record()
    assert log.append(1, first)
    assert not log.append(1, record())
    assert ids(log) == [first.id]


def test_a_writer_that_repeats_its_own_record_has_written_it(any_store):
    log, first = a_log(any_store), record()
    assert log.append(1, first)
    assert log.append(1, first)
    assert len(ids(log)) == 1


def test_an_answer_that_was_lost_after_writing_is_a_success_by_the_own_id(store, waits):
    log, mine = a_log(store), record()
    store.lose_answer(2)
    assert log.append(1, mine)
    assert ids(log) == [mine.id]
    assert len(waits) == 2


def test_a_request_that_did_not_arrive_is_put_again_with_the_same_bytes(store, waits):
    log, mine = a_log(store), record()
    store.fail_before_writing(3)
    assert log.append(1, mine)
    assert list(store.objects.values()) == [ADAPTER.dump_json(mine)]
    assert 0.05 <= waits[0] < waits[1] < waits[2] <= 3


def test_after_a_lost_request_the_number_may_belong_to_another_writer(store, waits):
    log, other = a_log(store), record()
    store.fail_before_writing()
    store.before_put = lambda _: store.objects or store.objects.update({key(1): ADAPTER.dump_json(other)})
    assert not log.append(1, record())
    assert ids(log) == [other.id]


def test_while_the_store_is_away_nothing_is_said_to_be_written(store, waits):
    store.fail_before_writing(4)
    with pytest.raises(ArchiveUnavailable, match="no connection"):
        a_log(store).append(1, record())
    assert len(waits) == 3
    assert store.objects == {}


def test_a_store_that_is_away_while_the_own_record_is_looked_for_is_asked_again(store, waits, monkeypatch):
    log, mine, find = a_log(store), record(), store.find
    answers = [ArchiveUnavailable("away"), None]

    def flaky(name):
        if answers and (answer := answers.pop(0)) is not None:
            raise answer
        return find(name)

    store.lose_answer()
    monkeypatch.setattr(store, "find", flaky)
    assert log.append(1, mine)


def test_a_record_that_a_store_shows_late_is_waited_for(store, waits):
    log, mine, other = a_log(store), record(), record()
    log.append(1, mine)
    store.hide("000001.json", 2)
    assert not log.append(1, other)
    assert len(waits) == 2
    store.hide("000001.json", 4)
    with pytest.raises(ArchiveUnavailable, match="neither absent nor readable"):
        log.append(1, other)


def test_a_record_that_a_store_shows_after_its_successor_is_read_again(store):
    log, written = a_log(store), [record(n) for n in range(3)]
    for number, entry in enumerate(written, start=1):
        log.append(number, entry)
    store.hide("000002.json")
    assert list(log.read()) == written


@pytest.mark.parametrize("missing", [1, 2])
def test_a_gap_is_an_error_that_names_the_missing_record(store, missing):
    log = a_log(store)
    for number in range(1, 4):
        log.append(number, record())
    del store.objects[key(missing)]
    with pytest.raises(ArchiveError, match=rf"memory:log/{missing:06d}\.json is missing.*nothing is ordered"):
        list(log.read())


@pytest.mark.parametrize(
    "content",
    [
        b'{"kind": "teleported", "id": "1"}',
        b'{"kind": "approved", "amount_cents": "many", "approver": "x"}',
        b"",
        b"{",
        b"\xff",
        b"null",
    ],
)
def test_a_damaged_record_stops_everything(store, content):
    store.objects[key(1)] = content
    for call in (lambda log: list(log.read()), lambda log: log.append(1, record())):
        with pytest.raises(ConfigurationError, match=r"000001\.json cannot be read .*it is damaged.*Restore"):
            call(a_log(store))


def test_a_record_in_a_newer_format_stops_everything_and_says_what_to_do(store):
    content = {"record_schema": 2, "kind": "teleported", "id": "1"}
    store.objects[key(1)] = json.dumps(content).encode()
    for call in (lambda log: list(log.read()), lambda log: log.append(1, record())):
        with pytest.raises(
            NewerFormat, match=r"000001\.json has format 2, .* up to 1: .*upgrade prefect-assay"
        ):
            call(a_log(store))


def test_a_field_that_another_version_added_is_refused(store):
    """It may say that money has moved; a reader that leaves it out would act on half a record."""
    content = {**json.loads(ADAPTER.dump_json(record(7))), "new": 1}
    store.objects[key(1)] = json.dumps(content).encode()
    with pytest.raises(ConfigurationError, match="another version of prefect-assay wrote it"):
        list(a_log(store).read())


def test_no_record_holds_more_than_it_says(store):
    log, mine = a_log(store), record()
    log.append(1, mine)
    kept = json.loads(store.objects[key(1)])
    about = {"record_schema", "id", "at", "by", "kind"}
    assert set(kept) - about == {"amount_cents", "approver", "by_person", "requester", "how"}


def test_sixteen_writers_race_and_each_number_has_one_winner(any_store):
    writers, numbers = 16, 3
    barrier = threading.Barrier(writers)

    def write(_):
        log, won = a_log(any_store), []
        for number in range(1, numbers + 1):
            mine = record()
            barrier.wait(60)
            if log.append(number, mine):
                won.append((number, mine.id))
        return won

    with ThreadPoolExecutor(writers) as pool:
        won = dict(chain.from_iterable(pool.map(write, range(writers))))
    assert ids(a_log(any_store)) == [won[number] for number in range(1, numbers + 1)]
    assert len(won) == numbers


def test_writers_that_race_with_lost_answers_leave_one_record_for_each_number(store, waits):
    faults = iter([store.lose_answer, store.fail_before_writing, store.pass_puts] * 40)
    lock = threading.Lock()

    def disturb(_):
        with lock:
            next(faults)()

    store.before_put = disturb
    barrier = threading.Barrier(8)

    def write(_):
        mine = record()
        barrier.wait(20)
        try:
            return mine.id if a_log(store).append(1, mine) else None
        except ArchiveUnavailable:
            return None

    with ThreadPoolExecutor(8) as pool:
        won = [record_id for record_id in pool.map(write, range(8)) if record_id]
    assert len(won) <= 1
    assert ids(a_log(store))[: len(won)] == won
