"""How a sweep reads the updates feed: up to the watermark, nothing missed, nothing told twice."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.flows.artifacts import label_of
from prefect_assay.flows.money import usd
from prefect_assay.flows.sweep import Watermark, _read_feed
from prefect_assay.models.update import Update

START = datetime(2026, 1, 1, tzinfo=UTC)


class Feed:
    """Updates newest first; counts how many rows are read."""

    def __init__(self, minutes):
        rows = [
            Update(id=f"u-{n}", experiment_id=f"e-{n}", timestamp=START + timedelta(minutes=m))
            for n, m in enumerate(minutes)
        ]
        self.rows = sorted(rows, key=lambda u: u.timestamp, reverse=True)
        self.read = 0

    def iter_updates(self):
        for row in self.rows:
            self.read += 1
            yield row


def test_without_a_watermark_only_the_newest_row_is_read():
    feed = Feed([1, 2, 3])
    news = _read_feed(feed, Watermark())
    assert (feed.read, news.due, news.mark.feed) == (1, set(), START + timedelta(minutes=3))


def test_an_empty_feed_changes_nothing():
    assert _read_feed(Feed([]), Watermark()).mark == Watermark()


def test_old_rows_are_not_read_again():
    feed = Feed(range(0, 100_000, 60))
    mark = Watermark(feed=START + timedelta(minutes=99_960))
    _read_feed(feed, mark)
    assert feed.read <= 3


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=8))
def test_every_update_is_told_exactly_once_also_when_it_appears_a_little_late(batches):
    """Each sweep sees new rows whose timestamps lie up to nine minutes before the newest one."""
    mark = _read_feed(Feed([0]), Watermark()).mark.model_copy(update={"seen": ("u-0",)})
    minutes = [0]
    told = []
    for clock, batch in enumerate(batches, start=1):
        minutes += [max(0, clock - late) for late in batch]
        news = _read_feed(Feed(minutes), mark)
        told += sorted(news.due)
        mark = news.mark
    expected = sorted(f"e-{n}" for n in range(1, len(minutes)))
    assert sorted(told) == expected


def test_labels_and_amounts_for_people():
    assert label_of("EGFR round_1", 0) == "egfr-round-1-1"
    assert usd(123450) == "1,234.50 USD"
    assert usd(7) == "0.07 USD"
    assert usd(None) == "unknown"
