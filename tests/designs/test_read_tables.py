"""CSV of many dialects."""

from pathlib import Path

import pytest

from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.read import read_sequences
from prefect_assay.designs.report import order_lines
from prefect_assay.errors import InvalidSequences

DATA = Path(__file__).parent / "data"


def read(text: str):
    return read_sequences("designs.csv", text=text)


def finding(text: str) -> str:
    with pytest.raises(InvalidSequences) as caught:
        read(text)
    assert len(caught.value.findings) == 1
    return caught.value.findings[0]


def test_bindcraft_statistics():
    sequences = read_sequences(str(DATA / "bindcraft_final_design_stats.csv"))
    assert len(sequences) == 6
    assert sequences.items[0].name == "EGFR_l70_s744152_mpnn4"
    assert sequences.items[0].aa_string.startswith("SLVSREELLERL")
    assert all(s.metadata == {} and not s.control for s in sequences.items)


@pytest.mark.parametrize(
    "text",
    [
        "name,sequence\na,ACD\nb,EFG\n",
        "\ufeffName;Sequence\r\na;ACD\r\nb;EFG\r\n",
        "sequence\tDESIGN\nACD\ta\nEFG\tb\n",
        "Sequence | design_name | score\nACD | a | 1,5\nEFG | b | 2,5\n",
        ",Design-ID,AA String\n0,a,AC D\n1,b,E F G\n",
        ";name;sequence\n0;a;ACD\n1;b;EFG\n",
        "sep=;\nname;sequence\na;ACD\nb;EFG",
        "# made by a pipeline\n\nname,sequence\na,ACD\n\n,\nb,EFG\n",
        "id,final_rank,designed_sequence,designed_chain_sequence,num_design\na,1,C,ACD,1\nb,2,F,EFG,1\n",
        'name,sequence,note\na,"AC\nD","one, ""two""\nthree"\nb,EFG,\n',
        "name,sequence,score\na,ACD,1,,\nb,EFG\n",
    ],
    ids=[
        "plain",
        "excel",
        "tabs",
        "pipes",
        "pandas-index",
        "semicolon-index",
        "excel-sep",
        "comments",
        "boltzgen",
        "cells-with-line-ends",
        "ragged",
    ],
)
def test_dialects(text):
    assert [(s.name, s.aa_string) for s in read(text).items] == [("a", "ACD"), ("b", "EFG")]


def test_optional_columns_become_metadata():
    text = (
        "name,sequence,control,Type,tag_location,VH,VL,Linker,ch,cl,chain_order,plddt\n"
        "scfv,ACDGGSEFG,no,sc_fv,N-term,ACD,EFG,GGS,,,,0.9\n"
        "fab,ACD:EFG,TRUE,fab,c,,,null,KKK,LLL,HL,0.8\n"
        "plain,ACDE,,,nan,,,,,,,\n"
    )
    scfv, fab, plain = read(text).items
    assert scfv.metadata == {"VH": "ACD", "VL": "EFG", "linker": "GGS", "type": "ScFv", "tag_location": "N"}
    assert not scfv.control
    assert fab.metadata == {
        "chain_order": "HL",
        "framework_regions": {"ch": "KKK", "cl": "LLL"},
        "type": "FAB",
        "tag_location": "C",
    }
    assert fab.control
    assert plain.metadata == {}


def test_molecule_class_is_the_type_where_the_service_knows_it_and_kept_elsewhere():
    rows = (
        "name,sequence,molecule_class,VH,VL\n"
        "a,ACD,single_chain,,\n"
        "b,EFG,nanobody,,\n"
        "c,EFGH,scfv,EF,GH\n"
        "d,EFGK,scfv,,\n"  # the service takes no ScFv without its chains
        "e,KKK:LLL,fab_kappa,,\n"
    )
    assert [s.metadata for s in read(rows).items] == [
        {"type": "SingleChain"},
        {"molecule_class": "nanobody"},
        {"VH": "EF", "VL": "GH", "type": "ScFv"},
        {"molecule_class": "scfv"},
        {"molecule_class": "fab_kappa"},
    ]


def test_tag_location_tells_duplicates_apart_and_fabs_are_exempt():
    text = (
        "name,sequence,tag_location,type,ch,cl\n"
        "n,ACD,N,,,\n"
        "c,ACD,C,,,\n"
        "none,ACD,,,,\n"
        "n2,acd,n,,,\n"
        "f1,KKK:LLL,,fab,AAA,CCC\n"
        "f2,KKK:LLL,,FAB,AAA,DDD\n"
    )
    sequences = read(text)
    assert [s.name for s in sequences.items] == ["n", "c", "none", "f1", "f2"]
    assert [(d.name, d.same_as) for d in sequences.duplicates] == [("n2", "n")]


def test_a_header_of_a_fasta_record_marks_a_control():
    sequences = read(">a score=1 control=false\nACD\n>EGF score=2, control=True\nACE\n>b\nACF\n")
    assert [(s.name, s.control) for s in sequences.items] == [("a", False), ("EGF", True), ("b", False)]
    assert "control is 'maybe'; write true or false" in finding(">a control=maybe\nACD\n")


def test_every_column_is_named_as_read_kept_or_left_out():
    told = order_lines(read("name,sequence,control,iptm,notes\na,ACD,true,0.8,\nb,ACE,,0.7,\n"))
    assert "read as CSV: name from name, sequence from sequence, control from control" in told
    assert "columns that are not ordered, and kept with the results: iptm" in told
    assert "columns that are empty, and left out: notes" in told


