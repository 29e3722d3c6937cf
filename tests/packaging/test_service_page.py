"""docs/service.md is up to date and has a test for every rule of the service."""

from support.interface import service_page


def test_every_rule_has_a_test():
    assert service_page.holes() == []


def test_the_page_is_up_to_date():
    written = service_page.PAGE.read_text(encoding="utf-8")
    assert written == service_page.text(), "write it again: make service-page"
