"""Scores of designers by the words of their titles: which direction is better, and which columns are not predictions at all.

The only place that decides a direction: policies, backtests, histories, design files and the report ask here.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class ScoreKind:
    """A kind of score: the words that name it, without separators.

    `is_higher_better` is None if the words decide no direction. `is_confidence`: of structure prediction. `is_tool`: the words
    name a program, and say nothing next to another score.
    """

    words: frozenset[str]
    is_higher_better: bool | None
    is_confidence: bool = False
    is_tool: bool = False


def _words_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _make_kind(words: str, *, higher: bool | None, confidence: bool = False, tool: bool = False) -> ScoreKind:
    return ScoreKind(_words_in(words), higher, confidence, tool)


_RANK: Final = _make_kind("rank", higher=False)
# The ones that a reader looks at first come first: the report draws a few columns only.
_KINDS: Final = (
    _make_kind("iptm iptmscore actifptm", higher=True, confidence=True),
    _make_kind("ipsae", higher=True, confidence=True),
    _make_kind("ipae paeinteraction interactionpae", higher=False, confidence=True),
    _make_kind("pdockq pdockq2 dockq", higher=True, confidence=True),
    _make_kind("lis ilis", higher=True, confidence=True),
    # Boltz-2 gives log10 of IC50 as `affinity_pred_value`, and a probability with it.
    _make_kind("kd ki ic50 ec50 affinitypredvalue affinitypredvalue1 affinitypredvalue2", higher=False),
    _make_kind("pkd pki pic50 pec50", higher=True),
    _make_kind("affinityprobability bindingprobability binderprobability probabilityofbinding bindprob pbind probbind", higher=True),
    _make_kind("dg ddg deltag deltadeltag dgdsasa", higher=False),
    # Rosetta's `total_score` and `I_sc` are energies.
    _make_kind("energy totalscore reu isc", higher=False),
    _make_kind("plddt iplddt meanplddt complexplddt lddt", higher=True, confidence=True),
    _make_kind("rmsd rms bbrmsd scrmsd carmsd irmsd lrmsd bindrmsd binderrmsd designrmsd", higher=False, confidence=True),
    _make_kind("ptm", higher=True, confidence=True),
    _make_kind("pae minpae predictedalignederror pde ipde gpde", higher=False, confidence=True),
    _make_kind("confidence confidencescore rankingscore rankingconfidence", higher=True),
    _make_kind("overallconfidence ligandconfidence qualityscore", higher=True),
    _make_kind("nll negativeloglikelihood negloglikelihood crossentropy", higher=False),
    _make_kind("perplexity pseudoperplexity ppl pppl", higher=False),
    _make_kind("pll loglikelihood pseudologlikelihood loglik logprob logprobability llr", higher=True),
    # Their scores are mean negative log-likelihoods.
    _make_kind("mpnn proteinmpnn ligandmpnn solublempnn globalscore", higher=False, tool=True),
    # The recovery of a native sequence is no score of a design.
    _make_kind("seqrecovery sequencerecovery seqrec", higher=None),
    _make_kind("tmscore gdt gdtts", higher=True),
    _make_kind("shapecomplementarity shapecomplimentarity packstat dsasa deltasasa", higher=True),
    _make_kind("clash clashes unsathbonds", higher=False),
    _make_kind("fitness dmsscore", higher=True),
    _RANK,
)  # fmt: skip
_BY_WORD: Final = {word: place for place, kind in enumerate(_KINDS) for word in kind.words}
# Programs whose files call a score by a word that says nothing elsewhere: it is a negative log-likelihood.
_OF_PRODUCERS: Final = {("proteinmpnn", "score"): False, ("ligandmpnn", "score"): False}
# With one of these words a title is not about the score itself: its spread, a difference, another protein, a negative of it.
_TURNING: Final = _words_in(
    "std sd stdev stddev stderr sem var variance error err errors uncertainty interval ci width cv range spread iqr "
    "change diff difference delta shift gain loss improvement penalty neg negative minus inverse inv inverted reciprocal "
    "complement non not no without threshold cutoff limit pass passed fail failed flag is has above below over under gt lt ge le "
    "low lower high upper fraction frac pct percent percentage percentile quantile bin class off offtarget nontarget "
    "antitarget counter decoy nonspecific nonbinder unbound scrambled random control wt wildtype "
    "n num number count contacts contact pairs folding unfolding unfold stability sites site liability liabilities motif motifs "
    "mass weight mw da kda rank ranks ranked ranking by vs versus ratio selectivity exp "
    "prob probability pr reward recip stabilizing stabilising risk deamidation oxidation glycosylation isomerization"
)
_NEGATED: Final = ("neg", "minus", "nlog", "mlog")  # beginnings of words, as in `neglog10_kd`
_OF_A_TOOL: Final = _words_in("score scores mean avg average median global 1 2 3 4 5")
_OF_A_RANK: Final = _words_in("final overall total selection design designs")
# What counts, names or measures rows instead of predicting anything.
_BOOKKEEPING: Final = _words_in(
    "rank ranks ranking row rows line index idx seed seeds length len lengths size residues "
    "id ids uid number num no nr unnamed round cycle batch step epoch iteration trial attempt sample replicate "
    "replicates plate well position pos start end price cents cost usd date time timestamp day year hours minutes "
    "seconds version"
)
_BOOKKEEPING_TITLES: Final = _words_in("n i k t x design designs name model job run key loop")

_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_WORD: Final = re.compile(r"[0-9a-z]+")
_LONGEST: Final = 4  # words of a title that name one score, such as `p_dock_q_2`
# A title that turns or compares a score: 1-pAE, -dG, (1-pAE), score: -dG, 1/RMSD, KD^-1, log10(KD)*-1, KD⁻¹, RMSD < 2. The unit
# kcal mol⁻¹ turns none.
_TURNED: Final = re.compile(
    r"(?:^|[\s(=:])\s*(?:\d+(?:\.\d+)?\s*)?[-−–]\s*\(?[^\W\d]|(?<!mol)(?:[*^]\s*\(?[-−–]|−\d)|(?<![\w.])\d\s*/|[<>]",  # noqa: RUF001
    re.IGNORECASE,
)
_COMBINED: Final = re.compile(r"[/*]|\s[-−–]\s")  # noqa: RUF001


def score_direction(title: str, producer: str | None = None) -> bool | None:
    """Whether a higher number is better, by the words of a score's title; None where they do not say, or contradict each other.

    Example:
        >>> score_direction("Average_Binder_RMSD"), score_direction("i_pTM"), score_direction("magic")
        (False, True, None)

    Args:
        title: of the column, as the designer wrote it.
        producer: the program that wrote the file, where it is known.
    """
    of_producer = _OF_PRODUCERS.get(((producer or "").casefold(), title.strip().casefold()))
    if of_producer is not None:
        return of_producer
    kind = _kind_of(title)
    return None if kind is None else _KINDS[kind].is_higher_better


def is_confidence_score(title: str) -> bool:
    """Whether a title is that of a confidence of structure prediction, such as ipTM, pLDDT, PAE or RMSD."""
    kind = _kind_of(title)
    return kind is not None and _KINDS[kind].is_confidence


def is_bookkeeping(title: str) -> bool:
    """Whether a title is that of a row number, a rank, a seed, a length, a date or a price, which predict nothing."""
    kind = _kind_of(title)
    if kind is not None:
        return _KINDS[kind] is _RANK
    words = _split_title(title)
    return (
        not words
        or not _BOOKKEEPING.isdisjoint(words)
        or (len(words) == 1 and words[0] in _BOOKKEEPING_TITLES)
    )


def predictions_first(titles: Iterable[str]) -> tuple[str, ...]:
    """The titles that may be predictions, without bookkeeping: first one of each known kind, then other known ones, then the rest."""
    kept = [title for title in titles if not is_bookkeeping(title)]
    seen: set[int] = set()
    places: list[tuple[int, int]] = []
    for title in kept:
        kind = _kind_of(title)
        if kind is None:
            places.append((2, 0))
        else:
            places.append((kind in seen, kind))
            seen.add(kind)
    order = sorted(range(len(kept)), key=lambda index: (*places[index], index))
    return tuple(kept[index] for index in order)


def read_score(cell: str) -> float | None:
    """The finite number of a cell; None for everything else. `1_2`, which Python takes for a number, is a name."""
    try:
        value = float("" if "_" in cell else cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@lru_cache(maxsize=4096)
def _kind_of(title: str) -> int | None:
    """The place of the kind that a title names; None for no kind, kinds of both directions, or words that turn the meaning."""
    words = _split_title(title)
    kinds, others = _read_words(words)
    if set(words) <= {"rank", *_OF_A_RANK} and "rank" in words:
        return _BY_WORD["rank"]
    named = [kind for kind in kinds if not _KINDS[kind].is_tool]
    if not named and _OF_A_TOOL.issuperset(
        others
    ):  # `mpnn_seed` is the seed of a program, `mpnn_prob` another score
        named = kinds
    is_turned = not _TURNING.isdisjoint(others) or any(word.startswith(_NEGATED) for word in others)
    if not named or is_turned or _TURNED.search(_normalize_title(title)):
        return None
    if len(set(named)) > 1 and _COMBINED.search(title):
        return None
    directions = {_KINDS[kind].is_higher_better for kind in named}
    return None if None in directions or len(directions) > 1 else named[0]


def _read_words(words: tuple[str, ...]) -> tuple[list[int], list[str]]:
    """The kinds that words name, the longest names first, and the words that name none."""
    kinds, others, start = [], [], 0
    while start < len(words):
        length = next((n for n in range(_LONGEST, 0, -1) if _join_words(words, start, n) in _BY_WORD), 0)
        word = _join_words(words, start, length)
        if length and word != "rank":
            kinds.append(_BY_WORD[word])
        else:
            others.append(words[start])
        start += length or 1
    return kinds, others


def _join_words(words: tuple[str, ...], start: int, length: int) -> str:
    return "".join(words[start : start + length]) if start + length <= len(words) else ""


def _normalize_title(title: str) -> str:
    return unicodedata.normalize("NFKC", title).translate({0x394: "d", 0x2206: "d", 0x3B4: "d"})


def _split_title(title: str) -> tuple[str, ...]:
    return tuple(_iter_words(title))


def _iter_words(title: str) -> Iterator[str]:
    for part in _CAMEL.split(_normalize_title(title)):
        yield from _WORD.findall(part.casefold())
