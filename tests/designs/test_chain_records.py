"""Which records and rows are designs: each kind of file that ordered chains, targets or changed letters, and its ordinary neighbours."""

import random
from pathlib import Path

import pytest

from prefect_assay.designs.chains import refuse_target
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.read import read_sequences
from prefect_assay.designs.report import order_lines
from prefect_assay.errors import InvalidSequences

CASES = Path(__file__).parent / "cases"
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
CHANCE = random.Random(5)


def some(number: int) -> str:
    return "".join(CHANCE.choices(LETTERS, k=number))


def varied(residues: str, number: int = 6) -> str:
    letters = list(residues)
    for position in CHANCE.sample(range(len(letters)), number):
        letters[position] = CHANCE.choice(LETTERS)
    return "".join(letters)


BINDERS = [f"M{some(60)}" for _ in range(12)]
VARIANTS = [varied(BINDERS[0]) for _ in range(8)]
TARGET = f"M{some(150)}"
HEAVY = [
    f"EVQLVESGGGLVQPGGSLRLSCAAS{some(10)}WVRQAPGKGLEWVSAISGSGGSTYYADSVKGRFTISRDNSKNTLYLQMNSLRAEDTAVYYCAK{some(12)}WGQGTLVTVSS"
    for _ in range(12)
]
LIGHT = [
    f"DIQMTQSPSSLSASVGDRVTITC{some(11)}WYQQKPGKAPKLLIYSASSLYSGVPSRFSGSRSGTDFTLTISSLQPEDFATYYC{some(9)}FGQGTKVEIK"
    for _ in range(12)
]


def fasta(names, residues) -> str:
    return "".join(f">{name}\n{sequence}\n" for name, sequence in zip(names, residues, strict=False))


def table(titles: str, *rows: str) -> str:
    return "".join(f"{row}\n" for row in (titles, *rows))


def beside(first: str, second: str, ones, others, number: int = 3) -> str:
    """Records of both in turn; `{}` in a name is the number of the design."""
    return "".join(
        fasta((first.format(index + 1), second.format(index + 1)), (ones[index], others[index]))
        for index in range(number)
    )


def read(content: str | Path, **choices):
    if isinstance(content, Path):
        return read_sequences(str(content), reading=ReadingOptions(**choices))
    return read_sequences("designs", text=content, reading=ReadingOptions(**choices))


def asked(content: str | Path, **choices) -> str:
    with pytest.raises(InvalidSequences) as caught:
        read(content, **choices)
    return "\n".join(caught.value.findings)


def residues(sequences) -> list[str]:
    return [item.aa_string for item in sequences.items]


def join_order_lines(sequences) -> str:
    return "\n".join(order_lines(sequences))


# -- the cases that were met

MET = {
    "antigen_chain_in_name.fasta": "a record is called 'antigen_chain_B'",
    "boltzgen_designed_residues_not_in_the_chain.csv": "another designed chain is missing",
    "foundry_slash_chain_1.fa": "--chain (in a form: chain) takes one of them",
    "heavy_and_light_swapped.csv": "heavy, light are not a heavy and a light chain in this order",
    "hlt_target_beside_pair.fasta": "'final_chain_T': this is another chain of the complex",
    "nan_between_regions.fasta": "letters of both cases: 'nan' at position 26",
    "pipe_chain_A_B.fasta": "'design_1 | chain A', 'design_1 | chain B' are chains of 'design_1'",
    "saprot_structure_letters.fasta": "letters of both cases: 'd' at position 2",
    "type_scfv_ordered_as_two_chains.csv": "it is called a single chain or has a linker",
}
READ = {
    "HC1_LC1.fasta": ["HC1_LC1", "HC2_LC2"],
    "airr_heavy_and_light_by_cell.tsv": ["c1", "c2"],
    "boltzgen_fab_heavy_only.csv": ["fab_1"],
    "mouse_igg_taken_for_target.tsv": [f"ab{index}" for index in range(6)],
    "rfantibody_chainH_chainL.fasta": [f"design_{index}_best" for index in range(3)],
}


@pytest.mark.parametrize("name", MET)
def test_a_case_that_was_met_is_asked_about(name):
    assert MET[name] in asked(CASES / name)


@pytest.mark.parametrize("name", READ)
def test_a_case_that_was_met_is_read_as_heavy_and_light_chains(name):
    sequences = read(CASES / name)
    assert [item.name for item in sequences.items] == READ[name]
    assert all(text.startswith("EVQLVESGGG") and ":DIQMTQSPSS" in text for text in residues(sequences))
    assert not sequences.duplicates


