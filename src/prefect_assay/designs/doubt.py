"""Is it the right protein? Decides what is refused, what needs a choice, and what is only reported. Pure functions.

Refused: a chain or part of a design that is the target, or that equals the native input. A choice is needed: a chain, a
beginning or an end that unrelated designs share. Reported: what variants of one scaffold share, and known parts.

Residues are compared by words of four: variants share most of them, and unrelated proteins some percent. A large file is
looked at by a sample that is spread evenly over it.
"""

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeVar

from prefect_assay.designs.parts import classify_antibody_chain, known_parts, variable_domains
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import AMINO_ACIDS, CHAIN_SEPARATOR
from prefect_assay.service.words import listed, many

WORD: Final = 4
SHARED_FROM: Final = 30  # residues of a shared beginning or end, and of the rests next to it
COMPARED_FROM: Final = 8  # fewer residues say nothing
_SAMPLE: Final = 80
_SAID_SAMPLE: Final = 500
_PARTS_SAMPLE: Final = 100
_SAID_FROM: Final = 15
_ALIKE: Final = 0.7  # of the words: the same protein with small differences
_UNRELATED: Final = 0.3
_RELATED: Final = 0.35  # of the residues at the same places: also variants that share few words
_MOST: Final = 0.8  # of the designs
_WORDS_IN_COMMON: Final = 5  # of a shared stretch, which is mostly covered by words of four
_PAIRS: Final = 0.3  # of the designs share it and are unrelated elsewhere
_LOOSE: Final = 15  # residues of a tag or code next to a shared end
_LISTED: Final = 3
_TILE: Final = 8
_STRETCH = re.compile(f"[{''.join(sorted(AMINO_ACIDS))}]{{{COMPARED_FROM},}}")
_FASTA_HEADER = re.compile(r"^\s*>.*$", re.MULTILINE)

T = TypeVar("T")

KEEP: Final = "--as-is (in a form: as_is)"
CHAIN: Final = "--chain {} (in a form: chain)"
IN_ADDITION: Final = " in addition to --target-sequence (its residues)"


@dataclass(frozen=True, slots=True)
class Known:
    """A protein that is not a design: the target, or a native input.

    `option` is what cuts it out of a single chain, in addition to the number of a part.
    """

    what: str
    residues: str
    option: str = ""


@dataclass(slots=True)
class Doubts:
    """What was found, one line each. `shared_end` has the residues that fused designs end in, if they were asked about."""

    refused: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shared_end: str | None = None


def find_doubts(
    names: Sequence[str], residues: Sequence[str], known: Iterable[Known] = (), natives: Iterable[str] = ()
) -> Doubts:
    """Look at designs in upper case with `:` between chains; controls are not among them."""
    doubts = Doubts()
    for protein in known:
        _look_for_target(names, residues, protein, doubts)
    explained = _refuse_native_chains(residues, natives, doubts)
    if not doubts.refused and len(residues) > 1:
        _look_at_chains(residues, explained, doubts)
        _look_at_ends(residues, doubts)
    _say_what_is_shared(residues, doubts)
    return doubts


