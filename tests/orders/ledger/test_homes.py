"""When each Prefect home last swept an archive: one small file a day."""

from datetime import UTC, date, datetime, timedelta, timezone

from prefect_assay.archive.store import join_key
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.homes import last_sweeps, note_sweep

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
FOLDER = "lab/LEDGERS/HOMES"


def test_the_last_day_of_each_home_is_read_and_earlier_files_go(any_store):
    for days in (0, 1, 1, 3):
        note_sweep(any_store, "lab", "home1", NOON + timedelta(days=days))
    note_sweep(any_store, "lab", "home2", NOON)
    assert last_sweeps(any_store, "lab") == {"home1": date(2026, 11, 30), "home2": date(2026, 11, 27)}
    assert sorted(any_store.keys(FOLDER)) == [
        f"{FOLDER}/home1/2026-11-30.json",
        f"{FOLDER}/home2/2026-11-27.json",
    ]


def test_the_day_is_that_of_utc(any_store):
    late = datetime(2026, 11, 27, 23, 30, tzinfo=timezone(timedelta(hours=-3)))
    note_sweep(any_store, "", "home1", late)
    assert last_sweeps(any_store, "") == {"home1": date(2026, 11, 28)}


def test_other_sweeps_of_a_day_cost_one_request():
    from support.archive.memory_store import MemoryStore

    store = MemoryStore()
    note_sweep(store, "", "home1", NOON)
    store.calls.clear()
    note_sweep(store, "", "home1", NOON + timedelta(hours=1))
    assert store.calls == {"put_if_absent": 1}


def test_other_files_are_left_alone_and_say_nothing(any_store):
    for name in ("home1/notes.txt", "home1/2026-13-01.json", "2026-11-01.json"):
        any_store.put_if_absent(join_key(FOLDER, name), b"", "text/plain")
    note_sweep(any_store, "lab", "home1", NOON)
    assert last_sweeps(any_store, "lab") == {"home1": date(2026, 11, 27)}
    assert len(list(any_store.keys(FOLDER))) == 4


def test_an_archive_that_nobody_sweeps(any_store):
    assert last_sweeps(any_store, "lab") == {}


def test_homes_are_no_ledgers(any_store):
    note_sweep(any_store, "lab", "home1", NOON)
    assert Ledgers.list_all(any_store, "lab") == []