def test_what_was_joined_or_is_not_productive_is_said():
    lines = join_order_lines(read(CASES / "airr_heavy_and_light_by_cell.tsv"))
    assert "2 pairs of heavy and light chains were joined as heavy:light" in lines
    assert "1 record is not productive by the column productive, and ordered: 'c2_contig_2'" in lines
    assert "'c1_contig_1' is 'c1'" in lines


@pytest.mark.parametrize(
    ("name", "chain", "lengths"),
    [
        ("pipe_chain_A_B.fasta", "A", [60, 60]),
        ("hlt_target_beside_pair.fasta", "H,L", [227]),
        ("rfantibody_chainH_chainL.fasta", "1", [120, 120]),
        ("foundry_slash_chain_1.fa", "1", [60, 60]),
    ],
)
def test_the_chain_that_is_named_is_taken(name, chain, lengths):
    sequences = read(CASES / name, chain=chain)
    assert [item.residues for item in sequences.items] == lengths
    assert "was taken" in join_order_lines(sequences)


def test_records_are_designs_of_their_own_where_the_user_says_so():
    sequences = read(CASES / "hlt_target_beside_pair.fasta", as_is=True)
    assert len(sequences) == 3
    assert "kept: line 5, 'final_chain_T'" in join_order_lines(sequences)


def test_a_single_design_with_its_target_is_refused_as_two_are():
    single = read(CASES / "single_design_with_its_target.fasta")
    target = single.items[0].aa_string.partition(":")[2]
    with pytest.raises(
        InvalidSequences, match="chain 2 of 1 of 1 design is the target in the service's catalog"
    ):
        refuse_target(single, target, ReadingOptions())
    refuse_target(single, target, ReadingOptions(as_is=True))
    assert "is the target (--target-sequence)" in asked(
        CASES / "single_design_with_its_target.fasta", target_sequence=target
    )
    fused = fasta(["d1"], [BINDERS[0] + TARGET])
    assert "the end of 1 of 1 design is the target" in asked(fused, target_sequence=TARGET)
    assert residues(read(fused, target_sequence=TARGET, chain="1")) == [BINDERS[0]]
    assert "a record is called 'target'" in asked(fasta(["target"], [TARGET]))


@pytest.mark.parametrize(
    "spelling",
    [
        lambda t: f"{t[:50]}X{t[50:]}",
        lambda t: f"{t[:50]}-{t[50:]}",
        lambda t: f"{t[:50]} 50\n{t[50:]}",
        lambda t: f"{t}**",
        lambda t: f"{BINDERS[1]}/{t}",
        lambda t: f">chain A\n{BINDERS[1]}\n>chain B\n{t}\n",
        lambda t: t.lower(),
        lambda t: f"  1 {t[:10]} {t[10:20]} {t[20:]}",
        lambda t: f"{BINDERS[1]}:{t[:9]}X{t[9:20]}",
    ],
    ids=["unknown residue", "gap", "numbers", "stops", "slash", "FASTA", "case", "blocks", "short"],
)
def test_the_target_is_known_however_the_catalog_writes_it(spelling):
    single = read(CASES / "single_design_with_its_target.fasta")
    target = single.items[0].aa_string.partition(":")[2]
    with pytest.raises(InvalidSequences, match="is the target in the service's catalog"):
        refuse_target(single, spelling(target), ReadingOptions())
    others = read(fasta(["d1", "d2"], [BINDERS[2], BINDERS[3]]))
    assert refuse_target(others, spelling(target), ReadingOptions()) == ()


@pytest.mark.parametrize(
    "written",
    [
        TARGET.lower(),
        f">T\n{TARGET}",
        f"{TARGET[:50]}-{TARGET[50:]}",
        f"{BINDERS[1]}:{TARGET[:50]}X{TARGET[51:]}",
    ],
)
def test_the_residues_of_the_target_are_known_however_the_user_writes_them(written):
    content = fasta(["d1"], [f"{BINDERS[0]}:{TARGET}"])
    assert "is the target (--target-sequence)" in asked(content, target_sequence=written)
    for short in ("MKV", "1234", ">T"):
        assert "give 8 residues of the target or more" in asked(content, target_sequence=short)


def test_a_target_that_cannot_be_compared_is_said_to_be_so():
    single = read(CASES / "single_design_with_its_target.fasta")
    for written in ("see the data sheet", "Proprietary", "RGDSP", "X" * 200):
        (remark,) = refuse_target(single, written, ReadingOptions())
        assert "was not compared with the designs" in remark
        assert refuse_target(single, written, ReadingOptions(as_is=True)) == ()
    for absent in (None, "", " \n"):
        assert refuse_target(single, absent, ReadingOptions()) == ()


