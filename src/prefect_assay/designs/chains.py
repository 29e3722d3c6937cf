"""Applies the choices of `ReadingOptions`: which chain of each design to take, and what to do about doubts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from prefect_assay.designs.doubt import (
    CHAIN,
    COMPARED_FROM,
    IN_ADDITION,
    KEEP,
    SHARED_FROM,
    Doubts,
    Known,
    find_doubts,
    find_longest_rest,
    is_in,
    pieces_of,
    split_target,
)
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.readers.producers import COLAB
from prefect_assay.designs.readers.records import Rows, SourceErrors, check_rows
from prefect_assay.designs.tables.errors import UnreadableFile
from prefect_assay.errors import InvalidSequences
from prefect_assay.service.models.sequences import Pool, ReadingReport, Sequences
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import CHAIN_SEPARATOR
from prefect_assay.service.words import listed, many

TARGET: Final = "the target (--target-sequence)"
CATALOG: Final = "the target in the service's catalog"
_COLUMN: Final = "the target in a column of the file"
_MONTH: Final = "(?:jan|feb|mar|mrz|mär|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])"
_MANGLED = re.compile(
    rf"(?i:\d{{1,2}}(?:-|\. ?){_MONTH}[a-z]*\.?(?:[- ]\d{{2,4}})?"
    rf"|{_MONTH}[a-z]*[- ]\d{{1,4}}"
    r"|\d{4}-\d\d-\d\d(?:[ T][\d:.]+)?|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}"
    r"|\d+(?:[.,]\d+)?E[+-]?\d+|#(?:NAME|REF|VALUE|N/A|NUM|NULL|DIV/0)[?!]?|#{4,})"
)
_NUMBERS = re.compile(re.escape(CHAIN).replace(re.escape("{}"), r"(\d+(?:,\d+)*)"))
_SLASHED = re.compile(r"[A-Za-z\s*]+(?:/[A-Za-z\s*]+)+")
_LISTED: Final = 3


def choose_chains(rows: Rows, reading: ReadingOptions) -> None:
    """Keep the chosen chains of designs that have several; those of complexes were chosen by name already.

    Raises:
        UnreadableFile: a design has no such chain.
    """
    if reading.chain is None or rows.read.chain_taken:
        return
    split = [index for index, residues in enumerate(rows.residues) if _SLASHED.fullmatch(residues)]
    for index in split:
        rows.residues[index] = rows.residues[index].replace("/", CHAIN_SEPARATOR)
    if split:
        rows.notes.append(f"'/' separates the chains of {many(len(split), 'design')}")
    if not any(CHAIN_SEPARATOR in residues for residues in rows.residues):
        return
    numbers = _list_numbers(reading.chain)
    before = len(set(rows.residues))
    for index, text in enumerate(rows.residues):
        chains = text.split(CHAIN_SEPARATOR)
        if max(numbers) > len(chains):
            raise UnreadableFile(
                f"sequence {quoted(rows.names[index])} has {many(len(chains), 'chain')}, and --chain is {reading.chain}",
                rows.lines[index],
            )
        taken = [chains[number - 1] for number in numbers]
        rows.residues[index] = CHAIN_SEPARATOR.join(taken)
        if index not in rows.controls:
            rows.read.note_left_chains(rows.names[index], chains, taken)
    if before > 1 and len(set(rows.residues)) == 1:
        raise UnreadableFile(
            f"chain {reading.chain} is the same in all designs: choose another one, with --chain (in a form: chain)"
        )
    rows.read.chain_taken = True
    rows.notes.append(f"chain {reading.chain} of each design was taken; the other chains are not ordered")


def _list_numbers(chain: str) -> list[int]:
    parts = [part.strip() for part in re.split("[,:]", chain)]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UnreadableFile(
            f"--chain is {quoted(chain)}, and the chains of this file have no names; give their numbers, from 1, as in 1 or 1,2"
        )
    return [int(part) for part in parts]


def settle_chains(pool: Pool, rows: Rows, reading: ReadingOptions, remarks: Sequence[str]) -> Pool:
    """The pool with its report, after a look at what the designs share.

    Raises:
        InvalidSequences: the target is in the designs, or something needs a choice.
    """
    known = [Known(_COLUMN, chain) for chain in rows.read.targets]
    known += [Known(TARGET, chain) for chain in _target_chains(reading)]
    doubts = _find_doubts(pool, known, rows.read.natives)
    cut = None
    if reading.chain is not None and not rows.read.chain_taken:
        cut = _cut_fused(pool, rows, reading, known, doubts)
    if cut is not None:
        pool, doubts = cut
    rows.read.asked += _ask_about_left_chains(pool, rows.read.left_chains)
    objections = [*rows.read.asked, *doubts.refused, *doubts.asked]
    if rows.read.chain_taken:
        objections = _name_taken_chains(objections, reading)
    objections = objections or _ask_about_colab_targets(pool, rows)
    if objections and not reading.as_is:
        raise InvalidSequences([f"{pool.source}: {line}" for line in objections])
    remarks = [
        *remarks,
        *(f"kept: {line.partition(': is it')[0]}" for line in objections),
        *doubts.notes,
        *describe_mangled_names(pool.names),
    ]
    return replace(pool, report=_make_report(pool, rows, remarks))


def _name_taken_chains(lines: Sequence[str], reading: ReadingOptions) -> list[str]:
    """The lines with the chains that they advise as `reading.chain` has them, where it has several."""
    taken = [name.strip() for name in re.split("[,:]", reading.chain or "")]

    def name_numbers(match: re.Match[str]) -> str:
        numbers = [*map(int, match[1].split(","))]
        is_known = len(taken) > 1 and max(numbers) <= len(taken)
        return CHAIN.format(",".join(taken[number - 1] for number in numbers)) if is_known else match[0]

    return [_NUMBERS.sub(name_numbers, line) for line in lines]


def _ask_about_left_chains(pool: Pool, left_chains: Mapping[str, str]) -> list[str]:
    """A question where the chain that was taken of one design is one that was left out of another."""
    for index, text in enumerate(pool.residues if left_chains else ()):
        chain = next((chain for chain in text.split(CHAIN_SEPARATOR) if chain in left_chains), None)
        if chain is not None and index not in pool.controls:
            line = f"the chain that was taken of {quoted(pool.names[index])} ({len(chain)} residues, {chain[:10]}...) was left out of {quoted(left_chains[chain])}"
            return [
                f"{line}: is it the target? Write the chains of all designs in one order, give such designs in a file of their own, or order them with {KEEP}"
            ]
    return []


def _ask_about_colab_targets(pool: Pool, rows: Rows) -> list[str]:
    """A question about the first chains of RFdiffusion in Colab, for files whose designs all have different ones."""
    if rows.read.producer != COLAB or rows.read.chain_taken:
        return []
    designs = (text.split(CHAIN_SEPARATOR) for text in pool.residues)
    chains = next((chains for chains in designs if len(set(chains)) > 1), None)
    if chains is None:
        return []
    line = f"{COLAB} writes TARGET/BINDER, and the first chain has {len(chains[0])} residues ({chains[0][:10]}...)"
    return [
        f"{line}: is it the target? {CHAIN.format(len(chains))} orders the last chain alone, {KEEP} all of them"
    ]


def refuse_target(sequences: Sequences, target: str | None, reading: ReadingOptions) -> tuple[str, ...]:
    """Refuse designs that contain the target whose residues the service's catalog gives.

    Returns:
        A remark if the catalog gives a sequence with which nothing can be compared.

    Raises:
        InvalidSequences: names the designs and the option.
    """
    if not target or not target.strip() or reading.as_is:
        return ()
    chains = split_target(target)
    if not chains:
        where = "the target's sequence in the service's catalog"
        return (
            f"{where} has no {COMPARED_FROM} amino acids in a row, and was not compared with the designs",
        )
    designs = [item for item in sequences.items if not item.control]
    names, texts = [item.name for item in designs], [item.aa_string for item in designs]
    refusals = find_doubts(names, texts, [Known(CATALOG, chain, IN_ADDITION) for chain in chains]).refused
    catalog = [line for line in refusals if CATALOG in line]
    if catalog:
        lines = _name_taken_chains(catalog, reading)
        raise InvalidSequences([f"{sequences.source}: {line}" for line in lines])
    return ()


def _target_chains(reading: ReadingOptions) -> tuple[str, ...]:
    if not reading.target_sequence:
        return ()
    chains = split_target(reading.target_sequence.upper())
    if not chains:
        raise InvalidSequences(
            [
                f"target_sequence: give {COMPARED_FROM} residues of the target or more, in the letters of amino acids"
            ]
        )
    return chains


def _find_doubts(pool: Pool, known: Sequence[Known], natives: Sequence[str]) -> Doubts:
    names: Sequence[str] = pool.names
    residues: Sequence[str] = pool.residues
    if pool.controls:
        indexes = [index for index in range(len(pool)) if index not in pool.controls]
        names, residues = [names[index] for index in indexes], [residues[index] for index in indexes]
    plain = ["".join(native.split()).upper() for native in natives]
    return find_doubts(names, residues, known, plain)


def _cut_fused(
    pool: Pool, rows: Rows, reading: ReadingOptions, known: Sequence[Known], doubts: Doubts
) -> tuple[Pool, Doubts] | None:
    """Cut fused designs into the target and the rest; None if there is nothing to cut."""
    part_number = _count_wanted_chains(reading)
    if doubts.refused:
        target = next(
            (
                protein.residues
                for protein in known
                if any(
                    is_in(text, protein.residues)
                    for index, text in enumerate(pool.residues)
                    if index not in pool.controls
                )
            ),
            None,
        )
        if target is None:
            return None
        pieces = [pieces_of(residues, target) for residues in pool.residues]
        what = "the target"
    elif doubts.shared_end:
        target = end = doubts.shared_end
        pieces = [
            [residues.removesuffix(end), end] if residues.endswith(end) else [residues]
            for residues in pool.residues
        ]
        what = f"the last {len(end)} residues, which all share ({end[:10]}...; give --target-sequence to cut at its first residue)"
    elif doubts.asked or part_number == 1:
        return None
    else:
        raise InvalidSequences(
            [f"{pool.source}: --chain is {reading.chain}, and the designs have one chain each; leave it out"]
        )
    short = next(
        (
            index
            for index, parts in enumerate(pieces)
            if len(parts) < max(2, part_number) and index not in pool.controls
        ),
        None,
    )
    if short is not None:
        raise InvalidSequences(
            [
                (
                    f"{pool.source}: sequence {quoted(pool.names[short])} has no part {part_number} as the others have; give such designs in a file "
                    f"of their own, or keep all of them with {KEEP}"
                )
            ]
        )
    if not reading.as_is:
        _refuse_tags(pool, pieces, part_number, target)
    chosen = [
        residues if index in pool.controls else parts[part_number - 1]
        for index, (residues, parts) in enumerate(zip(pool.residues, pieces, strict=True))
    ]
    if len(set(chosen)) == 1 and len(pool) > 1:
        raise InvalidSequences(
            [f"{pool.source}: part {part_number} is the same in all designs; choose another one with --chain"]
        )
    errors = SourceErrors(pool.source)
    again = Rows(
        limit=rows.limit,
        names=list(pool.names),
        residues=chosen,
        extras=list(pool.extras),
        unpack=pool.unpack,
        controls=set(pool.controls),
        metadata=dict(pool.metadata),
        notes=[*pool.notes, f"part {part_number} of each design was taken: cut from {what}"],
    )
    again.lines.extend(range(1, len(pool) + 1))
    cut = check_rows(again, pool.source, errors, as_protein=reading.as_protein)
    errors.check()
    kept_now = dict(cut.duplicates)
    earlier = tuple((left, kept_now.get(kept, kept)) for left, kept in pool.duplicates)
    cut = replace(
        cut,
        duplicates=(*earlier, *cut.duplicates),
        duplicate_extras=(*pool.duplicate_extras, *cut.duplicate_extras),
    )
    return cut, _find_doubts(cut, known, ())


def _refuse_tags(pool: Pool, pieces: Sequence[Sequence[str]], number: int, target: str) -> None:
    """Refuse a chosen part that is as short as a tag, where a longer part is not the target either."""
    for index, parts in enumerate(pieces):
        if index in pool.controls or len(parts[number - 1]) >= SHARED_FROM:
            continue
        length, longest = len(parts[number - 1]), find_longest_rest(parts, target)
        if longest is not None and length < len(parts[longest - 1]):
            raise InvalidSequences(
                [
                    (
                        f"{pool.source}: part {number} of sequence {quoted(pool.names[index])} has {many(length, 'residue')}, as a start or a tag, and "
                        f"part {longest} has {len(parts[longest - 1])}: {CHAIN.format(longest)} orders that one; {KEEP}, in addition to "
                        f"--chain {number}, orders the short part"
                    )
                ]
            )


def _count_wanted_chains(reading: ReadingOptions) -> int:
    try:
        numbers = _list_numbers(reading.chain or "")
    except UnreadableFile as error:
        raise InvalidSequences([error.message]) from None
    if len(numbers) > 1:
        raise InvalidSequences(
            [f"--chain is {reading.chain}: of designs that are one chain, one part can be taken"]
        )
    return numbers[0]


def describe_mangled_names(names: Sequence[str]) -> list[str]:
    """A line that names those that look like what a spreadsheet makes of others, such as `2-Mar` of MARCH2; else none."""
    starts = {start for start in {name[:_START] for name in names} if _MAY_BE.match(start)}
    if not starts:
        return []
    mangled = [name for name in names if name[:_START] in starts and _MANGLED.fullmatch(name)]
    if not mangled:
        return []
    names_shown = listed([*map(quoted, mangled)], _LISTED)
    return [
        f"{many(len(mangled), 'name looks', 'names look')} like dates, numbers or errors that a spreadsheet made of them: {names_shown}"
    ]


_START: Final = 3  # letters, which many names have in common
_MAY_BE = re.compile(rf"[0-9#]|{_MONTH}", re.IGNORECASE)


def _make_report(pool: Pool, rows: Rows, remarks: Sequence[str]) -> ReadingReport:
    read = rows.read
    return ReadingReport(
        format=read.format,
        producer=read.producer,
        columns=read.columns,
        scores=read.scores,
        others=read.others,
        other_sequences=read.other_sequences,
        left_out=tuple(read.left_out),
        left_out_count=read.left_out_count,
        renamed=tuple(read.renamed),
        renamed_count=read.renamed_count,
        notes=pool.notes,
        doubts=tuple(remarks),
    )
