"""docs/service.md is up to date and covers the whole interface of the service."""

from support.interface import coverage_table


def test_nothing_of_the_interface_is_missing():
    assert coverage_table.holes() == []


def test_the_page_is_up_to_date():
    written = coverage_table.PAGE.read_text(encoding="utf-8")
    assert written == coverage_table.text(), "write it again: make service-page"
