"""Words, several chains in one place, titles and three-letter codes are not ordered; wrapped sequences are read."""

import random
from pathlib import Path

import pytest

from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.read import read_sequences
from prefect_assay.designs.report import order_lines
from prefect_assay.errors import InvalidSequences

CASES = Path(__file__).parent / "cases" / "tables"
HEAVY = "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYCSRWGGDGFYAMDYWGQGTLVTVSS"
LIGHT = "DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYSGVPSRFSGSRSGTDFTLTISSLQPEDFATYYCQQHYTTPPTFGQGTKVEIK"


def protein(length: int, seed: int, first: str = "M") -> str:
    return first + "".join(random.Random(seed).choices("ADEFGHIKLNPQRSTVWY", k=length - len(first)))


A, B = protein(60, 1), protein(60, 2)
P = protein(145, 3)


def wrapped(text: str, width: int, end: str = "\n") -> str:
    return end.join(text[start : start + width] for start in range(0, len(text), width))


def read(text: str):
    return read_sequences("designs", text=text, reading=ReadingOptions(as_is=True))


def refused(text: str) -> str:
    with pytest.raises(InvalidSequences) as caught:
        read(text)
    return "\n".join(caught.value.findings)


def residues(text: str) -> list[str]:
    return [item.aa_string for item in read(text).items]


# -- the files of the index

