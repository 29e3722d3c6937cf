"""One line per kind and interval, and the next one says how many there were."""

import logging

from prefect_assay.campaigns.receiver.monitoring import ThrottledLog


def test_the_first_at_once_and_the_rest_counted(caplog):
    now = [0.0]
    log = ThrottledLog(logging.getLogger("throttled"), seconds=10, clock=lambda: now[0])
    for now[0] in (0.0, 1.0, 9.9, 10.0, 11.0):
        log.log_warning("kind", "at %s", now[0])
    log.log_warning("another", "another")
    assert [record.getMessage() for record in caplog.records] == [
        "at 0.0",
        "at 10.0 (and 2 more like it before)",
        "another",
    ]
