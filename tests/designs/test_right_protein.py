"""Each kind of file that ordered the wrong protein, as it was met and once more with other sequences and another layout."""

import csv
import io
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.chains import refuse_target
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.proposed import choices_csv
from prefect_assay.designs.read import read_pool, read_sequences
from prefect_assay.designs.report import order_lines
from prefect_assay.designs.selection import Choice
from prefect_assay.errors import InvalidSequences

INTAKE = Path(__file__).parent / "data" / "intake"
PDL1 = "FTVTVPKDLYVVEYGSNMTIECKFPVEKQLDLAALIVYWEMEDKNIIQFVHGEEDLKVQHSSYRQRARLLKDQLSLGNAALQITDVKLQDAGVYRCMISYGGADYKRITVKVNA"
BINDERS = (
    "SPEELLKKAEELLKRGDYEEALKLLEEALELARELGDEEREARALELLGRILLALGR",
    "MKIVVVNGTPRPDSITVKLAKKVAEELGAEVEVVDLSDYDLPPYTEEVEPPEGVKELIEKAK",
    "TDWQRLVEEYYRHTGRWPEVSPEVRALAEALGVDPALVAEVVRRLRELGLL",
    "AQFNPDTWKKVFEWLKSHPDAELTIRGNKVTVHVNGQEYTFDSPEEAYRFIQEQLS",
)
HEAVY = "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYCSRWGGDGFYAMDYWGQGTLVTVSS"
LIGHT = "DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYSGVPSRFSGSRSGTDFTLTISSLQPEDFATYYCQQHYTTPPTFGQGTKVEIK"
OTHER_HEAVY = "QVQLQQPGAELVKPGASVKMSCKASGYTFTSYNMHWVKQTPGRGLEWIGAIYPGNGDTSYNQKFKGKATLTADKSSSTAYMQLSSLTSEDSAVYYCARSTYYGGDWYFNVWGAGTTVTVSA"

FC = "DKTHTCPPCPAPELLGGPSVFLFPPKPKDTLMISRTPEVTCVVVDVSHEDPEVKFNWYVDGVEVHNAKTKPREEQYNSTYRVVSVLTVLHQDWLNGKEYKCKVSNKALPAPIEKTISKAKGQPREPQVYTLPPSRDELTKNQVSLTCLVKGFYPSDIAVEWESNGQPENNYKTTPPVLDSDGSFFLYSKLTVDKSRWQQGNVFSCSVMHEALHNHYTQKSLSLSPGK"  # fmt: skip


def fasta(*records: tuple[str, str]) -> str:
    return "".join(f">{name}\n{residues}\n" for name, residues in records)


def designs(*residues: str) -> str:
    return fasta(*((f"d{number}", sequence) for number, sequence in enumerate(residues, 1)))


def table(titles: str, *rows: str, delimiter: str = ",") -> str:
    return "".join(row.replace(",", delimiter) + "\n" for row in (titles, *rows))


def read(content: str | Path, **choices):
    reading = ReadingOptions(**choices)
    return (
        read_sequences(str(content), reading=reading)
        if isinstance(content, Path)
        else read_sequences(content, reading=reading)
    )


def refused(content: str | Path, **choices) -> str:
    with pytest.raises(InvalidSequences) as caught:
        read(content, **choices)
    return "\n".join(caught.value.findings)


def residues(sequences) -> list[str]:
    return [item.aa_string for item in sequences.items]


def join_order_lines(sequences) -> str:
    return "\n".join(order_lines(sequences))


# -- which column


def test_boltzgen_gives_the_chain_and_names_the_columns_that_differ():
    sequences = read(INTAKE / "boltzgen_final_designs_metrics_2.csv")
    assert [item.residues for item in sequences.items] == [120, 120]
    assert sequences.items[0].aa_string.startswith("EVQLVESGGG")
    assert (
        "columns that also hold sequences, and were not taken: designed_sequence, sequence"
        in join_order_lines(sequences)
    )


def test_boltzgen_with_several_designed_chains_gives_all_of_them():
    titles = "id,num_design,designed_sequence_1,designed_chain_sequence_2,designed_chain_sequence_1,designed_sequence_2,design_ptm"
    sequences = read(table(titles, f"fab_0,31,GFNIKDTYIH,{LIGHT},{HEAVY},QQHYTTPPTFG,0.9"))
    assert residues(sequences) == [f"{HEAVY}:{LIGHT}"]
    assert sequences.report.scores == {"design_ptm": True}


@pytest.mark.parametrize(
    ("titles", "choices"),
    [
        ("name,binder,cochain", {"sequence_column": "binder,cochain"}),
        ("id,designed_chain_sequence_1,designed_chain_sequence_2", {}),
    ],
)
def test_a_row_without_its_first_chain_has_no_chain_of_a_number(titles, choices):
    rows = [f"d{number},{binder},{binder[::-1]}" for number, binder in enumerate(BINDERS[:2])]
    text = table(titles, *rows, f"x,,{BINDERS[2]}")
    for chain in ("1", "2", "1,2"):
        message = refused(text, chain=chain, **choices)
        assert f"line 4: sequence 'x' has no {titles.split(',')[1]}" in message
    assert residues(read(text, **choices))[2] == BINDERS[2]
    behind = table(titles, *rows, f"x,{BINDERS[2]},")
    assert residues(read(behind, chain="1", **choices)) == [*BINDERS[:3]]
    assert "'x' has 1 chain, and --chain is 2" in refused(behind, chain="2", **choices)


def test_nearly_boltzgen_is_said_to_be_that():
    message = refused(table("id,designed_sequence,sequence", f"x,GFNIKDTYIHWVR,{HEAVY}"))
    assert "designed_sequence holds the designed residues only" in message
    assert residues(
        read(table("id,designed_sequence,sequence", f"x,GFNIKDTYIHWVR,{HEAVY}"), sequence_column="sequence")
    ) == [HEAVY]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_two_columns_of_sequences_need_a_choice(delimiter):
    text = table(
        "name,sequence,binder_sequence",
        f"a,{BINDERS[0]}{PDL1},{BINDERS[0]}",
        f"b,{BINDERS[1]}{PDL1},{BINDERS[1]}",
        delimiter=delimiter,
    )
    message = refused(text)
    assert "line 2: the columns 'sequence'" in message
    assert "--sequence-column 'binder_sequence'" in message
    assert residues(read(text, sequence_column="binder_sequence")) == [*BINDERS[:2]]