def test_a_design_and_a_control_with_the_same_residues_need_a_decision():
    assert "only one of the two is a control" in finding("name,sequence,control\na,ACD,0\nb,ACD,1\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,sequence\n", "no sequences; give"),
        (
            "name,score\na,1\n",
            "line 1: neither FASTA (a line that starts with '>') nor a table with a header: no sequence column in [name, score]",
        ),
        ("score,sequence\n1,ACD\n", "no name column in [score, sequence]"),
        ("id,designed_sequence\na,ACD\n", "holds the designed residues only"),
        ("name,sequence,Sequence\na,ACD,EFG\n", "two columns are called 'sequence'"),
        ("name,sequence\na,ACD\n,EFG\n", "line 3: a sequence without a name"),
        ("name,sequence\na,ACD\nb,\n", "line 3, sequence 'b': no residues"),
        (
            "name,sequence\na,ACD\nb,NA\n",
            "line 3, sequence 'b': the sequence is 'NA', which R and pandas write",
        ),
        (
            "name\tsequence\na\tACD\nb\tnan\n",
            "line 3, sequence 'b': the sequence is 'nan', which R and pandas",
        ),
        ("name,sequence\na,ACD\nb,EFG,oops\n", "line 3: 3 cells under 2 columns"),
        ('name,sequence\na,ACD\n"b,EFG\nc,KKK\n', "line 3: the row does not parse"),
        ('name,sequence\na,"ACD"x\n', "line 2: the row does not parse"),
        (
            "name,sequence,control\na,ACD,maybe\n",
            "line 2, sequence 'a': control is 'maybe'; write true or false",
        ),
        (
            "name,sequence,sequence_type\na,ACD,antibody\n",
            "type is 'antibody'; write one of ScFv, FAB, SingleChain, IgG",
        ),
        ("name,sequence,sequence_type,VH\na,ACD,scfv,AC\n", "type ScFv needs VL; fill the columns"),
        ("name,sequence,sequence_type\na,ACD:EFG,fab\n", "type FAB needs ch and cl; fill the columns"),
        ("name,sequence,tag_location\na,ACD,middle\n", "tag_location is 'middle'; write N or C"),
        (
            "name,sequence\na," + "A" * 200_000,
            "line 2, sequence 'a': more than 100,000 residues",
        ),
    ],
)
def test_findings(text, message):
    problem = finding(text)
    assert problem.startswith("designs.csv")
    assert message in problem


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_row_with_a_cell_too_many_is_an_error_where_the_last_is_empty(delimiter):
    """As an unquoted delimiter in a note leaves it."""
    head, row = "name,note,sequence,motif\nd1,ok,MKVLAAGIC,", "d2,good, PEPTIDEKAC,MKVLAAGIH,"
    message = finding(f"{head}\n{row}\n".replace(",", delimiter))
    assert (
        f"line 3: 5 cells under 4 columns; quote cells that contain {delimiter!r}, or remove the empty"
        in message
    )


def test_a_delimiter_at_the_end_of_every_row_adds_no_cell():
    rows = "name,sequence\na,ACD,\nb,EFG,\n\nc,GHI\n"
    assert [item.aa_string for item in read(rows).items] == ["ACD", "EFG", "GHI"]
    assert "line 4: 3 cells under 2 columns" in finding("name,sequence\na,ACD\n,,\nb,EFG,\n")


def test_rows_keep_their_line_numbers_behind_cells_with_line_ends():
    assert "line 5, sequence" in finding('name,sequence,note\na,ACD,"x\ny\nz"\nb,ACX,\n')


def test_words_between_spaces_are_a_table():
    sequences = read("name  sequence   score\n d1  MKV  0.5 \nd2\tACD 0.7\n")
    assert [(s.name, s.aa_string, s.attributes) for s in sequences.items] == [
        ("d1", "MKV", {"score": "0.5"}),
        ("d2", "ACD", {"score": "0.7"}),
    ]


def test_a_missing_word_between_spaces_is_an_error():
    with pytest.raises(
        InvalidSequences, match=r"line 3: 2 words under 3 columns; write 'nan' for an empty cell"
    ):
        read("name sequence score\nd1 MKV 0.5\nd2 ACD\n")


@pytest.mark.parametrize("sign", ["#", ";"])
def test_the_words_of_a_comment_are_no_header(sign):
    comment = f"{sign} name and sequence of each design\n"
    for body in ("name,sequence\nd1,MKVLAAGIC\n", ">d1\nMKVLAAGIC\n", "name sequence\nd1 MKVLAAGIC\n"):
        assert [item.name for item in read_sequences("d.csv", text=comment + body).items] == ["d1"]


def test_columns_may_be_named():
    text = "id,Construct,seq,Binder Chain\n1,c1,AAA,MKV\n2,c2,CCC,ACD\n"
    how = ReadingOptions(name_column="Construct", sequence_column="binder_chain")
    sequences = read_sequences("d.csv", text=text, reading=how)
    assert [(s.name, s.aa_string, s.attributes) for s in sequences.items] == [
        ("c1", "MKV", {"id": "1", "seq": "AAA"}),
        ("c2", "ACD", {"id": "2", "seq": "CCC"}),
    ]
    assert read_sequences(">x\nACD", reading=how).items[0].name == "x"


def test_a_named_column_that_does_not_exist_is_an_error():
    how = ReadingOptions(name_column="Construct", sequence_column="Chain")
    with pytest.raises(InvalidSequences, match=r"no column 'Construct' and no column 'Chain' in \[id, seq\]"):
        read_sequences("d.csv", text="id,seq\n1,ACD\n", reading=how)


def test_heavy_and_light_columns_become_heavy_and_light_in_whichever_order_they_stand():
    assert [item.aa_string for item in read("name,vl,vh\nab1,EFGHIKLMNPQR,ACDEFGHIKLMN\n").items] == [
        "ACDEFGHIKLMN:EFGHIKLMNPQR"
    ]