def test_the_advice_about_a_target_is_followed():
    """What a message says to write is accepted by the next command."""
    fused = fasta(["d1"], [BINDERS[0] + TARGET])
    with pytest.raises(
        InvalidSequences, match=r"--chain 1 \(in a form: chain\) in addition to --target-sequence"
    ):
        refuse_target(read(fused), TARGET, ReadingOptions())
    refuse_target(read(fused, chain="1", target_sequence=TARGET), TARGET, ReadingOptions())
    two = f"{BINDERS[5]}:{TARGET}"
    assert "--chain 1 (in a form: chain) orders the rest" in asked(fused, target_sequence=two)
    assert residues(read(fused, chain="1", target_sequence=two)) == [BINDERS[0]]
    whole = asked(fasta(["d1", "d2"], [BINDERS[0], TARGET]), target_sequence=TARGET)
    assert "Leave these designs out, or order them with --as-is" in whole
    assert "--chain" not in whole
    content = fasta(("d0_H", "d0_L", "d0_T"), (HEAVY[0], LIGHT[0], TARGET))
    assert "name the designed chains with --chain (in a form: chain), as in H,L" in asked(content)
    assert residues(read(content, chain="H,L")) == [f"{HEAVY[0]}:{LIGHT[0]}"]


def test_a_target_of_two_chains_in_a_column_is_compared_chain_by_chain():
    text = f"name,sequence,target_sequence\nd1,{BINDERS[0]}:{TARGET[:20]},{TARGET[30:]}/{TARGET[:20]}\n"
    assert "chain 2 of 1 of 1 design is the target in a column of the file" in asked(text)


# -- labels of chains in names

HEAVY_AND_LIGHT = [
    ("ab{}_VH", "ab{}_VL"),
    ("VH{}", "VL{}"),
    ("H{}", "L{}"),
    ("ab{}-H", "ab{}-L"),
    ("ab{}.H", "ab{}.L"),
    ("heavy_{}", "light_{}"),
    ("ab{}_heavy", "ab{}_kappa"),
    ("ab{}_heavy", "ab{}_lambda"),
    ("mAb{}H", "mAb{}L"),
    ("ab{}:H", "ab{}:L"),
    ("{}|H|pdb", "{}|L|pdb"),
    ("ab{} chain=H", "ab{} chain=L"),
    ("clone{}vh", "clone{}vl"),
    ("mAb{}(VH)", "mAb{}(VL)"),
    ("d{}_chain_H", "d{}_chain_L"),
    ("ab{}_Heavy_Chain", "ab{}_Light_Chain"),
    ("IGH_c{}", "IGK_c{}"),
    ("ab{}_HC_v2", "ab{}_LC_v2"),
    ("ab{}Heavy", "ab{}Light"),
    ("VH_ab{}", "VL_ab{}"),
]


@pytest.mark.parametrize(("heavy", "light"), HEAVY_AND_LIGHT)
def test_heavy_and_light_are_joined_where_names_and_domains_agree(heavy, light):
    sequences = read(beside(heavy, light, HEAVY, LIGHT))
    assert residues(sequences) == [f"{one}:{other}" for one, other in zip(HEAVY[:3], LIGHT[:3], strict=True)]
    assert "3 pairs of heavy and light chains were joined" in join_order_lines(sequences)
    assert "not a" not in join_order_lines(sequences)


