"""Counts and the service's statuses as people read them."""


def many(number: int, one: str, several: str | None = None) -> str:
    """`1 design`, `2 designs`; `several` is for another plural, or for the verb behind it."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def in_words(status: object) -> str:
    """`waiting_for_materials` as `waiting for materials`; `unknown` for None or an empty one."""
    return str(status or "unknown").replace("_", " ")
