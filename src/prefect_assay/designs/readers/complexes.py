"""Files of complexes: the records are chains of something that was predicted or solved, and not designs.

FASTA of Boltz (`>A|protein`), Chai (`>protein|name=binder`), the PDB (`>7XYZ_1|Chain A|...`, `>7xyz_A mol:protein`); YAML of
Boltz; JSON of AlphaFold 3. A chain is a design only where a user names it. A chain that is more than the twenty amino acids in
a row is refused.
"""

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from prefect_assay.designs.doubt import KEEP
from prefect_assay.designs.readers.records import Rows
from prefect_assay.designs.tables.errors import UnreadableFile
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import CHAIN_SEPARATOR
from prefect_assay.service.words import listed

_LISTED: Final = 6
_CHAIN_NAME: Final = 4  # letters that the name of a chain usually has at most
_RECORDS: Final = 5  # of one complex of proteins whose names are longer
_BOLTZ = re.compile(r"(?P<chain>[^|]+)\|(?P<kind>protein|dna|rna|ccd|smiles|ligand)(?:\|.*)?", re.IGNORECASE)
_CHAI = re.compile(r"(?P<kind>protein|dna|rna|ligand|glycan)\|(?:name=)?(?P<chain>[^|]+)", re.IGNORECASE)
_RCSB = re.compile(r"(?P<entry>[A-Za-z0-9]{4,12})_\d+\|(?:Auth )?Chains? (?P<chain>[^|]+)\|.*")
_ENTRY: Final = r"(?P<entry>(?=.{0,3}[A-Za-z])[1-9][A-Za-z0-9]{3})"
_PDB = re.compile(rf"{_ENTRY}[_:.](?P<chain>[A-Za-z0-9]{{1,4}})(?:\|PDBID\|CHAIN\|SEQUENCE|\s+mol:.*)")
_BARE = re.compile(rf"{_ENTRY}[_:.](?P<chain>[A-Za-z]|[A-Z]{{2}})")
_HEADERS: Final = (("Boltz", _BOLTZ), ("Chai", _CHAI), ("PDB", _RCSB), ("PDB", _PDB), ("PDB", _BARE))
_AUTH = re.compile(r"\[auth ([^\]]+)\]")
_PROTEIN: Final = "protein"
CHOOSE: Final = "--chain (in a form: chain)"


@dataclass(frozen=True, slots=True)
class Chain:
    """One record: the complex that it is of, all names of the chain, its residues, and its place in the rows if it has one.

    `changes` are what the residues leave out, such as a modification.
    """

    entry: str
    names: tuple[str, ...]
    residues: str
    line: int
    kind: str = _PROTEIN
    row: int | None = None
    changes: tuple[str, ...] = ()


def chains_of_headers(headers: Sequence[str]) -> tuple[str, list[re.Match[str]]] | None:
    """The program whose headers all of these are, if the records are chains of complexes."""
    if len(headers) < 2:  # noqa: PLR2004 - a single chain may be a design
        return None
    for program, pattern in _HEADERS:
        if not pattern.fullmatch(headers[0]):
            continue
        matches = [match for header in headers if (match := pattern.fullmatch(header))]
        if len(matches) == len(headers) and _has_several(program, matches):
            return program, matches
    return None


def _has_several(program: str, matches: Sequence[re.Match[str]]) -> bool:
    """Of the PDB, whether any entry has more than one chain; the others write one complex each.

    Many records of long names, all `>name|protein`, are rather designs.
    """
    if program == "PDB":
        return max(Counter(match["entry"].casefold() for match in matches).values()) > 1
    names = {match["chain"] for match in matches}
    is_bare = all(match.group().lower().endswith(f"|{_PROTEIN}") for match in matches)
    return (
        program != "Boltz"
        or not is_bare
        or len(names) < len(matches)
        or max(map(len, names)) <= _CHAIN_NAME
        or len(matches) <= _RECORDS
    )


def take_fasta_chains(
    rows: Rows, program: str, matches: Sequence[re.Match[str]], stem: str, chain: str | None
) -> None:
    """Replace the records by the chains that are named, one design for each complex."""
    chains = []
    complexes: Counter[str] = Counter()
    records = zip(matches, rows.lines, rows.residues, itertools.count())
    for match, line, residues, row in records:
        groups = match.groupdict()
        names = _names_of(groups["chain"])
        entry = groups.get("entry") or ""
        if not entry:  # a name that comes again begins the next complex
            complexes[names[0]] += 1
            count = complexes[names[0]]
            entry = stem if count == 1 else f"{stem}_{count}"
        chains.append(Chain(entry, names, residues, line, (groups.get("kind") or _PROTEIN).lower(), row))
    take_named_chains(rows, f"{program} FASTA", chains, chain)


