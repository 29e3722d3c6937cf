"""How a foreign value stands in a message: quoted, bounded, on one line."""

from typing import Final

SHOWN_MAX: Final = 80


def shown(value: str) -> str:
    """A value as a message may show it: quoted, control characters escaped, cut to a bounded length."""
    return repr(value if len(value) <= SHOWN_MAX else value[: SHOWN_MAX - 3] + "...")
