"""FASTA as pipelines and people write it."""

from pathlib import Path

import pytest

from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.proposed import pool_of
from prefect_assay.designs.read import read_sequences
from prefect_assay.errors import InvalidSequences

DATA = Path(__file__).parent / "data"


def findings(source: str) -> tuple[str, ...]:
    with pytest.raises(InvalidSequences) as caught:
        read_sequences(source)
    return caught.value.findings


def pairs(source: str) -> list[tuple[str, str]]:
    return [(s.name, s.aa_string) for s in read_sequences(source).items]


def test_real_file_with_leading_spaces_and_odd_names():
    sequences = read_sequences(str(DATA / "egfr_round1_designs.fasta"))
    names = [s.name for s in sequences.items]
    assert len(sequences) == 11
    assert names[0] == "gitter-yolo2"
    assert names[-1] == "deepsatflow-design:7"
    assert sequences.items[-1].attributes == {
        "n": "0", "mpnn": "1.320", "plddt": "0.922", "i_ptm": "0.893", "i_pae": "4.337", "rmsd": "1.423"
    }  # fmt: skip
    assert sequences.items[-1].aa_string == "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
    assert sequences.source.endswith("egfr_round1_designs.fasta")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (">a\nACD\nEFG\n\n>b\nKLM", [("a", "ACDEFG"), ("b", "KLM")]),
        (">a\nAC D\tE\n", [("a", "ACDE")]),
        (">a\r\nACD\r\nEFG\r\n", [("a", "ACDEFG")]),
        (">a\rACD\rEFG\r", [("a", "ACDEFG")]),
        ("\ufeff>a\nACD", [("a", "ACD")]),
        ("; made by hand\n\n> a \nacd\n;note\nefg*\n", [("a", "ACDEFG")]),
        (">fab\nACD*:EFG*\n", [("fab", "ACD:EFG")]),
        (">x\tlength=3\nACD", [("x", "ACD")]),
        (">x 1\nACD\n>x 2\nEFG", [("x 1", "ACD"), ("x 2", "EFG")]),
        (">x 1\nACD\n>X, 2\nEFG", [("x 1", "ACD"), ("X, 2", "EFG")]),
        (">x, 1\nACD\n>y\nEFG", [("x", "ACD"), ("y", "EFG")]),
        (">\u00e9 1\nACD\n>e\u0301 2\nEFG", [("\u00e9 1", "ACD"), ("e\u0301 2", "EFG")]),
        (">a/b|c:d\x0bé\nACD", [("a/b|c:d\x0bé", "ACD")]),
        (">a\nACD\n>b\u2028c\nEFG", [("a", "ACD"), ("b\u2028c", "EFG")]),
    ],
    ids=[
        "wrapped",
        "spaces",
        "windows",
        "old-mac",
        "bom",
        "comments",
        "closing-stops",
        "tab",
        "first-words-repeat",
        "first-words-repeat-but-for-case",
        "closing-comma",
        "first-words-repeat-in-another-unicode-form",
        "odd-name",
        "unicode-line-separator",
    ],
)
def test_dialects(text, expected):
    assert pairs(text) == expected


def test_every_finding_is_reported_with_its_place():
    text = ">a\nACX-*DE\n>A\nAAA\n>\nCCC\n>empty\n\n>c\nAC:\n>d\nA/B1\n>a\nKKK\n"
    messages = findings(text)
    assert messages == (
        (
            "pasted text, line 1, sequence 'a': not an amino acid: 'X' at position 3, '-' at position 4, '*' at position 5 "
            "(an unknown residue: decide on one; a gap: remove the alignment's gaps; a stop codon inside the sequence)"
        ),
        (
            "pasted text, line 3, sequence 'A': 'a', which differs only in case, is on line 1; "
            "give each design a name of its own"
        ),
        "pasted text, line 5: a sequence without a name; names are needed to tell results apart",
        "pasted text, line 7, sequence 'empty': no residues",
        "pasted text, line 9, sequence 'c': an empty chain: ':' separates chains and belongs only between them",
        (
            "pasted text, line 11, sequence 'd': not an amino acid: '/' at position 2, 'B' at position 3, '1' at position 4 "
            "(chains are separated by ':', and each is ordered, also a target; ambiguous (D or N): decide on one)"
        ),
        "pasted text, line 13, sequence 'a': the same name is on line 1; give each design a name of its own",
    )


def test_letters_that_only_upper_casing_turns_into_amino_acids_are_refused():
    # The upper case of U+00DF is SS, of U+0131 is I, of U+017F is S.
    for letter in "ßıſ":
        assert f"U+{ord(letter):04X} at position 3" in findings(f">a\nAC{letter}D")[0]


def test_names_that_differ_only_in_unicode_form_are_the_same():
    assert "differs only in case" in findings(">\u00e9\nACD\n>e\u0301\nEFG")[0]


def test_duplicates_are_set_aside_and_the_first_is_kept():
    sequences = read_sequences(">b\nACD\n>a\nacd\n>c\nACDE\n>d\nACD\n")
    assert [s.name for s in sequences.items] == ["b", "c"]
    assert [(d.name, d.same_as) for d in sequences.duplicates] == [("a", "b"), ("d", "b")]


@pytest.mark.parametrize("text", ["NA", "nan", "N\nA"])
def test_a_missing_value_is_no_peptide(text):
    assert "which R and pandas write for a missing value" in findings(f">b\nACD\n>empty\n{text}")[0]


def test_a_designer_cannot_propose_a_missing_value():
    with pytest.raises(InvalidSequences, match="'a': the sequence is 'NA'"):
        pool_of([Candidate(name="a", sequence="NA"), Candidate(name="b", sequence="ACD")])


def test_dna_is_recognised():
    assert "these are nucleotides" in findings(f">gene\n{'ACGT' * 8}")[0]
    assert pairs(">short\nACGTACGT") == [("short", "ACGTACGT")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "empty; give"),
        (" \n\n;only a comment\n", "empty; give"),
        ("ACDEFGHIKLMNPQ\n", "line 1: a sequence without a name"),
        ("hello\nworld", "neither FASTA"),
    ],
)
def test_texts_without_sequences(text, message):
    messages = findings(text)
    assert len(messages) == 1
    assert message in messages[0]


def test_the_number_of_findings_is_bounded():
    messages = findings("".join(f">n{i}\nACX\n" for i in range(1000)))
    assert len(messages) == 51
    assert messages[-1] == "pasted text: 950 more findings are not listed"


def test_long_names_are_cut_in_messages_and_kept_in_data():
    name = "n" * 5000
    assert len(findings(f">{name}\nACX")[0]) < 400
    assert pairs(f">{name}\nACD") == [(name, "ACD")]


def test_a_protein_longer_than_any_is_refused_without_reading_it_all():
    text = ">endless\n" + ("A" * 1000 + "\n") * 5000
    assert "more than 100,000 residues" in findings(text)[0]
