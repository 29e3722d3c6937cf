"""The columns of a table: which header means what, without case and separators, and cells as metadata (contract 2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from prefect_assay.designs.records import FAB, SourceErrors
from prefect_assay.models.spec_rules import quoted
from prefect_assay.tables import key_of

# In order of preference: a file may have several of them.
NAME: Final = (
    "name",
    "design",
    "design name",
    "sequence name",
    "design id",
    "sequence id",
    "seq id",
    "id",
    "identifier",
    "variant",
    "description",
)
SEQUENCE: Final = (
    "sequence",
    "aa string",
    "aa sequence",
    "amino acid sequence",
    "protein sequence",
    "designed chain sequence",  # BoltzGen: the full chain
    "full sequence",
    "binder sequence",
    "seq",
)
OPTIONAL: Final = {
    "control": ("control", "is control"),
    "type": ("type", "sequence type"),
    "molecule_class": ("molecule class",),
    "tag_location": ("tag location", "tag"),
    "VH": ("vh",),
    "VL": ("vl",),
    "linker": ("linker",),
    "chain_order": ("chain order",),
    "ch": ("ch", "framework ch"),
    "cl": ("cl", "framework cl"),
}
# BoltzGen writes the designed residues without the rest of the chain under this name: never the protein to order.
PARTIAL: Final = "designed sequence"


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """Titles that a user names instead of those listed here."""

    name: str | None = None
    sequence: str | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """The position of each column, counted from 0; `optional` has those that exist, `others` the designer's own."""

    name: int
    sequence: int
    optional: dict[str, int]
    others: tuple[tuple[int, str], ...]  # position and title


def beside(title: str) -> str:
    """A title of the designer's own column beside `name` and `sequence`: one that would be read as them is marked."""
    return f"{title} (own)" if key_of(title) in _READ else title


def explain(titles: Sequence[str], named: ColumnNames) -> str:
    """The columns that the titles lack, as an error message."""
    keys = [key_of(title) for title in titles]
    absent = [
        title for title in (named.name, named.sequence) if title is not None and key_of(title) not in keys
    ]
    if absent:
        return (
            f"no column {' and no column '.join(map(quoted, absent))} in [{_listed(titles)}]; "
            "name a column of this table, or leave the choice out"
        )
    if key_of(PARTIAL) in keys and _index(keys, SEQUENCE) is None:
        return (
            "the column designed_sequence holds the designed residues only, not the protein; "
            "add the full chain as designed_chain_sequence or sequence"
        )
    missing = [
        what for what, aliases in (("name", NAME), ("sequence", SEQUENCE)) if _index(keys, aliases) is None
    ]
    # Without either column it may be any file, such as one with credentials: nothing is quoted.
    where = f"in [{_listed(titles)}]" if len(missing) == 1 else "in this line"
    return (
        f"neither FASTA (a line that starts with '>') nor a table with a header: no {' and no '.join(missing)} column "
        f"{where}; name one of {', '.join(NAME[:4])} and one of {', '.join(SEQUENCE[:4])}"
    )


def _listed(titles: Sequence[str]) -> str:
    return ", ".join(title.strip()[:40] for title in titles[:20])


def repeated(titles: Sequence[str], header: Header) -> str | None:
    """The title of a needed column that two columns share."""
    keys = [key_of(title) for title in titles]
    used = (header.name, header.sequence, *header.optional.values())
    return next((titles[index] for index in used if keys.count(keys[index]) > 1), None)


def find_header(titles: Sequence[str], named: ColumnNames) -> Header | None:
    """The columns of these titles; None without both a name and a sequence column."""
    keys = [key_of(title) for title in titles]
    name, sequence = _chosen(titles, named.name, NAME), _chosen(titles, named.sequence, SEQUENCE)
    if name is None or sequence is None or name == sequence:
        return None
    optional = {
        field: at
        for field, aliases in OPTIONAL.items()
        if (at := _index(keys, aliases)) is not None and at not in {name, sequence}
    }
    used = {name, sequence, *optional.values()}
    return Header(name, sequence, optional, _others(titles, used))


