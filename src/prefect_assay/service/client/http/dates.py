"""Times in HTTP headers (RFC 9110, 5.6.7). Pure; never raises."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, Protocol

# A proxy that adds its own header doubles it: httpx joins the two with a comma, which a date holds as well.
_ONE: Final = re.compile(r"[A-Za-z]{3}, \d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d:\d\d [A-Za-z+\-0-9]+")
_SAME: Final = timedelta(minutes=1)


def http_date(value: str) -> datetime | None:
    """The moment that a header names, in UTC also where it does not say so; None for one that cannot be read.

    Of a header that was sent twice, the first; None if the two are not the same moment.
    """
    moments = [_parse_date(text) for text in _ONE.findall(value) or [value]]
    first = moments[0]
    if first is None or any(other is None or abs(other - first) > _SAME for other in moments):
        return None
    return first


class Timed(Protocol):
    """What has read an answer of a service, such as a client."""

    @property
    def service_time(self) -> datetime | None:
        """The service's clock at its last answer; None if it did not say."""
        ...


def time_at(client: Timed) -> datetime:
    """Now, by the service's clock at its last answer, because this machine's may be wrong; else by this machine's."""
    return client.service_time or datetime.now(UTC)


def sent_at(headers: Mapping[str, str]) -> datetime | None:
    """The clock of the sender of an answer, by its `Date`; None if it does not say, or not clearly."""
    return http_date(headers.get("date", ""))


def _parse_date(text: str) -> datetime | None:
    """A date of a header in UTC; None if it is none."""
    try:
        moment = parsedate_to_datetime(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
