"""Files of complexes: the records are chains of something that was predicted or solved, and not designs.

FASTA of Boltz (`>A|protein`), Chai (`>protein|name=binder`), the PDB (`>7XYZ_1|Chain A|...`, `>7xyz_A mol:protein`); YAML of
Boltz; JSON of AlphaFold 3. A chain is a design only where a user names it. Heavy and light chains in records of their own are
joined.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from prefect_assay.designs.parts import antibody_chain
from prefect_assay.designs.records import Rows
from prefect_assay.models.vocabulary import CHAIN_SEPARATOR
from prefect_assay.models.words import many
from prefect_assay.tables import UnreadableFile

_LISTED: Final = 6
_BOLTZ = re.compile(
    r"(?P<chain>[A-Za-z0-9]{1,4})\|(?P<kind>protein|dna|rna|ccd|smiles|ligand)(?:\|.*)?", re.IGNORECASE
)
_CHAI = re.compile(r"(?P<kind>protein|dna|rna|ligand|glycan)\|(?:name=)?(?P<chain>[^|]+)", re.IGNORECASE)
_RCSB = re.compile(r"(?P<entry>[A-Za-z0-9]{4,12})_\d+\|(?:Auth )?Chains? (?P<chain>[^|]+)\|.*")
_ENTRY: Final = r"(?P<entry>(?=.{0,3}[A-Za-z])[1-9][A-Za-z0-9]{3})"
_PDB = re.compile(rf"{_ENTRY}[_:.](?P<chain>[A-Za-z0-9]{{1,4}})(?:\|PDBID\|CHAIN\|SEQUENCE|\s+mol:.*)")
_BARE = re.compile(rf"{_ENTRY}[_:.](?P<chain>[A-Za-z]|[A-Z]{{2}})")
_HEADERS: Final = (("Boltz", _BOLTZ), ("Chai", _CHAI), ("PDB", _RCSB), ("PDB", _PDB), ("PDB", _BARE))
_AUTH = re.compile(r"\[auth ([^\]]+)\]")
_PROTEIN: Final = "protein"
CHOOSE: Final = "--chain (in a form: chain)"

_HEAVY: Final = r"VH|heavy|heavy[ _-]?chain|HC|H"
_LIGHT: Final = r"VL|VK|light|light[ _-]?chain|LC|L"
_SIDE = re.compile(rf"(?P<name>.+?)[ _|:.-](?:(?P<heavy>{_HEAVY})|(?P<light>{_LIGHT}))", re.IGNORECASE)

_LOOKED_AT: Final = 200  # names that show whether chains are in records of their own


@dataclass(frozen=True, slots=True)
class Chain:
    """One record: the complex that it is of, all names of the chain, and its residues. Line and place as in the rows."""

    entry: str
    names: tuple[str, ...]
    residues: str
    line: int
    kind: str = _PROTEIN


def chains_of_headers(headers: Sequence[str]) -> tuple[str, list[re.Match[str]]] | None:
    """The program whose headers all of these are, if the records are chains of complexes."""
    if len(headers) < 2:  # noqa: PLR2004 - a single chain may be a design
        return None
    for program, pattern in _HEADERS:
        if not pattern.fullmatch(headers[0]):
            continue
        found = [match for header in headers if (match := pattern.fullmatch(header))]
        if len(found) == len(headers) and _has_several(program, found):
            return program, found
    return None


def _has_several(program: str, found: Sequence[re.Match[str]]) -> bool:
    """Of the PDB, whether any entry has more than one chain; the others write one complex each."""
    return program != "PDB" or max(Counter(match["entry"].casefold() for match in found).values()) > 1


def take_chains(
    rows: Rows, program: str, found: Sequence[re.Match[str]], stem: str, chain: str | None
) -> None:
    """Replace the records by the chains that are named, one design for each complex."""
    chains = []
    complexes: Counter[str] = Counter()
    for match, line, residues in zip(found, rows.lines, rows.residues, strict=True):
        groups = match.groupdict()
        names = _names_of(groups["chain"])
        entry = groups.get("entry") or ""
        if not entry:  # a name that comes again begins the next complex
            complexes[names[0]] += 1
            count = complexes[names[0]]
            entry = stem if count == 1 else f"{stem}_{count}"
        chains.append(Chain(entry, names, residues, line, (groups.get("kind") or _PROTEIN).lower()))
    _take(rows, f"{program} FASTA", chains, chain)


def _names_of(text: str) -> tuple[str, ...]:
    """`A, B[auth H]` are the chains A, B and H."""
    names: list[str] = []
    for part in text.split(","):
        names += [_AUTH.sub("", part).strip(), *_AUTH.findall(part)]
    return tuple(name for name in names if name)


def _take(rows: Rows, what: str, chains: Sequence[Chain], chosen: str | None) -> None:
    proteins = [chain for chain in chains if chain.kind == _PROTEIN]
    if not proteins:
        raise UnreadableFile(f"{what} without a protein chain")
    listed = "; ".join(
        f"{chain.names[0]}: {len(''.join(chain.residues.split()))} residues, {chain.residues[:10]}..."
        for chain in proteins[:_LISTED]
    )
    if chosen is None:
        raise UnreadableFile(
            f"{what}: the records are chains of a complex, not designs ({listed}); name the designed chain with {CHOOSE}",
            chains[0].line,
        )
    wanted = [name.strip() for name in re.split("[,:]", chosen)]
    by_entry: defaultdict[str, list[Chain]] = defaultdict(list)
    for chain in chains:
        by_entry[chain.entry].append(chain)
    for column in (rows.lines, rows.names, rows.residues, rows.extras):
        del column[:]
    for entry, parts in by_entry.items():
        taken = [_named(parts, name) for name in wanted]
        if not all(taken):
            raise UnreadableFile(
                f"{what}: no chain {chosen!r} in {entry}; it has {listed}; choose with {CHOOSE}",
                parts[0].line,
            )
        kept = [part for part in taken if part]
        rows.lines.append(kept[0].line)
        rows.names.append(f"{entry}_{'_'.join(wanted)}" if entry else "_".join(wanted))
        rows.residues.append(CHAIN_SEPARATOR.join(part.residues for part in kept))
        rows.extras.append("")
        for part in parts:
            if part not in kept:
                rows.read.leave_out(
                    f"{entry} {part.names[0]}".strip(),
                    part.line,
                    f"another chain of the complex ({part.kind})",
                )
    rows.read.format = what
    rows.read.chain_taken = True
    rows.notes.append(f"{what}: chain {chosen} of each complex was taken, and the others were left out")


def _named(parts: Sequence[Chain], name: str) -> Chain | None:
    exact = [part for part in parts if part.kind == _PROTEIN and name in part.names]
    if exact:
        return exact[0]
    proteins = [part for part in parts if part.kind == _PROTEIN]
    return proteins[int(name) - 1] if name.isdecimal() and 0 < int(name) <= len(proteins) else None


# -- YAML of Boltz, JSON of AlphaFold 3 and its server


def looks_like_document(line: str) -> bool:
    """Whether the first line begins a YAML of Boltz or a JSON file."""
    return line.lstrip().startswith(("{", "[")) or bool(re.match(r"(?:version|sequences)\s*:", line))


def read_document(rows: Rows, text: str, stem: str, chain: str | None) -> None:
    """Add the named chain of each complex.

    Raises:
        UnreadableFile: it is another kind of document, or no chain is named.
    """
    is_json = text.lstrip().startswith(("{", "["))
    try:
        document = json.loads(text) if is_json else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError):
        raise UnreadableFile(
            f"looks like {'JSON' if is_json else 'YAML'} and does not parse; give FASTA, a table, or a file of Boltz or AlphaFold 3"
        ) from None
    jobs = document if isinstance(document, list) else [document]
    chains = []
    for number, job in enumerate(jobs, 1):
        entry = _entry(job, stem, number if len(jobs) > 1 else 0)
        chains += list(_chains(job, entry))
    if not chains:
        raise UnreadableFile(
            f"{'JSON' if is_json else 'YAML'} without a list of sequences as Boltz and AlphaFold 3 have it; give FASTA or a table"
        )
    _take(rows, "AlphaFold 3 JSON" if is_json else "Boltz YAML", chains, chain)


def _entry(job: Any, stem: str, number: int) -> str:
    name = job.get("name") if isinstance(job, dict) else None
    if isinstance(name, str) and name.strip():
        return name.strip()
    return f"{stem}_{number}" if number else stem


def _chains(job: Any, entry: str) -> Iterator[Chain]:
    sequences = job.get("sequences") if isinstance(job, dict) else None
    letters = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for item in sequences if isinstance(sequences, list) else []:
        for kind, body in item.items() if isinstance(item, dict) else []:
            if not isinstance(body, dict) or not isinstance(body.get("sequence", ""), str):
                continue
            ids = body.get("id")
            names = [str(each) for each in ids] if isinstance(ids, list) else [str(ids)] if ids else []
            names = names or [next(letters, "?") for _ in range(int(body.get("count", 1)))]
            plain = _PROTEIN if kind in {_PROTEIN, "proteinChain"} else str(kind)
            yield Chain(entry, tuple(names), body.get("sequence", ""), 1, plain)


# -- heavy and light chains in records of their own


def join_heavy_and_light(rows: Rows) -> None:
    """Make one design of `ab1_VH` and `ab1_VL`, as the contract writes it: heavy:light.

    Single letters count only where the residues are those of antibodies: `_H` and `_L` also end names of mutants.
    """
    if not any(map(_SIDE.fullmatch, rows.names[:_LOOKED_AT])):
        return
    sides: dict[str, dict[str, int]] = {}
    for at, name in enumerate(rows.names):
        match = _SIDE.fullmatch(name)
        if match is None:
            continue
        side = "heavy" if match["heavy"] else "light"
        if (
            len(match["heavy"] or match["light"]) == 1
            and antibody_chain("".join(rows.residues[at].split()).upper()) != side
        ):
            continue
        sides.setdefault(match["name"], {})[side] = at
    pairs = {name: found for name, found in sides.items() if len(found) == 2}  # noqa: PLR2004 - heavy and light
    if not pairs:
        return
    alone = next((found for found in sides.values() if len(found) == 1), None)
    if alone:
        at = next(iter(alone.values()))
        raise UnreadableFile(
            f"{rows.names[at]!r} is one chain of an antibody without the other, which other records have; add it, or rename this one",
            rows.lines[at],
        )
    gone = set()
    for name, found in pairs.items():
        heavy, light = found["heavy"], found["light"]
        first, second = min(heavy, light), max(heavy, light)
        joined = (rows.residues[heavy], rows.residues[light])
        rows.residues[first] = CHAIN_SEPARATOR.join(
            "".join(each.split()).removesuffix("*") for each in joined
        )
        rows.read.rename(rows.names[first], name)
        rows.names[first] = name
        gone.add(second)
    for at in sorted(gone, reverse=True):
        for column in (rows.lines, rows.names, rows.residues, rows.extras):
            del column[at]
    rows.notes.append(
        f"{many(len(pairs), 'pair of heavy and light chains was', 'pairs of heavy and light chains were')} joined as heavy:light"
    )