@pytest.mark.parametrize(
    "write",
    [
        str.lower,
        lambda b: f'"{b[:10]} {b[10:20]} {b[20:]}"',
        lambda b: f'"{b[:30]}\n{b[30:]}"',
        lambda b: f"{b[:9]}--{b[9:]}-",
        lambda b: f"{b[:9]}B{b[10:]}",
    ],
    ids=["lower case", "blocks", "lines", "gaps", "ambiguous"],
)
def test_a_second_column_of_sequences_is_one_however_it_is_written(write):
    pairs = zip(BINDERS[:2], BINDERS[2:], strict=True)
    text = table("name,sequence,full", *(f"d{n},{a},{write(b)}" for n, (a, b) in enumerate(pairs)))
    assert "'full'" in refused(text)
    assert residues(read(text, sequence_column="sequence")) == [*BINDERS[:2]]
    same = table("name,sequence,full", *(f"d{n},{b},{write(b)}" for n, b in enumerate(BINDERS[:2])))
    assert "B" in write("A" * 20) or residues(read(same)) == [*BINDERS[:2]]


@pytest.mark.parametrize(
    "cell",
    [
        "these are designs in the first set",
        "DESIGN-SERIES-A",
        "disulfide-stapled variant",
        "aggregates significantly",
        "fixed-interface-resampled",
        "DEGLYCOSYLATED VARIANT",
        "---HHHHTTTTEEEEEGGGIIIBB--SS--",
        "acgtnacgtt acgtacgtnt acgtaagtac",
        "Thermo Fisher Scientific",
        "InternalReferenceCandidateSet",
    ],
)
def test_other_text_is_no_second_column_of_sequences(cell):
    assert len(read(table("name,sequence,full", *(f"d{n},{b},{cell}" for n, b in enumerate(BINDERS))))) == 4


def test_columns_that_are_no_rivals_need_none():
    cdr, helix = "ARWGGDGFYAMDY", "HHHHHHLLLLEEEE"
    sequences = read(
        table("name,sequence,target_sequence,cdr3,dssp,copy", f"a,{HEAVY},{PDL1},{cdr},{helix},{HEAVY}")
    )
    assert residues(sequences) == [HEAVY]
    assert sequences.report.other_sequences == ("target_sequence", "cdr3", "copy")


def test_a_later_row_may_be_the_first_that_differs():
    rows = [f"d{number},{BINDERS[0]}{'A' * number},{BINDERS[0]}{'A' * number}" for number in range(300)]
    rows.append(f"last,{BINDERS[0]},{BINDERS[1]}")
    assert "line 302: the columns" in refused(table("name,sequence,aa_seq", *rows))


@pytest.mark.parametrize("column", ["tag,N", "type,SingleChain", "vh,", "control,x"])
def test_a_row_at_which_reading_stops_may_have_metadata(column):
    title, _, cell = column.partition(",")
    rows = [f"a,{BINDERS[0]},{BINDERS[0]},", f"b,{BINDERS[1]},{BINDERS[2]},{cell or BINDERS[1]}"]
    message = refused(table(f"name,sequence,full_sequence,{title}", *rows))
    assert "line 3: the columns 'sequence' (62 letters) and 'full_sequence' (51 letters)" in message
    chains = table(f"name,binder,cochain,{title}", f"a,,{BINDERS[0]},{cell or BINDERS[0]}")
    assert "has no binder" in refused(chains, chain="1", sequence_column="binder,cochain")


@pytest.mark.parametrize(
    ("titles", "chains"), [("vh,vl", f"{HEAVY},{LIGHT}"), ("sequence", f"{HEAVY}:{LIGHT}")]
)
def test_constant_domains_are_no_second_column_of_sequences(titles, chains):
    text = table(f"name,{titles},type,ch,cl", f"a,{chains},FAB,{FC},{BINDERS[0]}")
    (design,) = read(text).items
    assert design.aa_string == f"{HEAVY}:{LIGHT}"
    assert design.metadata["framework_regions"] == {"ch": FC, "cl": BINDERS[0]}


@pytest.mark.parametrize("absent", ["", "NA"])
def test_a_second_column_of_sequences_may_begin_far_down(absent):
    """As in two producers' tables behind each other."""
    text = table(
        "name,sequence,binder",
        *(f"d{number},{changed(PDL1, 6, number)},{absent}" for number in range(205)),
        f"last,{BINDERS[0]},{BINDERS[1]}",
    )
    assert "line 207: the columns 'sequence' (57 letters) and 'binder'" in refused(text)
    assert len(read(text, sequence_column="sequence")) == 206
    agreeing = text.replace(f",{BINDERS[1]}", f",{BINDERS[0]}")
    assert len(read(agreeing)) == 206
    assert read(agreeing).report.other_sequences == ("binder",)


def test_a_chain_of_the_metadata_may_be_the_first_that_is_no_part_far_down():
    rows = [f"d{number},{BINDERS[0]}{'A' * number},{BINDERS[0]}" for number in range(205)]
    assert len(read(table("name,sequence,VH", *rows))) == 205
    text = table("name,sequence,VH", *rows, f"last,{PDL1},{BINDERS[0]}")
    for choices in ({}, {"sequence_column": "sequence"}):
        assert "line 207, sequence 'last': VH (57 letters) is no part of" in refused(text, **choices)


SCFV_ROWS = (
    (f"{HEAVY}{'GGGGS' * 3}{LIGHT}", HEAVY, LIGHT),
    (f"{OTHER_HEAVY}{'GGGGS' * 3}{LIGHT[:-1]}R", OTHER_HEAVY, f"{LIGHT[:-1]}R"),
)


