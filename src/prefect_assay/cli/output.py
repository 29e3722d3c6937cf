"""Prints for commands: lines as they are, tables without borders, and JSON."""

import json
from typing import Any

from rich.console import Console
from rich.table import Table


def plain(*, stderr: bool = False) -> Console:
    """A console for lines: neither wrapped nor highlighted, no markup and no `:name:` of emoji. Tables need one that wraps."""
    return Console(stderr=stderr, soft_wrap=True, markup=False, emoji=False, highlight=False)


def plain_table(*titles: str, **options: Any) -> Table:
    """A table without borders."""
    return Table(*titles, box=None, pad_edge=False, **options)


def print_json(value: object) -> None:
    """Print JSON for people and programs."""
    print(json.dumps(value, indent=2))
