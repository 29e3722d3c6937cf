"""Whatever the bytes: checked sequences or InvalidSequences, and what was written is what is read."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.read import read_pool, read_sequences
from prefect_assay.errors import InvalidSequences
from prefect_assay.service.models.vocabulary import AMINO_ACIDS

LETTERS = "".join(sorted(AMINO_ACIDS))
# Pieces that make parsers stumble, so that random input gets past the first line.
PIECES = st.sampled_from(
    [
        b">", b">a\n", b"> b \r\n", b"ACD", b"acd\n", b":", b"*", b"X", b"\n", b"\r", b"\r\n", b";", b"#", b"sep=,\n",
        b"name,sequence\n", b"name;sequence;control\n", b'"', b'""', b",", b"\t", b"|", b"a,ACD\n", b"\0", b"\xff",
        b"\xef\xbb\xbf", b"\xc3\xa9", b"\xe2\x80\xa8", b"\x1f\x8b", b"name,sequence,type,tag_location,vh,ch\n", b"1",
    ]
)  # fmt: skip
ANY_BYTES = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=30).map(b"".join))
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=30)
NAMES = st.lists(TEXT.map(str.strip).filter(bool), min_size=1, max_size=8, unique_by=str.casefold)
CHAINS = st.lists(st.text(LETTERS, min_size=1, max_size=20), min_size=1, max_size=3).map(":".join)


def outcome(**arguments):
    """What was read and what was found; any other exception fails the test."""
    try:
        return read_sequences("d", **arguments), ()
    except InvalidSequences as error:
        return None, error.findings


def holds(sequences) -> None:
    names = [s.name for s in sequences.items]
    assert names
    assert len({name.casefold() for name in names}) == len(names)
    for sequence in sequences.items:
        assert sequence.name == sequence.name.strip() != ""
        assert all(chain and set(chain) <= AMINO_ACIDS for chain in sequence.aa_string.split(":"))


@settings(max_examples=600)
@given(ANY_BYTES)
def test_any_bytes_are_sequences_or_findings(data):
    sequences, findings = outcome(data=data)
    if sequences:
        holds(sequences)
    else:
        assert 1 <= len(findings) <= 51
        assert all(finding.startswith("d") and "\n" not in finding for finding in findings)


@settings(max_examples=300)
@given(st.text(max_size=100))
def test_any_text_is_sequences_or_findings(text):
    sequences, findings = outcome(text=text)
    if sequences:
        holds(sequences)
    else:
        assert findings


@st.composite
def designs(draw):
    names = draw(NAMES)
    residues = draw(st.lists(CHAINS, min_size=len(names), max_size=len(names), unique=True))
    return list(zip(names, residues, strict=True))


def wrapped(residues: str, width: int) -> str:
    return "\n".join(residues[i : i + width] for i in range(0, len(residues), width))


def read_or_explain(text: str, written: list[tuple[str, str]]) -> None:
    """Equal names in another Unicode form, DNA, NA, and a label beside a chain are the only reasons not to read it back as it is."""
    read, findings = outcome(text=text, reading=ReadingOptions(as_is=True))
    reasons = (
        "differs only in case",
        "these are nucleotides",
        "for a missing value",
        "is it the label of a chain?",
    )
    assert all(any(reason in finding for reason in reasons) for finding in findings)
    if not findings:
        assert [s.aa_string for s in read.items] == [residues for _, residues in written]
        assert read.duplicates == ()


@settings(max_examples=200)
@given(designs(), st.integers(1, 80), st.booleans())
def test_written_fasta_is_read_back(written, width, lower):
    text = "".join(
        f">{name}\n{wrapped(residues.lower() if lower else residues, width)}\n" for name, residues in written
    )
    read_or_explain(text, written)


@settings(max_examples=200)
@given(designs())
def test_names_are_the_first_words_or_the_whole_lines_and_nothing_is_lost(written):
    named, findings = outcome(text="".join(f">{name}\n{residues}\n" for name, residues in written))
    if findings:
        return
    names = [s.name for s in named.items]
    whole = [name for name, _ in written]
    spaced = [(name, name.partition(" ")[0].partition("\t")[0]) for name in whole]
    first = [word.rstrip(",;") if word != name else name for name, word in spaced]
    assert names == (first if len({n.casefold() for n in first if n}) == len(first) else whole)
    assert [s.aa_string for s in named.items] == [residues for _, residues in written]
    for sequence, line in zip(named.items, whole, strict=True):
        assert all(value in line for value in sequence.attributes.values())


@settings(max_examples=300)
@given(ANY_BYTES)
def test_a_pool_is_read_like_sequences(data):
    sequences, findings = outcome(data=data)
    if sequences is None:
        with pytest.raises(InvalidSequences) as caught:
            read_pool("d", data=data)
        assert caught.value.findings == findings
        return
    pool = read_pool("d", data=data)
    assert tuple(pool) == sequences.items
    assert tuple(pool[index] for index in range(len(pool))) == sequences.items
    assert pool.duplicates == tuple((d.name, d.same_as) for d in sequences.duplicates)


@settings(max_examples=200)
@given(designs(), st.sampled_from([",", ";", "\t", "|"]))
def test_written_tables_are_read_back(written, delimiter):
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter)
    writer.writerow(["sequence", "name"])
    writer.writerows((residues, name) for name, residues in written)
    read_or_explain(buffer.getvalue(), written)
