"""Tells the text of one chain from a word, from three-letter codes, and from several chains in one place. Pure functions.

Each problem that is named here would otherwise be ordered: the letters of `MISSING`, `ALAGLYSER` and of two chains with a
blank between them are amino acids.
"""

import re
from collections.abc import Sequence
from typing import Final

from prefect_assay.designs.parts import classify_antibody_chain
from prefect_assay.service.models.spec_rules import quoted

PEPTIDE: Final = (
    9  # residues; a shorter chain may be a word. Measured designs of public rounds have ten and more
)
STOP: Final = "*"
# What programs write for an empty cell. In a column of chains the chain is missing; as a whole sequence it is an error.
MISSING_WORDS: Final = frozenset({"", "na", "nan", "n/a", "none", "null", "<na>"})
_WORDS = re.compile(
    "absent|alphachain|antigen|asis|attached|await|awaiting|binder|blank|canceled|cancelled|chain|"
    "chain[a-z]|classified|control|datamissing|datapending|dead|declined|defective|delayed|deleted|"
    "deprecated|design|designed|discarded|discontinued|disregard|ditto|done|draft|dropped|dummy|"
    "eliminated|empty|error|example|excluded|fail|failed|failure|false|fill|filler|fillin|fillme|"
    "filtered|hc|heavy|heavychain|hidden|[hkl]chain|ibid|idem|identical|ignored|inactive|indeterminate|"
    "inserthere|invalid|irrelevant|lacking|lc|ligand|light|lightchain|linker|lost|mask|masked|missing|"
    "missingdata|mutant|name|namepending|native|nd|needed|negative|nil|no|none|normal|notapplicable|"
    "notavailable|notdetermined|notfound|ok|omitted|open|ordered|original|padding|parent|parental|"
    "pastehere|patented|patentpending|pending|peptide|placeholder|planned|positive|protein|redacted|"
    "ref|reference|rejected|removed|repeat|replaced|replaceme|replicate|reserved|restricted|retired|"
    "retracted|same|sameas|sameasparent|sameaswildtype|sameaswt|samesequence|scaffold|see|seeattached|"
    "seefile|seeparent|seq|sequence|skip|skipped|standard|target|targetchain|tba|tbc|tbd|template|"
    "tentative|terminated|test|testing|todo|true|unassigned|unavailable|undefined|unfilled|unknown|"
    "unnamed|unspecified|untested|value|variant|vh|vhh|v[hkl]chain|vk|vl|waiting|wildtype|withdrawn|"
    "withheld|wt|xxx|yes"
)
LONGEST_WORD: Final = max(map(len, _WORDS.pattern.split("|")))  # letters; a longer text is no such word
_CODE: Final = (
    "ALA|ARG|ASN|ASP|CYS|GLN|GLU|GLY|HIS|ILE|LEU|LYS|MET|PHE|PRO|SER|THR|TRP|TYR|VAL|SEC|PYL|ASX|GLX|XAA|UNK"
)
CODES: Final = frozenset(_CODE.split("|"))
_THREE_LETTERS = re.compile(rf"(?:{_CODE})(?:[\s,-]*(?:{_CODE})){{2,}}", re.IGNORECASE)
_BLOCK: Final = 10  # residues between blanks in GenBank, EMBL and UniProt
USUAL_WIDTHS: Final = frozenset({50, 60, 64, 70, 72, 75, 76, 78, 79, 80, 100, 120})
_CHAIN: Final = 20  # residues of a part that begins with M and is a chain of its own
_SHOWN: Final = 10


def judge_chain(text: str) -> str | None:
    """What is wrong with the text of one chain, with the next step; its letters are not looked at.

    White space is accepted between blocks of ten residues, and between lines of one usual width. Two parts with a blank or an
    empty line between them are asked about. A closing `*` says that the text is a peptide and not a word.
    """
    parts = text.split()
    written = "".join(parts)
    word = "".join(filter(str.isalpha, written)).casefold()
    is_missing = written.casefold() in MISSING_WORDS
    if written and (is_missing or _WORDS.fullmatch(word)) and not written.endswith(STOP):
        who = "R and pandas" if is_missing else "people"
        return (
            f"the sequence is {quoted(text.strip())}, which {who} write for a missing value; fill it in, or leave the design out. A peptide of these "
            f"letters is ordered as {written.upper() + STOP!r}"
        )
    if _THREE_LETTERS.fullmatch(text.strip().removesuffix(STOP)):
        return "these are three-letter codes: write each residue as one letter"
    return None if len(parts) < 2 else _judge_parts(parts, text)  # noqa: PLR2004 - white space separates two parts


def _judge_parts(parts: Sequence[str], text: str) -> str | None:
    if sum(map(len, parts)) < PEPTIDE and all(map(str.isupper, parts)):
        return None  # next to proteins, `records.py` takes anything as short for a word
    width = len(parts[0])
    is_wrapped = (
        all(len(part) == width for part in parts[1:-1]) and len(parts[-1].removesuffix(STOP)) <= width
    )
    if is_wrapped and width == _BLOCK:
        return None
    has_lines = len(parts) > 2 or len(text.strip().splitlines()) == 2  # noqa: PLR2004 - a blank or blank line separates chains
    if is_wrapped and has_lines and width in USUAL_WIDTHS and not _are_chains(parts):
        return None
    shown = ", ".join(
        f"{part[:_SHOWN]}... ({len(part)})" if len(part) > _SHOWN else part for part in parts[:3]
    )
    return (
        f"white space separates {len(parts)} parts ({shown}): chains, words, or one sequence? Write ':' between chains, or one "
        "sequence without white space"
    )


def _are_chains(parts: Sequence[str]) -> bool:
    """Whether parts that may be lines of one chain are rather chains: all begin with M, are the same, or two are antibody domains."""
    if all(len(part) >= _CHAIN and part[:1] in {"M", "m"} for part in parts) or len(set(parts)) < len(parts):
        return True
    return sum(classify_antibody_chain(part.upper()) is not None for part in parts) > 1