NO_PAIRS = {
    "names without a label": (fasta(("s1", "s2", "s3", "s4"), (HEAVY[0], LIGHT[0], HEAVY[1], LIGHT[1])), "no label in their names"),
    "numbers": (beside("{}_1", "{}_2", HEAVY, LIGHT), "no label in their names"),
    "letters of a complex": (beside("ab{}_A", "ab{}_B", HEAVY, LIGHT), "no label in their names"),
    "one light chain for all": (fasta((*(f"HC{index}" for index in range(6)), "LC"), (*HEAVY[:6], LIGHT[0])), "no label in their names"),
    "names the other way round": (beside("ab{}_VL", "ab{}_VH", HEAVY, LIGHT), "no label in their names"),
    "one chain alone": (beside("ab{}_VH", "ab{}_VL", HEAVY, LIGHT) + fasta(["ab9_VH"], HEAVY[9:]), "without the other"),
    "one pair the other way round": (beside("ab{}_VH", "ab{}_VL", HEAVY, LIGHT) + fasta(("ab9_VH", "ab9_VL"), (LIGHT[9], HEAVY[9])), "the name says heavy chain"),
    "a protein beside pairs": (beside("ab{}_VH", "ab{}_VL", HEAVY, LIGHT) + fasta(["PDL1"], [TARGET]), "this one is not an antibody"),
    "H, L and A": (fasta("HLA", (HEAVY[0], LIGHT[0], TARGET)), "another chain of the complex"),
    "three in a cell": (table("sequence_id,sequence,sequence_aa,locus,cell_id", *(f"c{index}_1,ACGT,{HEAVY[index]},IGH,c{index}" for index in range(3)), *(f"c{index}_2,ACGT,{LIGHT[index]},IGK,c{index}" for index in range(3)), f"c1_3,ACGT,{LIGHT[5]},IGK,c1"), "one chain of an antibody without the other"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_PAIRS)
def test_antibody_chains_that_do_not_pair_are_asked_about(kind):
    content, line = NO_PAIRS[kind]
    assert line in asked(content)
    assert residues(read(content, as_is=True))


CHAINS = [
    ("design_{} | chain A", "design_{} | chain B"),
    ("d{}:A", "d{}:B"),
    ("PDB{}|A", "PDB{}|B"),
    ("{}|A|pdb", "{}|B|pdb"),
    ("d{} chain=A", "d{} chain=B"),
    ("d{}_Chain_1", "d{}_Chain_2"),
    ("d{}_A", "d{}_B"),
    ("d{}.A", "d{}.B"),
    ("d{}-A", "d{}-B"),
    ("d{} A", "d{} B"),
    ("chainA_d{}", "chainB_d{}"),
    ("d{}_chA", "d{}_chB"),
    ("TCR{}_alpha", "TCR{}_beta"),
    ("d{}/A", "d{}/B"),
    ("d{}(A)", "d{}(B)"),
    ("d{}_chain=A_len61", "d{}_chain=B_len151"),
]


@pytest.mark.parametrize(("first", "second"), CHAINS)
@pytest.mark.parametrize("others", [[TARGET] * 3, BINDERS[5:]], ids=["one target", "several"])
def test_names_that_differ_only_by_the_label_of_a_chain_are_asked_about(first, second, others):
    content = beside(first, second, BINDERS, others)
    assert "names that differ only by a label" in asked(content)
    label = "ALPHA" if "alpha" in first else "1" if "Chain_1" in first else "A"
    assert residues(read(content, chain=label)) == BINDERS[:3]
    assert len(read(content, as_is=True).items) + len(read(content, as_is=True).duplicates) == 6


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("d{}_binder", "d{}_pdl1"),
        ("binder_{}", "pdl1_{}"),
        ("d{}_1", "d{}_2"),
        ("d{}A", "d{}B"),
        ("A_d{}", "B_d{}"),
        ("s{}a", "s{}b"),
    ],
)
def test_one_record_under_several_stems_is_asked_about(first, second):
    content = beside(first, second, BINDERS, [TARGET] * 4, number=4)
    assert "4 of 8 records have the same residues" in asked(content)
    apart = fasta(
        [*(first.format(index) for index in range(4)), *(second.format(index) for index in range(4))],
        [*BINDERS[:4], *[TARGET] * 4],
    )
    if "{}_1" not in first and not second.startswith(("pdl1", "B_")):
        assert "4 of 8 records have the same residues" in asked(apart)


ONE_COMPLEX = {
    "chain A and B": ("chain A", "chain B"),
    "numbered": ("Chain_1", "Chain_2"),
    "letters alone": ("A", "B"),
    "letters behind a number": ("d7_A", "d7_B"),
    "letters behind a structure": ("model_A", "model_B"),
    "descriptions": ("s1 chain A", "s2 chain B"),
}


@pytest.mark.parametrize("names", ONE_COMPLEX.values(), ids=ONE_COMPLEX)
def test_two_chains_of_one_complex_are_asked_about(names):
    assert "is it the target?" in asked(fasta(names, (BINDERS[0], TARGET)))


@pytest.mark.parametrize("names", [("H", "A"), ("design_0_H", "design_0_T"), ("nb7_chainH", "nb7_chainT")])
def test_a_nanobody_and_its_target_are_asked_about(names):
    assert "is it the target?" in asked(fasta(names, (HEAVY[0], TARGET)))


# -- columns