def _names_of(text: str) -> tuple[str, ...]:
    """`A, B[auth H]` are the chains A, B and H."""
    names: list[str] = []
    for part in text.split(","):
        names += [_AUTH.sub("", part).strip(), *_AUTH.findall(part)]
    return tuple(name for name in names if name)


def take_named_chains(rows: Rows, file_kind: str, chains: Sequence[Chain], chain_option: str | None) -> None:
    """Replace the rows by the chosen chains of each complex; `file_kind` is the kind of file.

    Raises:
        UnreadableFile: no chain is chosen, a complex has no such chain, or the chain is not what its residues say.
    """
    proteins = [chain for chain in chains if chain.kind == _PROTEIN]
    if not proteins:
        raise UnreadableFile(f"{file_kind} without a protein chain")
    shown = "; ".join(
        f"{chain.names[0]}: {len(''.join(chain.residues.split()))} residues, {chain.residues[:10]}..."
        for chain in proteins[:_LISTED]
    )
    if chain_option is None:
        keep = "" if chains[0].row is None else f", or order each record as a design with {KEEP}"
        raise UnreadableFile(
            f"{file_kind}: the records are chains of a complex, not designs ({shown}); name the designed chain with {CHOOSE}{keep}",
            chains[0].line,
        )
    chain_names = [name.strip() for name in re.split("[,:]", chain_option)]
    by_entry: defaultdict[str, list[Chain]] = defaultdict(list)
    for chain in chains:
        by_entry[chain.entry].append(chain)
    _refuse_repeated(file_kind, by_entry)
    columns_before = (rows.extras[:], rows.controls, rows.metadata, rows.read.mutations[:])
    rows.keep([])
    for entry, parts in by_entry.items():
        taken = [_find_named(parts, name) for name in chain_names]
        if not all(taken):
            raise UnreadableFile(
                f"{file_kind}: no chain {chain_option!r} in {entry}; it has {shown}; choose with {CHOOSE}",
                parts[0].line,
            )
        kept = [part for part in taken if part]
        if changes := [change for part in kept for change in part.changes]:
            raise UnreadableFile(
                f"{file_kind}: chain {chain_option} of {entry or 'the complex'} has {listed(changes, _LISTED)}, and the service makes chains of the twenty "
                "amino acids only; take it out of the file if the plain chain is meant",
                kept[0].line,
            )
        _carry_columns(rows, columns_before, kept[0].row)
        rows.lines.append(kept[0].line)
        rows.names.append(f"{entry}_{'_'.join(chain_names)}" if entry else "_".join(chain_names))
        rows.residues.append(CHAIN_SEPARATOR.join(part.residues for part in kept))
        for part in parts:
            if part not in kept:
                rows.read.leave_out(
                    f"{entry} {part.names[0]}".strip(),
                    part.line,
                    f"another chain of the complex ({part.kind})",
                )
        left = [part.residues for part in parts if part.kind == _PROTEIN]
        rows.read.note_left_chains(entry, left, [part.residues for part in kept])
    rows.read.format = file_kind
    rows.read.chain_taken = True
    rows.notes.append(
        f"{file_kind}: chain {chain_option} of each complex was taken, and the others were left out"
    )


def _refuse_repeated(file_kind: str, by_entry: dict[str, list[Chain]]) -> None:
    """Refuse two complexes of one name: of two chains of one name, only the first would be taken."""
    for entry, parts in by_entry.items():
        residues_of: dict[str, str] = {}
        for part in parts:
            name = part.names[0] if part.kind == _PROTEIN and part.names else None
            if name is not None and residues_of.setdefault(name, part.residues) != part.residues:
                raise UnreadableFile(
                    f"{file_kind}: two chains {quoted(name)} of {quoted(entry)} have different residues; if they are of two jobs or "
                    "complexes, give each a name of its own",
                    part.line,
                )


def _carry_columns(rows: Rows, written: tuple[Any, ...], row: int | None) -> None:
    """The columns of the row that a chain was, for the design that it becomes."""
    extras, controls, metadata, mutations = written
    rows.extras.append("" if row is None else extras[row])
    if row in controls:
        rows.controls.add(len(rows.names))
    if row in metadata:
        rows.metadata[len(rows.names)] = metadata[row]
    if mutations and row is not None:
        rows.read.mutations.append(mutations[row])