@pytest.mark.parametrize("choices", [{}, {"sequence_column": "sequence"}, {"as_is": True}])
@pytest.mark.parametrize(
    ("titles", "end"), [("name,sequence,vh,vl,type", "ScFv"), ("name,sequence,VH,VL,note", "x")]
)
def test_domains_of_another_row_are_not_sent(titles, end, choices):
    (one, vh, vl), (other, other_vh, other_vl) = SCFV_ROWS
    right = table(titles, f"a,{one},{vh},{vl},{end}", f"b,{other},{other_vh},{other_vl},{end}")
    assert [item.metadata["VH"] for item in read(right, **choices).items] == [vh, other_vh]
    message = refused(
        table(titles, f"a,{one},{other_vh},{vl},{end}", f"b,{other},{other_vh},{vl},{end}"), **choices
    )
    assert "line 2, sequence 'a': VH (121 letters) is no part of the sequence" in message
    assert "line 3, sequence 'b': VL (107 letters) is no part of the sequence" in message
    assert "sequence 'b': VH" not in message


@pytest.mark.parametrize("linker", ["GGGGS" * 3, "(G4S)3", "G4S", "15", "flexible"])
def test_a_linker_that_is_residues_is_a_part_of_the_chain(linker):
    one, vh, vl = SCFV_ROWS[0]
    text = table("name,sequence,vh,vl,linker", f"a,{one},{vh},{vl},{linker}")
    assert read(text).items[0].metadata["linker"] == linker
    for word in ("PEG", "RIGID", "HELICAL"):
        assert len(read(table("name,sequence,linker", f"a,{one},{word}"))) == 1
    message = refused(text.replace(f",{linker}", f",{'GGGGS' * 4}"))
    assert "linker (20 letters) is no part of the sequence (242 letters)" in message
    assert "or rename the column linker" in message


def test_domains_are_compared_with_the_chain_that_is_taken():
    one, vh, vl = SCFV_ROWS[0]
    text = table("name,sequence,vh,vl", f"a,{one}:{PDL1},{vh},{vl}")
    assert residues(read(text, chain="1")) == [one]
    assert "VH (120 letters) is no part of the sequence (114 letters)" in refused(text, chain="2")
    fused = table("name,sequence,type,vh,vl", f"a,{PDL1}{one},ScFv,{vh},{vl}")
    assert residues(read(fused, chain="2", target_sequence=PDL1)) == [one]
    cut_domain = fused.replace(f",{vh},", f",{PDL1[-9:]}{vh},")
    assert "VH (129 letters) is no part of" in refused(cut_domain, chain="2", target_sequence=PDL1)


def test_a_column_of_the_target_may_begin_far_down():
    text = table(
        "name,sequence,target",
        *(f"d{number},{changed(BINDERS[0], 9, number)}," for number in range(205)),
        f"last,{BINDERS[1]}:{PDL1},{PDL1}",
    )
    assert "is the target in a column of the file" in refused(text)


def test_a_file_of_choices_is_read_whatever_columns_the_designer_had():
    candidate = Candidate(
        name="a", sequence=BINDERS[0], columns={"sequence": BINDERS[0] + PDL1, "full_sequence": PDL1}
    )
    assert residues(
        read_sequences("choices", data=choices_csv([Choice(candidate=candidate, rank=1, reason="")]))
    ) == [BINDERS[0]]


# -- the target with each design


@pytest.mark.parametrize(
    ("name", "where", "residue_count"),
    [
        ("colabfold_binder_target.csv", "chain 2 is the same in all 3 designs", 42),
        ("foundry_mpnn.fa", "end in the same 60 residues", 42),
    ],
)
def test_the_files_that_were_met_need_a_choice(name, where, residue_count):
    message = refused(INTAKE / name)
    assert where in message
    assert "is it the target?" in message
    assert "--chain 1 (in a form: chain)" in message
    assert "--as-is (in a form: as_is)" in message
    assert {item.residues for item in read(INTAKE / name, chain="1").items} == {residue_count}
    kept = read(INTAKE / name, as_is=True)
    assert {item.residues for item in kept.items} == {102}
    assert "kept:" in join_order_lines(kept)


def changed(residues: str, count: int, seed: int = 3) -> str:
    chance, letters = random.Random(seed), list(residues)
    for position in chance.sample(range(len(letters)), count):
        letters[position] = chance.choice("ACDEFGHIKLMNPQRSTVWY")
    return "".join(letters)


ATTACHED = {
    "first chain": lambda b, _: f"{PDL1}:{b}",
    "last chain": lambda b, _: f"{b}:{PDL1}",
    "middle chain": lambda b, _: f"{b}:{PDL1}:{b[::-1]}",
    "chain with differences": lambda b, seed: f"{b}:{changed(PDL1, 5, seed)}",
    "end": lambda b, _: b + PDL1,
    "beginning": lambda b, _: PDL1 + b,
    "end with differences": lambda b, seed: b + changed(PDL1, 5, seed),
    "end behind a linker": lambda b, _: f"{b}GGGGSGGGGSGGGGS{PDL1}",
    "end behind a tag, and a tag": lambda b, _: f"MHHHHHHGS{b}GSS{PDL1}LEHHHHHH",
    "beginning before a tag": lambda b, _: f"{PDL1}ENLYFQGHHHHHH{b}",
    "domain": lambda b, _: b + PDL1[:40],
}


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("kind", ATTACHED)
def test_the_target_with_each_design_needs_a_choice_and_is_refused_where_it_is_known(kind, number):
    text = designs(*(ATTACHED[kind](binder, seed) for seed, binder in enumerate(BINDERS[:number])))
    assert "is it the target?" in refused(text)
    known = refused(text, target_sequence=f"MK{PDL1}HHHHHH")
    assert "designs is the target (--target-sequence)" in known
    with pytest.raises(InvalidSequences, match="the target in the service's catalog"):
        refuse_target(read(text, as_is=True), PDL1, ReadingOptions())
    refuse_target(read(text, as_is=True), PDL1, ReadingOptions(as_is=True))
    assert len(read(text, as_is=True)) == number


@pytest.mark.parametrize(
    ("kind", "chain"),
    [
        ("first chain", "2"),
        ("last chain", "1"),
        ("middle chain", "1,3"),
        ("end", "1"),
        ("beginning", "2"),
        ("end with differences", "1"),
    ],
)
def test_one_chain_is_taken_and_the_target_left(kind, chain):
    text = designs(*(ATTACHED[kind](binder, seed) for seed, binder in enumerate(BINDERS)))
    binders = [f"{b}:{b[::-1]}" if kind == "middle chain" else b for b in BINDERS]
    assert residues(read(text, chain=chain, target_sequence=PDL1)) == binders
    if "beginning" not in kind and "differences" not in kind:
        assert residues(read(text, chain=chain)) == binders


