"""How a sweep reads the updates feed: up to the watermark, nothing missed, nothing counted twice."""

import json
from datetime import UTC, datetime, timedelta
from itertools import islice
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefect_assay.campaigns.sweep.updates_feed import read_feed
from prefect_assay.campaigns.sweep.watermarks import SweepState, Watermark
from prefect_assay.service.client.resources.updates import Updates
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.update import Update

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=400)


def rows_at(minutes):
    return [
        Update(id=f"u-{n}", experiment_id=f"e-{n}", timestamp=START + timedelta(minutes=m))
        for n, m in enumerate(minutes)
    ]


def page_of(rows, operation):
    """What the service answers to a request for a page of these rows."""
    asked = dict(operation.request.params)
    offset, limit = int(asked.get("offset", 0)), int(asked["limit"])
    page = rows[offset : offset + limit]
    return Page(items=page, total=len(rows), count=len(page), offset=offset)


class Feed:
    """Updates newest first; counts how many rows are read."""

    def __init__(self, minutes):
        self.rows = sorted(rows_at(minutes), key=lambda u: u.timestamp, reverse=True)
        self.read = 0

    @property
    def updates(self):
        return SimpleNamespace(iterate=self._iterate)

    def _iterate(self):
        for row in self.rows:
            self.read += 1
            yield row


class GrowingFeed:
    """The client's own pages of a feed that grows in front while it is read."""

    def __init__(self, minutes, grow):
        self.rows, self.grow, self.pages = rows_at(minutes), grow, 0
        self.updates = Updates(self)

    def run(self, operation):
        if self.pages:
            self.rows += self.grow(self.pages)
        self.pages += 1
        return page_of(sorted(self.rows, key=lambda u: u.timestamp, reverse=True), operation)


def test_without_a_watermark_one_page_is_read_and_all_of_it_is_news():
    """Nobody knows what the runs that wait have seen of it."""
    feed = Feed(range(300))
    news = read_feed(feed, Watermark(), NOW)
    assert (feed.read, news.updates, len(news.newest), news.mark.read) == (100, 100, 100, True)


def test_everything_that_comes_after_an_empty_feed_is_news():
    empty = read_feed(Feed([]), Watermark(), NOW)
    assert empty.updates == 0
    assert read_feed(Feed([]), empty.mark, NOW).mark == empty.mark
    first = read_feed(Feed([1, 2, 30]), empty.mark, NOW)
    assert set(first.newest) == {"e-0", "e-1", "e-2"}
    assert read_feed(Feed([1, 2, 30]), first.mark, NOW).updates == 0


def test_a_feed_that_is_empty_now_keeps_its_mark():
    mark = read_feed(Feed([5]), Watermark(), NOW).mark
    assert read_feed(Feed([]), mark, NOW).mark == mark


def test_a_feed_that_rests_costs_one_page_even_after_a_burst():
    mark = read_feed(Feed([0]), Watermark(), NOW).mark
    feed = Feed([0] + [60] * 5_000)
    first = read_feed(feed, mark, NOW)
    assert first.updates == 5_000
    feed.read = 0
    second = read_feed(feed, first.mark, NOW)
    assert (feed.read, second.updates, second.mark) == (100, 0, first.mark)


def test_an_update_that_comes_late_behind_a_page_of_known_and_new_ones_is_news():
    known = [*range(0, 200, 2)]
    mark = read_feed(Feed(known), Watermark(), NOW).mark
    new, late = [1000] * 60, [91]  # the late one is the 115th row
    assert len(read_feed(Feed([*known, *new, *late]), mark, NOW).newest) == 61


def test_a_feed_without_any_known_row_is_read_to_its_limit():
    feed = Feed(range(20_000))
    assert read_feed(feed, Watermark(read=True, seen=("gone",)), NOW).updates == feed.read == 10_000


def test_the_mark_of_any_feed_fits_a_variable():
    mark = read_feed(Feed([60] * 5_000), Watermark(reference="x" * 200), NOW).mark
    mark = mark.model_copy(update={"name": "n" * 100, "used": NOW})
    # A variable's limit counts the value as a JSON string.
    assert len(json.dumps(mark.model_dump_json())) < 5_000


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=8))
def test_every_update_counts_exactly_once_also_when_it_appears_a_little_late(batches):
    """Each sweep sees new rows whose timestamps lie up to nine minutes before the newest one."""
    mark = read_feed(Feed([0]), Watermark(), NOW).mark
    minutes = [0]
    counted = []
    for clock, batch in enumerate(batches, start=1):
        minutes += [max(0, clock - late) for late in batch]
        news = read_feed(Feed(minutes), mark, NOW + timedelta(minutes=clock))
        counted += sorted(set(news.newest))
        mark = news.mark
    assert sorted(counted) == sorted(f"e-{n}" for n in range(1, len(minutes)))


