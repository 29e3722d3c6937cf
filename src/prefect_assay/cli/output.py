"""Prints for commands: lines as they are, tables without borders, and JSON."""

import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prefect_assay.foreign_text import clean_text


class TerminalConsole(Console):
    """A console that shows texts of the service and of files without control characters, which rich passes on, or markup."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        """See rich; each text of a line and of a table comes here."""
        return super().render_str(clean_text(text), **options)


def make_plain_console(*, stderr: bool = False) -> Console:
    """A console for lines: neither wrapped nor highlighted, no markup and no `:name:` of emoji. Tables need one that wraps."""
    return TerminalConsole(stderr=stderr, soft_wrap=True, markup=False, emoji=False, highlight=False)


def plain_table(*titles: str, **options: Any) -> Table:
    """A table without borders."""
    return Table(*titles, box=None, pad_edge=False, **options)


def print_json(value: object) -> None:
    """Print JSON for people and programs."""
    print(json.dumps(value, indent=2))