@pytest.mark.parametrize("is_first", [True, False])
def test_each_of_several_targets_may_be_a_chain_of_some_of_the_designs(is_first):
    targets = [changed(PDL1, 60, seed) for seed in range(5)]
    binders = [changed(binder, 40, seed) for seed in range(4) for binder in BINDERS[:3]]
    pairs = [[binder, targets[index % 3]] for index, binder in enumerate(binders[:9])]
    text = designs(*(":".join(reversed(pair) if is_first else pair) for pair in pairs))
    message = refused(text)
    assert message.count("is the same in 3 of 9 designs") == 3
    assert f"--chain {2 if is_first else 1} (in a form: chain)" in message
    pairs = [f"{binder}:{targets[index % 5]}" for index, binder in enumerate(binders)]
    assert "2 more chains are shared by several designs" in refused(designs(*pairs))
    few = [f"{binder}:{targets[0] if index < 3 else binder[::-1]}" for index, binder in enumerate(binders)]
    assert len(read(designs(*few))) == 12


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("label", ["A", "H", "GK", "TARGET", "CHAINA", "HEAVYCHAIN"])
@pytest.mark.parametrize("is_first", [True, False])
def test_the_label_of_a_chain_is_no_chain(number, label, is_first):
    pairs = [(label, binder) if is_first else (binder, label) for binder in BINDERS[:number]]
    text = designs(*map(":".join, pairs))
    message = refused(text)
    assert "line 1, sequence 'd1'" in message
    assert f"ordered as '{label}*'" in message
    assert residues(read(text, chain="2" if is_first else "1")) == [*BINDERS[:number]]


def test_a_short_chain_that_all_share_is_asked_about():
    text = designs(*(f"GSWKE:{binder}" for binder in BINDERS))
    assert "chain 1 is the same in all 4 designs (GSWKE): is it the target? --chain 2" in refused(text)
    assert residues(read(text, chain="2")) == [*BINDERS]
    peptide = designs(f"GS*:{BINDERS[0]}", f"KE*:{BINDERS[1]}")
    assert residues(read(peptide)) == [f"GS:{BINDERS[0]}", f"KE:{BINDERS[1]}"]


def test_a_beginning_is_not_cut_where_the_first_residue_of_the_designs_may_be_shared_too():
    """All of these designs begin with S: only the target's sequence says where it ends."""
    binders = [f"S{binder}" for binder in BINDERS]
    text = designs(*(PDL1 + binder for binder in binders))
    assert "in addition to --target-sequence" in refused(text, chain="2")
    assert residues(read(text, chain="2", target_sequence=PDL1)) == binders


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("start", ["M", "MGSSHHHHHHSSG"])
def test_a_start_or_a_tag_before_the_target_is_no_design(start, number):
    starts = [start, f"{start}A", f"{start}S"][:number]
    text = designs(*(first + PDL1 + binder for first, binder in zip(starts, BINDERS, strict=False)))
    assert "--chain 3 (in a form: chain) orders the rest" in refused(text, target_sequence=PDL1)
    message = refused(text, target_sequence=PDL1, chain="1")
    assert f"part 1 of sequence 'd1' has {len(start)} residue" in message
    assert "part 3 has 57: --chain 3" in message
    assert residues(read(text, target_sequence=PDL1, chain="3")) == [*BINDERS[:number]]
    assert residues(read(text, target_sequence=PDL1, chain="1", as_is=True)) == starts


def test_a_tag_behind_the_binder_is_not_named():
    text = designs(*(f"{binder}{PDL1}LEHHHHHH" for binder in BINDERS))
    assert "--chain 1 (in a form: chain) orders the rest" in refused(text, target_sequence=PDL1)
    assert "part 3 of sequence 'd1' has 8 residues" in refused(text, target_sequence=PDL1, chain="3")
    peptides = designs(*(f"{binder[:20]}{PDL1}" for binder in BINDERS))
    assert residues(read(peptides, target_sequence=PDL1, chain="1")) == [binder[:20] for binder in BINDERS]


def test_the_shared_chain_itself_is_no_choice():
    text = designs(*(f"{binder}:{PDL1}" for binder in BINDERS))
    assert "the same in all designs: choose another" in refused(text, chain="2")
    assert "has 2 chains, and --chain is 3" in refused(text, chain="3")
    assert "give their numbers" in refused(text, chain="A")
    assert "one chain each" in refused(designs(*BINDERS), chain="2")
    assert residues(read(designs(*BINDERS), chain="1")) == [*BINDERS]


@pytest.mark.parametrize(
    ("write", "chain", "other"),
    [
        (lambda pairs: designs(*map(":".join, pairs)), "1", "2"),
        (lambda pairs: table("name,a,b", *(f"d{n},{a},{b.lower()}" for n, (a, b) in enumerate(pairs))), "1", "2"),
        (lambda pairs: "".join(fasta((f"d{n}_chain_A", a), (f"d{n}_chain_B", b)) for n, (a, b) in enumerate(pairs)), "A", "B"),
    ],
    ids=["FASTA", "columns", "labels"],
)  # fmt: skip
def test_a_chain_that_is_left_out_of_one_design_is_not_ordered_as_another(write, chain, other):
    pairs = [(binder, PDL1) for binder in BINDERS[:3]]
    choices = {"sequence_column": "a,b"} if write(pairs).startswith("name") else {}
    assert residues(read(write(pairs), chain=chain, **choices)) == [*BINDERS[:3]]
    for odd in ((PDL1, BINDERS[3]), (PDL1, PDL1[5:])):
        message = refused(write([*pairs, odd]), chain=chain, **choices)
        assert "(114 residues, FTVTVPKDLY...) was left out of 'd" in message
        assert "or order them with --as-is (in a form: as_is)" in message
    homodimer = [*pairs[:2], (BINDERS[2], BINDERS[2])]
    assert residues(read(write(homodimer), chain=chain, **choices)) == [*BINDERS[:3]]
    if chain == "1":
        assert len(read(write([*pairs, (PDL1, BINDERS[3])]), chain=chain, as_is=True, **choices)) == 4