def pick_evenly(items: Sequence[T], most: int = _SAMPLE) -> Sequence[T]:
    """At most so many, evenly over all of them."""
    if len(items) <= most:
        return items
    return [items[number * (len(items) - 1) // (most - 1)] for number in range(most)]


@lru_cache(maxsize=4 * _SAMPLE)  # each design of a sample is compared with several others
def split_into_words(chain: str) -> frozenset[str]:
    """Every stretch of four residues."""
    return frozenset(chain[start : start + WORD] for start in range(len(chain) - WORD + 1))


def mark_covered(chain: str, other: frozenset[str]) -> list[bool]:
    """Which residues are in a stretch that the other protein also has."""
    mask = [False] * len(chain)
    for start in range(len(chain) - WORD + 1):
        if chain[start : start + WORD] in other:
            mask[start : start + WORD] = [True] * WORD
    return mask


def is_alike(chain: str, other: str) -> bool:
    """Whether two chains may be variants of one protein."""
    same = sum(map(str.__eq__, chain, other))
    return _measure_likeness(chain, split_into_words(other)) >= _UNRELATED or same >= _RELATED * max(
        len(chain), len(other)
    )


def find_densest(mask: Sequence[bool]) -> tuple[int, int]:
    """The stretch that is mostly covered: at least two of three residues, and not extended by less."""
    best, start, score, stretch = 0, 0, 0, (0, 0)
    for index, hit in enumerate(mask):
        if score <= 0:
            start, score = index, 0
        score += 1 if hit else -2
        if score > best:
            best, stretch = score, (start, index + 1)
    return stretch


# -- the target


@lru_cache(maxsize=64)  # the rows of a table have few targets
def split_target(text: str) -> tuple[str, ...]:
    """The chains of a target as catalogs and tables write them; those without `COMPARED_FROM` amino acids in a row are left out.

    A FASTA header begins a chain. Numbers, gaps, stops and white space are layout. Unknown residues stay, as differences.
    """
    chains: list[str] = []
    for part in re.split("[:/|,;]", _FASTA_HEADER.sub(CHAIN_SEPARATOR, text)):
        letters = "".join(filter(str.isalpha, part))
        is_long = len(letters) >= SHARED_FROM and _STRETCH.search(letters.upper())
        # A shorter chain is compared letter by letter, where an unknown residue equals none; in lower case it is rather words.
        chains += [letters.upper()] if is_long else _STRETCH.findall(letters)
    return tuple(chains)


def _look_for_target(names: Sequence[str], residues: Sequence[str], known: Known, doubts: Doubts) -> None:
    target = known.residues
    if len(target) < COMPARED_FROM:
        return
    indexes = [index for index, text in enumerate(residues) if is_in(text, target)]
    if not indexes:
        return
    listed = _join_names([names[index] for index in indexes])
    where = {_describe_place(residues[index], target) for index in indexes}
    place = where.pop() if len(where) == 1 else "a chain or a part"
    line = f"{place} of {len(indexes):,} of {many(len(residues), 'design')} is {known.what} ({_describe_chain(target)}): {listed}"
    design = residues[indexes[0]]
    rest = find_longest_rest(pieces_of(design, target), target)
    option = "" if CHAIN_SEPARATOR in design else known.option
    doubts.refused.append(
        f"{line}. {CHAIN.format(rest)}{option} orders the rest, {KEEP} all of it, or leave these designs out"
        if rest
        else f"{line}. Leave these designs out, or order them with {KEEP}"
    )


def is_in(design: str, target: str) -> bool:
    """Whether a chain or a part of a design is the target, with small differences."""
    if not any(
        target[start : start + _TILE] in design for start in range(0, len(target) - _TILE + 1, _TILE // 2)
    ):
        return False
    return any(find_target_in_chain(chain, target) for chain in design.split(CHAIN_SEPARATOR))


def find_target_in_chain(chain: str, target: str) -> tuple[int, int] | None:
    """Start and end of the target in a chain, or None. Tags and fusion partners count only if the target is one."""
    if len(target) < SHARED_FROM:
        position = chain.find(target)
        return None if position < 0 else (position, position + len(target))
    without_parts = _without_parts(target)
    words = split_into_words(
        without_parts if sum(letter != "-" for letter in without_parts) >= SHARED_FROM else target
    )
    start, end = find_densest(mark_covered(chain, words))
    if end - start < min(SHARED_FROM, round(_MOST * len(target))):
        return None
    return _extend_to_target_ends(chain, target, start, end)


def _without_parts(chain: str) -> str:
    letters = list(chain)
    for part in known_parts(chain):
        letters[part.start : part.end] = "-" * (part.end - part.start)
    return "".join(letters)


def _extend_to_target_ends(chain: str, target: str, start: int, end: int) -> tuple[int, int]:
    """The stretch extended by up to `_LOOSE` residues, where the target begins or ends there."""
    first = target.find(chain[start : start + WORD])
    last = target.rfind(chain[end - WORD : end])
    if first >= 0 and first <= start and start - first <= start:
        start -= first if first <= _LOOSE else 0
    behind = len(target) - (last + WORD)
    if last >= 0 and 0 <= behind <= _LOOSE:
        end = min(len(chain), end + behind)
    return max(0, start), end


def _describe_place(design: str, target: str) -> str:
    chains = design.split(CHAIN_SEPARATOR)
    index = next(index for index, chain in enumerate(chains) if find_target_in_chain(chain, target))
    start, end = find_target_in_chain(chains[index], target) or (0, 0)
    if len(chains) > 1:
        return f"chain {index + 1}"
    if start <= _LOOSE and len(design) - end <= _LOOSE:
        return "the whole"
    return "the beginning" if start <= _LOOSE else "the end" if len(design) - end <= _LOOSE else "a part"


def find_longest_rest(pieces: Sequence[str], target: str) -> int | None:
    """The number, from 1, of the longest chain or piece that is not the target: a shorter one may be a tag."""
    rests = [number for number, piece in enumerate(pieces, 1) if not find_target_in_chain(piece, target)]
    return max(rests, key=lambda number: len(pieces[number - 1]), default=None)


def pieces_of(design: str, target: str) -> list[str]:
    """The chains of a design; a single chain that contains the target is cut into what is before, the target, and behind."""
    chains = design.split(CHAIN_SEPARATOR)
    if len(chains) > 1:
        return chains
    span = find_target_in_chain(design, target)
    if span is None:
        return chains
    start, end = span
    return [piece for piece in (design[:start], design[start:end], design[end:]) if piece]


# -- natives


def _refuse_native_chains(residues: Sequence[str], natives: Iterable[str], doubts: Doubts) -> frozenset[str]:
    """Refuse a chain that is that of the native input; returns these chains."""
    fixed = {
        chain for native in natives for chain in native.split(CHAIN_SEPARATOR) if CHAIN_SEPARATOR in native
    }
    if not fixed:
        return frozenset()
    chains_by_number: dict[int, list[str]] = {}
    for design in residues:
        chains = design.split(CHAIN_SEPARATOR)
        for number, chain in enumerate(chains, 1):
            if chain in fixed:
                chains_by_number.setdefault(number, []).append(chain)
    for number, chains in chains_by_number.items():
        others = _list_other_chains(residues, number)
        advice = (
            f"{CHAIN.format(others)} orders the rest, {KEEP} both"
            if others
            else f"Take another chain with --chain (in a form: chain), leave these designs out, or order them with {KEEP}"
        )
        doubts.refused.append(
            f"chain {number} of {len(chains):,} of {many(len(residues), 'design')} ({_describe_chain(chains[0])}) equals the native "
            f"input: it was fixed, as a target is. {advice}"
        )
    return frozenset(chain for chains in chains_by_number.values() for chain in chains)


# -- chains that all share


def _look_at_chains(residues: Sequence[str], known: frozenset[str], doubts: Doubts) -> None:
    designs = [text.split(CHAIN_SEPARATOR) for text in residues if CHAIN_SEPARATOR in text]
    if len(designs) < 2:  # noqa: PLR2004 - a single design shares nothing
        return
    counts = Counter(chain for chains in designs for chain in set(chains))
    # Each of several targets is a chain of some of the designs.
    shared = {chain for chain, count in counts.items() if count > 1 and chain not in known}
    if 2 * sum(not shared.isdisjoint(chains) for chains in designs) < len(designs):
        shared = set()
    asked, common = _judge_shared_chains(residues, designs, {chain: counts[chain] for chain in shared})
    doubts.asked += _list_few(asked)
    doubts.notes += _list_few(common)
    if not asked:
        _look_at_similar_chains(residues, designs, shared, doubts)


def _judge_shared_chains(
    residues: Sequence[str], designs: Sequence[Sequence[str]], counts: Mapping[str, int]
) -> tuple[list[str], list[str]]:
    """Questions about shared chains, and notes about those that are shared for a good reason."""
    asked: list[str] = []
    common: list[str] = []
    antibody: str | None = None
    is_pair = max(map(len, designs)) == 2  # noqa: PLR2004 - of more chains, two may be an antibody that is the target
    is_short = max(len(chain) for chains in designs for chain in chains) < COMPARED_FROM
    for chain in sorted(counts, key=lambda sequence: (-counts[sequence], -len(sequence)))[:_SAMPLE]:
        kind = classify_antibody_chain(chain)
        where = next(chains.index(chain) + 1 for chains in designs if chain in chains)
        line = f"chain {where} is the same in {_format_share(counts[chain], len(designs))} ({_describe_chain(chain)})"
        if (
            kind
            and (antibody in {None, kind} or is_pair)
            and _is_pairing(designs, chain, "light" if kind == "heavy" else "heavy")
        ):
            antibody = kind
            common.append(f"{line}: a common {kind} chain")
        elif is_short:
            common.append(line)
        else:
            asked.append(_name_chain(line, _list_other_chains(residues, where)))
    return asked, common


def _list_few(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _LISTED
    return [
        *lines[:_LISTED],
        *(
            [f"{many(more, 'more chain is', 'more chains are')} shared by several designs"]
            if more > 0
            else []
        ),
    ]


def _is_pairing(designs: Sequence[Sequence[str]], chain: str, kind: str) -> bool:
    """Whether the chain's partners are antibody chains of the other kind."""
    beside = [other for chains in pick_evenly(designs) for other in chains if other != chain]
    count = sum(classify_antibody_chain(other) == kind for other in beside)
    return count >= _MOST * len(beside) / 2 and count > 0


def _look_at_similar_chains(
    residues: Sequence[str], designs: Sequence[Sequence[str]], shared: Collection[str], doubts: Doubts
) -> None:
    """A chain with small differences in all, next to chains that are unrelated."""
    usual = Counter(map(len, designs)).most_common(1)[0][0]
    sample = [chains for chains in pick_evenly(designs) if len(chains) == usual]
    for reference in {0: sample[0], 1: sample[len(sample) // 2]}.values():
        others = [chains for chains in sample if chains is not reference]
        if not others:
            return
        alike = [
            [_measure_likeness(reference[index], split_into_words(chains[index])) for chains in others]
            for index in range(usual)
        ]
        # Of antibodies the frameworks are alike.
        limits = [_MOST if classify_antibody_chain(chain) else _UNRELATED for chain in reference]
        varied = [
            index
            for index in range(usual)
            if sum(likeness < limits[index] for likeness in alike[index]) >= _PAIRS * len(others)
        ]
        for index in range(usual):
            if (
                index in varied
                or not varied
                or reference[index] in shared
                or classify_antibody_chain(reference[index])
            ):
                continue
            if sum(likeness >= _ALIKE for likeness in alike[index]) >= _MOST * len(others):
                line = f"chain {index + 1} is nearly the same in all {len(designs):,} designs ({_describe_chain(reference[index])})"
                doubts.asked.append(_name_chain(line, _list_other_chains(residues, index + 1)))
                return


def _measure_likeness(chain: str, other: frozenset[str]) -> float:
    """The part of a chain that is in stretches which the other one, given as its words, also has."""
    mask = mark_covered(chain, other)
    return sum(mask) / len(mask) if mask else 0.0


# -- beginnings and ends that all share


@dataclass(frozen=True, slots=True)
class _Shared:
    """A stretch of the reference that others share, while the rests are unrelated."""

    start: int
    end: int


def _look_at_ends(residues: Sequence[str], doubts: Doubts) -> None:
    columns: list[tuple[str, Sequence[str]]] = [("", residues)]
    chains = []
    if CHAIN_SEPARATOR in "".join(residues):
        columns = [("", [text for text in residues if CHAIN_SEPARATOR not in text])]
        chains = [text.split(CHAIN_SEPARATOR) for text in pick_evenly(residues) if CHAIN_SEPARATOR in text]
    columns += [
        (f" of chain {index + 1}", [design[index] for design in chains if len(design) > index])
        for index in range(max(map(len, chains), default=0))
    ]
    for which, texts in columns:
        if len(texts) < 2:  # noqa: PLR2004 - a single design shares nothing
            continue
        sample = list(dict.fromkeys(pick_evenly(texts)))
        known = {text: split_into_words(text) for text in sample}
        for reference in dict.fromkeys((sample[0], sample[len(sample) // 2], sample[-1])):
            others = [text for text in sample if text != reference]
            near = [text for text in others if len(known[reference] & known[text]) >= _WORDS_IN_COMMON]
            stretches = [
                shared for other in near if (shared := _find_shared_end(reference, other, known[other]))
            ]
            if stretches and len(stretches) >= max(1, _PAIRS * len(others)):
                part = _find_median(reference, stretches)
                sharing = 1 + sum(_has_part(other, part) for other in others)
                if sharing >= _MOST * len(sample):
                    _ask_about_end(reference, part, texts, which, doubts)
                    return


def _find_shared_end(reference: str, other: str, known: frozenset[str]) -> _Shared | None:
    """The stretch at an end that two designs share, if it is unexplained and the rests are unrelated."""
    mask = mark_covered(reference, known)
    # A dense stretch of that length has at least two of three residues.
    if min(len(reference), len(other)) < 2 * SHARED_FROM or 3 * sum(mask) < 2 * SHARED_FROM:
        return None
    antibodies = variable_domains(reference) if variable_domains(other) else []
    for domain in antibodies:  # whose frameworks are alike: what counts is what is next to them
        mask[domain.start : domain.end] = [False] * (domain.end - domain.start)
    start, end = find_densest(mask)
    if end - start < SHARED_FROM or (start > _LOOSE and len(reference) - end > _LOOSE):
        return None
    rest = mask[:start] + mask[end:]
    unlike = rest.count(False)
    if unlike < SHARED_FROM or unlike < (1 - _UNRELATED) * (len(rest) - 2 * _LOOSE):
        return None
    if len(other) - (end - start) < SHARED_FROM or _is_explained(reference, start, end, mask):
        return None
    if not antibodies and _are_variants(reference, other):
        return None
    return _Shared(start, end)


def _are_variants(chain: str, other: str) -> bool:
    """Whether a third of the residues that differ in words are the same at their places, from either end."""
    mask = mark_covered(chain, split_into_words(other))
    open_to = [index for index, hit in enumerate(mask) if not hit]
    shift = len(other) - len(chain)
    same = (
        sum(0 <= index + by < len(other) and chain[index] == other[index + by] for index in open_to)
        for by in {0, shift}
    )
    return max(same) >= _RELATED * len(open_to)


def _is_explained(chain: str, start: int, end: int, mask: Sequence[bool]) -> bool:
    """Whether fewer than thirty of the shared residues are not known parts."""
    open_to = [start <= index < end and hit for index, hit in enumerate(mask)]
    for part in known_parts(chain):
        open_to[part.start : part.end] = [False] * (part.end - part.start)
    return sum(open_to) < SHARED_FROM


def _find_median(reference: str, stretches: Sequence[_Shared]) -> str:
    """The median of the stretches."""
    start = sorted(stretch.start for stretch in stretches)[len(stretches) // 2]
    end = sorted(stretch.end for stretch in stretches)[len(stretches) // 2]
    return reference[start:end]


def _has_part(chain: str, part: str) -> bool:
    return _measure_likeness(part, split_into_words(chain)) >= _ALIKE


def _ask_about_end(reference: str, part: str, texts: Sequence[str], which: str, doubts: Doubts) -> None:
    count = sum(_has_part(text, part) for text in texts) if len(texts) <= _SAID_SAMPLE else len(texts)
    start = reference.index(part)
    at_end = start > len(reference) - start - len(part)
    exact = _common_end(texts)
    if at_end and len(exact) >= SHARED_FROM and not which:
        doubts.shared_end = part = exact
    side = "end in" if at_end else "begin with"
    same = "the same" if part == exact or all(part in text for text in texts) else "nearly the same"
    doubts.asked.append(
        _name_chain(
            f"{_format_share(count, len(texts))} {side} {same} {len(part)} residues{which} ({_describe_chain(part)}), and the rest is unrelated",
            "1" if at_end else "2",
            exact="" if doubts.shared_end else IN_ADDITION,
        )
    )


def _common_start(text: str, other: str) -> str:
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False))
    return text[: sum(1 for _ in same)]


def _common_end(texts: Sequence[str]) -> str:
    """What all end in, if it is long enough to be said."""
    end = texts[0]
    for text in texts:
        if not text.endswith(end):
            end = _common_start(text[::-1], end[::-1])[::-1]
            if len(end) < _SAID_FROM:
                return ""
    return end


# -- what is only noted


def _say_what_is_shared(residues: Sequence[str], doubts: Doubts) -> None:
    if len(residues) > 1 and not doubts.refused and not doubts.asked:
        first = residues[0][:_SAID_FROM]
        is_shared = all(text.startswith(first) for text in residues)  # which ends early for most files
        beginning = _common_start(min(residues), max(residues)) if is_shared else ""
        if len(beginning) >= _SAID_FROM and CHAIN_SEPARATOR not in beginning:
            doubts.notes.append(
                f"residues 1 to {len(beginning)} are the same in all {len(residues):,} designs, as in variants of one protein"
            )
        ending = _common_end(residues)
        if len(ending) >= _SAID_FROM and CHAIN_SEPARATOR not in ending and len(ending) < len(residues[0]):
            doubts.notes.append(
                f"all {len(residues):,} designs share their last {len(ending)} residues ({_describe_chain(ending)})"
            )
    sample = pick_evenly(residues, _PARTS_SAMPLE)
    counts: Counter[str] = Counter()
    for design in sample:
        chains = design.split(CHAIN_SEPARATOR)
        counts.update({part.name for chain in chains for part in known_parts(chain)})
        counts.update(
            {f"antibody {part.name} domain" for chain in chains for part in variable_domains(chain)}
        )
    if counts:
        looked = "" if len(sample) == len(residues) else " looked at"
        listed = ", ".join(
            f"{name} in {count:,}"
            for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        )
        doubts.notes.append(f"known parts in {many(len(sample), 'design')}{looked}: {listed}")


# -- words


def _name_chain(line: str, chain: str, exact: str = "") -> str:
    return f"{line}: is it the target? {CHAIN.format(chain)}{exact} orders the rest, {KEEP} all of it"


def _list_other_chains(residues: Sequence[str], where: int) -> str:
    """The other chains, as the option takes them."""
    number = max(text.count(CHAIN_SEPARATOR) for text in pick_evenly(residues)) + 1
    return ",".join(str(chain_number) for chain_number in range(1, number + 1) if chain_number != where)


def _format_share(count: int, number: int) -> str:
    return f"all {number:,} designs" if count == number else f"{count:,} of {number:,} designs"


def _describe_chain(residues: str) -> str:
    return f"{len(residues)} residues, {residues[:10]}..." if len(residues) > 2 * _LOOSE else residues


def _join_names(names: Sequence[str]) -> str:
    return listed([*map(quoted, names)], _LISTED)