COLUMNS = {
    "grouped": table("id,design,chain,sequence", *(f"{label}{index},d{index},{label},{sequence}" for index in range(3) for label, sequence in (("A", BINDERS[index]), ("B", TARGET)))),
    "in turn": table("name,chain,sequence", *(f"x{index},{'AB'[index % 2]},{BINDERS[index]}" for index in range(6))),
    "words": table("name,chain,sequence", *(f"x{index},{'EGFR' if index % 2 else 'binder'},{BINDERS[index]}" for index in range(4))),
    "words of a kind": table("name,design,chain_type,sequence", *(f"x{index},d{index // 2},{'EGFR' if index % 2 else 'binder'},{BINDERS[index]}" for index in range(6))),
    "receptor": beside("des{}_binder", "des{}_receptor", BINDERS, BINDERS[5:]),
    "words of one chain": table("name,design,chain,sequence", *(f"x{index},d{index // 2},{'EGFR' if index % 2 else 'nanobody'},{TARGET if index % 2 else BINDERS[index]}" for index in range(6))),
    "one receptor": fasta(("binder1", "binder2", "my_receptor_chain_A"), BINDERS),
    "entity": table("name,sequence,role", *(f"d{index},{BINDERS[index]},binder" for index in range(3)), f"x,{TARGET},target"),
    "flag": table("name,sequence,is_target", *(f"d{index},{BINDERS[index]},false" for index in range(3)), f"x,{TARGET},true"),
    "antigen chain": table("name,sequence,kind", *(f"d{index},{BINDERS[index]},design" for index in range(3)), f"x,{TARGET},Antigen chain"),
}  # fmt: skip


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_that_says_chain_or_target_is_asked_about(kind):
    assert (
        "is it the target?" in (line := asked(COLUMNS[kind])) or "it looks like what the designs bind" in line
    )


@pytest.mark.parametrize(
    "title",
    [
        "target",
        "Antigen",
        "target_sequence",
        "receptor_seq",
        "antigen_aa",
        "target_chain",
        "target_protein_sequence",
        "target.seq",
        "Target (sequence)",
    ],
)
def test_the_residues_in_a_column_target_are_looked_for_in_one_design_too(title):
    content = table(f"name,sequence,{title}", f"d1,{BINDERS[0]}{TARGET},{TARGET}")
    assert "the target in a column of the file" in asked(content)
    assert residues(read(content, chain="1")) == [BINDERS[0]]


@pytest.mark.parametrize(
    "cell",
    [
        TARGET.lower(),
        f"{TARGET[:70]} {TARGET[70:]}",
        f"{TARGET[:70]}--{TARGET[70:]}",
        f'">chain T\n{TARGET}"',
        TARGET[:9],
        f"{TARGET[:70]}X{TARGET[70:]}",
    ],
    ids=["lower case", "blank", "gap", "FASTA", "nine residues", "unknown residue"],
)
def test_a_target_in_a_column_is_known_however_it_is_written(cell):
    chain = TARGET[:9] if len(cell) == 9 else TARGET
    others = [f"x{index},{BINDERS[index]},PD-L1,0.{index}" for index in range(1, 4)]
    content = table(
        "name,sequence,target,target_iptm",
        *others,
        f"d1,{BINDERS[0]}:{chain},{cell},0.7",
        f"d2,{TARGET},,0.5",
    )
    assert "is the target in a column of the file" in asked(content)
    many_scores = [f"y{index},{BINDERS[5]}{'A' * index},{index}e-3,{index}" for index in range(90)]
    assert "the target in a column" in asked(
        table("name,sequence,target_score,target", *many_scores, f"d1,{BINDERS[0]}:{chain},1,{cell}")
    )


@pytest.mark.parametrize(
    "title",
    ["target_binder_seq", "antigen_specific_cdr3", "target_epitope", "receptor_alpha", "receptor_beta"],
)
def test_a_part_or_a_binder_of_a_target_is_no_target(title):
    content = table(f"name,sequence,{title}", f"d1,{BINDERS[0]}:{BINDERS[1]},{BINDERS[0]}")
    assert len(read(content)) == 1


def test_rows_of_a_column_of_chains_are_joined_or_taken():
    rows = [
        f"{label}{index},ab{index},{label},{chains[index]}"
        for index in range(3)
        for label, chains in (("H", HEAVY), ("L", LIGHT))
    ]
    sequences = read(table("id,antibody,chain,sequence", *rows))
    assert [(item.name, item.aa_string) for item in sequences.items] == [
        (f"ab{index}", f"{HEAVY[index]}:{LIGHT[index]}") for index in range(3)
    ]
    (first, *_) = read(COLUMNS["grouped"], chain="A").items
    assert (first.name, first.aa_string, first.attributes["id"]) == ("d0_A", BINDERS[0], "A0")


AIRR = "sequence_id,sequence,sequence_aa,locus,cell_id"


def airr_row(sample: str, cell: str, chain: str) -> str:
    locus = "IGH" if chain in HEAVY else "IGK"
    return f"{sample}_{cell}_{locus},ACGT,{chain},{locus},{cell}"