def test_a_control_may_be_a_chain_that_is_left_out():
    rows = [f"d{number},{binder}:{PDL1},false" for number, binder in enumerate(BINDERS)]
    assert len(read(table("name,sequence,control", *rows, f"t,{PDL1},true"), chain="1")) == 5


@pytest.mark.parametrize("kind", ["af3 json", "boltz yaml", "boltz", "rcsb"])
def test_chains_of_complexes_have_names_and_no_numbers(kind):
    assert "no chain '2'" in refused(COMPLEXES[kind], chain="2")


def test_the_chain_that_is_advised_has_the_name_by_which_it_was_taken():
    text = jobs("j0", "j1")
    assert "--chain A (in a form: chain) orders the rest" in refused(text, chain="A,B")
    assert "--chain A (in a form: chain) orders the rest" in refused(text, chain="B,A", target_sequence=PDL1)
    with pytest.raises(InvalidSequences, match=r"--chain A \(in a form: chain\) orders the rest"):
        refuse_target(read(text, chain="A,B", as_is=True), PDL1, ReadingOptions(chain="A,B"))
    assert residues(read(text, chain="A", target_sequence=PDL1)) == [*BINDERS[:2]]
    three = designs(*(f"GSWKEGSWKE:{binder}:{PDL1}" for binder in BINDERS))
    assert "--chain 2 (in a form: chain) orders the rest" in refused(three, chain="2,3")


def test_the_target_as_a_design_is_refused():
    text = designs(*BINDERS, PDL1)
    assert "the whole of 1 of 5 designs is the target" in refused(text, target_sequence=PDL1)
    assert "a record is called 'target'" in refused(fasta(("a", BINDERS[0]), ("target", PDL1)))
    in_column = table(
        "name,sequence,target_sequence", *(f"d{n},{b},{PDL1}" for n, b in enumerate((*BINDERS, PDL1)))
    )
    assert "the target in a column of the file" in refused(in_column)


def test_the_target_as_a_control_is_measured():
    rows = [f"d{number},{binder},false" for number, binder in enumerate(BINDERS)]
    assert len(read(table("name,sequence,control", *rows, f"t,{PDL1},true"), target_sequence=PDL1)) == 5


LIGAND_NATIVE = ">1BRS, T=0.1, seed=111, num_res=93, num_ligand_res=93, model_path=x"
LIGAND_SAMPLE = ">1BRS, id={}, T=0.1, seed=111, overall_confidence=0.4"
PROTEIN_NATIVE = ">1BRS, score=1.2, global_score=1.2, fixed_chains=['B'], designed_chains=['A'], model_name=v_48_020, seed=37"
PROTEIN_SAMPLE = ">T=0.1, sample={}, score=0.7, global_score=0.9, seq_recovery=0.5"


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("native", "sample", "separator"),
    [(LIGAND_NATIVE, LIGAND_SAMPLE, ":"), (PROTEIN_NATIVE, PROTEIN_SAMPLE, "/")],
    ids=["LigandMPNN", "ProteinMPNN"],
)
def test_a_chain_of_the_native_input_is_refused(native, sample, separator, count):
    records = [f"{native}\n{BINDERS[3]}{separator}{PDL1}\n"]
    records += [f"{sample.format(n)}\n{b}{separator}{PDL1}\n" for n, b in enumerate(BINDERS[:count], 1)]
    message = refused("".join(records))
    assert f"chain 2 of {count} of {count} design" in message
    assert "equals the native input" in message
    assert residues(read("".join(records), chain="1")) == [*BINDERS[:count]]
    assert len(read("".join(records), as_is=True)) == count


def test_one_sample_for_each_of_several_inputs_with_targets_of_their_own_is_refused():
    targets = (PDL1, PDL1[::-1])
    text = "".join(
        f"{LIGAND_NATIVE}\n{'G' * 60}:{target}\n{LIGAND_SAMPLE.format(1)}\n{binder}:{target}\n".replace(
            "1BRS", f"bb_{n}"
        )
        for n, (binder, target) in enumerate(zip(BINDERS, targets, strict=False))
    )
    assert "chain 2 of 2 of 2 designs" in refused(text)
    message = refused(text, chain="2")
    assert "1 of 2 of 2 designs (114 residues, FTVTVPKDLY...) equals the native input" in message
    assert "Take another chain with --chain" in message
    assert residues(read(text, chain="1")) == [*BINDERS[:2]]
    assert residues(read(text, chain="2", as_is=True)) == [*targets]


def test_oligomers_that_were_designed_whole_are_no_native_chains():
    text = f"{PROTEIN_NATIVE}\n{BINDERS[3]}/{BINDERS[3]}\n{PROTEIN_SAMPLE.format(1)}\n{BINDERS[0]}/{BINDERS[0]}\n"
    assert residues(read(text)) == [f"{BINDERS[0]}:{BINDERS[0]}"]


def colab(*chains: tuple[str, ...]) -> str:
    return fasta(
        *(
            (f"design:0 n:{number}|mpnn:1.2|plddt:0.9|i_ptm:0.8", "/".join(design))
            for number, design in enumerate(chains)
        )
    )


def test_rfdiffusion_in_colab_separates_the_target_by_a_slash():
    text = colab(*((PDL1, binder) for binder in BINDERS))
    assert "chain 1 is the same in all 4 designs" in refused(text)
    sequences = read(text, chain="2")
    assert residues(sequences) == [*BINDERS]
    assert sequences.items[1].name == "design_0_n_1"
    assert sequences.items[1].attributes == {
        "parent": "design_0",
        "mpnn": "1.2",
        "plddt": "0.9",
        "i_ptm": "0.8",
    }


