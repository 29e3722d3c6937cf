"""Timestamps: aware UTC datetimes inside, fixed-width text in the database and on the wire.

The fixed width makes text order equal to time order, which the list filters rely on.
"""

from datetime import UTC, date, datetime


def stamp(moment: datetime) -> str:
    """`2026-03-01T09:30:00.000000Z`, always in UTC and always of the same width."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat(timespec='microseconds').removesuffix('+00:00')}Z"


def read(text: str) -> datetime:
    """Read what `stamp` wrote."""
    return datetime.fromisoformat(text)


def parse(text: str) -> datetime:
    """Read an ISO 8601 date or timestamp (contract 4.1), as UTC without an offset; ValueError for other text."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} lies outside the calendar") from error


def parse_day(text: str) -> str:
    """The UTC day of an ISO date or timestamp, as `YYYY-MM-DD`."""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return parse(text).date().isoformat()
