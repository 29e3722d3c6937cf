"""Counts, lists and the service's statuses as people read them."""

from collections.abc import Sequence

from prefect_assay.foreign_text import clean_text


def many(number: int, one: str, several: str | None = None) -> str:
    """`1 design`, `2 designs`; `several` is for another plural, or for the verb behind it."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def in_words(status: object) -> str:
    """`waiting_for_materials` as `waiting for materials`; `unknown` for None or an empty one."""
    return str(status or "unknown").replace("_", " ")


def describe_mode(*, is_simulated: bool) -> str:
    """Whether an account's service is a simulation or moves real money, in the one word that people see everywhere."""
    return "simulated" if is_simulated else "LIVE"


def describe_organisation(organisation_id: str | None, name: str | None) -> str:
    """An organization as people know it: by its name, else by its id."""
    return f"organization {clean_text(name or '').strip() or organisation_id or 'not named'}"