def _chosen(titles: Sequence[str], named: str | None, aliases: Sequence[str]) -> int | None:
    """The column that a user named, as written or but for case and separators; else the first alias."""
    if named is None:
        return _index([key_of(title) for title in titles], aliases)
    written = [title.strip() for title in titles]
    if named.strip() in written:
        return written.index(named.strip())
    return _index([key_of(title) for title in titles], (named,))


def _others(titles: Sequence[str], used: set[int]) -> tuple[tuple[int, str], ...]:
    """The columns without a meaning here; a title that is empty or repeated gets its column's number, from 1."""
    taken: dict[str, int] = {}
    for at, title in enumerate(titles):
        if at not in used:
            plain = title.strip()
            free = plain if plain and plain not in taken else f"{plain} (column {at + 1})".strip()
            taken[free] = at
    return tuple((at, title) for title, at in taken.items())


def _index(keys: Sequence[str], aliases: Sequence[str]) -> int | None:
    return next((keys.index(key) for alias in aliases if (key := key_of(alias)) in keys), None)


_READ: Final = frozenset(
    key_of(title)
    for title in (NAME[0], SEQUENCE[0], *(alias for aliases in OPTIONAL.values() for alias in aliases))
)

SCFV: Final = "ScFv"
_TYPES: Final = {"scfv": SCFV, "fab": FAB, "singlechain": "SingleChain", "igg": "IgG"}
_TAGS: Final = {f"{end}{form}": end.upper() for end in "nc" for form in ("", "term", "terminus", "terminal")}
_AS_WRITTEN: Final = ("VH", "VL", "linker", "chain_order")
_FRAMEWORK: Final = ("ch", "cl")
# The columns that a type needs.
_NEEDED: Final = {SCFV: ("VH", "VL"), FAB: _FRAMEWORK}
_ABSENT: Final = "nan"  # how tables spell an empty cell; no type, no tag


def metadata_of(given: dict[str, str], line: int, name: str, errors: SourceErrors) -> dict[str, Any]:
    """The metadata of one row; `given` holds its filled optional cells by field name."""
    metadata: dict[str, Any] = {field: given[field] for field in _AS_WRITTEN if field in given}
    framework = {field: given[field] for field in _FRAMEWORK if field in given}
    if framework:
        metadata["framework_regions"] = framework
    kind = _known(given, "type", _TYPES, "one of " + ", ".join(_TYPES.values()), line, name, errors)
    missing = [column for column in _NEEDED.get(kind or "", ()) if column not in given]
    if missing:
        errors.add(
            f"type {kind} needs {' and '.join(missing)}; fill the columns, or leave the type empty",
            line=line,
            name=name,
        )
    if kind:
        metadata["type"] = kind
    elif "molecule_class" in given:
        _molecule_class(given, metadata)
    tag = _known(given, "tag_location", _TAGS, "N or C", line, name, errors)
    if tag:
        metadata["tag_location"] = tag
    return metadata


def _known(
    given: dict[str, str],
    field: str,
    words: dict[str, str],
    choice: str,
    line: int,
    name: str,
    errors: SourceErrors,
) -> str | None:
    """The service's word for a cell; an unknown word is an error."""
    cell = given.get(field, _ABSENT)
    word = words.get(_plain(cell))
    if word is None and cell.casefold() != _ABSENT:
        errors.add(
            f"{field} is {quoted(cell)}; write {choice}, leave it empty, or rename the column",
            line=line,
            name=name,
        )
    return word


def _molecule_class(given: dict[str, str], metadata: dict[str, Any]) -> None:
    """A looser word than the type; it becomes the type if the row has all that the type needs."""
    cell = given["molecule_class"]
    kind = _TYPES.get(_plain(cell))
    if kind and all(column in given for column in _NEEDED.get(kind, ())):
        metadata["type"] = kind
    else:
        metadata["molecule_class"] = cell


def _plain(cell: str) -> str:
    return cell.casefold().replace("_", "").replace("-", "").replace(" ", "")