OUTCOMES = {
    "light_chain_cell_is_nan.csv": "1 design has no vl, and the other chain alone is ordered: 'nb1'",
    "pir_title_glued_to_protein.pir": "PIR: the line of title of 2 records was left out, as 'SYNTHETIC PEPTIDE'",
    "oas_paired_as_downloaded.csv": "line 1 above the header is metadata (JSON), and was left out",
}
REFUSALS = {
    "chain_is_NA.fasta": "the sequence is 'NA'",
    "same_as_dI.csv": "white space separates 3 parts (same, as, dI)",
    "three_letter_codes.fasta": "three-letter codes",
    "two_chains_in_one_cell.csv": "white space separates 2 parts",
    "two_chains_with_space.csv": "Write ':' between chains",
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_what_is_read_otherwise_than_written_is_said(name):
    assert OUTCOMES[name] in "\n".join(order_lines(read_sequences(str(CASES / name))))


def test_the_chains_of_these_files_are_the_right_ones():
    assert [
        item.aa_string.count(":") for item in read_sequences(str(CASES / "light_chain_cell_is_nan.csv")).items
    ] == [0, 1]
    assert [
        item.residues for item in read_sequences(str(CASES / "pir_title_glued_to_protein.pir")).items
    ] == [60, 60]
    (pair,) = read_sequences(str(CASES / "oas_paired_as_downloaded.csv")).items
    assert [len(chain) for chain in pair.aa_string.split(":")] == [120, 107]


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_no_single_protein_is_refused(name):
    with pytest.raises(InvalidSequences, match="sequence '") as caught:
        read_sequences(str(CASES / name))
    assert REFUSALS[name] in "\n".join(caught.value.findings)


# -- words

WORDS = [
    "NA",
    "nan",
    "NaN",
    "None",
    "null",
    "n/a",
    "N/A",
    "<NA>",
    "WT",
    "wt",
    "Pending",
    "MISSING",
    "FAILED",
    "TBD",
    "TODO",
    "#N/A",
    "ERROR",
    "EMPTY",
    "Target",
    "PARENT",
    "TARGET",
    "CANCELLED",
    "WITHDRAWN",
    "DISCARDED",
    "REFERENCE",
    "IDENTICAL",
    "CLASSIFIED",
    "REPLICATE",
    "DEPRECATED",
    "REPLACEME",
    "DATA MISSING",
    "skipped",
    "same-as",
    "see_above",
]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("place", ["sequence", "light chain", "second chain", "FASTA", "chain in FASTA"])
def test_a_word_is_never_ordered(word, place):
    text = {
        "sequence": f"name,sequence\na,{A}\nb,{word}\n",
        "light chain": f"name,vh,vl\na,{HEAVY},{LIGHT}\nb,{HEAVY[:-1]}T,{word}\n",
        "second chain": f"name\tsequence\na\t{HEAVY}:{LIGHT}\nb\t{HEAVY[:-1]}T:{word}\n",
        "FASTA": f">a\n{A}\n>b\n{word}\n",
        "chain in FASTA": f">a\n{HEAVY}:{LIGHT}\n>b\n{HEAVY[:-1]}T:{word}\n",
    }[place]
    if place == "light chain" and word.casefold() in {"na", "nan", "none", "null", "n/a", "<na>"}:
        sequences = read(text)
        assert [item.aa_string for item in sequences.items] == [f"{HEAVY}:{LIGHT}", f"{HEAVY[:-1]}T"]
        assert "1 design has no vl" in "\n".join(sequences.notes)
    else:
        assert "'b'" in refused(text)


@pytest.mark.parametrize("word", ["NTYETDNE", "SAME AS DI", "LATER"])
def test_a_short_text_beside_proteins_is_taken_for_a_word(word):
    rows = "".join(f"d{number},{protein(50, number)}\n" for number in range(4))
    message = refused(f"name,sequence\n{rows}x,{word}\n")
    assert "is it a word?" in message
    assert f"{word.replace(' ', '')}*'" in message
    sequences = residues(f"name,sequence\n{rows}x,{word.replace(' ', '')}*\n")
    assert sequences[-1] == word.replace(" ", "")


def test_peptides_among_peptides_and_as_partners_pass():
    peptides = ["SIINFEKL", "GILGFVFTL", "ELAGIGILTV", "NLVPMVATV"]
    assert (
        residues("name,sequence\n" + "".join(f"{sequence},{sequence}\n" for sequence in peptides)) == peptides
    )
    pairs = [f"{protein(70, number)}:{peptide}" for number, peptide in enumerate(peptides)]
    assert residues("".join(f">{number}\n{sequence}\n" for number, sequence in enumerate(pairs))) == pairs
    assert residues(">x\nNAN*\n>y\nWT*\n") == ["NAN", "WT"]


def test_a_missing_word_is_no_chain_of_the_metadata():
    (design,) = read(
        f"name,sequence,type,VH,VL,ch\na,{HEAVY}GGGGSGGGGSGGGGS{LIGHT},scfv,{HEAVY},{LIGHT},nan\n"
    ).items
    assert design.metadata == {"VH": HEAVY, "VL": LIGHT, "type": "ScFv"}
    assert "VL: the sequence is 'PENDING'" in refused(
        f"name,sequence,type,VH,VL\na,{HEAVY},scfv,{HEAVY},PENDING\n"
    )


# -- several chains, words, or one sequence in lines

CHAINS = {
    "two with M": f"{A}\n{B}",
    "two antibody domains": f"{HEAVY}\n{LIGHT}",
    "light, then heavy": f"{LIGHT}\n{HEAVY}",
    "blank line between": f"{A}\n\n{protein(42, 5, 'S')}",
    "two of an unusual width": f"{protein(65, 11, 'S')}\n{protein(57, 12, 'T')}",
    "a long and a short one": f"{protein(95, 11, 'S')}\n{protein(40, 12, 'T')}",
    "the second is longer": f"{protein(50, 6)}\n{protein(70, 7, 'T')}",
    "three with M": f"{A}\n{B}\n{protein(60, 8)}",
    "twice the same": f"{protein(60, 9, 'S')}\n{protein(60, 9, 'S')}",
    "a title": f"Synthetic peptide\n{wrapped(P, 60)}",
    "a title in one word": f"PEPTIDE\n{wrapped(P, 60)}",
    "a title in upper case": f"DE NAVE DESIGN\n{wrapped(P, 60)}",
    "three-letter codes": " ".join(["Ala", "Gly", "Ser", "Lys"] * 4),
    "three-letter codes, fused": "AlaGlySerLysThrVal" * 3,
    "three-letter codes in upper case": "ALAGLYSERLYS",
    "three-letter codes with hyphens": "Ala-Gly-Ser-Lys-Thr",
}


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("form", ["FASTA", "cell", "cell with blanks"])
def test_what_may_be_several_chains_is_asked_about(kind, form):
    text = CHAINS[kind]
    if form == "FASTA":
        message = refused(f">x\n{text}\n>y\n{protein(80, 10)}\n")
    else:
        cell = text if form == "cell" else text.replace("\n", " ")
        message = refused(f'name,sequence\nx,"{cell}"\ny,{protein(80, 10)}\n')
    assert "sequence 'x'" in message


@pytest.mark.parametrize(
    "separator", [" ", "\n", " \n", "\t", "\N{NO-BREAK SPACE}", ";", "/", "|", ",", " / "]
)
def test_two_chains_with_any_separator_are_never_fused(separator):
    assert "x" in refused(f'name,sequence\nx,"{A}{separator}{B}"\n')
    assert "x" in refused(f'name,sequence\nx,"{HEAVY}{separator}{LIGHT}"\n')
    assert residues(f'name,sequence\nx,"{HEAVY} : {LIGHT}"\n') == [f"{HEAVY}:{LIGHT}"]


@pytest.mark.parametrize("width", [10, 50, 60, 70, 72, 75, 80, 100])
@pytest.mark.parametrize("stop", ["", "*"])
def test_wrapped_sequences_are_read(width, stop):
    text = wrapped(P + stop, width)
    assert residues(f">x\n{text}\n") == [P]
    assert residues(f">x\n{text}\n\n>y\n{A}\n\n") == [P, A]
    sequences = read(f'name,sequence\nx,"{text}"\n')
    assert sequences.items[0].aa_string == P
    assert "white space inside 1 sequence" in "\n".join(sequences.notes)


def test_blocks_and_doubled_line_ends_are_read():
    blocks = "\n".join(wrapped(P[start : start + 60], 10, " ") for start in range(0, len(P), 60))
    assert residues(f">x\n{blocks}\n") == [P]
    assert residues(f">x\n{wrapped(P, 60).replace(chr(10), chr(10) * 2)}\n") == [P]
    assert residues(f">x\n{wrapped(P, 60, ' ' + chr(10))}\n") == [P]
    assert residues(f'name,sequence\nx,"{blocks}"\n') == [P]


def test_a_few_of_many_wrapped_records_have_m_at_the_beginning_of_a_line():
    records = [
        protein(60, number) + protein(30, number + 100, "M" if number == 3 else "S") for number in range(9)
    ]
    assert (
        residues("".join(f">{number}\n{wrapped(sequence, 60)}\n" for number, sequence in enumerate(records)))
        == records
    )
    chains = [f"{protein(57, number)}\n{protein(30, number + 100)}" for number in range(9)]
    assert "sequence '8'" in refused(
        "".join(f">{number}\n{sequence}\n" for number, sequence in enumerate(chains))
    )


@pytest.mark.parametrize("between", ["", "\n"])
def test_two_lines_are_one_chain_where_longer_records_have_the_same_unusual_width(between):
    sequences = [protein(length, length, "S") for length in (100, 150, 40)]
    text = "".join(f">{len(sequence)}\n{wrapped(sequence, 55)}\n{between}" for sequence in sequences)
    assert residues(text) == sequences
    assert "sequence '100'" in refused(text.partition(">150")[0])
    assert residues(text.partition("\n>150")[0] + "*\n") == sequences[:1]
    assert residues(f">x\n{wrapped(f'{A}:{B}', 65)}\n") == [f"{A}:{B}"]


def test_two_lines_in_every_record_are_asked_about():
    records = "".join(
        f">{number}\n{protein(65, number, 'S')}\n{protein(57, number + 100, 'T')}\n" for number in range(9)
    )
    assert "sequence '8'" in refused(records)


def test_a_record_that_was_edited_by_hand_is_read():
    lines = wrapped(P, 60).split("\n")
    assert residues(">x\n" + "\n".join([lines[0], lines[1][:-3], lines[2]]) + "\n") == [P[:117] + P[120:]]


# -- PIR, metadata


def test_pir_has_a_line_of_title_whatever_is_in_it():
    for title in ("", "SYNTHETIC PEPTIDE", "MISSING", "A > B; C", "structureX:1abc:1:A:60:A::::"):
        assert residues(f">P1;x\n{title}\n{A}*\n>F1;y\n{title}\n{wrapped(P, 30)}\n*\n") == [A, P]
    assert "a closing '*', which is missing" in refused(f">P1;x\n{A}\n{B}\n")
    assert "a PIR record of nucleotides" in refused(f">DL;x\ntitle\n{'ACGT' * 5}*\n")


@pytest.mark.parametrize(
    "line", ['{"Run": "x", "n": {"a": [1]}}', '"{""Run"": ""x""}"', '"{""Run"": ""x""}",,']
)
def test_metadata_above_the_header_is_left_out(line):
    sequences = read(f"{line}\nname,sequence,score\nx,{A},1\n")
    assert [(item.name, item.attributes) for item in sequences.items] == [("x", {"score": "1"})]
    assert "line 1 above the header is metadata" in sequences.notes[0]
    assert "does not parse" in refused(
        line.replace('"{""', '{"').replace('""', '"').strip('",') + f"\nnothing\n>x\n{A}\n"
    )


def test_peptides_of_ten_residues_beside_proteins_are_read():
    """As in measured rounds of Proteinbase."""
    rows = [protein(70, number) for number in range(5)] + ["AWTADCEWWC", "FCAGWCMGCA"]
    assert (
        residues(
            "name,sequence\n" + "".join(f"{number},{sequence}\n" for number, sequence in enumerate(rows))
        )
        == rows
    )
