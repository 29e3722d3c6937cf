"""The lab's small web pages: thin first version."""

from html import escape
from typing import Any


def experiment_page(
    experiment: dict[str, Any], updates: list[dict[str, Any]], results: list[dict[str, Any]]
) -> str:
    """One experiment's progress, updates and results."""
    del results
    items = "".join(f"<li>{escape(str(update.get('name')))}</li>" for update in updates)
    return f"<!doctype html><title>{escape(str(experiment.get('code')))}</title><p>{escape(str(experiment.get('status')))}</p><ul>{items}</ul>"


def quote_page(quote: dict[str, Any], experiment: dict[str, Any]) -> str:
    """A quote with buttons to accept and reject it."""
    return (
        f"<!doctype html><title>{escape(str(quote.get('id')))}</title><p>{escape(str(experiment.get('code')))}</p>"
        '<form method="post" action="./accept"><button>Accept</button></form>'
        '<form method="post" action="./reject"><button>Reject</button></form>'
    )


def invoice_page(invoice: dict[str, Any], experiment: dict[str, Any]) -> str:
    """An invoice with a button to pay it."""
    return (
        f"<!doctype html><title>{escape(str(invoice.get('id')))}</title><p>{escape(str(experiment.get('code')))}</p>"
        '<form method="post" action="./pay"><button>Pay</button></form>'
    )