def _find_named(parts: Sequence[Chain], name: str) -> Chain | None:
    return next((part for part in parts if part.kind == _PROTEIN and name in part.names), None)


# -- YAML of Boltz, JSON of AlphaFold 3 and its server


def looks_like_document(line: str) -> bool:
    """Whether the first line begins a YAML of Boltz or a JSON file."""
    return line.lstrip().startswith(("{", "[")) or bool(re.match(r"(?:version|sequences)\s*:", line))


def read_complex_file(rows: Rows, text: str, stem: str, chain: str | None) -> None:
    """Add the named chain of each complex of a Boltz YAML or an AlphaFold 3 JSON.

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
        entry = _name_entry(job, stem, number if len(jobs) > 1 else 0)
        chains += list(_list_chains(job, entry))
    if not chains:
        raise UnreadableFile(
            f"{'JSON' if is_json else 'YAML'} without a list of sequences as Boltz and AlphaFold 3 have it; give FASTA or a table"
        )
    take_named_chains(rows, "AlphaFold 3 JSON" if is_json else "Boltz YAML", chains, chain)


def _name_entry(job: Any, stem: str, number: int) -> str:
    name = job.get("name") if isinstance(job, dict) else None
    if isinstance(name, str) and name.strip():
        return name.strip()
    return f"{stem}_{number}" if number else stem


def _list_chains(job: Any, entry: str) -> Iterator[Chain]:
    sequences = job.get("sequences") if isinstance(job, dict) else None
    letters = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for item in sequences if isinstance(sequences, list) else []:
        for kind, body in item.items() if isinstance(item, dict) else []:
            if not isinstance(body, dict) or not isinstance(body.get("sequence", ""), str):
                continue
            ids = body.get("id")
            names = (
                [str(chain_id) for chain_id in ids] if isinstance(ids, list) else [str(ids)] if ids else []
            )
            names = names or [next(letters, "?") for _ in range(int(body.get("count", 1)))]
            plain = _PROTEIN if kind in {_PROTEIN, "proteinChain"} else str(kind)
            bonds = [bond for bond in _list_bonds(job) if set(bond[::2]) & set(names)]
            changes = (
                *_list_changes(body),
                *(f"a bond of {' and '.join(map(_name_atom, (bond[:2], bond[2:])))}" for bond in bonds),
            )
            yield Chain(entry, tuple(names), body.get("sequence", ""), 1, plain, changes=changes)


# What the formats say of a chain in addition to its residues, and what says nothing about the protein.
_CHANGED = re.compile("modif|cycl|glycan|bond|link|ptm|stereo|chiral", re.IGNORECASE)


def _list_changes(body: dict[str, Any]) -> Iterator[str]:
    """Modifications, cyclization and the like of one chain."""
    for key, value in body.items():
        if not value or not _CHANGED.search(str(key)):
            continue
        for change in value if isinstance(value, list) else [value]:
            if isinstance(change, dict):
                kind = change.get("ccd") or change.get("ptmType") or change.get("modificationType") or key
                place = change.get("position") or change.get("ptmPosition") or change.get("basePosition")
                yield f"{kind} at {place}" if place else str(kind)
            else:
                yield str(key) if change is True else f"{key} {change}"


def _list_bonds(job: Any) -> Iterator[tuple[str, str, str, str]]:
    """Bonds that are named, chain and atom twice; those of two sulfurs are disulfides, which a protein makes itself."""
    constraints = job.get("constraints") if isinstance(job, dict) else None
    pairs = (
        [constraint.get("bond") for constraint in constraints or [] if isinstance(constraint, dict)]
        if isinstance(constraints, list)
        else []
    )
    atoms = [(bond.get("atom1"), bond.get("atom2")) for bond in pairs if isinstance(bond, dict)]
    listed_pairs = job.get("bondedAtomPairs") if isinstance(job, dict) else None
    atoms += [tuple(pair) for pair in listed_pairs or [] if isinstance(pair, list) and len(pair) == 2]  # noqa: PLR2004 - two atoms
    for first, second in atoms:
        ends = [end for end in (first, second) if isinstance(end, list) and len(end) == 3]  # noqa: PLR2004 - chain, residue, atom
        if len(ends) == 2 and not all(str(end[2]).upper() == "SG" for end in ends):  # noqa: PLR2004 - both were read
            yield str(ends[0][0]), f"{ends[0][2]} {ends[0][1]}", str(ends[1][0]), f"{ends[1][2]} {ends[1][1]}"


def _name_atom(end: tuple[str, str]) -> str:
    return f"{end[0]} {end[1]}"
