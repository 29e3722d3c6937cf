"""A loop's schedule over the change to and from daylight saving time: one start each day, at the hour that was asked for."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from prefect_assay.cli.loops.schedule import cron_schedule, next_start

CHANGES = [  # the day of the change, in the zone
    ("Europe/Berlin", date(2027, 3, 28)),
    ("Europe/Berlin", date(2026, 10, 25)),
    ("America/New_York", date(2027, 3, 14)),
    ("America/New_York", date(2026, 11, 1)),
    ("Australia/Lord_Howe", date(2026, 10, 4)),  # by half an hour
    ("Australia/Lord_Howe", date(2027, 4, 4)),
    ("Africa/Cairo", date(2027, 4, 30)),  # at midnight
    ("Africa/Cairo", date(2026, 10, 29)),
    ("Asia/Kolkata", date(2027, 3, 28)),  # none
]


@pytest.mark.parametrize(("zone", "day"), CHANGES)
@pytest.mark.parametrize("clock", ["00:00", "00:30", "01:30", "02:00", "02:30", "03:00", "06:00", "23:30"])
def test_each_day_has_one_start_whenever_it_is_asked_for(zone, day, clock):
    hour, minute = map(int, clock.split(":"))
    schedule = cron_schedule(f"{minute} {hour} * * *", zone)
    began = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).astimezone(UTC) - timedelta(days=1)
    asked = [began + timedelta(minutes=30 * n) for n in range(3 * 48)]
    starts = {
        following.astimezone(UTC): following for after in asked if (following := next_start(schedule, after))
    }
    days = sorted(following.date() for following in starts.values())
    whole = [day + timedelta(days=n) for n in (-1, 0, 1)]
    assert [one for one in days if one in whole] == whole
    for following in starts.values():
        # An hour that the day does not have is the same time after the change.
        late = following.hour * 60 + following.minute - (hour * 60 + minute)
        assert late == 0 or (following.date() == day and 0 < late <= 60)


@pytest.mark.parametrize(("zone", "day"), CHANGES)
def test_a_schedule_for_workdays_at_six_is_at_six(zone, day):
    schedule = cron_schedule("0 6 * * 1-5", zone)
    after = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)) - timedelta(days=3)
    for _ in range(8):
        following = next_start(schedule, after)
        assert (following.hour, following.minute) == (6, 0)
        assert following.isoweekday() <= 5
        after = following + timedelta(minutes=1)