@pytest.mark.parametrize(
    "chains",
    [
        [(PDL1, BINDERS[0])],
        [(PDL1, BINDERS[0]), (PDL1, BINDERS[1])],
        [(PDL1, BINDERS[0]), (PDL1[::-1], BINDERS[1])],
        [(PDL1, FC[:90], BINDERS[0])],
    ],
    ids=["one design", "one target", "two targets", "a target of two chains"],
)
def test_the_target_of_rfdiffusion_in_colab_is_asked_about_once(chains):
    last = len(chains[0])
    message = refused(colab(*chains))
    assert message.count("is it the target?") == 1
    assert "(in a form: chain)" in message
    assert residues(read(colab(*chains), chain=str(last))) == [design[-1] for design in chains]
    kept = read(colab(*chains), as_is=True)
    assert residues(kept) == [":".join(design) for design in chains]
    assert join_order_lines(kept).count("kept:") == 1


def test_oligomers_of_rfdiffusion_in_colab_have_no_target():
    assert residues(read(colab((BINDERS[0],) * 3, (BINDERS[1],)))) == [
        ":".join([BINDERS[0]] * 3),
        BINDERS[1],
    ]


# -- chains of a complex


def test_boltz_fasta_is_a_complex():
    message = refused(INTAKE / "boltz_input.fasta")
    assert "line 1: Boltz FASTA: the records are chains of a complex" in message
    sequences = read(INTAKE / "boltz_input.fasta", chain="B")
    assert [(item.name, item.residues) for item in sequences.items] == [("boltz_input_B", 42)]
    assert "1 record is left out: 'boltz_input A'" in join_order_lines(sequences)


COMPLEXES = {
    "chai": fasta(("protein|name=antigen", PDL1), ("protein|name=B", BINDERS[0]), ("ligand|name=L", "CCO")),
    "rcsb": fasta(("7XYZ_1|Chains A, C[auth T]|Programmed cell death 1 ligand 1|Homo sapiens (9606)", PDL1), ("7XYZ_2|Chain B|binder|synthetic", BINDERS[0])),
    "pdb_seqres": fasta(("7xyz_A mol:protein length:113  PD-L1", PDL1), ("7xyz_B mol:protein length:57", BINDERS[0])),
    "old pdb": fasta(("7XYZ:A|PDBID|CHAIN|SEQUENCE", PDL1), ("7XYZ:B|PDBID|CHAIN|SEQUENCE", BINDERS[0])),
    "bare": fasta(("7XYZ_A", PDL1), ("7XYZ_B", BINDERS[0])),
    "boltz": fasta(("target|protein|./target.a3m", PDL1), ("B|protein|empty", BINDERS[0])),
    "boltz, long names": fasta(("chain_PDL1|protein", PDL1), ("B|protein", BINDERS[0]), ("ligand 1|smiles", "CCO")),
    "boltz, two long names": fasta(("egfr1|protein", PDL1), ("binder|protein", BINDERS[1]), ("B|protein", BINDERS[0])),
    "boltz yaml": f"version: 1\nsequences:\n- protein:\n    id: A\n    sequence: {PDL1}\n- protein: {{id: [B, C], sequence: {BINDERS[0]}}}\n- ligand: {{id: L, smiles: CCO}}\n",
    "af3 json": json.dumps(
        {"name": "x", "dialect": "alphafold3", "version": 1, "modelSeeds": [1], "sequences": [
            {"protein": {"id": "A", "sequence": PDL1}}, {"protein": {"id": ["B"], "sequence": BINDERS[0]}}, {"ligand": {"id": "L", "ccdCodes": ["ATP"]}},
        ]}, indent=1,
    ),
    "af3 server": json.dumps([{"name": "x", "sequences": [{"proteinChain": {"sequence": PDL1, "count": 1}}, {"proteinChain": {"sequence": BINDERS[0], "count": 1}}]}], indent=1),
}  # fmt: skip


@pytest.mark.parametrize("kind", COMPLEXES)
def test_chains_of_a_complex_are_no_designs_until_one_is_named(kind):
    message = refused(COMPLEXES[kind])
    assert "chains of a complex, not designs" in message
    assert "--chain (in a form: chain)" in message
    sequences = read(COMPLEXES[kind], chain="B")
    assert residues(sequences) == [BINDERS[0]]
    assert sequences.report.left_out_count >= 1
    assert "no chain 'Z'" in refused(COMPLEXES[kind], chain="Z")


def jobs(*names: str) -> str:
    """Jobs of AlphaFold 3: the target as chain B of each, and a binder of its own as chain A."""
    return json.dumps(
        [
            {
                "name": name,
                "sequences": [
                    {"protein": {"id": "A", "sequence": binder}},
                    {"protein": {"id": "B", "sequence": PDL1}},
                ],
            }
            for name, binder in zip(names, BINDERS, strict=False)
        ],
        indent=1,
    )


def entries(*names: str) -> str:
    chains = ((name, binder) for name, binder in zip(names, BINDERS, strict=False))
    return "".join(
        fasta((f"{name}_1|Chain A|x|y", binder), (f"{name}_2|Chain B|x|y", PDL1)) for name, binder in chains
    )


@pytest.mark.parametrize("chain", ["A", "B", "1", "A,B"])
@pytest.mark.parametrize(
    ("write", "name", "line"), [(jobs, "x", 1), (entries, "1ABC", 5)], ids=["AlphaFold 3", "PDB"]
)
def test_two_complexes_of_one_name_are_refused(write, name, line, chain):
    message = refused(write(name, name), chain=chain)
    assert f"line {line}: " in message
    assert f"two chains 'A' of '{name}' have different residues" in message
    assert residues(read(write(name, "2DEF"), chain="A")) == [*BINDERS[:2]]


def test_names_that_only_look_like_chains_are_designs():
    kinds = [(f"design_{number}|protein", changed(PDL1, 60, number)) for number in range(6)]
    assert len(read(fasta(*kinds))) == 6
    assert "chains of a complex" in refused(fasta(*kinds, ("B|protein|empty", BINDERS[0])))
    for names in (("1001_a", "1001_b"), ("2abc_1", "2abc_2"), ("7XYZ_A", "6XYZ_A")):
        assert len(read(fasta(*zip(names, BINDERS, strict=False)))) == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}\n',
        "version: 2\nservices: {}\n",
        "sequences: [a, b]\n",
        '[{"sequences": {"x": 1}}]\n',
        '{"sequences": [\n',
    ],
)
def test_other_documents_are_named(text):
    assert "AlphaFold 3" in refused(text)


# -- heavy and light chains


