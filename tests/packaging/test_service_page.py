"""docs/service.md is what the code says, and nothing of the service's interface is missing in it."""

from support.interface import coverage_table


def test_nothing_of_the_interface_is_missing():
    assert coverage_table.holes() == []


def test_the_page_is_what_the_code_says():
    written = coverage_table.PAGE.read_text(encoding="utf-8")
    assert written == coverage_table.text(), "write it again: make docs"
