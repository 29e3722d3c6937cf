"""A time in a header is read in every spelling, once or twice, and never ends in an error."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.cli.services import check
from prefect_assay.service.client.http.dates import http_date, sent_at

THEN = datetime(2026, 11, 26, 13, 41, 27, tzinfo=UTC)
ONE = "Thu, 26 Nov 2026 13:41:27 GMT"


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (ONE, THEN), (f"{ONE}, {ONE}", THEN), (f"{ONE}, Thu, 26 Nov 2026 13:41:28 GMT", THEN),
        (f"{ONE}, Thu, 26 Nov 2026 15:41:27 GMT", None), ("Thu, 26 Nov 2026 14:41:27 +0100", THEN),
        ("Thu, 26 Nov 2026 13:41:27", THEN), ("Thu, 26 Nov 2026 13:41:27 -0000", THEN),
        ("Thursday, 26-Nov-26 13:41:27 GMT", THEN), ("Thu Nov 26 13:41:27 2026", THEN),
        ("2026-11-26T13:41:27Z", None), ("Thu, 99 Nov 2026 13:41:27 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 -1200", None), ("", None), ("now", None),
    ],
)  # fmt: skip
def test_each_spelling(value, moment):
    assert http_date(value) == moment
    line = check._check_clock("service", {"date": value})
    assert line.ok == (moment is None or abs(moment - datetime.now(UTC)) < check._CLOCKS_DIFFER)


def test_no_date():
    assert sent_at({}) is None
    assert check._check_clock("service", {}).ok


@given(st.one_of(st.text(), st.lists(st.sampled_from([ONE, ",", " ", "GMT", "26", "Thu"])).map("".join)))
def test_no_text_fails(value):
    moment = http_date(value)
    assert moment is None or moment.tzinfo is not None
