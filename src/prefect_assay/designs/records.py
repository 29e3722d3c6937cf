"""One design as it stands in a source, before it is checked. What the readers hand to the checks."""

from dataclasses import dataclass, field
from typing import Any, Final

# The service publishes no length limit; the longest known protein has some 35,000 residues.
MAX_RESIDUES: Final = 100_000
MAX_SEQUENCES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Record:
    """A design as written: `line` is where it starts, `residues` has no white space but any letters."""

    line: int
    name: str
    residues: str
    control: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