@pytest.mark.parametrize(
    "title", ["sample_id", "Donor", "subject_id", "library", "repertoire_id", "run", None]
)
def test_a_barcode_is_of_one_cell_in_each_sample(title):
    def airr(*rows: tuple[str, str, str]) -> str:
        if title is not None:
            return table(f"{AIRR},{title}", *(f"{airr_row(*row)},{row[0]}" for row in rows))
        parts = [[airr_row(*row) for row in rows if row[0] == sample] for sample in ("S1", "S2")]
        return table(AIRR, *parts[0], AIRR, *parts[1])

    pairs = [("S1", "AAAC-1", HEAVY[0]), ("S1", "AAAC-1", LIGHT[0])]
    halves = [("S1", "GGTT-1", HEAVY[1]), ("S2", "GGTT-1", LIGHT[2])]
    assert "this is one chain of an antibody without the other" in asked(airr(*pairs, *halves))
    whole = [("S1", "GGTT-1", LIGHT[1]), ("S2", "GGTT-1", HEAVY[2])]
    one, other = ("S1", "S2") if title is not None else ("run1", "run2")
    assert {item.name: item.aa_string for item in read(airr(*pairs, *halves, *whole)).items} == {
        "AAAC-1": f"{HEAVY[0]}:{LIGHT[0]}",
        f"{one}_GGTT-1": f"{HEAVY[1]}:{LIGHT[1]}",
        f"{other}_GGTT-1": f"{HEAVY[2]}:{LIGHT[2]}",
    }


def pairs_table(titles: str, *, behind: str = "", name: str = "ab{}") -> str:
    rows = (f"{name.format(index)},{HEAVY[index]},{LIGHT[index]}{behind}" for index in range(3))
    return table(titles, *rows)


@pytest.mark.parametrize(
    "content",
    [
        pairs_table("name,vh,vl,linker", behind=",GGGGSGGGGSGGGGS"),
        pairs_table("name,heavy,light,linker_seq", behind=",GGGGSGGGGSGGGGS"),
        pairs_table("name,heavy,light,format", behind=",scFv-Fc"),
        pairs_table("name,vh,vl,type", behind=",SingleChain"),
        pairs_table("name,heavy,light,construct", behind=",single chain Fv"),
        pairs_table("name,heavy,light", name="scFv_{}"),
    ],
)
def test_a_single_chain_in_two_columns_is_asked_about(content):
    assert "called a single chain or has a linker" in asked(content)
    assert residues(read(content, as_is=True))[0] == f"{HEAVY[0]}:{LIGHT[0]}"


@pytest.mark.parametrize(
    "row",
    [f"x,{LIGHT[7]},{HEAVY[7]}", f"x,,{LIGHT[7]}", f"x,{LIGHT[7]},{LIGHT[8]}", f"x,{HEAVY[7]},{HEAVY[8]}"],
    ids=["swapped", "light alone", "two light", "two heavy"],
)
def test_one_row_with_other_chains_than_its_columns_say_is_asked_about(row):
    content = pairs_table("name,heavy,light") + f"{row}\n"
    assert "1 row, 'x': the residues of heavy, light" in asked(content)


@pytest.mark.parametrize(
    "cells", [f"{LIGHT[0]},{HEAVY[0]}", f",{HEAVY[0]}", f"{LIGHT[0]},"], ids=["swapped", "heavy", "light"]
)
def test_domains_of_a_single_chain_in_each_others_columns_are_asked_about(cells):
    chain = f"{HEAVY[0]}{'GGGGS' * 3}{LIGHT[0]}"
    content = table("name,sequence,VH,VL", f"a,{chain},{cells}", f"b,{chain}A,{HEAVY[0]},{LIGHT[0]}")
    assert "1 row, 'a': the residues of VH, VL are not a heavy and a light chain" in asked(content)
    assert len(read(content, as_is=True)) == 2


# -- letters


@pytest.mark.parametrize(
    "text",
    [
        "ACDkEFGHIK",
        f"{BINDERS[0]}:{BINDERS[1].lower()}",
        "acdefghiKlmnp",
        BINDERS[0][:30] + "gggsgggs" + BINDERS[1],
    ],
)
def test_letters_of_both_cases_are_refused(text):
    assert "letters of both cases" in asked(fasta(("p1", "p2"), (text, BINDERS[3])))


def test_a_file_in_lower_case_is_read_with_a_line():
    sequences = read(fasta(("p1", "p2"), (BINDERS[0].lower(), BINDERS[1].lower())))
    assert residues(sequences) == BINDERS[:2]
    assert (
        "2 designs are written in lower case, and read as the same residues in upper case"
        in join_order_lines(sequences)
    )
    some_lower = read(fasta(("p1", "p2"), (BINDERS[0].lower(), BINDERS[1])))
    assert (
        "1 design is written in lower case, and read as the same residues in upper case: 'p1'"
        in join_order_lines(some_lower)
    )


# -- what residues leave out