def test_heavy_and_light_columns_are_joined_as_the_contract_has_it():
    (design,) = read(INTAKE / "vh_vl_library.csv").items
    assert design.aa_string.count(":") == 1
    assert design.aa_string.startswith("EVQLVESGGG")
    rows = [f"{HEAVY};x;{LIGHT}", f"{OTHER_HEAVY};y;"]
    sequences = read("Heavy Chain;id;Light Chain\n" + "\n".join(rows) + "\n")
    assert residues(sequences) == [f"{HEAVY}:{LIGHT}", OTHER_HEAVY]


@pytest.mark.parametrize(
    ("heavy", "light"), [("_VH", "_VL"), ("|heavy", "|light"), ("_H", "_L"), (" heavy chain", " light chain")]
)
def test_heavy_and_light_records_are_joined(heavy, light):
    text = fasta(
        (f"ab1{heavy}", HEAVY),
        (f"ab1{light}", LIGHT),
        (f"ab2{light}", LIGHT[:-1] + "R"),
        (f"ab2{heavy}", OTHER_HEAVY),
    )
    sequences = read(text)
    assert [(item.name, item.aa_string) for item in sequences.items] == [
        ("ab1", f"{HEAVY}:{LIGHT}"),
        ("ab2", f"{OTHER_HEAVY}:{LIGHT[:-1]}R"),
    ]
    assert "2 pairs of heavy and light chains were joined" in join_order_lines(sequences)
    assert "without the other" in refused(text + f">ab3{heavy}\n{HEAVY[:-1]}\n")


def test_names_that_end_like_a_chain_stay_apart_where_no_antibody_is():
    assert len(read(fasta(("v1_H", BINDERS[0]), ("v1_L", BINDERS[1])))) == 2


# -- what is not a protein


def test_nucleotides_are_refused():
    message = refused(INTAKE / "dna_with_n.fasta")
    assert message.count("these are nucleotides") == 2
    assert "line 3, sequence 'nnk_library'" in message


@pytest.mark.parametrize(
    "text",
    [
        "GATCGATTACAGCTAGCTANN",
        "gcuagcuagguacu",
        "ATGNNKNNKNNKGGTACTGGTATGGCATTACGT",
        "ACGTACGTACGT",
        f"{'ACGT' * 9}:{'M' * 9}",
    ],
)
def test_short_and_coded_nucleotides_are_refused_and_an_option_overrides(text):
    assert "--as-protein (in a form: as_protein)" in refused(designs(text))
    if set(text.upper()) <= set("ACDEFGHIKLMNPQRSTVWY:"):
        assert residues(read(designs(text), as_protein=True)) == [text.upper()]


@pytest.mark.parametrize(
    "text", ["GGGGSGGGGSGGGGS", "ACGTACGTACG", "GAGAGSGAGAGS", "AGTCAGTCWYDHKM", "CCCCCCCCCCCCCC"]
)
def test_proteins_of_few_kinds_of_letters_are_read(text):
    assert residues(read(designs(text))) == [text]


def test_a_table_with_the_wild_type_in_every_row_is_refused():
    message = refused(INTAKE / "dms_wildtype_sequence.csv")
    assert "3 of 3 rows with names of mutations such as 'A24G' have the same residues" in message
    assert "mutated_sequence" in message
    other = table(
        "id,mutation,sequence",
        *(f"x{number},{mutation},{PDL1}" for number, mutation in enumerate(("F1A", "T2G", "V3L:T4S"))),
    )
    assert "the wild type in every row" in refused(other)


def mutated(text: str, *mutations: str) -> str:
    letters = list(text)
    for mutation in mutations:
        letters[int(mutation[1:-1]) - 1] = mutation[-1]
    return "".join(letters)


@pytest.mark.parametrize("offset", [0, 17, 238])
def test_mutants_are_read_in_any_numbering(offset):
    places = (3, 8, 20, 31, 44)
    mutations = [
        f"{PDL1[position - 1]}{position}{'W' if PDL1[position - 1] != 'W' else 'A'}" for position in places
    ]
    rows = [
        f"pdl1_{mutation[0]}{int(mutation[1:-1]) + offset}{mutation[-1]},{mutated(PDL1, mutation)}"
        for mutation in mutations
    ]
    assert len(read(table("variant,sequence", *rows))) == len(places)
    shuffled = [
        f"{row.partition(',')[0]},{mutated(PDL1, mutations[position - 1])}"
        for position, row in enumerate(rows)
    ]
    assert "do not have the mutations of their names" in refused(table("variant,sequence", *shuffled))


def test_mutants_of_proteingym_are_read():
    (design,) = read(INTAKE / "multi_mutants.csv").items
    assert (design.name, design.aa_string[6], design.aa_string[17]) == ("V7A:H18Y", "A", "Y")
    wild = table(
        "mutant,mutated_sequence,DMS_score", *(f"{mutation},{PDL1},0.1" for mutation in ("F1A", "T2G"))
    )
    assert "the wild type in every row" in refused(wild)


def test_airr_gives_the_protein_beside_its_nucleotides():
    sequences = read(
        table(
            "sequence_id,sequence,sequence_aa,v_call",
            f"r1,GAGGTGCAGCTGGTGGAGTCT,{HEAVY},IGHV3-66*01",
            delimiter="\t",
        )
    )
    assert residues(sequences) == [HEAVY]


# -- joined files, names


def test_joined_tables_are_read_and_told_apart():
    sequences = read(INTAKE / "concatenated_bindcraft.csv")
    assert [item.name for item in sequences.items] == ["EGFR_l42_s1_mpnn1", "EGFR_l42_s2_mpnn4"]
    assert [item.attributes["run"] for item in sequences.items] == ["run1", "run2"]
    assert [item.attributes["parent"] for item in sequences.items] == ["EGFR_l42_s1", "EGFR_l42_s2"]
    assert "line 3 repeats the header: 2 tables were read" in join_order_lines(sequences)
    header = "name;sequence\n"
    again = read(f"{header}a;{BINDERS[0]}\nb;{BINDERS[1]}\n{header}a;{BINDERS[2]}\n")
    assert [item.name for item in again.items] == ["a_run1", "b", "a_run2"]
    assert "2 names were changed: 'a' is 'a_run1'" in join_order_lines(again)


