"""Labels of chains in the names of records: `ab1_VH`, `design_1 | chain A`, `1|B|pdb`, `HC2`, `d1_A`. Pure functions on text."""

import re
from dataclasses import dataclass
from typing import Final, Literal

Side = Literal["heavy", "light"]

_SEPARATORS: Final = " _|:.,;=/()[]-"
_HEAVY: Final = r"(?i:heavy[ _-]?chain|h[ _-]?chain|heavy|IGH|VH|HC)|H|h$"
_LIGHT: Final = r"(?i:light[ _-]?chain|[lk][ _-]?chain|light|IG[KL]|V[LK]|LC|kappa|lambda)|[LK]|[lk]$"
_SIDE = re.compile(rf"(?<![A-Za-z])(?:(?P<heavy>{_HEAVY})|(?P<light>{_LIGHT}))(?![A-Za-z]|[0-9]+[A-Za-z])")
_CAMEL = re.compile(
    r"(?<=[a-z])(?:(?P<heavy>Heavy|HC|VH)|(?P<light>Light|LC|V[LK]))(?![A-Za-z]|[0-9]+[A-Za-z])"
)
_CHAIN = re.compile(
    r"(?:(?<![A-Za-z])(?:chain|CHAIN|[Cc]h(?=[ _:=.-]|[A-Z]$))|(?:(?<![A-Za-z])|(?<=[a-z]))Chain)[Ss]?[ _:=.|-]*"
    r"(?P<label>[A-Za-z]|[0-9]{1,2}|(?i:alpha|beta|gamma|delta))(?P<first>)(?![A-Za-z0-9])"
)
_BETWEEN = re.compile(r"(?:(?<=[|:])\s*(?P<label>[A-Z])\s*(?:$|(?=[|:]))|^(?P<first>[A-Z])\s*(?=[|:]))")
_LAST = re.compile(r"(?:^|(?<=[ _./([-]))(?P<label>[A-Z]|alpha|beta|gamma|delta)[)\]]?$")
_WORD = re.compile("[A-Za-z0-9]+")
_TOKEN = re.compile("[A-Za-z]+|[0-9]+")
ENTITIES: Final = frozenset({"target", "antigen", "receptor"})
# Further words that say nothing else about a record.
_EMPTY_WORDS: Final = frozenset(
    {"the", "protein", "chain", "sequence", "seq", "only", "native", "wt", "fasta"}
)
_TARGET = re.compile(r"(?<![a-z])(?:target|antigen)(?![a-z])")
# As the label of a record: many designs are named after one, as an `EGF_receptor_mimic` or `insulin_receptor_1`.
_RECEPTOR = re.compile(r"(?<![a-z])receptor(?:[ _.|-]*(?:chain[ _.|-]*)?[a-z])?$")
_NO_TARGET = re.compile(
    r"(?:target|antigen)[ _-]*(?:bind|specific|recogni)"
    r"|(?:anti|off|non|bind[a-z]*(?:[ _-](?:to|the))*|for|against|vs)[ _-]*(?:target|antigen)"
    r"|(?<![a-z])(?:anti(?!bod|gen)|binds|binding|bind(?:er)?s?[ _-](?:of|to)|for|of|against|vs)(?![a-z]).*receptor"
)


@dataclass(frozen=True, slots=True)
class Label:
    """A chain's label: the name without it, the label in upper case, and how sure it is.

    `is_plain`: it is a word such as `chain A` or `VH`, or stands between `|` or `:`. A single letter may end any name.
    `side` is the chain of an antibody that the label may stand for. `before` is the stem up to the label, where what follows may
    be about the chain, as in `d1_chain=A_len61`.
    """

    stem: str
    label: str
    is_plain: bool
    side: Side | None = None
    before: str = ""


def find_label(name: str) -> Label | None:
    """The label of a chain in a name, if there is one."""
    sides = [*_SIDE.finditer(name), *_CAMEL.finditer(name)]
    side = max(sides, key=lambda match: (len(match.group()), match.start()), default=None)
    if side and len(side.group()) > 1:
        return _side_label(name, side, is_plain=True)
    if match := _CHAIN.search(name) or _BETWEEN.search(name):
        label = (match["label"] or match["first"]).upper()
        kind: Side | None = "heavy" if label == "H" else "light" if label in {"L", "K"} else None
        before = _strip_label(name[: match.end()], match)
        return Label(_strip_label(name, match), label, is_plain=True, side=kind, before=before)
    if match := _LAST.search(name):
        if side and side.start() == match.start("label"):
            return _side_label(name, side, is_plain=False)
        return Label(_strip_label(name, match), match["label"].upper(), is_plain=False)
    return _side_label(name, side, is_plain=False) if side else None


def find_chain(text: str) -> str:
    """The label behind the word `chain` in a description, in upper case; empty if there is none."""
    match = _CHAIN.search(text)
    return match["label"].upper() if match else ""


def split_name(name: str, *, is_fine: bool = True) -> list[str]:
    """The words of a name; `is_fine` also parts words from numbers."""
    return (_TOKEN if is_fine else _WORD).findall(name)


def _side_label(name: str, match: re.Match[str], *, is_plain: bool) -> Label:
    side: Side = "heavy" if match["heavy"] else "light"
    return Label(_strip_label(name, match), "H" if side == "heavy" else "L", is_plain, side)


def _strip_label(name: str, match: re.Match[str]) -> str:
    before, behind = name[: match.start()].rstrip(_SEPARATORS), name[match.end() :].lstrip(_SEPARATORS)
    return f"{before}_{behind}" if before and behind else before or behind


def is_called_target(name: str) -> bool:
    """Whether a name says nothing but that this is what the designs bind: `target`, `antigen_chain_B`, `Receptor 1`."""
    words = set(re.findall("[a-z]+", name.casefold()))
    return bool(words & ENTITIES) and all(
        len(word) == 1 or word in ENTITIES or word in _EMPTY_WORDS for word in words
    )


def has_target_word(text: str, *, is_name: bool = False) -> bool:
    """Whether `target` or `antigen` is a word of a text that is not about binding one, or `receptor` the last word of a name."""
    folded = text.casefold()
    has_word = _TARGET.search(folded) or (is_name and _RECEPTOR.search(folded))
    return bool(has_word) and not _NO_TARGET.search(folded)
