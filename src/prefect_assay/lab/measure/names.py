"""Names as file names: any sequence name becomes one that every file system and zip reader takes.

A character outside letters, digits, point, hyphen and underscore becomes an underscore, as in the bundled raw
data (a leading space there is a leading underscore). Two names that would meet get a short digest each.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

LENGTH_MAX: Final = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def safe_name(name: str) -> str:
    """One name, without looking at the others."""
    safe = _UNSAFE.sub("_", name)
    safe = "_" + safe[1:] if safe.startswith(".") else safe or "_"
    return safe if len(safe) <= LENGTH_MAX else f"{safe[: LENGTH_MAX - 9]}-{_digest(name)}"


def safe_names(names: Sequence[str]) -> tuple[str, ...]:
    """A file name for each name, in order; no two are the same, upper and lower case included."""
    wanted = [safe_name(name) for name in names]
    count = Counter(safe.casefold() for safe in wanted)
    used: set[str] = set()
    result = []
    for name, safe in zip(names, wanted, strict=True):
        stem = safe if count[safe.casefold()] == 1 else f"{safe[: LENGTH_MAX - 9]}-{_digest(name)}"
        unique, again = stem, 1
        while unique.casefold() in used:  # two designs with the very same name
            again += 1
            unique = f"{stem}-{again}"
        used.add(unique.casefold())
        result.append(unique)
    return tuple(result)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