def test_names_of_several_runs_get_the_run():
    sequences = read(INTAKE / "two_runs_same_names.csv")
    assert [item.name for item in sequences.items] == ["EGFR_l42_s1_mpnn1_A", "EGFR_l42_s1_mpnn1_B"]
    assert "2 names were changed" in join_order_lines(sequences)


def test_names_keep_their_letters_and_mangled_ones_are_said():
    assert [item.name for item in read(INTAKE / "names_na.csv").items] == ["NA", "null"]
    sequences = read(INTAKE / "excel_mangled_names.csv")
    assert "3 names look like dates, numbers or errors that a spreadsheet made" in join_order_lines(sequences)
    dates = read(fasta(*zip(("2026-03-02", "Mar-02", "design_1"), BINDERS, strict=False)))
    assert "2 names look like dates" in join_order_lines(dates)
    assert "names look like" not in join_order_lines(read(designs(*BINDERS)))


def test_words_that_are_the_designers_own_are_kept():
    (design,) = read(INTAKE / "tag_his.csv").items
    assert (design.attributes, design.metadata) == ({"tag": "6xHis"}, {})
    (vhh,) = read(table("name,type,tag,sequence", f"a,VHH,N,{HEAVY}")).items
    assert (vhh.attributes, vhh.metadata) == ({"type": "VHH"}, {"tag_location": "N"})


def test_decimal_commas_are_read_as_scores():
    assert [item.attributes["ipTM"] for item in read(INTAKE / "pool_decimal_comma.csv").items] == [
        "0.61",
        "0.93",
        "0.72",
        "0.88",
    ]


# -- what must pass


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("variants_of_one_scaffold.fasta", "residues 1 to 38 are the same in all"),
        ("fab_common_light_chain.fasta", "a common light chain"),
        ("vhh_cdr3_library.csv", "residues 1 to 98 are the same in all"),
    ],
)
def test_variants_pass_and_what_they_share_is_said(name, line):
    assert line in join_order_lines(read(INTAKE / name))


PASS = {
    "tag": [f"MGSSHHHHHHSSGLVPRGSH{b}" for b in BINDERS],
    "Fc fusion": [f"{b}GGGGSGGGGS{FC}" for b in BINDERS],
    "long linker": [f"{b}{'GGGGS' * 8}" for b in BINDERS],
    "scFv of one light chain": [f"{h}{'GGGGS' * 3}{LIGHT}" for h in (HEAVY, OTHER_HEAVY)],
    "Fab of one heavy chain": [f"{HEAVY}:{LIGHT}", f"{HEAVY}:{changed(LIGHT, 9)}"],
    "variants": [changed(PDL1, 6, number) for number in range(6)],
    "variants at one end": [BINDERS[0] + BINDERS[1][:5] + ending for ending in ("AA", "GG", "KK")],
    "truncations": [PDL1[number:] for number in (0, 5, 11)],
    "two domains, variants": [
        f"{changed(BINDERS[0], 4, number)}GGS{changed(PDL1, 5, number)}" for number in range(4)
    ],
    "homodimers": [f"{b}:{b}" for b in BINDERS],
}


@pytest.mark.parametrize("kind", PASS)
def test_designs_of_one_scaffold_or_construct_pass_with_and_without_a_target(kind):
    text = designs(*PASS[kind])
    assert len(read(text)) == len(PASS[kind])
    target = HEAVY[:20] + BINDERS[2] + BINDERS[3] + "HHHHHHHH"
    if "variants at" not in kind and not any(b in target for b in PASS[kind] for b in BINDERS):
        assert len(read(text, target_sequence=BINDERS[1][::-1] * 2)) == len(PASS[kind])


# -- properties

_CHAIN = st.text("ACDEFGHIKLMNPQRSTVWY", min_size=1, max_size=70)
_DESIGN = st.lists(_CHAIN, min_size=1, max_size=3).map(":".join)
_CHOICES = st.fixed_dictionaries(
    {
        "chain": st.sampled_from([None, "1", "2", "1,2"]),
        "as_is": st.booleans(),
        "target_sequence": st.sampled_from([None, PDL1]),
    }
)


@given(
    st.lists(_DESIGN, min_size=1, max_size=5),
    _CHOICES,
    st.sampled_from([str, lambda b: b + PDL1, lambda b: f"{b}:{PDL1}"]),
    st.booleans(),
)
def test_nothing_is_ordered_that_is_not_in_the_input_as_a_chain_of_one_design(
    given_designs, choices, attach, as_table
):
    """A chain that is ordered is a whole chain, or a part of one, of the design of its name; what is dropped is named."""
    written = {f"d{number}": attach(design) for number, design in enumerate(given_designs)}
    text = table("name,sequence", *map(",".join, written.items())) if as_table else fasta(*written.items())
    try:
        sequences = read(text, as_protein=True, **choices)
    except InvalidSequences:
        return
    for item in sequences.items:
        chains = written[item.name].split(":")
        assert all(
            any(chain == source or chain in source for source in chains)
            for chain in item.aa_string.split(":")
        )
        if choices["chain"] is None:
            assert item.aa_string == written[item.name]
    dropped = written.keys() - {item.name for item in sequences.items}
    assert dropped == {design.name for design in sequences.duplicates} | {
        design.name for design in sequences.report.left_out
    }
    if choices["chain"] is not None and any(item.aa_string != written[item.name] for item in sequences.items):
        assert "of each design was taken" in join_order_lines(sequences)


def test_pools_have_the_same_report():
    pool = read_pool(str(INTAKE / "boltzgen_final_designs_metrics_2.csv"))
    assert pool.report == read(INTAKE / "boltzgen_final_designs_metrics_2.csv").report
    assert order_lines(pool)[0].startswith("2 designs: 120 residues")


def test_a_table_is_read_from_a_workbook():
    import openpyxl

    book = openpyxl.Workbook()
    for row in csv.reader(io.StringIO((INTAKE / "vhh_cdr3_library.csv").read_text())):
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    assert residues(read_sequences("b.xlsx", data=buffer.getvalue())) == residues(
        read(INTAKE / "vhh_cdr3_library.csv")
    )