def complex_of(**changes) -> str:
    import json

    body = {"id": "B", "sequence": BINDERS[0], **changes}
    return json.dumps(
        {"name": "x", "sequences": [{"protein": {"id": "A", "sequence": TARGET}}, {"protein": body}]},
        indent=1,
    )


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"modifications": [{"ptmType": "DAL", "ptmPosition": 3}]}, "DAL at 3"),
        ({"modifications": [{"ccd": "MSE", "position": 1}]}, "MSE at 1"),
        ({"cyclic": True}, "cyclic"),
        ({"glycans": [{"residues": "NAG", "position": 8}]}, "glycans at 8"),
    ],
)
def test_a_chain_that_is_more_than_its_residues_is_refused(changes, word):
    assert word in asked(complex_of(**changes), chain="B")
    assert len(read(complex_of(**changes), chain="A")) == 1


def test_what_is_empty_changes_nothing():
    assert residues(read(complex_of(modifications=[], cyclic=False, msa="empty"), chain="B")) == [BINDERS[0]]


def test_a_named_bond_of_the_chain_is_refused_and_a_disulfide_is_not():
    head = f"version: 1\nsequences:\n- protein: {{id: A, sequence: {TARGET}}}\n- protein: {{id: B, sequence: {BINDERS[0]}}}\nconstraints:\n"
    bond = head + "- bond: {atom1: [B, 1, N], atom2: [B, 61, C]}\n"
    assert "a bond of B N 1 and B C 61" in asked(bond, chain="B")
    assert len(read(bond, chain="A")) == 1
    assert len(read(head + "- bond: {atom1: [B, 1, SG], atom2: [B, 61, SG]}\n", chain="B")) == 1


# -- what must pass without a question

