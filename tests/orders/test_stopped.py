"""A process that is stopped after its record of a create, and goes on much later, sends nothing."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.errors import ServiceUnavailable
from prefect_assay.orders import create
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.ledger import Books

from .test_find_or_create import HOSTED, KEY, MACHINE, QUOTED, OrderService, new_book

FOLDER = str(Path(__file__).parent)


@pytest.mark.parametrize("request_", [QUOTED, HOSTED, MACHINE], ids=["quoted", "hosted", "machine"])
def test_a_create_is_not_sent_when_its_record_is_old(tmp_path, monkeypatch, request_):
    clock = [0.0]
    monkeypatch.setattr(create, "elapsed_seconds", lambda: clock[0])
    service, book, released = OrderService(), new_book(tmp_path), []
    written = book.record

    def stopped(decide):
        record = written(decide)
        clock[0] += create.SEND_WITHIN_SECONDS + 1
        return record

    book.record = stopped
    with pytest.raises(ServiceUnavailable, match=r"stopped for 31 s .* the order was not sent"):
        find_or_create(service, request_, book, release=lambda: released.append(1), sleep=lambda _: None)
    assert (service.creates, released) == (0, [1])
    later = new_book(tmp_path)
    assert not later.read().open_attempts, "it is certain that nothing was sent"
    find_or_create(service, request_, later, sleep=lambda _: None)
    assert service.creates == 1


def test_after_another_run_has_ordered_meanwhile_the_late_one_changes_nothing(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(create, "elapsed_seconds", lambda: clock[0])
    service, book = OrderService(), new_book(tmp_path)
    written = book.record

    def stopped(decide):
        record = written(decide)
        book.record = written
        find_or_create(service, QUOTED, new_book(tmp_path), sleep=lambda _: None)
        clock[0] += 3600
        return record

    book.record = stopped
    with pytest.raises(ServiceUnavailable):
        find_or_create(service, QUOTED, book, sleep=lambda _: None)
    assert service.creates == 1
    assert new_book(tmp_path).read().ordered.experiment_id == service.orders[0].id


PROGRAM = """
import sys
sys.path[:0] = [{tests!r}, {folder!r}]
from prefect_assay.orders import create
from test_find_or_create import QUOTED, OrderService, find_or_create, new_book

create.SEND_WITHIN_SECONDS = {limit}

def ask(book):
    print("recorded", flush=True)  # the parent stops this process here, and lets it go on later
    sys.stdin.readline()

service, book = OrderService(), new_book({archive!r})
written = book.record

def record(decide):
    made = written(decide)
    if getattr(made, "kind", "") == "sending":
        ask(book)
    return made

book.record = record
try:
    find_or_create(service, QUOTED, book, sleep=lambda _: None)
except Exception as error:
    print(type(error).__name__, service.creates, flush=True)
else:
    print("sent", service.creates, flush=True)
"""


@pytest.mark.parametrize("stops", [True, False])
def test_a_stopped_process_sends_nothing_when_it_continues(tmp_path, stops):
    """The clock runs on while a process is stopped, so that the time is seen."""
    program = textwrap.dedent(PROGRAM).format(
        tests=str(Path(FOLDER).parent), folder=FOLDER, archive=str(tmp_path), limit=1.0 if stops else 600.0
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "recorded\n"
        if stops:
            child.send_signal(signal.SIGSTOP)
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(1.2)
            child.send_signal(signal.SIGCONT)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == ("ServiceUnavailable 0\n" if stops else "sent 1\n")
    (books,) = Books.list_all(LocalStore(tmp_path), "")
    kinds = [record.kind for record in books.open_order("camp", KEY).records()]
    assert [kind for kind in kinds if kind != "named"] == [
        "planned",
        "sending",
        "refused" if stops else "ordered",
    ]