@settings(max_examples=25)
@given(st.integers(0, 250), st.integers(0, 150))
def test_rows_that_arrive_while_pages_are_read_count_now_or_next_time(old, growth):
    """After a week without a sweep: pages are walked back to the mark, and new rows push the old ones along."""
    mark = Watermark(read=True)
    numbers = iter(range(10_000, 100_000))

    def grow(page):
        return [
            Update(id=f"u-{n}", experiment_id=f"e-{n}", timestamp=START + timedelta(days=30, seconds=n))
            for n in islice(numbers, growth if page < 4 else 0)
        ]

    feed = GrowingFeed([20 + 60 * n for n in range(old)], grow)
    first = read_feed(feed, mark, NOW)
    feed.grow = lambda _: []
    second = read_feed(feed, first.mark, NOW)
    counted = sorted([*set(first.newest), *set(second.newest)])
    assert set(counted) == {row.experiment_id for row in feed.rows}
    assert first.updates >= old


def test_a_mark_that_cannot_be_read_counts_as_absent():
    """The sweep then reads more, and misses nothing."""
    kept = Watermark(reference="{}", read=True, seen=("u-1",))
    stored = {
        "assay_sweep_a": kept.model_dump_json(),
        "assay_sweep_b": '{"read": []}',
        "assay_sweep_c": "[1, 2",
    }
    assert SweepState(client=None, stored=stored).watermarks() == {"{}": kept}


class OddFeed:
    """A feed whose rows carry any time: sorted by it, or in the order of their arrival; read through the client's pages."""

    def __init__(self, history, *, by_time):
        self.by_time = by_time
        self.rows, self.now, self.pages = [], START, 0
        self.updates = Updates(self)
        self.add([START - timedelta(hours=n) for n in range(history, 0, -1)])

    def add(self, times):
        new = [
            Update(id=f"u-{n}", experiment_id=f"e-{n}", timestamp=time)
            for n, time in enumerate(times, start=len(self.rows))
        ]
        self.rows += new
        return {row.experiment_id for row in new}

    def run(self, operation):
        self.pages += 1
        listed = self.rows[::-1]
        if self.by_time:
            listed.sort(key=lambda row: row.timestamp or START - timedelta(hours=3), reverse=True)
        return page_of(listed, operation)


# Minutes from the service's clock; None is a time that cannot be read.
ODD_TIMES = st.one_of(
    st.integers(-5, 0), st.integers(-500, 60 * 24 * 400), st.sampled_from([0, 9, 10, 11, 2_000_000_000, None])
)


def add_minutes(now, minutes):
    if minutes is None:
        return None
    return datetime.max.replace(tzinfo=UTC) if minutes > 1_000_000_000 else now + timedelta(minutes=minutes)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(1, 90), st.lists(ODD_TIMES, max_size=5)), max_size=12),
    st.integers(0, 150),
    st.booleans(),
)
def test_no_row_is_missed_whatever_its_time(sweeps, history, by_time):
    feed = OddFeed(history, by_time=by_time)
    mark = read_feed(feed, Watermark(), feed.now).mark
    for minutes, times in sweeps:
        feed.now += timedelta(minutes=minutes)
        new = feed.add([add_minutes(feed.now, time) for time in times])
        page = read_feed(feed, mark, feed.now)
        assert new <= set(page.newest)
        mark = Watermark.model_validate_json(page.mark.model_dump_json())


@pytest.mark.parametrize("text", ["26.11.2026 14:00", None, "", {"at": 1}, "+99999-01-01T00:00:00Z"])
def test_a_time_that_cannot_be_read_hides_no_other_row(text):
    row = {"id": "u", "experiment_id": "e", "timestamp": text}
    assert Update.model_validate(row).timestamp is None
    assert Update.model_validate(row | {"timestamp": "2026-11-26T14:00:00"}).timestamp.tzinfo is UTC