H_TABLE = [f"ab{index},{HEAVY[index]}" for index in range(6)]
PASS = {
    "wells of a plate": fasta(("A1", "B1", "C1", "D1", "A2", "B2", "H1", "H2", "L1", "L2"), BINDERS),
    "wells of plates": fasta([f"P{plate}_{row}1" for plate in (1, 2) for row in "ABCD"], BINDERS),
    "mutants": fasta(("mutA", "mutB", "mutC"), VARIANTS),
    "one scaffold": fasta(("WT_A", "mut1_A", "mut2_A"), VARIANTS),
    "two series of variants": fasta(("WT_A", "WT_B", "M1_A", "M1_B", "M2_A", "M2_B"), VARIANTS),
    "unrelated A, B, C": fasta("ABC", BINDERS),
    "unrelated, with a word": fasta(("binder_A", "binder_B", "binder_C"), BINDERS),
    "two with a word": fasta(("design_A", "design_B"), BINDERS),
    "greek": fasta(("binder_alpha", "binder_beta", "binder_gamma"), BINDERS),
    "families": fasta(("GFP_A", "RFP_A", "GFP_B", "RFP_B"), BINDERS),
    "nanobodies": fasta([f"nb_{letter}" for letter in "ABCDEF"], HEAVY),
    "nanobodies with H": fasta([f"VHH_{letter}_H" for letter in "ABCDEF"], HEAVY),
    "a library of VH": fasta([f"ab{index}_VH" for index in range(6)], HEAVY),
    "a library of VL": fasta([f"ab{index}_VL" for index in range(6)], LIGHT),
    "scFv": fasta([f"scFv_{index}" for index in range(6)], [f"{one}{'GGGGS' * 3}{other}" for one, other in zip(HEAVY, LIGHT, strict=True)]),
    "scFv with its parts": table("name,sequence,VH,VL,type", *(f"s{index},{HEAVY[index]}{'GGGGS' * 3}{LIGHT[index]},{HEAVY[index]},{LIGHT[index]},scFv" for index in range(4))),
    "one light chain": table("name,heavy,light", *(f"{row},{LIGHT[0]}" for row in H_TABLE)),
    "two heavy, two light": table("name,heavy,light", *(f"ab{one}{other},{HEAVY[one]},{LIGHT[other]}" for one in (0, 1) for other in (0, 1))),
    "three heavy, three light": table("name,heavy,light", *(f"ab{one}{other},{HEAVY[one]},{LIGHT[other]}" for one in range(3) for other in range(3))),
    "IgG": table("name,vh,vl,format", *(f"{row},{LIGHT[0]},IgG1" for row in H_TABLE)),
    "heavy alone": table("name,heavy,light", *(f"{row}," for row in H_TABLE)),
    "numbers": fasta(("d1_1", "d1_2", "d2_1", "d2_2"), BINDERS),
    "rounds": fasta(("round1_a", "round1_b", "round2_a", "round2_b"), BINDERS),
    "letters of a round": fasta([f"R{index}_{letter}" for index in range(3) for letter in "ABC"], BINDERS),
    "numbered with a word": fasta([f"long_chain_{index}" for index in range(6)], BINDERS),
    "versions": fasta([f"d{index}.{which}" for index in range(3) for which in range(2)], BINDERS),
    "chain A of several structures": fasta(("1abc_A", "2def_A", "3ghi_A"), BINDERS),
    "numbered H": fasta([f"H{index}" for index in range(6)], HEAVY),
    "of many kinds": fasta([f"x{index}" for index in range(8)], [*HEAVY[:3], *(f"{HEAVY[index]}{'GGGGS' * 3}{LIGHT[index]}" for index in (4, 5)), *BINDERS[:3]]),
    "pairs and nanobodies": fasta([f"x{index}" for index in range(6)], [*(f"{HEAVY[index]}:{LIGHT[index]}" for index in range(3)), *HEAVY[5:8]]),
    "a control off target": fasta(("d1", "d2", "off_target_1"), BINDERS),
    "a receptor": fasta(("d1", "d2", "EGF_receptor_mimic"), BINDERS),
    "receptors that are bound": fasta(("d1", "d2", "d3", "d4", "anti_EGF_receptor", "x5 binder of the EGF receptor", "x6 binds IL7 receptor", "for_receptor_2"), BINDERS),
    "receptors of one name": fasta(("d1", "d2", "d3", "d4", "d5", *(f"transferrin_receptor_{index}" for index in range(1, 5))), BINDERS),
    "receptors in descriptions": fasta(("d1 inhibits the insulin receptor", "d2 x", "d3 y"), BINDERS),
    "states in a column of chains": table("name,sequence,parent,chains", *(f"x{index},{BINDERS[index]},d{index // 2},{'homodimer' if index % 2 else 'monomer'}" for index in range(6))),
    "words in a column of chains": table("name,sequence,chain,method", *(f"d{index},{BINDERS[index]},chain of d{index},RFdiffusion" for index in range(5))),
    "kinds of chains": table("name,sequence,parent,chain_type", *(f"x{index},{BINDERS[index]},d{index // 2},{'VHH dimer' if index % 2 else 'VHH'}" for index in range(6))),
    "target in a column target": table("name,sequence,target", *(f"d{index},{BINDERS[index]},{'EGFR' if index % 2 else 'receptor'}" for index in range(4))),
    "BindCraft": fasta([f"EGFR_l{60 + index}_s{1000 + index}_mpnn{index}" for index in range(6)], BINDERS),
    "named after the target": fasta([f"target_binder_{index}" for index in range(5)], BINDERS),
    "several targets": fasta([f"target{1 + index % 2}_design{index}" for index in range(6)], BINDERS),
    "a column target": table("name,sequence,target,notes", *(f"d{index},{BINDERS[index]},PD-L1,binds target well" for index in range(5))),
    "one chain in a column": table("name,sequence,chain", *(f"d{index},{BINDERS[index]},A" for index in range(5))),
    "chains of several structures": table("name,sequence,chain", *(f"d{index},{BINDERS[index]},{label}" for index, label in enumerate("AABAB"))),
    "one chain in headers": fasta([f"d{index} chain=A iptm=0.{index}" for index in range(5)], BINDERS),
    "high and low": fasta(("v1_H", "v1_L", "v2_H", "v2_L"), VARIANTS),
    "duplicates": fasta(("a1", "a2", "b1", "b2"), (BINDERS[0], BINDERS[0], BINDERS[1], BINDERS[1])),
    "samples of one backbone that are the same": fasta([f"bb{which}_{index}" for which in (1, 2) for index in range(4)], [*[BINDERS[0]] * 4, *VARIANTS[:0], *(varied(BINDERS[1]) for _ in range(4))]),
    "replicates": fasta(("d1_rep1", "d1_rep2", "d2_rep1", "d2_rep2"), (BINDERS[0], BINDERS[0], BINDERS[1], BINDERS[1])),
    "one control on each plate": fasta(("p1_ctrl", "p1_d1", "p2_ctrl", "p2_d2"), (BINDERS[0], BINDERS[1], BINDERS[0], BINDERS[2])),
    "entries of a database": fasta(("sp|P02794|FRIH_HUMAN Ferritin heavy chain", "sp|P02792|FRIL_HUMAN Ferritin light chain"), BINDERS),
    "a pool of many kinds": fasta([f"x{index}" for index in range(10)], [*BINDERS[:6], *HEAVY[:2], *LIGHT[:2]]),
}  # fmt: skip


@pytest.mark.parametrize("kind", PASS)
def test_ordinary_files_pass_without_a_question(kind):
    written = PASS[kind].count(">") or PASS[kind].count("\n") - 1
    sequences = read(PASS[kind])
    assert len(sequences.items) + len(sequences.duplicates) == written
    assert "joined" not in join_order_lines(sequences)
