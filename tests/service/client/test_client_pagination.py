"""Paging over lists that change while they are read, without any HTTP."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefect_assay.service.client.http.pagination import paginate
from prefect_assay.service.models.base import Page
from support.client import operations


class Feed:
    """A list as a service keeps it: newest first."""

    def __init__(self, rows):
        self.rows = rows
        self.asked = []

    def page(self, limit, offset):
        self.asked.append((limit, offset))
        items = tuple(self.rows[offset : offset + limit])
        return Page[int](items=items, total=len(self.rows), count=len(items), offset=offset)


def read_all(feed, limit, between=lambda: None):
    """Read the feed; `between` changes it after each request."""

    def fetch(size, offset):
        page = feed.page(size, offset)
        between()
        assert len(feed.asked) < 1000
        return page

    return list(paginate("GET /rows", fetch, str, page_size=limit))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 6, 7, 10])
def test_a_quiet_list_is_read_once_and_in_order(size):
    assert read_all(Feed(list(range(size))), 3) == list(range(size))


def test_pages_overlap_by_one_row_and_end_with_a_short_one():
    feed = Feed(list(range(7)))
    read_all(feed, 3)
    assert feed.asked == [(3, 0), (3, 2), (3, 4), (3, 6)]


def test_reading_is_lazy():
    feed = Feed(list(range(1000)))
    rows = paginate("GET /rows", feed.page, str, page_size=10)
    assert feed.asked == []
    assert [next(rows) for _ in range(10)] == list(range(10))
    assert len(feed.asked) == 1


changes = st.lists(st.tuples(st.integers(0, 12), st.lists(st.integers(0, 200), max_size=12)), max_size=30)


@settings(max_examples=300)
@given(st.integers(0, 60), st.integers(2, 7), changes)
def test_rows_that_stay_are_neither_missed_nor_doubled(size, limit, script):
    feed = Feed(list(range(size)))
    removed = set()
    steps = iter(script)
    new = iter(range(-1, -1000, -1))

    def change():
        added, gone = next(steps, (0, []))
        for index in gone:
            if feed.rows:
                removed.add(feed.rows.pop(index % len(feed.rows)))
        feed.rows[:0] = [next(new) for _ in range(added)][::-1]

    rows = read_all(feed, limit, change)
    assert len(rows) == len(set(rows))
    old = [row for row in rows if row >= 0]
    assert old == sorted(old)
    assert set(range(size)) - removed <= set(rows)


def test_a_service_that_keeps_its_pages_shorter_is_read_to_the_end():
    feed = Feed(list(range(9)))
    whole, feed.page = feed.page, lambda limit, offset: whole(min(limit, 4), offset)
    assert read_all(feed, 100) == list(range(9))


@pytest.mark.parametrize("size", [0, 1, 99, 100, 150])
def test_reading_a_service_that_ignores_the_offset_ends(size):
    feed = Feed(list(range(size)))
    whole, feed.page = feed.page, lambda limit, offset: whole(1000, 0)
    assert read_all(feed, 100) == list(range(size))


def test_a_filter_and_an_experiment_are_joined():
    operation = operations.updates.list(experiment_id="e-1", filter="eq(type,progress)")
    assert ("filter", "and(eq(experiment_id,e-1),eq(type,progress))") in operation.request.params
    assert operations.updates.list(experiment_id="e-1").request.params == (
        ("filter", "eq(experiment_id,e-1)"),
    )
    assert operations.updates.list().request.params == ()
