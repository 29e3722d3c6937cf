"""Cells of a table to the metadata of a sequence (contract 2.3): type of construct, chains, tag location.

A word that the service would refuse is found here, with its line, and not by the service.
"""

from typing import Any, Final

from prefect_assay.designs.findings import Findings, shown

FAB: Final = "FAB"
SCFV: Final = "ScFv"
_TYPES: Final = {"scfv": SCFV, "fab": FAB, "singlechain": "SingleChain", "igg": "IgG"}
_TAGS: Final = {f"{end}{form}": end.upper() for end in "nc" for form in ("", "term", "terminus", "terminal")}
_AS_WRITTEN: Final = ("VH", "VL", "linker", "chain_order")
_FRAMEWORK: Final = ("ch", "cl")
# What a type cannot do without: columns of the table.
_NEEDED: Final = {SCFV: ("VH", "VL"), FAB: _FRAMEWORK}
_ABSENT: Final = "nan"  # how tables spell an empty cell; no type, no tag


def metadata_of(given: dict[str, str], line: int, name: str, findings: Findings) -> dict[str, Any]:
    """The metadata of one row; `given` holds its filled optional cells by field name."""
    metadata: dict[str, Any] = {field: given[field] for field in _AS_WRITTEN if field in given}
    framework = {field: given[field] for field in _FRAMEWORK if field in given}
    if framework:
        metadata["framework_regions"] = framework
    kind = _known(given, "type", _TYPES, "one of " + ", ".join(_TYPES.values()), line, name, findings)
    missing = [column for column in _NEEDED.get(kind or "", ()) if column not in given]
    if missing:
        findings.add(
            f"type {kind} needs {' and '.join(missing)}; fill the columns, or leave the type empty",
            line=line,
            name=name,
        )
    if kind:
        metadata["type"] = kind
    elif "molecule_class" in given:
        _molecule_class(given, metadata)
    tag = _known(given, "tag_location", _TAGS, "N or C", line, name, findings)
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
    findings: Findings,
) -> str | None:
    """The service's word for a cell; a word that it does not know is a finding."""
    cell = given.get(field, _ABSENT)
    word = words.get(_plain(cell))
    if word is None and cell.casefold() != _ABSENT:
        findings.add(
            f"{field} is {shown(cell)}; write {choice}, leave it empty, or rename the column",
            line=line,
            name=name,
        )
    return word


def _molecule_class(given: dict[str, str], metadata: dict[str, Any]) -> None:
    """A looser word than the type: it becomes the type where the row has all that the type needs."""
    cell = given["molecule_class"]
    kind = _TYPES.get(_plain(cell))
    if kind and all(column in given for column in _NEEDED.get(kind, ())):
        metadata["type"] = kind
    else:
        metadata["molecule_class"] = cell


def _plain(cell: str) -> str:
    return cell.casefold().replace("_", "").replace("-", "").replace(" ", "")
